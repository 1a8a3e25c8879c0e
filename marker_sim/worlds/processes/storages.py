"""What a cluster of real processes stores in: a fresh local directory behind the door, or a bucket behind the S3 front.

    call of LocalStorage on a file                          call of plans      effect
    rename or link to it, exclusive open of an empty one    put                put
    open that empties it, then two writes                   overwrite, each    overwrite-begin, -piece, -end
    unlink                                                  delete             delete

Temporary files, lock files and directories are the storage's own: nothing strikes there. So a put is one call of plans,
as in the simulated world. A write in place that is shorter, or failed, ends when its file is closed.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.seams import Capabilities
from marker_sim.storages.local import LocalStorage, is_own
from marker_sim.storages.s3 import S3Storage
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.door.calls import Caller, CallOutcome, Decision, FileCall
from marker_sim.worlds.door.front import DoorFront
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

BUCKET = "lake"
DELETED = " (deleted)"  # What the kernel adds to the path of an open file that has no name any more.


class ClusterStorage(ABC):
    """The storage of one run.

    capabilities: what children see. settle_ms: after which nothing is on its way. spec: how children open it.
    """

    capabilities: Capabilities
    settle_ms: int = 0
    spec: dict[str, str]

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """Every stored file that is not the storage's own."""

    @abstractmethod
    def damage(self, path: str, data: bytes | None) -> None:
        """Replace a file, None to delete it, without a record."""

    @abstractmethod
    def close(self) -> None:
        """End what serves it; HarnessError when that failed."""

    def expect(self, process: str, role: str) -> None:  # noqa: B027
        """Requests that this process signs are its own; a local directory knows processes by their numbers."""


def check_storage(storage: str) -> None:
    """HarnessError for a storage of plans that real processes have not."""
    if storage not in ("local", "s3"):
        raise HarnessError(f"storage {storage} has no real processes; local and s3 have")


def open_storage(storage: str, interceptor: Interceptor, root: Path, front: LocalFront | None) -> ClusterStorage:
    """A fresh storage for one run, in a new directory `root`, or in S3 behind a front."""
    return LocalClusterStorage(root, interceptor, front) if storage == "local" else S3ClusterStorage(interceptor)


class LocalFront(DoorFront):
    """The local files of one run after another: the calls of children on them pass the interceptor of the run.

    caller_of: the process of a run with a pid, None while it is not served.
    """

    def __init__(self, root: Path, caller_of: Callable[[int], Caller | None] = lambda pid: None) -> None:
        self.caller_of = caller_of
        self._begun: set[tuple[str, str]] = set()  # Writes in place, by process and path.
        before = Interceptor(Recorder(), lambda armed, call: None)  # Until the first run.
        super().__init__(root, before, caller_of=lambda _, pid: self.caller_of(pid))

    def __enter__(self) -> LocalFront:
        return self

    def __exit__(self, *_: object) -> None:
        self.door.close()

    def watch(self, root: Path, interceptor: Interceptor) -> None:
        """The next run, in another directory; no process of the one before is left."""
        self.door.move(root)
        self.root, self.interceptor = root, interceptor
        self._struck.clear()
        self._begun.clear()

    def check(self) -> None:
        """HarnessError when a call of the run before failed in the kit, or was not seen."""
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
        """The effect of a call within a write in place; the second of its writes, which begins later, is the last."""
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
    """A call of LocalStorage as plans name it; None for one that they have no name for."""
    path = call.target if call.operation in ("rename", "link") else call.path
    if path.endswith(DELETED):
        return None  # Of a file that was removed while it was open.
    match call.operation:
        case "open":
            operation = "put" if call.flags & os.O_EXCL else "overwrite" if call.flags & os.O_TRUNC else ""
        case named:
            operation = {"rename": "put", "link": "put", "write": "overwrite", "delete": "delete"}.get(named, "")
    return StorageCall(call.process, call.role, operation, path) if operation and not is_own(path) else None


class LocalClusterStorage(ClusterStorage):
    """A directory of its own, which the caller deletes, behind a door. HarnessError without one."""

    def __init__(self, root: Path, interceptor: Interceptor, front: LocalFront | None) -> None:
        if front is None:
            raise HarnessError(
                f"calls of real processes on local files cannot be watched here: {refused()}; take storage s3"
            )
        root.mkdir(parents=True)
        self._root = root
        self._front = front
        front.watch(root, interceptor)
        self._storage = LocalStorage(root)
        self.capabilities = self._storage.capabilities
        self.spec = {"kind": "local", "root": str(root)}

    def files(self) -> dict[str, bytes]:
        """As LocalStorage reads them."""
        return {path: self._storage.get(path).data for path in self._storage.list("")}

    def damage(self, path: str, data: bytes | None) -> None:
        """Behind the back of the door."""
        if data is None:
            (self._root / path).unlink()
        else:
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
            (self._root / path).write_bytes(data)

    def close(self) -> None:
        """Look whether the door failed, which goes on."""
        self._front.check()


class S3ClusterStorage(ClusterStorage):
    """A storage in a bucket of the kit's S3 front."""

    def __init__(self, interceptor: Interceptor) -> None:
        from marker_sim.worlds.s3_front import S3Front

        self._front = S3Front(interceptor, bucket=BUCKET)
        self.capabilities = S3Storage(self._front.endpoint, BUCKET, access_key="kit").capabilities
        self.settle_ms = self.capabilities.request_timeout_ms + self.capabilities.late_effect_ms
        self.spec = {"kind": "s3", "endpoint": self._front.endpoint, "bucket": BUCKET}

    def files(self) -> dict[str, bytes]:
        """Every stored object."""
        return self._front.objects()

    def damage(self, path: str, data: bytes | None) -> None:
        """Behind the back of the interceptor."""
        self._front.change(path, data)

    def expect(self, process: str, role: str) -> None:
        """Requests that this process signs are its own."""
        self._front.roles[process] = role

    def close(self) -> None:
        """End the front."""
        self._front.close()
