"""A local directory as the storage of a run: the storage calls of commands behind the door pass the interceptor.

    command ── system call ──► door ──► interceptor: faults ──► done ──► effect recorded ──► answer
                                        └──────────── under its lock ────────────┘

As on S3 (worlds/s3_front), an effect holds the whole content of a file after it. For a marker file that is truncated or
overwritten in place the history has `overwrite-begin`, `overwrite-piece`, and `overwrite-end` when all its earlier
content is there again, or when its writer closes it and it is not empty. A file that is only appended to is a `put`. A
file outside of marker directories is a `put` when it is created, empty, and when its writer closes it; only a death or
a pause can be injected at a close.

    IO_ERROR               EIO; `applied`: the call is performed all the same
    DISK_FULL              ENOSPC for calls that need room; if the first of several is a write, half of it is done
    SLOW_STORAGE           performed and answered `late_ms` later
    TORN_WRITE             half of a write is done, with `empty` none of it, and its process dies
    a death, PAUSE         by the interceptor's `inject`, before or after the call
    POWER_LOST             a death of every process; then unsynced changes are reverted (worlds/disk.py)
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from marker_sim.faults import FaultKind
from marker_sim.history.index.presence import directory_of
from marker_sim.names import TYPE_FILE, marker_file_index
from marker_sim.worlds.disk import Disk
from marker_sim.worlds.door.calls import CallOutcome, Decision, FileCall
from marker_sim.worlds.door.door import Door
from marker_sim.worlds.door.known_files import NO_FILE, FileId, KnownFiles, files_below, paths_below
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall

UNSEEN = "storage calls that were not seen: "  # Prefix of the counters of a run, one for each sentence of `unseen`.
OTHERWISE = "changed, and not by a call that stopped"
POWER = "power"  # The process name of effects that revert unsynced changes.
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2.
_ERRORS = {
    FaultKind.IO_ERROR: errno.EIO,
    FaultKind.DISK_FULL: errno.ENOSPC,
}


class DoorFront(ABC):
    """Injects the faults of `interceptor` into calls that stopped at a door; each run may set another interceptor.

    start: the door's. rest: settings of the door.
    """

    def __init__(self, root: Path, interceptor: Interceptor, **rest: Any) -> None:
        self.root = root
        self.interceptor = interceptor
        self._struck: dict[int, ArmedFault] = {}
        lock = LockOf(lambda: self.interceptor)
        self.door = Door(root, self._decide, self._applied, closed=self._closed, lock=lock, **rest)
        self.start = self.door.start

    def check(self) -> None:
        """Raise HarnessError when the kit failed at a call, so that no command is blamed for it."""
        self.door.check()

    def _strike(self, call: FileCall, seen: StorageCall) -> Decision | None:
        """The decision of the fault that strikes at a call, None for none; it is active until the call is applied."""
        armed = self.interceptor.strike(seen)
        if armed is None:
            return None
        self._struck[call.number] = armed
        return decision_of(armed, call)

    # Callbacks of the door; the interceptor's lock is held.

    @abstractmethod
    def _decide(self, call: FileCall) -> Decision: ...

    @abstractmethod
    def _applied(self, call: FileCall, outcome: CallOutcome) -> None: ...

    @abstractmethod
    def _closed(self, call: FileCall) -> None: ...


class DirectoryFront(DoorFront):
    """Watches a directory until `close`.

    full: while True, every call of a server that needs room fails with ENOSPC. refused: the number of such failures.
    callers: the processes whose calls stopped here.
    power: whether a loss of power can be simulated.
    """

    def __init__(self, root: Path, interceptor: Interceptor, *, reads: bool = False, power: bool = False) -> None:
        self.full = False
        self.refused = 0
        self.callers: set[str] = set()
        self._files = KnownFiles(root)
        # The earlier content of marker files that a process is rewriting, with that process.
        self._before: dict[str, tuple[str, bytes]] = {}
        self._changed: set[str] = set()  # Other files that are open for writing.
        self._writers: dict[FileId, set[int]] = {}  # The processes that opened a file for writing, until they close it.
        root.mkdir(parents=True, exist_ok=True)
        self._disk = Disk(root) if power else None
        super().__init__(root, interceptor, reads=reads)

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """The current files whose path starts with `prefix`, sorted."""
        with self.interceptor.lock:
            return files_below(self.root, prefix)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Sentences about writes that bypassed the door; the last is inferred from the content of a marker directory.

        HarnessError when the kit failed at a call, because the sentences would then be unreliable.
        """
        self.check()
        with self.interceptor.lock:
            paths = {*paths_below(self.root, self.interceptor.below), *self._files.contents}
            own = (path for path in sorted(paths) if path.startswith(self.interceptor.below) and directory_of(path))
            strange = (path for path in own if self._files.read(path) != self._files.contents.get(path))
            return (*self.door.unseen, *(f"{path} {OTHERWISE}" for path in islice(strange, 1)))

    def rewriting(self, prefix: str) -> bool:
        """Whether a live process is rewriting a file in place whose path starts with `prefix`."""
        with self.interceptor.lock:
            writers = ((path, process) for path, (process, _) in self._before.items())
            return any(path.startswith(prefix) and self.door.lives(process) for path, process in writers)

    def remove(self, prefix: str, process: str) -> None:
        """Remove a directory and its content in the name of a process, atomically and without faults."""
        with self.interceptor.lock:
            gone = paths_below(self.root, f"{prefix}/")
            away = TemporaryDirectory(dir=self.root, prefix=".removed-", ignore_cleanup_errors=True)
            with away as folder, contextlib.suppress(FileNotFoundError):
                (self.root / prefix).rename(f"{folder}/{process}")
            for path in gone:
                self._record(None, StorageCall(process, "timeline-server", "delete", path), path, None)
            self.settle(prefix)

    def settle(self, path: str) -> None:
        """Mark what the kit created or removed at a path as synced to disk."""
        if self._disk is not None:
            self._disk.settle(path)

    def lose_power(self, names: bool, lengths: bool) -> None:
        """Revert all unsynced changes, recorded as effects of `POWER`. All processes are dead, and the lock is held.

        names, lengths: whether unsynced names and file lengths are kept.
        """
        assert self._disk is not None, "a directory whose power may be lost is watched from its beginning"
        self._disk.lose_power(names, lengths)
        for state in (self._before, self._changed, self._writers):
            state.clear()
        before, now = dict(self._files.contents), files_below(self.root)
        call = StorageCall(POWER, "kit", "rename", "")

        def grows(path: str) -> bool:
            return path in now and keeps(path, before.get(path, b""), now[path])

        # Judges must see no impossible state in between: a name that moved is always in one of the files, and a type
        # file is created first and deleted last.
        def turn(path: str) -> tuple[bool, bool, bool, str]:
            return not grows(path), path not in now, path.endswith(f"/{TYPE_FILE}") is (path not in now), path

        for path in sorted({*before, *now}, key=turn):
            if before.get(path) != now.get(path):
                self._record(None, call, path, now.get(path))
            else:
                self._files.keep(path, now[path])  # The inode may have changed.

    def close(self) -> None:
        """End every command; HarnessError when the kit failed at a call. May be called again."""
        self.door.close()
        self.check()

    def _decide(self, call: FileCall) -> Decision:
        self.callers.add(call.process)
        seen = self._shown(call)
        if (decided := self._strike(call, seen)) is not None:
            return decided
        if self.full and seen.needs_room and self.interceptor.serves(call.process):
            self.refused += 1
            return Decision(error=errno.ENOSPC)
        return Decision()

    def _applied(self, call: FileCall, outcome: CallOutcome) -> None:
        armed, seen = self._struck.pop(call.number, None), self._shown(call)
        if self._disk is not None and outcome.done:
            self._disk.saw(call)
        effects = self._effects(call) if outcome.done else []
        for path, data in effects[:-1]:
            self._record(None, seen, path, data)
        if effects:
            self._record(armed, seen, *effects[-1])
        else:
            self.interceptor.passed_by(armed, seen)

    def _closed(self, call: FileCall) -> None:
        if call.pid not in self._writers.get(call.file, ()):
            return  # A forked child inherited the file and closes it before exec.
        self._writers[call.file].discard(call.pid)
        seen = self._shown(call)
        armed = self.interceptor.strike(seen)
        if not self.door.lives(call.process):
            return
        ended: list[tuple[str, str, bytes]] = []
        for path in self._files.names(call.file, call.path):
            if path in self._changed and (data := self._files.read(path)) is not None:
                self._keep(seen, path, data)
                ended.append(("put", path, data))
            elif path in self._before and (data := self._files.contents[path]):
                del self._before[path]  # An empty file will be opened again and written.
                ended.append(("overwrite-end", path, data))
        for effect in ended[:-1]:
            self.interceptor.applied(None, seen, *effect)
        if ended:
            self.interceptor.applied(armed, seen, *ended[-1])
        else:
            self.interceptor.passed_by(armed, seen)

    def _shown(self, call: FileCall) -> StorageCall:
        """A call in the terms of plans, with a current name of its file."""
        names = self._files.names(call.file, call.path)
        return shown(call if not names or call.path in names else call._replace(path=names[0]))

    def _effects(self, call: FileCall) -> list[tuple[str, bytes | None]]:
        """The content of each path that a call changed, None for a deleted path."""
        changed = dict(self._changes(call))
        links = ((link, data) for link, data in self._files.changed_links() if link not in changed)
        return [*changed.items(), *links]

    def _changes(self, call: FileCall) -> Iterator[tuple[str, bytes | None]]:
        match call.operation:
            case "write" | "cut" | "allocate" | "open":
                yield from self._written(call)
            case "link":
                yield from self._files.at(call.target)
            case "symlink" | "mknod" | "delete":
                yield from self._files.at(call.path)
            case "rename":
                stayed = call.path != "" and os.path.lexists(self.root / call.path)
                if stayed and not call.flags & _EXCHANGE:
                    return  # Both are names of one file, and the kernel does nothing.
                yield from self._files.at(call.target)
                yield from self._files.at(call.path)

    def _written(self, call: FileCall) -> Iterator[tuple[str, bytes | None]]:
        """Register the writer of a file; yield its names with their content if the call changed or created it."""
        made, file = _creates(call), call.file
        if file == NO_FILE:
            file = self._files.id_of(call.path)
        if made:
            self._writers[file] = set()  # The writers known so far were those of an earlier file with this inode.
        if call.operation != "cut" or call.file != NO_FILE:  # truncate(2) opens no file.
            self._writers.setdefault(file, set()).add(call.pid)
        if call.operation == "open" and not (made or _empties(call)):
            return
        for path in self._files.names(file, call.path):
            later = directory_of(path) is None
            if later:
                self._changed.add(path)
            if (made or not later) and (data := self._files.read(path)) is not None:
                yield path, data

    def _record(self, armed: ArmedFault | None, call: StorageCall, path: str, data: bytes | None) -> None:
        operation = self._operation(call, path, data)
        self._keep(call, path, data)
        self.interceptor.applied(armed, call, operation, path, data)

    def _keep(self, call: StorageCall, path: str, data: bytes | None) -> None:
        if call.operation != "open":
            self._changed.discard(path)
        self._files.keep(path, data)

    def _operation(self, call: StorageCall, path: str, data: bytes | None) -> str:
        """The operation of an effect: a put, a deletion, or part of rewriting a file in place."""
        writer, held = self._before.get(path, ("", None))
        if held is not None and not self.door.lives(writer):
            del self._before[path]  # Its writer died: what the file holds now is its content.
            held = None
        if data is None or call.operation in ("rename", "link") or directory_of(path) is None:
            self._before.pop(path, None)
            return "delete" if data is None else "put"
        if held is None:
            held = self._files.contents.get(path)
            if held is None or keeps(path, held, data):
                return "put"
            self._before[path] = call.process, held
            return "overwrite-begin"
        if not keeps(path, held, data):
            return "overwrite-piece"
        del self._before[path]
        return "overwrite-end"


class LockOf:
    """The lock of the interceptor that a front currently has. Used only by the door's thread."""

    def __init__(self, interceptor: Callable[[], Interceptor]) -> None:
        self._interceptor = interceptor
        self._held = contextlib.ExitStack()

    def __enter__(self) -> None:
        self._held.enter_context(self._interceptor().lock)

    def __exit__(self, *_: object) -> None:
        self._held.close()


def decision_of(armed: ArmedFault, call: FileCall) -> Decision | None:
    """The decision of a fault about a call; None when only `inject` affects the process."""
    settings = armed.fault.settings
    if not armed.hits(call.role):
        return None
    if armed.kind is FaultKind.TORN_WRITE and call.operation == "write":
        return Decision(bytes_max=0 if settings.empty else len(call.data) // 2)
    if armed.injected:
        return None
    filling = armed.kind is FaultKind.DISK_FULL and armed.fired == 1 < settings.calls
    if filling and call.operation == "write" and len(call.data) > 1:
        return Decision(bytes_max=len(call.data) // 2)  # A disk that becomes full during a write stores part of it.
    if armed.kind is FaultKind.SLOW_STORAGE:
        return Decision(late_ms=settings.late_ms)
    return Decision(error=_ERRORS[armed.kind], applied=settings.applied)


def shown(call: FileCall) -> StorageCall:
    """A call in the terms of plans; a rename or link counts as a call on its target."""
    path = call.target if call.operation in ("rename", "link") and call.target else call.path
    also = [name for name, fits in (("put", _puts(call)), ("cut", _empties(call))) if fits]
    return StorageCall(call.process, call.role, call.operation, path, (*also,), needs_room(call))


def needs_room(call: FileCall) -> bool:
    """Whether a full disk refuses the call."""
    return call.operation in ("write", "allocate", "mkdir", "link", "symlink", "mknod") or _creates(call)


def _puts(call: FileCall) -> bool:
    return call.operation in ("write", "cut", "allocate", "rename", "link") or _creates(call) or _empties(call)


def _creates(call: FileCall) -> bool:
    """Whether the call creates a regular file."""
    if call.operation == "mknod":
        return stat.S_IFMT(call.flags) in (0, stat.S_IFREG)
    return call.operation == "open" and call.size_before is None


def _empties(call: FileCall) -> bool:
    """Whether the call removes content of a file that has some."""
    if call.operation == "cut":
        return call.size < (call.size_before or 0)
    return call.operation == "open" and bool(call.flags & os.O_TRUNC) and bool(call.size_before)


def keeps(path: str, before: bytes, now: bytes) -> bool:
    """Whether a file still contains all of its earlier content."""
    if now.startswith(before):
        return True
    if marker_file_index(path.rpartition("/")[2]) is None:
        return False
    return set(before.split(b"\n")[:-1]) <= set(now.split(b"\n")[:-1])
