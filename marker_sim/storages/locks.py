"""Locks of the host by name: a byte of one lock file a table, exclusive between processes and threads.

A lock is an open-file-description lock (Linux) on one byte of `<table>/.hoodie/.markers.lock`, the byte chosen by a
hash of the name. It belongs to the open file, so two threads exclude each other as two processes do, and the kernel
releases it when the process dies. The file is never removed: a process could lock a removed file that others no longer
open. Two names whose hashes are equal share a lock, which is safe. `flock` was rejected: it needs one file a name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from marker_sim.seams import DiskFull, StorageFailed
from marker_sim.storages.local import LOCK_FILE

_OFFSET_MASK = (1 << 62) - 1
_HOODIE = ".hoodie"


class HostLocks:
    """The locks of everything below a directory, by storage path."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """A lock of a name for the block; waits without bound and blocks the calling thread."""
        file = self._take(name, fcntl.F_OFD_SETLKW)
        assert file is not None
        try:
            yield
        finally:
            self.release(file)

    def try_hold(self, name: str) -> int | None:
        """Take the lock of a name without waiting; None if it is held elsewhere. `release` takes the returned value."""
        return self._take(name, fcntl.F_OFD_SETLK)

    def release(self, taken: int) -> None:
        """Release a lock that `try_hold` took."""
        os.close(taken)

    def _take(self, name: str, how: int) -> int | None:
        try:
            file = self._open(name)
        except OSError as error:
            kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StorageFailed
            raise kind(f"the lock file for {name}: {error.strerror}") from error
        try:
            fcntl.fcntl(file, how, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _offset(_inside(name)), 1, 0))
        except OSError as error:
            os.close(file)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return None
            raise StorageFailed(f"the lock of {name}: {error.strerror}") from error
        except BaseException:
            os.close(file)
            raise
        return file

    def _open(self, name: str) -> int:
        """Open the lock file of the table that contains a name, else that of the root; created if missing."""
        table, found, _ = name.partition(f"/{_HOODIE}/")
        parts = [part for part in table.split("/") if part not in ("", ".", "..")] + [_HOODIE] if found else []
        os.makedirs(self._root, exist_ok=True)
        directory = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=directory)
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
                os.close(directory)
                directory = inner
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(LOCK_FILE, flags, 0o644, dir_fd=directory)
        finally:
            os.close(directory)


def _inside(name: str) -> str:
    """The lock's name relative to its lock file, so that it is the same whichever root the table is reached by."""
    _, found, inside = name.partition(f"/{_HOODIE}/")
    return inside if found else name


def _offset(name: str) -> int:
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) & _OFFSET_MASK
