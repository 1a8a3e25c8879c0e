"""The known state of files below a directory: the content of each path, and which paths are names of one file.

A write changes every name of a file, and the path of a call is only the one by which the file was opened; it may be
gone. So names are found by device and inode. A symbolic link has the content of its target, which any call may change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

FileId = tuple[int, int]
"""Device and inode."""
NO_FILE: FileId = (0, 0)


class KnownFiles:
    """contents: by path, as kept last. Files that existed at the beginning have no names until they are kept."""

    def __init__(self, root: Path) -> None:
        self.contents: dict[str, bytes] = {}
        self._root = root
        self._ids: dict[str, FileId] = {}
        self._names: dict[FileId, dict[str, None]] = {}
        self._links: set[str] = set()

    def keep(self, path: str, data: bytes | None) -> None:
        """Store the current content of a path; None: the path is gone."""
        before = self._ids.pop(path, NO_FILE)
        if before in self._names:
            del self._names[before][path]
            if not self._names[before]:
                del self._names[before]
        self._links.discard(path)
        if (self._root / path).is_symlink():
            self._links.add(path)
        elif data is not None:
            file = self._ids[path] = self.id_of(path)
            self._names.setdefault(file, {})[path] = None
        if data is not None:
            self.contents[path] = data
        else:
            self.contents.pop(path, None)

    def id_of(self, path: str) -> FileId:
        """The file at a path now; NO_FILE if there is none."""
        return file_at(self._root / path)

    def names(self, file: FileId, path: str) -> list[str]:
        """The names of a file, with links that lead to it, and `path` if it leads there."""
        if file == NO_FILE:
            return []
        names = [*self._names.get(file, ()), *(link for link in sorted(self._links) if self.id_of(link) == file)]
        return names if path in names or self.id_of(path) != file else [path, *names]

    def at(self, top: str) -> Iterator[tuple[str, bytes | None]]:
        """The path and content of everything at and below a path; then None for each known path that is gone.

        Empty for "", a path outside the root.
        """
        if not top:
            return
        whole = self._root / top
        paths = paths_below(self._root, f"{top}/") if whole.is_dir() and not whole.is_symlink() else [top]
        there = {path: data for path in paths if (data := self.read(path)) is not None}
        self._links |= {path for path in paths if path not in there and (self._root / path).is_symlink()}
        yield from there.items()
        before = [top] if top in self.contents else [path for path in self.contents if path.startswith(f"{top}/")]
        yield from ((path, None) for path in before if path not in there)

    def changed_links(self) -> Iterator[tuple[str, bytes | None]]:
        """The links whose content differs from what is known."""
        for link in sorted(self._links):
            if (data := self.read(link)) != self.contents.get(link):
                yield link, data

    def read(self, path: str) -> bytes | None:
        """The current content of a path; None when it is gone or no regular file, whose content might be endless."""
        file = self._root / path
        with suppress(OSError):
            return file.read_bytes() if file.is_file() else None
        return None


def file_of(status: os.stat_result) -> FileId:
    """The file with this status."""
    return status.st_dev, status.st_ino


def file_at(path: str | Path) -> FileId:
    """The file that a path leads to; NO_FILE if there is none."""
    try:
        return file_of(os.stat(path))
    except OSError:
        return NO_FILE


def paths_below(root: Path, prefix: str) -> list[str]:
    """The paths of files below a directory that start with `prefix`, sorted."""
    found = []
    for folder, _, names in os.walk(root / prefix.rpartition("/")[0]):
        relative = os.path.relpath(folder, root)
        found += [name if relative == "." else f"{relative}/{name}" for name in names]
    return sorted(path for path in found if path.startswith(prefix))


def files_below(root: Path, prefix: str = "") -> dict[str, bytes]:
    """The files below a directory whose path starts with `prefix`, sorted by path. Links to files are followed."""
    files = KnownFiles(root)
    return {path: data for path in paths_below(root, prefix) if (data := files.read(path)) is not None}
