"""A damaged marker directory read in the plainest way, without the kit's code and without following a link."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from scenarios.fuzz.rules import good_name

_BATCH = re.compile(r"MARKERS(?:0|[1-9][0-9]*)\Z")
_DIRECT = re.compile(r"(?:.*/)?[^/]+\.marker\.(?:CREATE|MERGE|APPEND)\Z", re.DOTALL)
_TYPE = "MARKERS.type"


class Plain(NamedTuple):
    """good: well-formed names on whole lines of regular files, or of regular files. possible: every other as well.

    unreadable: something that should be a file of the format cannot be read, so a reader may fail.
    """

    good: frozenset[str]
    possible: frozenset[str]
    unreadable: bool


def read_plainly(directory: Path) -> Plain:
    """What a marker directory holds."""
    good, possible, unreadable = set(), set(), directory.is_symlink() or directory.is_file()
    for path in everything(directory):
        name = str(path.relative_to(directory))
        regular = path.is_file() and not path.is_symlink()
        readable = regular and os.access(path, os.R_OK)
        if _BATCH.match(name) and readable:
            for line in path.read_bytes().split(b"\n")[:-1]:
                text = line.decode("utf-8", "surrogateescape")
                possible.add(text)
                if good_name(text):
                    good.add(text)
        elif _DIRECT.match(name) and (path.is_symlink() or not path.is_dir()):
            possible.add(name)
            if regular and good_name(name):
                good.add(name)
        elif (_BATCH.match(name) or name == _TYPE) and (path.is_symlink() or not path.is_dir()) and not readable:
            unreadable = True
    return Plain(frozenset(good), frozenset(possible - {""}), unreadable)


def regular_files(directory: Path) -> dict[str, bytes]:
    """The content of every regular file that can be read, by its path below the directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in everything(directory)
        if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK)
    }


def everything(directory: Path) -> list[Path]:
    """Every entry below a directory; a directory that is a link has none."""
    found: list[Path] = []
    if directory.is_symlink():
        return found
    for folder, folders, names in os.walk(directory):
        found += (Path(folder, name) for name in (*folders, *names))
    return sorted(found)


def in_the_way(directory: Path) -> bool:
    """Whether a directory stands where a file of the format should be written."""
    return any(path.is_dir() and path.name.startswith("MARKERS") for path in everything(directory))
