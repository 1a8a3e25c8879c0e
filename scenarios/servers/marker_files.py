"""The MARKERS files of one marker directory, on a local directory and on S3, behind one protocol."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from scenarios.servers.s3_objects import Changed, Failed, S3Objects

__all__ = ["Changed", "Files", "LocalFiles", "S3Files"]
TYPE, TYPE_TEXT = "MARKERS.type", b"TIMELINE_SERVER_BASED"


class Files(Protocol):
    """contents: each marker file by its index, as this server knows it. One thread at a time; all raise OSError.

    exclusive   keeps other servers of this host away, where that is how writers agree
    refresh     reads every file that is not the one this server wrote
    write       replaces a file; Changed when another server was faster, unless `blindly`
    remove      the whole directory; whether it was there
    """

    contents: dict[int, bytes]

    def exclusive(self) -> AbstractContextManager[None]: ...
    def exist(self) -> bool: ...
    def refresh(self) -> None: ...
    def write_type(self) -> None: ...
    def write(self, index: int, data: bytes, blindly: bool) -> None: ...
    def write_in_place(self, index: int, data: bytes, pause_s: float) -> None: ...
    def remove(self) -> bool: ...


class LocalFiles:
    """Files that are replaced by rename, under a lock of the host that dies with its process."""

    def __init__(self, path: Path, locks: Path) -> None:
        locks.mkdir(parents=True, exist_ok=True)
        self.contents: dict[int, bytes] = {}
        self._path = path
        self._lock_file = locks / hashlib.sha256(str(path).encode()).hexdigest()
        self._known: dict[str, tuple[int, int, int]] = {}

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock of the host."""
        with self._lock_file.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def exist(self) -> bool:
        """Whether the directory is there."""
        return self._path.is_dir()

    def refresh(self) -> None:
        """Read what changed."""
        present = {}
        for path in self._path.glob("MARKERS[0-9]*") if self._path.is_dir() else ():
            present[path.name] = _signature(path)
            if self._known.get(path.name) != present[path.name]:
                self.contents[_index(path.name)] = path.read_bytes()
        for name in self._known.keys() - present.keys():
            self.contents.pop(_index(name), None)
        self._known = present

    def write_type(self) -> None:
        """Say that the directory is batched."""
        target = self._path / TYPE
        if not target.is_file() or target.read_bytes() != TYPE_TEXT:
            self._path.mkdir(parents=True, exist_ok=True)
            self._replace(target, TYPE_TEXT)

    def write(self, index: int, data: bytes, blindly: bool) -> None:
        """Replace a file."""
        self._replace(self._path / f"MARKERS{index}", data)
        self._wrote(index, data)

    def write_in_place(self, index: int, data: bytes, pause_s: float) -> None:
        """Rewrite a file in two pieces, and pause before each."""
        with (self._path / f"MARKERS{index}").open("wb", buffering=0) as out:
            time.sleep(pause_s)
            out.write(data[: len(data) // 2])
            time.sleep(pause_s)
            out.write(data[len(data) // 2 :])
        self._wrote(index, data)

    def remove(self) -> bool:
        """Remove the directory."""
        there = self._path.is_dir()
        if there:
            shutil.rmtree(self._path)
        self.contents.clear()
        self._known.clear()
        return there

    def _wrote(self, index: int, data: bytes) -> None:
        self.contents[index] = data
        self._known[f"MARKERS{index}"] = _signature(self._path / f"MARKERS{index}")

    def _replace(self, target: Path, data: bytes) -> None:
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            beside.write_bytes(data)
            beside.replace(target)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


class S3Files:
    """Objects that are replaced only if they are still what was read."""

    def __init__(self, objects: S3Objects, prefix: str) -> None:
        self.contents: dict[int, bytes] = {}
        self._objects = objects
        self._prefix = prefix.rstrip("/") + "/"
        self._etags: dict[int, str] = {}
        self._typed = False

    def exclusive(self) -> AbstractContextManager[None]:
        """Nothing keeps other servers away; conditions do what a lock would."""
        return nullcontext()

    def exist(self) -> bool:
        """Whether any object is there."""
        return bool(self._objects.list(self._prefix))

    def refresh(self) -> None:
        """List, and read what changed."""
        listed = {key[len(self._prefix) :]: etag for key, etag in self._objects.list(self._prefix).items()}
        self._typed = TYPE in listed
        present = {_index(name): etag for name, etag in listed.items() if name[7:].isdigit()}
        for index in self.contents.keys() - present.keys():
            self._forget(index)
        for index, etag in present.items():
            if self._etags.get(index) == etag:
                continue
            found = self._objects.get(f"{self._prefix}MARKERS{index}")
            if found is None:
                self._forget(index)
            else:
                self.contents[index], self._etags[index] = found

    def write_type(self) -> None:
        """Say that the directory is batched."""
        if not self._typed:
            self._objects.put(self._prefix + TYPE, TYPE_TEXT)
            self._typed = True

    def write(self, index: int, data: bytes, blindly: bool) -> None:
        """Replace an object; after an error of unknown outcome it is read again."""
        key, etag = f"{self._prefix}MARKERS{index}", self._etags.pop(index, None)
        if blindly:
            self._etags[index] = self._objects.put(key, data)
        else:
            self._etags[index] = self._objects.put(key, data, etag=etag, absent=etag is None)
        self.contents[index] = data
        # Another server's deletion may have removed the type file since it was listed, but not this new object.
        if etag is None and not blindly and self._objects.get(self._prefix + TYPE) is None:
            self._objects.put(self._prefix + TYPE, TYPE_TEXT)

    def write_in_place(self, index: int, data: bytes, pause_s: float) -> None:
        """An object cannot be written in place."""
        raise Failed("objects are replaced whole")

    def remove(self) -> bool:
        """Delete every object, the type file last."""
        listed = self._objects.list(self._prefix)
        for key in sorted(listed, key=lambda key: key.endswith(TYPE)):
            self._objects.delete(key)
        self.contents.clear()
        self._etags.clear()
        self._typed = False
        return bool(listed)

    def _forget(self, index: int) -> None:
        self.contents.pop(index, None)
        self._etags.pop(index, None)


def _index(name: str) -> int:
    return int(name.removeprefix("MARKERS"))


def _signature(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns)
