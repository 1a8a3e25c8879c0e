"""The files of a storage that is at rest, by full storage path.

A full storage path is that of the events of the same run: relative to the root of a local world, or the key of an
object in its bucket. Directories are no files, nor are the keys ending in "/" that stand for them on an object store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Tree(Protocol):
    """Files by full storage path. OSError from `read` and `size` when a file is not there or cannot be read."""

    def list(self) -> tuple[str, ...]:
        """Every file, sorted."""

    def read(self, path: str) -> bytes:
        """The whole content of a file."""

    def size(self, path: str) -> int:
        """Its length in bytes."""


class Objects(Protocol):
    """What keeps objects by key, as the S3 front does; `objects` must not wait for a fault."""

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Content by key, of the keys that start with a prefix."""


class LocalTree:
    """The files below a directory, which is the root of all storage paths."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def list(self) -> tuple[str, ...]:
        """Every file, sorted; links are not followed."""
        found = []
        for folder, _, names in os.walk(self._root, onerror=_raise):
            below = Path(folder).relative_to(self._root)
            found += [(below / name).as_posix() for name in names]
        return tuple(sorted(found))

    def read(self, path: str) -> bytes:
        """The whole content of a file."""
        return (self._root / path).read_bytes()

    def size(self, path: str) -> int:
        """Its length in bytes."""
        return (self._root / path).stat().st_size


class S3Tree:
    """The objects of a front's bucket, read past its interceptor. `list` takes a snapshot for `read` and `size`."""

    def __init__(self, front: Objects, prefix: str = "") -> None:
        self._front = front
        self._prefix = prefix
        self._picture: Mapping[str, bytes] = {}

    def list(self) -> tuple[str, ...]:
        """Every object, sorted, as of now."""
        self._picture = self._front.objects(self._prefix)
        return tuple(sorted(key for key in self._picture if not key.endswith("/")))

    def read(self, path: str) -> bytes:
        """The whole content of an object of the picture."""
        content = self._picture.get(path)
        if content is None:
            raise FileNotFoundError(f"{path} is no object of the listing")
        return content

    def size(self, path: str) -> int:
        """Its length in bytes."""
        return len(self.read(path))


def _raise(error: OSError) -> None:
    raise error
