"""The tree around a server: planted canaries, what is stored by a reader of a few lines, and what changed besides.

    <root>/base            what the server may serve: tables with data files, a timeline, and links that lead out
    <root>/base-beside     a name that begins like the base's
    <root>/outside         a table that nobody may touch, and the targets of the links

Nothing but marker directories below the base may change; everything else is compared by inode, size, modification time
and content. The modification times of directories that lead to a marker directory may change, for those get created.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from pathlib import Path

from scenarios.fuzz.http_inputs import INSTANTS, TABLES

_PLACE = re.compile(r"(?P<table>.*?)/\.hoodie/\.temp/(?P<instant>[^/]+)(?:/(?P<inner>.*))?\Z", re.DOTALL)
_DIRECT = re.compile(r".+\.marker\.(CREATE|MERGE|APPEND)\Z", re.DOTALL)
_BATCH = re.compile(r"MARKERS(?:0|[1-9][0-9]*)\Z")
_TYPE = "MARKERS.type"
_LOCK = ".markers.lock"
Facts = tuple[str, int, int, int, str]
Stored = dict[str, Counter[str]]


def names_in(files: dict[str, bytes]) -> Counter[str]:
    """How often each name is stored in one marker directory, given its files by their paths within it."""
    found: Counter[str] = Counter()
    for path, data in files.items():
        if _BATCH.match(path):
            found.update(line.decode("utf-8", "backslashreplace") for line in data.split(b"\n")[:-1] if line)
        elif _DIRECT.match(path):
            found[path] += 1
    return found


def plant(root: Path) -> None:
    """Make the tree: a base with tables, and files that must not be touched."""
    base, outside = root / "base", root / "outside"
    for table in TABLES:
        _write(base / table / ".hoodie" / "hoodie.properties", b"hoodie.table.name=t\n")
        _write(base / table / ".hoodie" / f"{INSTANTS[0]}.commit", b'{"partitionToWriteStats": {}}')
        _write(base / table / "dt=1" / f"f_0-0-0_{INSTANTS[0]}.parquet", b"PAR1")
    for instant in (*INSTANTS, "1"):
        _write(outside / ".hoodie" / ".temp" / instant / "MARKERS0", b"canary.marker.CREATE\n")
        _write(outside / ".hoodie" / ".temp" / instant / _TYPE, b"TIMELINE_SERVER_BASED")
        _write(root / "base-beside" / ".hoodie" / ".temp" / instant / "MARKERS0", b"canary.marker.CREATE\n")
    _write(outside / "precious", b"canary")
    (base / "link-table").symlink_to(outside)
    for name in ("linked-hoodie", "linked-temp", "linked-instant", "loop", "dangling"):
        (base / name).mkdir()
    (base / "linked-hoodie" / ".hoodie").symlink_to(outside / ".hoodie")
    (base / "linked-temp" / ".hoodie").mkdir()
    (base / "linked-temp" / ".hoodie" / ".temp").symlink_to(outside / ".hoodie" / ".temp")
    (base / "linked-instant" / ".hoodie" / ".temp").mkdir(parents=True)
    (base / "linked-instant" / ".hoodie" / ".temp" / INSTANTS[0]).symlink_to(
        outside / ".hoodie" / ".temp" / INSTANTS[0]
    )
    (base / "loop" / ".hoodie").symlink_to(base / "loop" / ".hoodie")
    (base / "dangling" / ".hoodie").symlink_to(root / "nowhere")


class Ground:
    """A tree on this host."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        plant(self.root)
        self.base = str(self.root / "base")
        self.out = str(self.root / "outside")
        self._before = self._facts()

    def stored(self) -> Stored:
        """Read every marker directory below the base, without following links."""
        found: dict[str, dict[str, bytes]] = {}
        for folder, folders, names in os.walk(self.base):
            folders[:] = [name for name in folders if not os.path.islink(f"{folder}/{name}")]
            for name in sorted(names):
                place = _PLACE.match(f"{folder}/{name}")
                path = Path(folder, name)
                if place and place["inner"] and path.is_file() and not path.is_symlink():
                    directory = f"{place['table']}/.hoodie/.temp/{place['instant']}"
                    found.setdefault(directory, {})[place["inner"]] = path.read_bytes()
        counted = {directory: names_in(files) for directory, files in found.items()}
        return {directory: count for directory, count in counted.items() if count}

    def touched(self) -> list[str]:
        """What changed since the tree was made, a line each."""
        now = self._facts()
        lines = []
        for path in sorted(self._before.keys() | now.keys()):
            before, after = self._before.get(path), now.get(path)
            if before is None and after is not None and self._may_be_new(path, after):
                continue
            if before != after:
                lines.append(f"{path}: was {before}, is {after}")
        return lines

    def _facts(self) -> dict[str, Facts]:
        return {path: facts for path, facts in facts_of(self.root).items() if not self._is_marker_place(path)}

    def _is_marker_place(self, path: str) -> bool:
        """Whether a path is the server's to change: below a marker directory of the base that no link leads to."""
        relative = path.removeprefix("base/")
        place = _PLACE.match(f"/{relative}") if relative != path else None
        inner = place["inner"] if place else None
        return bool(place) and not relative.startswith("linked-") and (inner is None or _expected(inner))

    def _may_be_new(self, path: str, facts: Facts) -> bool:
        """A directory of the base on the way to a marker directory, or the lock file of a table."""
        return path.startswith("base/") and (facts[0] == "directory" or path.endswith(f".hoodie/{_LOCK}"))


def _expected(inner: str) -> bool:
    return _BATCH.match(inner) is not None or inner == _TYPE


def facts_of(root: Path) -> dict[str, Facts]:
    """Kind, inode, size, modification time and hash of all below a directory; of directories kind and inode."""
    found: dict[str, Facts] = {}
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder, name)
            try:
                stat = path.lstat()
                if path.is_symlink():
                    facts: Facts = ("link", stat.st_ino, 0, stat.st_mtime_ns, os.readlink(path))
                elif path.is_dir():
                    facts = ("directory", stat.st_ino, 0, 0, "")
                elif path.is_file():
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                    facts = ("file", stat.st_ino, stat.st_size, stat.st_mtime_ns, digest)
                else:
                    facts = ("special", stat.st_ino, 0, stat.st_mtime_ns, "")
            except FileNotFoundError:
                continue
            found[str(path.relative_to(root))] = facts
    return found


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
