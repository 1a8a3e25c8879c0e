"""Storage operations whose outcome is certain when they return, whatever time-outs came in between.

A request that timed out may still be applied. If a writer retried it and answered, the first request could later
restore a name after its directory was deleted, or remove one that was created again. Every function here therefore
waits `late_effect_ms` after a time-out before it reads again: when it returns, or raises PreconditionFailed, none of
its requests is pending. (The alternative, waiting before every deletion, makes each commit pay for a rare fault, and
does not cover another server's requests.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple, TypeVar

from marker_sim.markers.several import for_each
from marker_sim.names import (
    TYPE_BATCHED,
    TYPE_FILE,
    data_path,
    decode_names,
    is_append,
    is_marker_name,
    marker_file_index,
)
from marker_sim.seams import (
    Condition,
    Content,
    DiskFull,
    NotFound,
    PreconditionFailed,
    Runtime,
    Storage,
    StorageError,
    StorageTimeout,
    Throttled,
)

TRIES = 4
BACKOFF_MS = 100.0
T = TypeVar("T")


class BatchFile(NamedTuple):
    """A MARKERS<n> file as last read or written: its complete lines, and the version to expect when replacing it."""

    data: bytes
    version: str | None


ABSENT = BatchFile(b"", None)


class Contents(NamedTuple):
    """The markers of a directory, whatever its type file says: batch files by index, direct marker names."""

    batches: dict[int, BatchFile]
    direct: tuple[str, ...]

    def names(self) -> frozenset[str]:
        """The union of names in all formats, whatever the type file states."""
        found = set(self.direct)
        for batch in self.batches.values():
            found.update(decode_names(batch.data))
        return frozenset(found)


class PathsOfNames(ABC):
    """A store that lists names; the data paths of its markers follow from them."""

    @abstractmethod
    def list_all(self) -> tuple[str, ...]:
        """Every marker."""

    def list_data_paths(self) -> tuple[str, ...]:
        """Data paths of CREATE and MERGE markers, sorted, each once."""
        return tuple(sorted({data_path(name) for name in self.list_all() if not is_append(name)}))

    def list_log_paths(self) -> tuple[str, ...]:
        """Data paths of APPEND markers, sorted, each once."""
        return tuple(sorted({data_path(name) for name in self.list_all() if is_append(name)}))


def create_if_absent(storage: Storage, runtime: Runtime, path: str, data: bytes) -> bool:
    """Store an object if the path is free; True if this call did, False if it was there (maybe from an earlier try)."""
    try:
        replace(storage, runtime, path, data, None)
    except PreconditionFailed:
        return False
    return True


def replace(storage: Storage, runtime: Runtime, path: str, data: bytes, expected: str | None) -> str:
    """Replace the version `expected` (None: absent) by `data`; returns the new version.

    PreconditionFailed: another process changed the object. Another StorageError: tried `TRIES` times, outcome unknown.
    """
    unsure = False

    def attempt() -> str:
        nonlocal unsure
        try:
            return _put(storage, runtime, path, data, expected)
        except PreconditionFailed:
            # An earlier try of ours may have written it; equal content is a success.
            if unsure and data and (current := read(storage, path)) and current.data == data:
                return current.version
            raise
        except StorageError as error:
            unsure = unsure or not error.definite
            raise

    return retry_until_decided(storage, runtime, attempt)


def read_directory(storage: Storage, runtime: Runtime, directory: str) -> Contents:
    """The content of a marker directory; a file deleted between the listing and its read is left out."""
    batches: dict[int, BatchFile] = {}
    direct: list[str] = []
    for path in retry_until_decided(storage, runtime, lambda: storage.list(directory + "/")):
        relative = path[len(directory) + 1 :]
        index = marker_file_index(relative)
        if index is not None:
            if content := is_stored(storage, runtime, path):
                batches[index] = BatchFile(content.data[: content.data.rfind(b"\n") + 1], content.version)
        elif is_marker_name(relative):
            direct.append(relative)
    return Contents(batches, tuple(direct))


def write_type_file(storage: Storage, runtime: Runtime, directory: str) -> None:
    """Write the type file; one left empty by a crash is replaced (Hudi I 9023)."""
    path = f"{directory}/{TYPE_FILE}"
    for _ in range(TRIES):
        content = is_stored(storage, runtime, path)
        if content is not None and content.data == TYPE_BATCHED:
            return
        with suppress(PreconditionFailed):  # Another server was faster, and its file is read.
            replace(storage, runtime, path, TYPE_BATCHED, None if content is None else content.version)
            return
    raise PreconditionFailed(f"{path} keeps changing")


def is_stored(storage: Storage, runtime: Runtime, path: str) -> Content | None:
    """The object at a path, None when there is none."""
    return retry_until_decided(storage, runtime, lambda: read(storage, path))


def delete_directory(storage: Storage, runtime: Runtime, directory: str, at_once: int) -> bool:
    """Delete everything below a marker directory, `at_once` files at a time; False when there was nothing.

    Batch files go first and the type file last, so that an interrupted deletion leaves a readable directory. Files
    that others create meanwhile are deleted too, a bounded number of times.
    """
    found_any = False
    for _ in range(TRIES):
        paths = retry_until_decided(storage, runtime, lambda: storage.list(directory + "/"))
        if not paths and not found_any:  # A writer that died may have left what no listing shows and goes with a file.
            retry_until_decided(storage, runtime, lambda: storage.delete(f"{directory}/{TYPE_FILE}"))
        if not paths:
            return found_any
        found_any = True
        for typed in (False, True):
            part = [path for path in paths if path.endswith(TYPE_FILE) is typed]
            for_each(
                runtime,
                at_once,
                part,
                lambda path: retry_until_decided(storage, runtime, lambda: _delete(storage, runtime, path)),
            )
    return found_any


def retry_until_decided(storage: Storage, runtime: Runtime, attempt: Callable[[], T]) -> T:
    """The result of `attempt`, repeated with growing pauses until it succeeds; a definite failure is raised at once."""
    last: StorageError | None = None
    for number in range(TRIES):
        try:
            return attempt()
        except (PreconditionFailed, DiskFull, NotFound):
            raise
        except StorageTimeout as error:
            last = error
            # No earlier request of ours may still be applied when we act again.
            runtime.sleep(storage.capabilities.late_effect_ms)
        except Throttled as error:
            last = error
            runtime.sleep(BACKOFF_MS * 2**number)
        except StorageError as error:
            if isinstance(error, ValueError):
                raise  # A path that this storage can never store or must not follow: later tries fail too.
            last = error
            runtime.sleep(BACKOFF_MS)
    assert last is not None
    raise last


def _put(storage: Storage, runtime: Runtime, path: str, data: bytes, expected: str | None) -> str:
    if expected is None:
        return storage.put(path, data, Condition.IF_ABSENT)
    if storage.capabilities.put_if_unchanged:
        return storage.put(path, data, expected=expected)
    with _lock(storage, runtime, path):
        current = read(storage, path)
        if current is None or current.version != expected:
            raise PreconditionFailed(path)
        return storage.put(path, data)


def _delete(storage: Storage, runtime: Runtime, path: str) -> None:
    with _lock(storage, runtime, path):
        storage.delete(path)


def _lock(storage: Storage, runtime: Runtime, path: str) -> AbstractContextManager[None]:
    if storage.capabilities.host_lock and not storage.capabilities.put_if_unchanged:
        return runtime.lock(path)
    return nullcontext()


def read(storage: Storage, path: str) -> Content | None:
    """The object at a path in one try, None when there is none."""
    try:
        return storage.get(path)
    except NotFound:
        return None
