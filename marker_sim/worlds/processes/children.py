"""What a forked child does: be a driver, an executor, a client of the marker store or the timeline server.

The reference runs in it as it is, on real seams; what is here only connects it to the kit: tasks and their ends, the
next write, and the faults that are due at one of its own steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from marker_sim.loading import load_system
from marker_sim.markers.client import TimelineMarkers
from marker_sim.markers.store import Context
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Fault, Plan
from marker_sim.seams import Storage
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.worlds.processes.coordinator_client import CoordinatorClient
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.processes.seams import CountedStorage, GatedStorage, ThreadRuntime
from marker_sim.worlds.processes.steps import Counters, Steps
from marker_sim.worlds.processes.wire import HttpWire
from marker_sim.writer.recording import RecordedMarkers, record_call


class AttemptEnded(BaseException):
    """The attempt of this thread ends here and now; its process lives on."""


class ActorIdentity:
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
        self.me = ActorIdentity(spec["process"], spec["role"])
        self.link = CoordinatorClient(spec["hub"], self.me.name, self.me.role)
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
            return CountedStorage(inner, self.steps, self.link), None
        root = Path(spec["root"])
        return GatedStorage(LocalStorage(root), root, self.steps, self.link), HostLocks(root)

    def _actor_died(self, error: str) -> None:
        self.link.record(self.me.name, self.me.role, "observe", "actor-died", error=error)

    def _strike(self, number: int, fault: Fault) -> None:
        told = self.link.ask("strike", number, self.me.state.get("attempt"))
        match told:
            case ("wire",):
                self.wire.armed.append(fault)
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
            from marker_sim.worlds.processes.server_process import serve

            serve(child, spec["storage"])
        case _ if spec["ops"]:
            from marker_sim.worlds.processes.client_process import perform

            perform(child, spec["ops"])
        case "driver":
            from marker_sim.worlds.processes.driver_process import Driver

            Driver(child).work()
        case _:
            execute(child)


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
