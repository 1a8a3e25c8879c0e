"""A local directory as the storage of a run: what commands behind the door do there passes the interceptor.

    command ── system call ──► door ──► interceptor: faults ──► done ──► effect recorded ──► answer
                                        └──────────── under its lock ────────────┘

As on S3 (worlds/s3_front) an effect has the whole content of a file after it. Of a marker file that is emptied and
written again, or written over, the history says so: `overwrite-begin`, `overwrite-piece`, and `overwrite-end` when all
that it held before is there again, or when its writer closes it and it is not empty. What is only added to is put. A
file outside of marker directories is put when it is made, empty, and when its writer closes it; at a close nothing but
a death or a pause can happen.

    IO_ERROR               EIO; `applied`: the call is done all the same
    DISK_FULL              ENOSPC, for calls that need room
    SLOW_STORAGE           done and answered `late_ms` later
    TORN_WRITE             half of a write is done, nothing of it with `empty`, and its process dies
    a death, PAUSE         by the interceptor's `inject`, before the call or after it
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from marker_sim.faults import FaultKind
from marker_sim.history.index.presence import directory_of
from marker_sim.names import marker_file_index
from marker_sim.worlds.door.calls import CallOutcome, Decision, FileCall
from marker_sim.worlds.door.door import Door
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall

UNSEEN = "storage calls that were not seen: "  # Begins what a run counts for each sentence of `unseen`.
OTHERWISE = "changed, and not by a call that stopped"
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2.
DELETED = " (deleted)"  # What the kernel adds to the path of an open file that has no name any more.
_ERRORS = {
    FaultKind.IO_ERROR: errno.EIO,
    FaultKind.DISK_FULL: errno.ENOSPC,
}


class DirectoryFront:
    """Watches a directory until `close`. Calls meet the faults of `interceptor`, which may be another for each run.

    start: as of the door. full: while it is, every call that needs room fails with ENOSPC.
    """

    def __init__(self, root: Path, interceptor: Interceptor, *, reads: bool = False) -> None:
        self.root = root
        self.interceptor = interceptor
        self.full = False
        self._struck: dict[int, ArmedFault] = {}
        self._contents: dict[str, bytes] = {}
        self._before: dict[str, tuple[str, bytes]] = {}  # What marker files held that a process writes again.
        self._changed: set[str] = set()  # Other files, whose writers have them open.
        self._writers: dict[str, set[int]] = {}  # Processes that opened a file or wrote to it, until they close it.
        root.mkdir(parents=True, exist_ok=True)
        self.door = Door(
            root, self._decide, self._applied, closed=self._closed, lock=LockOf(lambda: self.interceptor), reads=reads
        )  # fmt: skip
        self.start = self.door.start

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """The files whose path starts so, sorted, as they are at this moment."""
        with self.interceptor.lock:
            return files_below(self.root, prefix)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Sentences about writes that are known to have escaped, the last by what a marker directory holds."""
        with self.interceptor.lock:
            paths = {*_paths_below(self.root, self.interceptor.below), *self._contents}
            strange = sorted(
                path for path in paths
                if path.startswith(self.interceptor.below) and directory_of(path) is not None
                and _content(self.root / path) != self._contents.get(path)
            )  # fmt: skip
        return (*self.door.unseen, *(f"{path} {OTHERWISE}" for path in strange[:1]))

    def rewriting(self, prefix: str) -> bool:
        """Whether a file whose path starts so is being written again in place."""
        with self.interceptor.lock:
            writers = ((path, process) for path, (process, _) in self._before.items())
            return any(path.startswith(prefix) and self.door.lives(process) for path, process in writers)

    def change(self, path: str, data: bytes | None) -> None:
        """Write or delete a file without the interceptor, and without recording it."""
        with self.interceptor.lock:
            file = self.root / path
            if data is None:
                file.unlink()
                self._contents.pop(path, None)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
                self._contents[path] = data

    def remove(self, prefix: str, process: str) -> None:
        """Remove a directory with all below it in the name of a process; no fault strikes, and it vanishes at once."""
        with self.interceptor.lock:
            gone = _paths_below(self.root, f"{prefix}/")
            away = TemporaryDirectory(dir=self.root, prefix=".removed-", ignore_cleanup_errors=True)
            with away as folder, contextlib.suppress(FileNotFoundError):
                (self.root / prefix).rename(f"{folder}/{process}")
            for path in gone:
                self._record(None, StorageCall(process, "timeline-server", "delete", path), path, None)

    def check(self) -> None:
        """HarnessError when the kit failed at a call, so that no command is blamed for it."""
        self.door.check()

    def close(self) -> None:
        """End every command; HarnessError when calls met a defect of the kit. May be called again."""
        self.door.close()
        self.check()

    # What the door asks; the interceptor's lock is held.

    def _decide(self, call: FileCall) -> Decision:
        armed = self.interceptor.strike(shown(call))
        usual = Decision(error=errno.ENOSPC) if self.full and needs_room(call) else Decision()
        if armed is None:
            return usual
        self._struck[call.number] = armed
        if armed.kind is FaultKind.DISK_FULL and not needs_room(call):
            return usual
        return decision_of(armed, call) or usual

    def _applied(self, call: FileCall, outcome: CallOutcome) -> None:
        armed, seen = self._struck.pop(call.number, None), shown(call)
        effects = list(self._effects(call)) if outcome.done else []
        for path, data in effects[:-1]:
            self._record(None, seen, path, data)
        if effects:
            self._record(armed, seen, *effects[-1])
        else:
            self.interceptor.passed_by(armed, seen)

    def _closed(self, call: FileCall) -> None:
        path, seen = call.path, shown(call)
        if call.pid not in self._writers.get(path, ()):
            return  # A child that was forked with the file closes it before it becomes another program.
        self._writers[path].discard(call.pid)
        armed = self.interceptor.strike(seen)
        if not self.door.lives(call.process):
            return
        if path in self._changed and (data := _content(self.root / path)) is not None:
            self._record(armed, seen, path, data)
        elif path in self._before and self._contents[path]:  # One that is left empty is opened again and written.
            del self._before[path]
            self.interceptor.applied(armed, seen, "overwrite-end", path, self._contents[path])
        else:
            self.interceptor.passed_by(armed, seen)

    def _effects(self, call: FileCall) -> Iterator[tuple[str, bytes | None]]:
        """What a call changed: the content of each path after it, None for one that is gone."""
        match call.operation:
            case "write" | "cut" | "allocate" | "open":
                self._writers.setdefault(call.path, set()).add(call.pid)
                if call.operation != "open" or _creates(call) or _empties(call):
                    yield from self._written(call.path, made=_creates(call))
            case "link":
                yield from self._present(call.target)
            case "symlink":
                yield from self._present(call.path)
            case "rename":
                yield from self._present(call.target)
                if call.flags & _EXCHANGE:
                    yield from self._present(call.path)
                else:
                    yield from ((path, None) for path in self._known(call.path))
            case "delete":
                yield from ((path, None) for path in self._known(call.path))

    def _written(self, path: str, made: bool) -> Iterator[tuple[str, bytes | None]]:
        if path.endswith(DELETED):
            return
        later = directory_of(path) is None
        if later:
            self._changed.add(path)
        if (made or not later) and (data := _content(self.root / path)) is not None:
            yield path, data

    def _present(self, path: str) -> Iterator[tuple[str, bytes | None]]:
        """A file that got this path, or all that are below it."""
        for each in _paths_below(self.root, f"{path}/") if (self.root / path).is_dir() else (path,) if path else ():
            if (data := _content(self.root / each)) is not None:
                yield each, data

    def _known(self, path: str) -> list[str]:
        """A file that lost this path, or all that were below it."""
        if not path:
            return []
        return [path] if path in self._contents else [each for each in self._contents if each.startswith(f"{path}/")]

    def _record(self, armed: ArmedFault | None, call: StorageCall, path: str, data: bytes | None) -> None:
        operation = self._operation(call, path, data)
        if call.operation != "open":
            self._changed.discard(path)
        if data is None:
            self._contents.pop(path, None)
        else:
            self._contents[path] = data
        self.interceptor.applied(armed, call, operation, path, data)

    def _operation(self, call: StorageCall, path: str, data: bytes | None) -> str:
        """What an effect is called: whether a file is being written again, or whole."""
        writer, held = self._before.get(path, ("", None))
        if held is not None and not self.door.lives(writer):
            del self._before[path]  # What it left is what the file holds now.
            held = None
        if data is None or call.operation in ("rename", "link") or directory_of(path) is None:
            self._before.pop(path, None)
            return "delete" if data is None else "put"
        if held is None:
            held = self._contents.get(path)
            if held is None or _keeps(path, held, data):
                return "put"
            self._before[path] = call.process, held
            return "overwrite-begin"
        if not _keeps(path, held, data):
            return "overwrite-piece"
        del self._before[path]
        return "overwrite-end"


class LockOf:
    """The lock of the interceptor that a front has at the moment. Only the door's thread uses it."""

    def __init__(self, interceptor: Callable[[], Interceptor]) -> None:
        self._interceptor = interceptor
        self._held = contextlib.ExitStack()

    def __enter__(self) -> None:
        self._held.enter_context(self._interceptor().lock)

    def __exit__(self, *_: object) -> None:
        self._held.close()


def decision_of(armed: ArmedFault, call: FileCall) -> Decision | None:
    """What a fault does to a call; None for nothing: `inject` affects its process."""
    settings = armed.fault.settings
    if not armed.hits(call.role):
        return None
    if armed.kind is FaultKind.TORN_WRITE and call.operation == "write":
        return Decision(bytes_max=0 if settings.empty else len(call.data) // 2)
    if armed.injected:
        return None
    if armed.kind is FaultKind.SLOW_STORAGE:
        return Decision(late_ms=settings.late_ms)
    return Decision(error=_ERRORS[armed.kind], applied=settings.applied)


def files_below(root: Path, prefix: str = "") -> dict[str, bytes]:
    """The files below a directory by their paths there, sorted, of those that start so. Links to files are followed."""
    return {path: data for path in _paths_below(root, prefix) if (data := _content(root / path)) is not None}


def _paths_below(root: Path, prefix: str) -> list[str]:
    found = []
    for folder, _, names in os.walk(root / prefix.rpartition("/")[0]):
        relative = os.path.relpath(folder, root)
        found += [name if relative == "." else f"{relative}/{name}" for name in names]
    return sorted(path for path in found if path.startswith(prefix))


def _content(file: Path) -> bytes | None:
    """What a file holds; None when it is gone, or no regular file, which might have no end."""
    try:
        return file.read_bytes() if file.is_file() else None
    except OSError:
        return None


def shown(call: FileCall) -> StorageCall:
    """A call as plans name it; what gets a path by a rename or link counts as a call on that path."""
    path = call.target if call.operation in ("rename", "link") and call.target else call.path
    also = [name for name, fits in (("put", _puts(call)), ("cut", _empties(call))) if fits]
    return StorageCall(call.process, call.role, call.operation, path, (*also,))


def needs_room(call: FileCall) -> bool:
    """Whether a full disk refuses it."""
    return call.operation in ("write", "allocate", "mkdir", "link", "symlink", "mknod") or _creates(call)


def _puts(call: FileCall) -> bool:
    return call.operation in ("write", "cut", "allocate", "rename", "link") or _creates(call) or _empties(call)


def _creates(call: FileCall) -> bool:
    return call.operation == "open" and call.size_before is None


def _empties(call: FileCall) -> bool:
    """Whether a file that has content loses some of it."""
    if call.operation == "cut":
        return call.size < (call.size_before or 0)
    return call.operation == "open" and bool(call.flags & os.O_TRUNC) and bool(call.size_before)


def _keeps(path: str, before: bytes, now: bytes) -> bool:
    """Whether all that a file held is still in it."""
    if now.startswith(before):
        return True
    if marker_file_index(path.rpartition("/")[2]) is None:
        return False
    return set(before.split(b"\n")[:-1]) <= set(now.split(b"\n")[:-1])
