"""Models of an object store, a local file system and HDFS behind the Storage seam: what may fail, what must survive.

    model             keeps                                         may fail like this
    s3                put replaces whole objects; list and get see  503 for a marker directory; 500 (applied or not,
                      every finished put and delete; if-absent and  nobody knows); silence until the time-out, the
                      if-unchanged are atomic; versions of equal    request applied before it, never, or up to
                      contents are equal (ETag)                     LATE_EFFECT_MS after it; slow; 409 to a put under
                                                                    a condition; keys that end in "/"
    s3-unconditional  the same without both conditions              the same without late effects and 409
    local             rename and exclusive create are atomic; host  overwrite empties the file, writes two pieces, so a
                      locks die with their process                  kill leaves it empty or torn; disk full; EIO; slow;
                                                                    a put killed in the middle leaves a temporary
                                                                    file; power loss takes what was written last
    hdfs              exclusive create is atomic                    EIO; silence until the time-out, applied or not;
                                                                    slow; no batched markers (capability)

A request of a process that dies after sending it is still applied by S3 and HDFS; a local call under way is not, nor
are the pieces of a local overwrite, because the process holds its locks until its calls have ended. Each effect
is recorded in the instant in which it is applied, before anybody can see it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from greenlet import getcurrent

from marker_sim.faults import Fault, FaultKind, FaultSettings
from marker_sim.faults.sites import site_of
from marker_sim.history import UNSUPPORTED
from marker_sim.names import place_of
from marker_sim.seams import (
    LOCAL,
    Capabilities,
    Condition,
    Conflicted,
    Content,
    DiskFull,
    NotFound,
    PreconditionFailed,
    StorageError,
    StorageFailed,
    StorageTimeout,
    Throttled,
    Unsupported,
)
from marker_sim.worlds.simulated.scheduler import MS, Process, Scheduler

STORAGE_TIMEOUT_MS = 1_000
LATE_EFFECT_MS = 2_000
_NO_FAULT = FaultSettings()

_S3 = Capabilities(
    scheme="s3",
    put_if_absent=True,
    put_if_unchanged=True,
    atomic_replace=True,
    host_lock=False,
    batched_markers=True,
    request_timeout_ms=STORAGE_TIMEOUT_MS,
    late_effect_ms=LATE_EFFECT_MS,
)
CAPABILITIES = {
    "s3": _S3,
    "s3-unconditional": replace(
        _S3, scheme="s3-unconditional", put_if_absent=False, put_if_unchanged=False, late_effect_ms=0
    ),
    "local": LOCAL,
    "hdfs": Capabilities(
        scheme="hdfs",
        put_if_absent=True,
        put_if_unchanged=False,
        atomic_replace=False,
        host_lock=False,
        batched_markers=False,
        request_timeout_ms=STORAGE_TIMEOUT_MS,
    ),
}
_LATENCY_NS = {"s3": 12 * MS, "s3-unconditional": 12 * MS, "local": MS // 4, "hdfs": 4 * MS}


class Store:
    """The state that all processes share: the objects, and the lasting faults."""

    def __init__(self, scheduler: Scheduler, model: str, files: Mapping[str, bytes] | None = None) -> None:
        self.scheduler = scheduler
        self.model = model
        self.capabilities = CAPABILITIES[model]
        self.latency_ns = _LATENCY_NS[model]
        self.objects: dict[str, bytes] = dict(files or {})
        # By marker directory: how many further calls are throttled, or not answered.
        self.throttled: dict[str, int] = {}
        self.silent: dict[str, int] = {}
        self.throttled_until_ns: dict[str, int] = {}
        self.full_until_ns = 0
        self.unsynced: list[tuple[int, str, bytes | None]] | None = None  # Kept only if the plan has a power loss.
        self.tear: Callable[[Process, Fault], None] | None = None
        self._versions: dict[bytes, str] = {}
        self._stamps = dict.fromkeys(self.objects, -1)

    def version(self, path: str, data: bytes) -> str:
        """An ETag where equal content has equal versions, otherwise new for every write."""
        if self.model == "local":
            return str(self._stamps[path])
        return self._versions.setdefault(data, f"e{len(self._versions)}")

    def write(self, process: Process, operation: str, path: str, data: bytes | None) -> None:
        """Apply and record one effect."""
        if self.unsynced is not None:
            self.unsynced.append((self.scheduler.now_ns, path, self.objects.get(path)))
        if data is None:
            self.objects.pop(path, None)
        else:
            self.objects[path] = data
            self._stamps[path] = len(self.scheduler.events)
        self.scheduler.record(process.name, process.role, "effect", operation, path=path, value=data)


class SimStorage:
    """The Storage seam of one process."""

    def __init__(self, store: Store, process: Process) -> None:
        self.capabilities = store.capabilities
        self._store = store
        self._process = process
        self._scheduler = store.scheduler

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Replace atomically, under a condition where the model has it."""
        store = self._store
        if lacks := self.capabilities.lacks("put", condition, expected):
            raise self._unsupported(lacks)

        def apply() -> str:
            current = store.objects.get(path)
            if condition is Condition.IF_ABSENT and current is not None:
                raise PreconditionFailed(path)
            if expected is not None and (current is None or store.version(path, current) != expected):
                raise PreconditionFailed(path)
            store.write(self._process, "put", path, data)
            return store.version(path, data)

        conditional = condition is not Condition.NONE or expected is not None
        return self._call("put", path, apply, not data, conditional)  # type: ignore[no-any-return]

    def _unsupported(self, what: str) -> Unsupported:
        """The error for an operation that this storage lacks; the attempt is recorded even if the error is caught."""
        self._scheduler.record(self._process.name, self._process.role, "observe", UNSUPPORTED, error=what)
        return Unsupported(f"{self._store.model} has no {what}: ask storage.capabilities first")

    def overwrite(self, path: str, data: bytes) -> None:
        """Truncate the file and write it in two pieces; a concurrent read or a death sees a part of it."""
        if lacks := self.capabilities.lacks("overwrite"):
            raise self._unsupported(lacks)
        process, store, scheduler = self._process, self._store, self._scheduler
        factor = scheduler.step(process)
        if process.actor.sited:
            scheduler.arrive(process, site_of(process.role, process.part, "overwrite", path))
        fault = self._fault("overwrite", path)
        error: StorageError | None = None
        store.write(process, "overwrite-begin", path, b"")
        settings = fault.settings if fault else _NO_FAULT
        # A fault's delay prolongs both pauses of this call.
        held_ms = settings.late_ms + settings.for_ms + settings.restart_ms
        pause_ns = int(store.latency_ns * factor) + held_ms * MS
        scheduler.sleep(process, pause_ns)
        half = data[: len(data) // 2]
        if fault and fault.kind is FaultKind.TORN_WRITE and store.tear:
            if not settings.empty:
                store.write(process, "overwrite-piece", path, half)
            store.tear(process, fault)
            scheduler.park()
        if scheduler.now_ns < store.full_until_ns or (fault and fault.kind is FaultKind.DISK_FULL):
            error, data = DiskFull(path), half
        elif fault and fault.kind is FaultKind.IO_ERROR:
            error, data = StorageFailed(path), data if settings.applied else half
        else:
            store.write(process, "overwrite-piece", path, half)
            scheduler.sleep(process, pause_ns)
        store.write(process, "overwrite-end", path, data)
        if error:
            raise error
        if process.actor.sited:
            scheduler.arrive(process, site_of(process.role, process.part, "overwrite", path, after=True))

    def get(self, path: str) -> Content:
        """The object as it is now."""
        store = self._store

        def apply() -> Content:
            data = store.objects.get(path)
            if data is None:
                raise NotFound(path)
            return Content(data, store.version(path, data))

        return self._call("get", path, apply)  # type: ignore[no-any-return]

    def list(self, prefix: str) -> tuple[str, ...]:
        """Every path below a prefix, sorted."""
        objects = self._store.objects
        return self._call(  # type: ignore[no-any-return]
            "list", prefix, lambda: tuple(sorted([p for p in objects if p.startswith(prefix)]))
        )

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is fine."""
        store = self._store

        def apply() -> None:
            if path in store.objects:
                store.write(self._process, "delete", path, None)

        self._call("delete", path, apply)

    def _fault(self, operation: str, path: str, conditional: bool = False) -> Fault | None:
        """The first armed fault that fits this call, which is then recorded and no longer armed."""
        for fault in self._process.actor.storage_faults:
            if fault.kind.row.hits(operation, self._store.model, conditional):
                self._process.actor.storage_faults.remove(fault)
                value = "begin" if fault.kind is FaultKind.DISK_FULL else None
                if fault.kind not in (FaultKind.TORN_WRITE, FaultKind.ORPHANED):
                    self._record_fault(fault.kind.value, path, operation, value)
                if fault.kind is FaultKind.DISK_FULL:
                    self._fill_disk(fault)
                return fault
        return None

    def _record_fault(self, kind: str, path: str, operation: str | None = None, value: str | None = None) -> None:
        self._scheduler.record(self._process.name, "nemesis", "fault", kind, path=path, value=value, error=operation)

    def _fill_disk(self, fault: Fault) -> None:
        store = self._store
        store.full_until_ns = self._scheduler.now_ns + fault.settings.for_ms * MS
        self._scheduler.at(store.full_until_ns, lambda _: self._record_fault("disk-full", "", value="end"))

    def _call(
        self, operation: str, path: str, apply: Callable[[], Any], empty: bool = False, conditional: bool = False
    ) -> Any:
        """Perform one request: it is sent, applied and answered, unless a fault prevents that."""
        process, store, scheduler = self._process, self._store, self._scheduler
        factor = scheduler.step(process)
        if process.actor.sited:
            scheduler.arrive(process, site_of(process.role, process.part, operation, path))
        latency_ns = int(store.latency_ns * factor)
        fault = self._fault(operation, path, conditional) if process.actor.storage_faults else None
        now_ns = scheduler.now_ns
        reply_ns = now_ns + latency_ns
        if fault is not None:
            reply_ns = self._apply_fault(fault, path, apply, empty, reply_ns)
        if store.throttled and self._one_more(store.throttled, operation, path, "throttled"):
            self._fail(reply_ns, Throttled(path))
        if store.throttled_until_ns and now_ns < store.throttled_until_ns.get(place_of(path), 0):
            self._record_fault("throttled", path, operation)
            self._fail(reply_ns, Throttled(path))
        if store.silent and self._one_more(store.silent, operation, path, "timeout-lost"):
            self._fail(now_ns + STORAGE_TIMEOUT_MS * MS, StorageTimeout(path))
        if operation == "put" and now_ns < store.full_until_ns:
            self._fail(reply_ns, DiskFull(path))
        if scheduler.passes((now_ns + reply_ns) // 2):
            result = _outcome(apply)
            scheduler.sleep_until(process, reply_ns)
        else:
            result = scheduler.park_until((now_ns + reply_ns) // 2, self._apply, (reply_ns, getcurrent(), apply))
        if isinstance(result, StorageError):
            try:
                raise result
            finally:
                del result  # Otherwise the error and this frame would form a cycle until garbage collection.
        if process.actor.sited:
            scheduler.arrive(process, site_of(process.role, process.part, operation, path, after=True))
        return result

    def _apply_fault(self, fault: Fault, path: str, apply: Callable[[], Any], empty: bool, reply_ns: int) -> int:  # noqa: C901
        """The time at which a request under a fault is answered; raises, or never returns, if there is no answer."""
        process, store, scheduler = self._process, self._store, self._scheduler
        now_ns, settings = scheduler.now_ns, fault.settings
        match fault.kind:
            case FaultKind.THROTTLED:
                store.throttled[place_of(path)] = max(1, settings.calls) - 1
                if settings.for_ms:
                    store.throttled_until_ns[place_of(path)] = now_ns + settings.for_ms * MS
                self._fail(reply_ns, Throttled(path))
            case FaultKind.SERVER_ERROR | FaultKind.IO_ERROR:
                if settings.applied:
                    _outcome(apply)
                self._fail(reply_ns, StorageFailed(path))
            case FaultKind.CONFLICT:
                self._fail(reply_ns, Conflicted(path))
            case FaultKind.TIMEOUT_APPLIED | FaultKind.TIMEOUT_LOST | FaultKind.TIMEOUT_LATE:
                timeout_ns = now_ns + STORAGE_TIMEOUT_MS * MS
                if fault.kind is FaultKind.TIMEOUT_APPLIED:
                    scheduler.at((now_ns + reply_ns) // 2, _outcome, apply)
                elif fault.kind is FaultKind.TIMEOUT_LOST:
                    store.silent[place_of(path)] = max(1, settings.calls) - 1
                else:
                    late_ns = min(settings.late_ms, LATE_EFFECT_MS - 1) * MS
                    scheduler.at(timeout_ns + late_ns, _outcome, apply)
                self._fail(timeout_ns, StorageTimeout(path))
            case FaultKind.TORN_WRITE:
                if store.tear:
                    if not empty:
                        # An empty file needs one exclusive create; only content is first written to another file.
                        store.write(process, "put", f"{path}.{len(scheduler.events)}.tmp", b"torn")
                    store.tear(process, fault)
                scheduler.park()
            case FaultKind.ORPHANED:
                longest_ms = self.capabilities.request_timeout_ms + self.capabilities.late_effect_ms - 1
                scheduler.at(now_ns + min(settings.late_ms, longest_ms) * MS, _outcome, apply)
                if store.tear:
                    store.tear(process, fault)
                scheduler.park()
            case FaultKind.SLOW_STORAGE:
                reply_ns += min(settings.late_ms, STORAGE_TIMEOUT_MS - 1) * MS
            case _:
                pass
        return reply_ns

    def _apply(self, argument: tuple[int, Any, Callable[[], Any]]) -> None:
        reply_ns, actor, apply = argument
        process, scheduler = self._process, self._scheduler
        if not process.alive and self.capabilities.host_lock:
            # A system call ends, with or without effect, before the locks of its dead process are released.
            return
        scheduler.at(reply_ns, scheduler.resume, (process, actor, _outcome(apply)))

    def _fail(self, time_ns: int, error: StorageError) -> NoReturn:
        self._scheduler.sleep_until(self._process, time_ns)
        try:
            raise error
        finally:
            del error

    def _one_more(self, left_of: dict[str, int], operation: str, path: str, kind: str) -> bool:
        """Whether a fault that lasts for some calls in a marker directory hits this call as well."""
        place = place_of(path)
        left = left_of.get(place, 0)
        if not left:
            return False
        left_of[place] = left - 1
        self._record_fault(kind, path, operation)
        return True


def _outcome(apply: Callable[[], Any]) -> Any:
    """What a request returns, or the error of storage that it meets."""
    try:
        return apply()
    except StorageError as error:
        return error.with_traceback(None)  # Its traceback would form a cycle with a frame that keeps it.
