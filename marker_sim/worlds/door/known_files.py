"""What is known of the files below a directory: the content of each path, and which paths are names of one file.

A write changes every name of a file, and the path of a call is only that by which the file was opened: it may be gone
by then. So names are found by device and inode. A symbolic link holds what it leads to, which any call may change.
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
    """contents: by path, as they were kept last. Files that were there before have no names until they are kept."""

    def __init__(self, root: Path) -> None:
        self.contents: dict[str, bytes] = {}
        self._root = root
        self._ids: dict[str, FileId] = {}
        self._names: dict[FileId, dict[str, None]] = {}
        self._links: set[str] = set()

    def keep(self, path: str, data: bytes | None) -> None:
        """A path holds this from now on; None: it is gone."""
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
        """The file that a path leads to now; NO_FILE for none."""
        try:
            found = os.stat(self._root / path)
        except OSError:
            return NO_FILE
        return found.st_dev, found.st_ino

    def names(self, file: FileId, path: str) -> list[str]:
        """The names of a file, with links that lead to it; this path is one as well if it leads there."""
        if file == NO_FILE:
            return []
        names = [*self._names.get(file, ()), *(link for link in sorted(self._links) if self.id_of(link) == file)]
        return names if path in names or self.id_of(path) != file else [path, *names]

    def at(self, top: str) -> Iterator[tuple[str, bytes | None]]:
        """What is at a path and below it, by paths, and then None for those that were and are there no longer.

        Nothing for "", a path outside.
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
        """The links that hold something else than is known."""
        for link in sorted(self._links):
            if (data := self.read(link)) != self.contents.get(link):
                yield link, data

    def read(self, path: str) -> bytes | None:
        """What a path holds now; None when it is gone, or no regular file, which might have no end."""
        file = self._root / path
        with suppress(OSError):
            return file.read_bytes() if file.is_file() else None
        return None


def paths_below(root: Path, prefix: str) -> list[str]:
    """The paths of files below a directory, of those that start so, sorted."""
    found = []
    for folder, _, names in os.walk(root / prefix.rpartition("/")[0]):
        relative = os.path.relpath(folder, root)
        found += [name if relative == "." else f"{relative}/{name}" for name in names]
    return sorted(path for path in found if path.startswith(prefix))


def files_below(root: Path, prefix: str = "") -> dict[str, bytes]:
    """The files below a directory by their paths there, sorted, of those that start so. Links to files are followed."""
    files = KnownFiles(root)
    return {path: data for path in paths_below(root, prefix) if (data := files.read(path)) is not None}
