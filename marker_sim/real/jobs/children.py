"""What a forked child does: be a driver, an executor, a client of the marker store or the timeline server.

The reference runs in it as it is, on real seams; what is here only connects it to the kit: tasks and their ends, the
next write, and the faults that are due at one of its own steps.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from marker_sim.faults import WIRE_FAULTS, FaultKind
from marker_sim.history import Value
from marker_sim.markers.client import TimelineMarkers
from marker_sim.markers.store import Context
from marker_sim.names import MarkerDirectory, parse_directory
from marker_sim.plan import Fault, Plan, Write
from marker_sim.real.jobs.link import Link
from marker_sim.real.jobs.parquet import PARQUET
from marker_sim.real.jobs.seams import CountedStorage, GatedStorage, ThreadRuntime
from marker_sim.real.jobs.steps import Counters, Steps
from marker_sim.real.jobs.wire import HttpWire
from marker_sim.seams import Storage
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.sut.python import load_system
from marker_sim.timeline import COMMIT, DELTA_COMMIT, WriteStat
from marker_sim.writer.recording import RecordedMarkers, record_call
from marker_sim.writer.stage import Attempt, JobFailed, Message, Stage


class AttemptEnded(BaseException):
    """The attempt of this thread ends here and now; its process lives on."""


class Me:
    """The actor that calls are recorded under; what it says of the call at hand is each thread's own."""

    def __init__(self, name: str, role: str) -> None:
        self.name = name
        self.role = role
        self._own = threading.local()

    @property
    def state(self) -> dict[str, Any]:
        """Of this thread: the invocation it is in, and the attempt it works at."""
        return self._own.__dict__


class Child:
    """A process on real seams. spec: as cluster.py makes it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.plan: Plan = spec["plan"]
        self.options = spec["options"]
        self.system = load_system(spec["system"])
        self.me = Me(spec["process"], spec["role"])
        self.link = Link(spec["hub"], self.me.name, self.me.role)
        self.steps = Steps(Counters(Path(spec["counters"])), spec["slot"], spec["faults"])
        self.steps.strike = self._strike
        self.storage, locks = self._storage(spec["storage"])
        self.runtime = ThreadRuntime(self.steps, locks, self._actor_died)
        self.wire = HttpWire(
            self.link, self.steps.step, partial(address_of, spec["storage"]), lambda: self.me.state.get("invoke")
        )  # fmt: skip
        self.shared: dict[str, Any] = {}
        self.run_again: Callable[[], None] = lambda: None
        self._markers: dict[tuple[str, str], RecordedMarkers] = {}

    def context(self, directory: str) -> Context:
        """What an implementation is given."""
        return Context(
            storage=self.storage,
            runtime=self.runtime,
            wire=self.wire,
            directory=directory,
            options=self.options,
            process=self.shared,
        )

    def markers(self, mode: str, place: MarkerDirectory) -> RecordedMarkers:
        """The marker store that this process uses for an instant, recorded."""
        key = (mode, place.path)
        if key not in self._markers:
            context = self.context(place.path)
            if mode == "timeline":
                ask = partial(self.link.ask, "server-started")
                self._markers[key] = RecordedMarkers(TimelineMarkers(context), self.link, self.me, place, ask)
            else:
                assert self.system.direct is not None
                self._markers[key] = RecordedMarkers(
                    self.system.direct(context), self.link, self.me, place, lambda: None
                )
        return self._markers[key]

    def _storage(self, spec: dict[str, str]) -> tuple[CountedStorage, HostLocks | None]:
        inner: Storage
        if spec["kind"] == "s3":
            from marker_sim.storages.s3 import S3Storage

            inner = S3Storage(spec["endpoint"], spec["bucket"], access_key=self.me.name)
            return CountedStorage(inner, self.steps), None
        root = Path(spec["root"])
        return GatedStorage(LocalStorage(root), root, self.steps, self.link), HostLocks(root)

    def _actor_died(self, error: str) -> None:
        self.link.record(self.me.name, self.me.role, "observe", "actor-died", error=error)

    def _strike(self, number: int, fault: Fault) -> None:
        if fault.kind in WIRE_FAULTS:
            self.wire.armed.append(fault)
            return
        told = self.link.ask("strike", number, self.me.state.get("attempt"))
        match told:
            case ("end",):
                raise AttemptEnded
            case ("sleep", duration_ms):
                time.sleep(duration_ms / 1000)
            case ("run-again",):
                self.run_again()


def address_of(storage: dict[str, str], directory: str) -> str:
    """A marker directory as requests write it."""
    return f"s3a://{storage['bucket']}/{directory}" if storage["kind"] == "s3" else f"{storage['root']}/{directory}"


def run_child(spec: dict[str, Any]) -> None:
    """The body of a forked child."""
    child = Child(spec)
    match spec["role"]:
        case "timeline-server":
            from marker_sim.real.jobs.server import serve

            serve(child, spec["storage"])
        case _ if spec["ops"]:
            perform(child, spec["ops"])
        case "driver":
            Driver(child).work()
        case _:
            execute(child)


# An executor.


def execute(child: Child) -> None:
    """Perform the attempts that the kit hands on, each in a thread of its own, until the kit hangs up."""
    inbox = child.link.connect("inbox")
    child.link.ask("ready")
    while True:
        try:
            number, work, slow_ms, mode = inbox.recv()
        except (EOFError, OSError):
            return
        threading.Thread(target=_attempt, args=(child, number, work, slow_ms, mode), daemon=True).start()


def _attempt(child: Child, number: int, work: Any, slow_ms: int, mode: str) -> None:
    place = MarkerDirectory(work.table, work.instant)
    child.me.state["attempt"] = number

    def act() -> Any:
        create = child.markers(mode, place).create
        return child.system.write_file(work, child.storage, child.runtime, create, slow_ms, PARQUET)

    try:
        # Taking the task and reporting its end are steps as well, as in the simulated world.
        child.steps.step()
        ended = record_call(child.link, child.me, "attempt", place, work.path, str(work.token), None, act)
        child.steps.step()
    except AttemptEnded:
        return
    # A plain tuple: a mutant's classes are its own and known to nobody else.
    result = tuple(ended.value) if ended.error is None else repr(ended.error)
    child.link.ask("ended", number, result, ended.error is None)


# A driver.


class Driver:
    """Performs the writes that the kit hands on. It is the backend of its own stages (writer.stage.Backend)."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.workers: list[_Worker] = [_Worker(slot) for slot in range(child.plan.executors)]
        self._messages: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._writes: queue.SimpleQueue[tuple[Write, int] | None] = queue.SimpleQueue()
        self._attempts: dict[int, Attempt] = {}
        self._mode = ""

    def work(self) -> None:
        """Until the kit hangs up."""
        child = self.child
        inbox = child.link.connect("inbox")
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()
        child.link.ask("ready")
        while (given := self._writes.get()) is not None:
            write, ordinal = given
            try:
                self._write(write, ordinal)
            except JobFailed as failed:
                value = "abandoned" if write.abandon else None
                child.link.record(
                    child.me.name, child.me.role, "observe", "job-failed", value=value, error=str(failed)
                )  # fmt: skip
            except Exception as error:
                child.link.ask("leaving", repr(error))
                return
            child.link.ask("through")

    def _write(self, write: Write, ordinal: int) -> None:
        child = self.child
        plan, table = child.plan, child.plan.tables[write.table]
        if write.after_ms:
            child.runtime.sleep(write.after_ms)
        self._mode, why = child.link.ask("mode", write.markers)
        if self._mode == "timeline":
            child.link.ask("need-server")
        client = child.system.write_client(
            table,
            child.storage,
            child.runtime,
            child.options,
            _DriverMarkers(child, self._mode),
            DELTA_COMMIT if plan.merge_on_read else COMMIT,
            partial(self._journal, table),
        )
        instant = client.begin()
        child.link.record("kit", "kit", "observe", "mode", table, instant, value=self._mode, error=why or None)
        stage = Stage(table, instant, write, ordinal, client.slices, plan.merge_on_read)
        stats = stage.run(self)
        if write.abandon:
            raise JobFailed("the application gave up")
        child.run_again = partial(stage.run_again, self)
        client.finalize(instant, stats)
        client.commit(instant, stats, {"write": str(ordinal)})
        child.run_again = lambda: None

    def _journal(self, table: str, operation: str, instant: str | None, value: Value, body: Callable[[], Any]) -> Any:
        child = self.child
        ended = record_call(child.link, child.me, operation, (table, instant), None, value, None, body)
        if ended.error is not None:
            raise ended.error
        if operation == "begin":
            child.link.ask("began", table, ended.value)
        return ended.value

    # writer.stage.Backend

    def launch(self, attempt: Attempt) -> None:
        """Send an attempt to its executor, through the kit."""
        number = self.child.link.ask("launch", attempt.executor.slot, attempt.work, attempt.slow_ms, self._mode)
        self._attempts[number] = attempt

    def hear(self) -> Message:
        """The next message that still concerns somebody."""
        while True:
            kind, *rest = self._messages.get()
            if kind == "patience":
                return Message("patience", None, rest[0])
            if kind == "executor":
                self.workers[rest[0]].alive = rest[1]
                if rest[1]:
                    self.workers[rest[0]].busy = None
                    return Message("executor")
                continue
            attempt = self._attempts.get(rest[0])
            if attempt is None:
                continue  # A straggler of a write before.
            if kind == "lost":
                if not attempt.counted:
                    continue
                attempt.counted = False
            if kind == "ended":
                return Message(kind, attempt, WriteStat(*rest[1]) if rest[2] else RuntimeError(rest[1]))
            return Message(kind, attempt, rest[1] if len(rest) > 1 else None)

    def remind(self, message: Message, after_ms: int) -> None:
        """Tell this driver something later."""
        timer = threading.Timer(after_ms / 1000, self._messages.put, (("patience", message.result),))
        timer.daemon = True
        timer.start()

    def speculated(self, path: str) -> None:
        """Attempts of a task start at once."""
        self.child.link.record(self.child.me.name, "nemesis", "fault", FaultKind.SPECULATIVE.value, path=path)

    def _listen(self, inbox: Connection) -> None:
        while True:
            try:
                message = inbox.recv()
            except (EOFError, OSError):
                self._writes.put(None)
                return
            if message[0] == "write":
                self._writes.put(message[1:])
            else:
                self._messages.put(message)


class _Worker:
    """An executor as its driver knows it."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.alive = True
        self.busy: Attempt | None = None


class _DriverMarkers:
    """Where a driver finds markers (writer.client.Markers)."""

    def __init__(self, child: Child, mode: str) -> None:
        self._child = child
        self._mode = mode

    def store(self, directory: str) -> RecordedMarkers:
        """The store of this write's mode."""
        return self._child.markers(self._mode, parse_directory(directory))

    def stored(self, directory: str) -> tuple[str, ...]:
        """What a fresh reader finds: the reference's direct store reads every format of Hudi's."""
        child = self._child
        factory = child.system.direct
        assert factory is not None

        def listing() -> tuple[str, ...]:
            return tuple(sorted(factory(child.context(directory)).list_all()))

        place = parse_directory(directory)
        ended = record_call(child.link, child.me, "list", place, None, None, None, listing)
        if ended.error is not None:
            raise ended.error
        names: tuple[str, ...] = ended.value
        return names


# A client of the marker store alone.


def perform(child: Child, ops: tuple[Any, ...]) -> None:
    """Perform operations in order; after an unknown end this process does nothing any more."""
    mode, _ = child.link.ask("mode", "")
    for number, op in enumerate(ops):
        child.link.ask("op", number)
        if op.after_ms:
            child.runtime.sleep(op.after_ms)
        if _operate(child, mode, op) == "info":
            break
    child.link.ask("client-through")
    os._exit(0)


def _operate(child: Child, mode: str, op: Any) -> str:
    directory = child.plan.directories[op.directory]
    place = parse_directory(directory)
    context = child.context(directory)
    server = "second" if op.server else "server"
    if mode == "timeline":
        store: Any = TimelineMarkers(context, server)
        started = child.link.ask("server-started", server)
    else:
        assert child.system.direct is not None
        store, started = child.system.direct(context), None

    def act() -> Any:
        match op.kind:
            case "create" | "hostile":
                return store.create(op.name, op.request).value
            case "list":
                return tuple(sorted(store.list_all()))
            case "list-data":
                return tuple(sorted(store.list_data_paths()))
            case "list-log":
                return tuple(sorted(store.list_log_paths()))
            case "exists":
                return bool(store.exists())
            case _:
                return bool(store.delete())

    creates = op.kind == "create"
    path = op.name if creates else place.path if op.kind == "hostile" else None
    asked = (op.request or None) if creates else repr(op.name) if op.kind == "hostile" else None
    return record_call(child.link, child.me, op.kind, place, path, asked, started, act).kind
