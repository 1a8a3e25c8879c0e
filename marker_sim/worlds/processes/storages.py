"""The storage of real processes: a fresh local directory behind the door, or a bucket behind the S3 front.

    call of LocalStorage on a file                          call of plans      effect
    rename or link to it, exclusive open of an empty one    put                put
    open that empties it, then two writes                   overwrite, each    overwrite-begin, -piece, -end
    unlink                                                  delete             delete

Temporary files, lock files and directories are internal to the storage: no fault strikes there. So a put is one call of
plans, as in the simulated world. A write in place that is shorter, or failed, ends when its file is closed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.seams import Capabilities
from marker_sim.storages.local import LocalStorage, is_own
from marker_sim.storages.s3 import S3Storage
from marker_sim.surroundings.requirements import lacking
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.door.calls import Caller, CallOutcome, Decision, FileCall
from marker_sim.worlds.door.front import DoorFront
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import BUCKET, S3Front

DELETED = " (deleted)"  # The suffix that the kernel adds to the path of an open file that was deleted.


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStorage:
    """The storage of one run.

    capabilities: as children see them. settle_ms: after this time no request is pending. spec: how children open it.
    files: reads every stored file that is not internal. damage: replaces one, None to delete it, without a record.
    close: ends its server; HarnessError when that failed.
    expect: registers the name and role of a process; a local directory identifies processes by pid.
    """

    capabilities: Capabilities
    settle_ms: int = 0
    spec: dict[str, str]
    files: Callable[[], dict[str, bytes]]
    damage: Callable[[str, bytes | None], object]
    close: Callable[[], object]
    expect: Callable[[str, str], object] = lambda process, role: None


def check_storage(storage: str) -> None:
    """HarnessError for a storage that real processes do not support, or for which a package is missing."""
    if storage not in ("local", "s3"):
        raise HarnessError(f"storage {storage} has no real processes; local and s3 have")
    if why := lacking(f"real processes on {storage}"):
        raise HarnessError(f"real processes need {why}")


def open_storage(storage: str, interceptor: Interceptor, root: Path, front: LocalFront | None) -> ClusterStorage:
    """A fresh storage for one run, in a new directory `root`, or in S3 behind a front."""
    return _local_storage(root, interceptor, front) if storage == "local" else _s3_storage(interceptor)


class LocalFront(DoorFront):
    """The local files of successive runs: the calls of children on them pass the interceptor of the run.

    caller_of: the process of a run with a pid, None while it is not served.
    """

    def __init__(self, root: Path, caller_of: Callable[[int], Caller | None] = lambda pid: None) -> None:
        self.caller_of = caller_of
        self._begun: set[tuple[str, str]] = set()  # Writes in place, by process and path.
        before = Interceptor(Recorder())  # Used before the first run.
        super().__init__(root, before, caller_of=lambda _, pid: self.caller_of(pid))

    def __enter__(self) -> LocalFront:
        return self

    def __exit__(self, *_: object) -> None:
        self.door.close()

    def watch(self, root: Path, interceptor: Interceptor) -> None:
        """Watch another directory for the next run; no process of the previous run is left."""
        self.door.move(root)
        self.root, self.interceptor = root, interceptor
        self._struck.clear()
        self._begun.clear()

    def check(self) -> None:
        """HarnessError when a call of the previous run failed in the kit, or was not seen."""
        super().check()
        if self.door.unseen:
            raise HarnessError(self.door.unseen[0])

    def _decide(self, call: FileCall) -> Decision:
        seen = _as_planned(call)
        return (seen and self._strike(call, seen)) or Decision()

    def _applied(self, call: FileCall, outcome: CallOutcome) -> None:
        seen, armed = _as_planned(call), self._struck.pop(call.number, None)
        if seen is not None and outcome.done:
            effect = seen.operation if seen.operation != "overwrite" else self._piece(call, outcome.result)
            self._record(armed, seen, effect)
        elif seen is not None:
            self.interceptor.passed_by(armed, seen)

    def _closed(self, call: FileCall) -> None:
        if (call.process, call.path) in self._begun:
            self._begun.remove((call.process, call.path))
            self._record(None, StorageCall(call.process, call.role, "overwrite", call.path), "overwrite-end")

    def _piece(self, call: FileCall, written: int) -> str:
        """The effect of a call within a write in place; the second of its writes, at a larger offset, is the last."""
        if call.operation == "open":
            self._begun.add((call.process, call.path))
            return "overwrite-begin"
        if not call.offset or written < len(call.data):
            return "overwrite-piece"
        self._begun.discard((call.process, call.path))
        return "overwrite-end"

    def _record(self, armed: ArmedFault | None, seen: StorageCall, effect: str) -> None:
        data = None if effect == "delete" else (self.root / seen.path).read_bytes()
        self.interceptor.applied(armed, seen, effect, seen.path, data)


def _as_planned(call: FileCall) -> StorageCall | None:
    """A call of LocalStorage in the terms of plans; None if they have no such call."""
    path = call.target if call.operation in ("rename", "link") else call.path
    if path.endswith(DELETED):
        return None  # The file was removed while it was open.
    match call.operation:
        case "open":
            operation = "put" if call.flags & os.O_EXCL else "overwrite" if call.flags & os.O_TRUNC else ""
        case named:
            operation = {"rename": "put", "link": "put", "write": "overwrite", "delete": "delete"}.get(named, "")
    return StorageCall(call.process, call.role, operation, path) if operation and not is_own(path) else None


def _local_storage(root: Path, interceptor: Interceptor, front: LocalFront | None) -> ClusterStorage:
    """A directory of its own, which the caller deletes, behind a door, which goes on. HarnessError without one."""
    if front is None:
        raise HarnessError(
            f"calls of real processes on local files cannot be watched here: {refused()}; take storage s3"
        )
    root.mkdir(parents=True)
    front.watch(root, interceptor)
    storage = LocalStorage(root)

    def damage(path: str, data: bytes | None) -> None:
        if data is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

    return ClusterStorage(
        capabilities=storage.capabilities,
        spec={"kind": "local", "root": str(root)},
        files=lambda: {path: storage.get(path).data for path in storage.list("")},
        damage=damage,
        close=front.check,
    )


def _s3_storage(interceptor: Interceptor) -> ClusterStorage:
    """A bucket of the kit's S3 front."""
    front = S3Front(interceptor)
    capabilities = S3Storage(front.endpoint, BUCKET, access_key="kit").capabilities
    return ClusterStorage(
        capabilities=capabilities,
        settle_ms=capabilities.request_timeout_ms + capabilities.late_effect_ms,
        spec={"kind": "s3", "endpoint": front.endpoint, "bucket": BUCKET},
        files=front.objects,
        damage=front.change,
        close=front.close,
        expect=front.roles.__setitem__,
    )
