"""A local directory as the storage of a run: what commands behind the door do there passes the interceptor.

    command ── system call ──► door ──► interceptor: faults ──► done ──► effect recorded ──► answer
                                        └──────────── under its lock ────────────┘

As on S3 (worlds/s3_front) an effect has the whole content of a file after it. Of a marker file that is emptied and
written again, or written over, the history says so: `overwrite-begin`, `overwrite-piece`, and `overwrite-end` when all
that it held before is there again, or when its writer closes it and it is not empty. What is only added to is put. A
file outside of marker directories is put when it is made, empty, and when its writer closes it; at a close nothing but
a death or a pause can happen.

    IO_ERROR               EIO; `applied`: the call is done all the same
    DISK_FULL              ENOSPC, for calls that need room; the first of several, if it is a write, is done by half
    SLOW_STORAGE           done and answered `late_ms` later
    TORN_WRITE             half of a write is done, nothing of it with `empty`, and its process dies
    a death, PAUSE         by the interceptor's `inject`, before the call or after it
    POWER_LOST             the same, for every process; then what was not synced is taken back (worlds/disk.py)
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

UNSEEN = "storage calls that were not seen: "  # Begins what a run counts for each sentence of `unseen`.
OTHERWISE = "changed, and not by a call that stopped"
POWER = "power"  # What takes back what was not synced.
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2.
_ERRORS = {
    FaultKind.IO_ERROR: errno.EIO,
    FaultKind.DISK_FULL: errno.ENOSPC,
}


class DoorFront(ABC):
    """Calls that stopped at a door meet the faults of `interceptor`, which may be another for each run.

    start: as of the door. rest: settings of the door.
    """

    def __init__(self, root: Path, interceptor: Interceptor, **rest: Any) -> None:
        self.root = root
        self.interceptor = interceptor
        self._struck: dict[int, ArmedFault] = {}
        lock = LockOf(lambda: self.interceptor)
        self.door = Door(root, self._decide, self._applied, closed=self._closed, lock=lock, **rest)
        self.start = self.door.start

    def check(self) -> None:
        """HarnessError when the kit failed at a call, so that no command is blamed for it."""
        self.door.check()

    def _strike(self, call: FileCall, seen: StorageCall) -> Decision | None:
        """What a fault that strikes at a call does to it, None for nothing; it strikes until the call is applied."""
        armed = self.interceptor.strike(seen)
        if armed is None:
            return None
        self._struck[call.number] = armed
        return decision_of(armed, call)

    # What the door asks; the interceptor's lock is held.

    @abstractmethod
    def _decide(self, call: FileCall) -> Decision: ...

    @abstractmethod
    def _applied(self, call: FileCall, outcome: CallOutcome) -> None: ...

    @abstractmethod
    def _closed(self, call: FileCall) -> None: ...


class DirectoryFront(DoorFront):
    """Watches a directory until `close`.

    full: while it is, every call that needs room fails with ENOSPC, of processes that serve. refused: how many did.
    callers: the processes whose calls stopped here.
    power: it may be lost.
    """

    def __init__(self, root: Path, interceptor: Interceptor, *, reads: bool = False, power: bool = False) -> None:
        self.full = False
        self.refused = 0
        self.callers: set[str] = set()
        self._files = KnownFiles(root)
        self._before: dict[str, tuple[str, bytes]] = {}  # What marker files held that a process writes again.
        self._changed: set[str] = set()  # Other files, whose writers have them open.
        self._writers: dict[FileId, set[int]] = {}  # Processes that opened a file or wrote to it, until they close it.
        root.mkdir(parents=True, exist_ok=True)
        self._disk = Disk(root) if power else None
        super().__init__(root, interceptor, reads=reads)

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """The files whose path starts so, sorted, as they are at this moment."""
        with self.interceptor.lock:
            return files_below(self.root, prefix)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Sentences about writes that did not stop at the door; the last follows from what a marker directory holds.

        HarnessError when the kit failed at a call: then nothing follows from the others either.
        """
        self.check()
        with self.interceptor.lock:
            paths = {*paths_below(self.root, self.interceptor.below), *self._files.contents}
            own = (path for path in sorted(paths) if path.startswith(self.interceptor.below) and directory_of(path))
            strange = (path for path in own if self._files.read(path) != self._files.contents.get(path))
            return (*self.door.unseen, *(f"{path} {OTHERWISE}" for path in islice(strange, 1)))

    def rewriting(self, prefix: str) -> bool:
        """Whether a file whose path starts so is being written again in place."""
        with self.interceptor.lock:
            writers = ((path, process) for path, (process, _) in self._before.items())
            return any(path.startswith(prefix) and self.door.lives(process) for path, process in writers)

    def remove(self, prefix: str, process: str) -> None:
        """Remove a directory with all below it in the name of a process; no fault strikes, and it vanishes at once."""
        with self.interceptor.lock:
            gone = paths_below(self.root, f"{prefix}/")
            away = TemporaryDirectory(dir=self.root, prefix=".removed-", ignore_cleanup_errors=True)
            with away as folder, contextlib.suppress(FileNotFoundError):
                (self.root / prefix).rename(f"{folder}/{process}")
            for path in gone:
                self._record(None, StorageCall(process, "timeline-server", "delete", path), path, None)
            self.settle(prefix)

    def settle(self, path: str) -> None:
        """What the kit made at a path, or removed there, is on the disk."""
        if self._disk is not None:
            self._disk.settle(path)

    def lose_power(self, names: bool, lengths: bool) -> None:
        """What was not synced is taken back, as effects of `POWER`; all processes are dead, and the lock is held.

        names, lengths: are kept as they are.
        """
        assert self._disk is not None, "a directory whose power may be lost is watched from its beginning"
        self._disk.lose_power(names, lengths)
        for state in (self._before, self._changed, self._writers):
            state.clear()
        before, now = dict(self._files.contents), files_below(self.root)
        call = StorageCall(POWER, "kit", "rename", "")

        def grows(path: str) -> bool:
            return path in now and keeps(path, before.get(path, b""), now[path])

        # No state in between counts: what moved from one file to another is never in neither, and a type file comes
        # first and goes last.
        def turn(path: str) -> tuple[bool, bool, bool, str]:
            return not grows(path), path not in now, path.endswith(f"/{TYPE_FILE}") is (path not in now), path

        for path in sorted({*before, *now}, key=turn):
            if before.get(path) != now.get(path):
                self._record(None, call, path, now.get(path))
            else:
                self._files.keep(path, now[path])  # It may be another inode.

    def close(self) -> None:
        """End every command; HarnessError when calls met a defect of the kit. May be called again."""
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
            return  # A child that was forked with the file closes it before it becomes another program.
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
                del self._before[path]  # One that is left empty is opened again and written.
                ended.append(("overwrite-end", path, data))
        for effect in ended[:-1]:
            self.interceptor.applied(None, seen, *effect)
        if ended:
            self.interceptor.applied(armed, seen, *ended[-1])
        else:
            self.interceptor.passed_by(armed, seen)

    def _shown(self, call: FileCall) -> StorageCall:
        """A call as plans name it, on a name that its file has."""
        names = self._files.names(call.file, call.path)
        return shown(call if not names or call.path in names else call._replace(path=names[0]))

    def _effects(self, call: FileCall) -> list[tuple[str, bytes | None]]:
        """What a call changed: the content of each path after it, None for one that is gone."""
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
        """Each name of a file that was opened for writing, or changed, in the latter case."""
        made, file = _creates(call), call.file
        if file == NO_FILE:
            file = self._files.id_of(call.path)
        if made:
            self._writers[file] = set()  # Those of an earlier file had this inode.
        if call.operation != "cut" or call.file != NO_FILE:  # truncate(2) opens nothing.
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
        """What an effect is called: whether a file is being written again, or whole."""
        writer, held = self._before.get(path, ("", None))
        if held is not None and not self.door.lives(writer):
            del self._before[path]  # What it left is what the file holds now.
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
    filling = armed.kind is FaultKind.DISK_FULL and armed.fired == 1 < settings.calls
    if filling and call.operation == "write" and len(call.data) > 1:
        return Decision(bytes_max=len(call.data) // 2)  # As a disk does that becomes full within it.
    if armed.kind is FaultKind.SLOW_STORAGE:
        return Decision(late_ms=settings.late_ms)
    return Decision(error=_ERRORS[armed.kind], applied=settings.applied)


def shown(call: FileCall) -> StorageCall:
    """A call as plans name it; what gets a path by a rename or link counts as a call on that path."""
    path = call.target if call.operation in ("rename", "link") and call.target else call.path
    also = [name for name, fits in (("put", _puts(call)), ("cut", _empties(call))) if fits]
    return StorageCall(call.process, call.role, call.operation, path, (*also,), needs_room(call))


def needs_room(call: FileCall) -> bool:
    """Whether a full disk refuses it."""
    return call.operation in ("write", "allocate", "mkdir", "link", "symlink", "mknod") or _creates(call)


def _puts(call: FileCall) -> bool:
    return call.operation in ("write", "cut", "allocate", "rename", "link") or _creates(call) or _empties(call)


def _creates(call: FileCall) -> bool:
    """Whether it makes a regular file, or an opened one."""
    if call.operation == "mknod":
        return stat.S_IFMT(call.flags) in (0, stat.S_IFREG)
    return call.operation == "open" and call.size_before is None


def _empties(call: FileCall) -> bool:
    """Whether a file that has content loses some of it."""
    if call.operation == "cut":
        return call.size < (call.size_before or 0)
    return call.operation == "open" and bool(call.flags & os.O_TRUNC) and bool(call.size_before)


def keeps(path: str, before: bytes, now: bytes) -> bool:
    """Whether all that a file held is still in it."""
    if now.startswith(before):
        return True
    if marker_file_index(path.rpartition("/")[2]) is None:
        return False
    return set(before.split(b"\n")[:-1]) <= set(now.split(b"\n")[:-1])
