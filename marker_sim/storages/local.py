"""A directory of this host as Storage: rename replaces atomically, link and O_EXCL create exclusively.

    call        how                                                          a writer killed in the middle leaves
    put         temporary file beside the target, then rename, or link       the old or the new content, perhaps a
                if it must be absent; empty content is one exclusive open    temporary file that is not listed
    overwrite   truncate, then two writes into the same file                 an empty or a torn file
    delete      unlink, then the emptied directories of the marker directory as much as was done

A version is a hash of the content, like an ETag. Inode, size and modification time cost less, but two contents have
one such version where the file system's clock ticks every few milliseconds and inodes are used again; on a kernel with
finer time stamps (6.18) no pair was seen in 20,000 replacements, and a version must not depend on that.

Below the root no symbolic link is followed: each directory is opened from its parent with O_NOFOLLOW, so exchanging
one for a link in the middle of a call changes nothing. A directory that is moved out of the root during a call is
still written to, because it stays open. A path is text; its bytes on disk are those of the file system's encoding,
UTF-8 unless the locale has another.

Nothing is synced, so a power loss may lose data, unless `fsync` is asked for: then what a call wrote, read or found
missing is on the disk when it returns, with the names of all directories of its path below the root. Reads sync
as well, because what they find may be of a process that died before its fsync.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from marker_sim.seams import (
    LOCAL,
    Condition,
    Content,
    DiskFull,
    NotFound,
    PathRefused,
    PreconditionFailed,
    StorageFailed,
    Unsupported,
)

LOCK_FILE = ".markers.lock"
PATH_SIZE_MAX_BYTES = 8192
RACES_MAX = 1000
_TEMPORARY = (".marker-sim-", ".tmp")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})
T = TypeVar("T")
Parts = list[str]


class LocalStorage:
    """The files below `root`, by their paths relative to it; `root` is made by the first put.

    fsync: whether calls sync what they wrote and found.
    """

    def __init__(self, root: Path, fsync: bool = False) -> None:
        self.capabilities = LOCAL
        self._sync: Callable[[int], object] = os.fsync if fsync else lambda file: None
        self._root = os.path.realpath(root)
        # Directories in which a list saw temporary files. Only these are scanned at a deletion: scanning at every
        # deletion would make deleting n files quadratic.
        self._littered: set[str] = set()

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Replace or create atomically. DiskFull replaced nothing; after any other error the file may be replaced."""
        if expected is not None:
            raise Unsupported("local has no put-if-unchanged: ask storage.capabilities first")
        parts = _split(path)
        absent = condition is Condition.IF_ABSENT

        def apply() -> None:
            with self._directory(parts[:-1], make=True) as parent:
                try:
                    self._put(parent, parts[-1], data, absent)
                    self._sync(parent)
                except FileExistsError:
                    self._sync(parent)
                    if _is_directory(parent, parts[-1]):
                        raise PathRefused(f"{path}: a directory is where a file should be") from None
                    raise PreconditionFailed(path) from None

        with _errors(path):
            _against_races(apply)
        return version_of(data)

    def overwrite(self, path: str, data: bytes) -> None:
        """Truncate the file, then write it in two pieces; a concurrent read or a kill sees a part of it."""
        parts = _split(path)

        def apply() -> None:
            with self._directory(parts[:-1], make=True) as parent:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FILE
                with _opened(os.open(parts[-1], flags, 0o644, dir_fd=parent)) as file:
                    half = len(data) // 2
                    _write(file, data[:half])
                    _write(file, data[half:])
                    self._sync(file)
                self._sync(parent)

        with _errors(path):
            _against_races(apply)

    def get(self, path: str) -> Content:
        """The file as it is now; NotFound also where a directory of the path is missing."""
        parts = _split(path)
        with _errors(path):
            try:
                with (
                    self._directory(parts[:-1]) as parent,
                    self._synced(parent),
                    _opened(os.open(parts[-1], os.O_RDONLY | _FILE, dir_fd=parent)) as file,
                ):
                    status = os.fstat(file)
                    if stat.S_ISDIR(status.st_mode):
                        raise NotFound(path)
                    if not stat.S_ISREG(status.st_mode):
                        raise PathRefused(f"{path} is no regular file")
                    data = _read(file, status.st_size)
                    self._sync(file)
            except OSError as error:
                if error.errno in _GONE:
                    raise NotFound(path) from None
                raise
        return Content(data, version_of(data))

    def list(self, prefix: str) -> tuple[str, ...]:
        """Every file whose path starts with `prefix`, sorted; a symbolic link counts as a file and is not followed."""
        top = [part for part in prefix.split("/")[:-1] if part]
        found: Parts = []
        queue = ["/".join(top)]
        with _errors(prefix):
            while queue:
                self._scan(queue.pop(), prefix, found, queue)
        return tuple(sorted(found))

    def delete(self, path: str) -> None:
        """Unlink the file, and the directories that it leaves empty up to its marker directory; missing is fine."""
        parts = _split(path)
        with _errors(path):
            try:
                with self._directory(parts[:-1]) as parent, self._synced(parent):
                    os.unlink(parts[-1], dir_fd=parent)
            except IsADirectoryError:
                return
            except OSError as error:
                if error.errno not in _GONE:
                    raise
            self._remove_emptied(parts[:-1])

    def _remove_emptied(self, parts: Parts) -> None:
        """Remove a directory and its parents while they are empty, up to the marker directory."""
        while len(parts) > _marker_directory_depth(parts):
            try:
                with self._directory(parts[:-1]) as parent, self._synced(parent):
                    _remove_directory(parent, parts[-1], sweep="/".join(parts) in self._littered)
            except FileNotFoundError:
                pass
            except OSError:
                return
            parts = parts[:-1]

    def _scan(self, directory: str, prefix: str, found: Parts, queue: Parts) -> None:
        """Add the files of one directory to `found` and its directories to `queue`."""
        try:
            with (
                self._directory(directory.split("/") if directory else []) as opened,
                self._synced(opened),
                os.scandir(opened) as entries,
            ):
                for entry in entries:
                    path = f"{directory}/{entry.name}" if directory else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if path.startswith(prefix) or prefix.startswith(f"{path}/"):
                            queue.append(path)
                    elif _is_temporary(entry.name):
                        self._littered.add(directory)
                    elif path.startswith(prefix) and not _is_lock(entry.name, path):
                        found.append(path)
        except OSError as error:
            if error.errno not in _GONE:
                raise

    @contextmanager
    def _directory(self, parts: Parts, make: bool = False) -> Iterator[int]:
        """A directory, opened from the root part by part. PathRefused at a link; FileNotFoundError if missing."""
        if make:
            os.makedirs(self._root, exist_ok=True)
        opened = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                with self._synced(opened):
                    inner = _enter(opened, part, make)
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _synced(self, directory: int) -> Iterator[None]:
        """A context after which the names of an open directory are on disk, even when the call failed."""
        try:
            yield
        finally:
            self._sync(directory)

    def _put(self, parent: int, name: str, data: bytes, absent: bool) -> None:
        """Create or replace a file of an open directory; FileExistsError if `absent` is set and it exists."""
        if absent and not data:
            with _opened(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o644, dir_fd=parent)) as file:
                self._sync(file)
            return
        temporary = f"{_TEMPORARY[0]}{os.urandom(8).hex()}{_TEMPORARY[1]}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
            with _opened(os.open(temporary, flags, 0o644, dir_fd=parent)) as file:
                _write(file, data)
                self._sync(file)
            if absent:
                os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            else:
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=parent)


def version_of(data: bytes) -> str:
    """The version of a content."""
    return sha256(data).hexdigest()


def _split(path: str) -> Parts:
    """The parts of a storage path; PathRefused for one that no file can have."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise PathRefused(f"{path!r} has empty, '.' or '..' segments or a zero byte")
    try:
        size = len(path.encode("utf-8", "surrogateescape"))
        longest = max(len(part.encode("utf-8", "surrogateescape")) for part in parts)
    except UnicodeEncodeError:
        raise PathRefused(f"{path!r} has lone surrogates") from None
    if longest > os.pathconf("/", "PC_NAME_MAX") or size > PATH_SIZE_MAX_BYTES:
        raise PathRefused(f"{path[:80]!r}... has {size} bytes, its longest segment {longest}: too long for a file")
    return parts


def _enter(opened: int, part: str, make: bool) -> int:
    """Open a directory below an open one; with `make`, create it if it is missing."""
    for _ in range(RACES_MAX if make else 1):
        try:
            return os.open(part, _DIRECTORY, dir_fd=opened)
        except FileNotFoundError:
            if not make:
                raise
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=opened)
        except NotADirectoryError:
            status = os.stat(part, dir_fd=opened, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise PathRefused(f"{part!r} is a symbolic link, which is not followed") from None
            if make:
                raise PathRefused(f"{part!r} is a file where a directory should be") from None
            raise
    raise FileNotFoundError(errno.ENOENT, f"{part!r} is removed again and again")


def _sweep(parent: int, name: str) -> bool:
    """Remove the temporary files of a directory that holds nothing else; returns whether it is empty now.

    This includes temporary files that are still being written: their put finds its file missing and starts again.
    """
    with _opened(os.open(name, _DIRECTORY, dir_fd=parent)) as directory:
        left: Parts = []
        with os.scandir(directory) as entries:
            for entry in entries:
                if not _is_temporary(entry.name):
                    return False
                left.append(entry.name)
        for temporary in left:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
    return True


def is_own(path: str) -> bool:
    """Whether a file is internal to the storage, a temporary or a lock file."""
    name = path.rpartition("/")[2]
    return _is_temporary(name) or _is_lock(name, path)


def _is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY[0]) and name.endswith(_TEMPORARY[1])


def _is_lock(name: str, path: str) -> bool:
    return name == LOCK_FILE and (path in (name, f".hoodie/{name}") or path.endswith(f"/.hoodie/{name}"))


def _marker_directory_depth(parts: Parts) -> float:
    """The number of parts above the marker directory in a path; infinite for paths outside of one."""
    for depth in range(len(parts) - 2):
        if parts[depth : depth + 2] == [".hoodie", ".temp"]:
            return depth + 2
    return math.inf


def _remove_directory(parent: int, name: str, sweep: bool) -> None:
    """Remove a directory that is empty, or with `sweep` empty but for temporary files; OSError when it is not."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if not sweep or error.errno != errno.ENOTEMPTY or not _sweep(parent, name):
            raise
        os.rmdir(name, dir_fd=parent)


def _is_directory(parent: int, name: str) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return False


def _against_races(apply: Callable[[], T]) -> T:
    """Repeat `apply`, a limited number of times, when its directory or temporary file is removed meanwhile."""
    for _ in range(RACES_MAX):
        with suppress(FileNotFoundError):
            return apply()
    raise StorageFailed(f"directories were removed under a call {RACES_MAX} times")


@contextmanager
def _opened(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """A context that turns errors of the operating system into those of the seam."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"{path}: {error.strerror}") from error
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise PathRefused(f"{path}: {error.strerror}") from error
        raise StorageFailed(f"{path}: {error.strerror}") from error


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _read(file: int, size: int) -> bytes:
    """The whole file, even if it grows meanwhile."""
    pieces = []
    while piece := os.read(file, max(size, 1 << 16) + 1):
        pieces.append(piece)
    return b"".join(pieces)
