"""A real process from inside: a driver, an executor, a client of the marker store or the timeline server.

It runs the unchanged reference on real seams.

This module connects it to the kit, and injects faults that are due at its own steps.
"""

from __future__ import annotations

import gc
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from marker_sim.faults import Fault, FaultKind
from marker_sim.loading import load_system
from marker_sim.markers.protocol import takes_identity
from marker_sim.markers.store import Context, MarkerStore
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Op, Write
from marker_sim.seams import Storage
from marker_sim.serve.server import Settings, run
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.timeline import WriteStat
from marker_sim.worlds.cluster.environment import ProcessEnvironment
from marker_sim.worlds.cluster.settings import ClusterSettings
from marker_sim.worlds.cluster.work import (
    StageBackend,
    perform_attempt,
    perform_operations,
    perform_write,
    run_stage,
    run_stage_again,
)
from marker_sim.worlds.processes.coordinator import CoordinatorClient
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.processes.seams import CountedStorage, HttpWire, Steps, ThreadRuntime, step_counters
from marker_sim.writer.attempt import Assignment
from marker_sim.writer.backend import Attempt, Message
from marker_sim.writer.slices import Slice


class AttemptEnded(BaseException):
    """Ends the attempt of this thread; its process lives on."""


class ActorIdentity(threading.local):
    """The actor that calls are recorded under; each thread has its own, as it was made.

    invoke: the last invocation of the thread that asks.
    attempt: the number of the attempt that this thread makes, None for none. part: of a write, which sites are known
        by; a real process has no sites.
    """

    def __init__(self, name: str, role: str) -> None:
        self.name = name
        self.role = role
        self.part = ""
        self.invoke: int | None = None
        self.attempt: int | None = None


class Child(ProcessEnvironment):
    """A real process from inside.

    spec: the specification that cluster.py makes.
    """

    me: ActorIdentity
    wire: HttpWire

    def __init__(self, spec: dict[str, Any]) -> None:
        self.link = link = CoordinatorClient(spec["hub"], spec["process"], spec["role"])
        self.steps = Steps(step_counters(Path(spec["counters"])), spec["slot"], spec["faults"], self._strike)
        self.run_again: Callable[[], None] = lambda: None
        me = ActorIdentity(spec["process"], spec["role"])
        storage, locks = self._storage(spec["storage"], me.name)
        runtime = ThreadRuntime(self.steps, locks, self._actor_died)
        wire = HttpWire(link, self.steps.step, partial(address_of, spec["storage"]), lambda: me.invoke)
        system = load_system(spec["system"], partial(link.ask, "wrong-return"))
        settings = ClusterSettings(spec["plan"], system, storage.capabilities)
        super().__init__(me, link, settings, settings.options, (storage, runtime, wire))

    def step(self, site: str) -> None:
        """One step of this process; it knows no sites."""
        self.steps.step()

    def server_started(self, server: str) -> int | None:
        """The `started` event of the server with a name."""
        started: int | None = self.link.ask("server-started", server)
        return started

    def need_server(self) -> None:
        """Ask the kit to start an embedded server if there is none."""
        self.link.ask("need-server")

    def began(self, place: MarkerDirectory) -> None:
        """Report the table and instant of a write to the kit."""
        self.link.ask("began", *place)

    def write_file(self, work: Assignment, create: Callable[[str, str], object], slow_ms: int) -> WriteStat:
        """Write the file of an attempt as Parquet."""
        return self.system.write_file(work, self.context(work.table), create, slow_ms, PARQUET)

    def _storage(self, spec: dict[str, str], process: str) -> tuple[CountedStorage, HostLocks | None]:
        inner: Storage
        if spec["kind"] == "s3":
            from marker_sim.storages.s3 import S3Storage

            inner = S3Storage(spec["endpoint"], spec["bucket"], access_key=process)
            return CountedStorage(inner, self.steps, self.link), None
        root = Path(spec["root"])
        return CountedStorage(LocalStorage(root), self.steps, self.link), HostLocks(root)

    def _actor_died(self, error: str) -> None:
        self.link.record(self.me.name, self.me.role, "observe", "actor-died", error=error)

    def _strike(self, number: int, fault: Fault) -> None:
        match self.link.ask("strike", number, self.me.attempt):
            case ("wire", _):
                self.wire.armed.append(fault)
            case ("end", _):
                raise AttemptEnded
            case ("sleep", duration_ms):
                time.sleep(duration_ms / 1000)
            case ("run-again", _):
                self.run_again()


def address_of(storage: dict[str, str], directory: str) -> str:
    """A marker directory in the form of requests."""
    return f"s3a://{storage['bucket']}/{directory}" if storage["kind"] == "s3" else f"{storage['root']}/{directory}"


def run_child(spec: dict[str, Any]) -> None:
    """The main function of a forked child."""
    child = Child(spec)
    match spec["kind"]:
        case "TimelineServerLife":
            serve(child, spec["storage"])
        case "ClientLife":
            operate(child, spec["ops"])
        case "WriteDriverLife":
            drive(child)
        case _:
            execute(child)


@cache
def prepare(storage: str, life: str) -> None:
    """Import what such children use, so that it is in memory before they are forked."""
    if storage == "s3":
        from marker_sim.storages.s3 import S3Storage

        S3Storage("http://127.0.0.1:1", "lake", access_key="none").close()
    if life == "TimelineServerLife":
        from marker_sim.serve import connections  # noqa: F401
    gc.freeze()


def serve(child: Child, storage: dict[str, str]) -> None:
    """Run the server of `marker-sim serve` on intercepted storage, and report its port to the kit."""
    base = storage["root"] if storage["kind"] == "local" else f"s3a://{storage['bucket']}"

    def ready(url: str) -> None:
        child.link.ask("listening", urlsplit(url).port)

    def factory(context: Context) -> MarkerStore:
        assert child.system.server is not None
        store = child.system.server(context)
        if not takes_identity(type(store)):
            child.link.ask("no-identity")
        return store

    def open_storage(local: bool, root: str) -> Storage:
        # A server keeps local paths relative to the directory above its base.
        return CountedStorage(LocalStorage(Path(root)), child.steps, child.link) if local else child.storage

    run(Settings(bases=(base,), options=child.options), ready, open_storage, factory)


def operate(child: Child, ops: tuple[Op, ...]) -> None:
    """Perform a client's operations in order; the process stops after an operation with an unknown outcome."""

    def begun() -> Iterator[Op]:
        for op in ops:
            child.link.ask("op")
            yield op

    child.link.ask("client-through", perform_operations(child, child.settings.choice.mode, begun()))
    os._exit(0)


def execute(child: Child) -> None:
    """Perform the attempts that the kit sends, each in a thread of its own, until the kit closes the connection."""
    inbox = child.link.connect("inbox")
    child.link.ask("ready")
    while True:
        try:
            number, work, slow_ms, mode = inbox.recv()
        except (EOFError, OSError):
            return
        threading.Thread(target=_attempt, args=(child, number, work, slow_ms, mode), daemon=True).start()


def _attempt(child: Child, number: int, work: Any, slow_ms: int, mode: str) -> None:
    child.me.attempt = number
    try:
        ended = perform_attempt(child, work, mode, slow_ms)
    except AttemptEnded:
        return
    # A plain tuple: a mutant's classes are its own and known to nobody else.
    result = tuple(ended.value) if ended.error is None else repr(ended.error)
    child.link.ask("ended", number, result, ended.error is None)


def drive(child: Child) -> None:
    """Perform writes until the kit closes the connection, or this driver cannot continue."""
    backend = ProcessBackend(child)
    child.run_again = partial(run_stage_again, child, backend)
    inbox = child.link.connect("inbox")
    threading.Thread(target=backend.listen, args=(inbox,), daemon=True).start()
    child.link.ask("ready")
    while (given := backend.writes.get()) is not None:
        write, ordinal = given
        why = perform_write(child, write, ordinal, partial(run_stage, child, backend, write, ordinal))
        backend.again = None
        child.link.ask("through", why)


class ProcessBackend(StageBackend):
    """The cluster as seen by the driver of a stage. writes: the queue of writes; None when the kit is gone."""

    def __init__(self, child: Child) -> None:
        self._workers = [_Worker(slot) for slot in range(child.plan.executors)]
        self.writes: queue.SimpleQueue[tuple[Write, int] | None] = queue.SimpleQueue()
        self._child = child
        self._messages: queue.SimpleQueue[tuple[str, Any, Any]] = queue.SimpleQueue()
        self._attempts: dict[int, Attempt] = {}

    @property
    def workers(self) -> list[_Worker]:
        """Every executor, with its state as last reported by the kit."""
        return self._workers

    def launch(self, attempt: Attempt) -> None:
        """Send an attempt to its executor, through the kit."""
        there = attempt.work.slice
        work = attempt.work._replace(slice=None if there is None else Slice(*there))
        number = self._child.link.ask("launch", attempt.executor.slot, work, attempt.slow_ms, self.mode)
        self._attempts[number] = attempt

    def receive(self) -> Message:
        """The next message to the driver, without those about attempts that it no longer counts."""
        while True:
            kind, number, value = self._messages.get()
            match kind:
                case "patience":
                    return Message("patience", None, value)
                case "executor":
                    self._workers[value].alive, self._workers[value].busy = True, None
                    return Message("executor")
                case "executor-lost":
                    self._workers[value].alive = False
                    continue
            attempt = self._attempts.get(number)
            if attempt is None or (kind == "lost" and not attempt.counted):
                continue  # The attempt belongs to an earlier write, or is already known to be lost.
            if kind == "lost":
                attempt.counted = False
            elif kind == "ended":
                result, well = value
                value = WriteStat(*result) if well else RuntimeError(result)
            return Message(kind, attempt, value)

    def remind(self, message: Message, after_ms: int) -> None:
        """Send this driver a message later."""
        timer = threading.Timer(after_ms / 1000, self._messages.put, (("patience", None, message.result),))
        timer.daemon = True
        timer.start()

    def speculated(self, path: str) -> None:
        """Record that several attempts of a task start at once."""
        link = self._child.link
        link.record(self._child.me.name, "nemesis", "fault", FaultKind.SPECULATIVE.value, path=path)

    def listen(self, inbox: Connection) -> None:
        """Sort the kit's messages until it closes the connection."""
        while True:
            try:
                message = inbox.recv()
            except (EOFError, OSError):
                self.writes.put(None)
                return
            if message[0] == "write":
                self.writes.put(message[1:])
            else:
                self._messages.put(message)


@dataclass(slots=True)
class _Worker:
    """An executor as seen by its driver."""

    slot: int
    alive: bool = True
    busy: Attempt | None = None
