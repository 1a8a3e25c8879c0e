"""A real process from inside: the reference runs in it as it is, on real seams.

What is here only connects it to the kit, faults that are due at one of its own steps included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from marker_sim.faults import Fault
from marker_sim.loading import load_system
from marker_sim.names import MarkerDirectory
from marker_sim.seams import Storage
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.timeline import WriteStat
from marker_sim.worlds.cluster.environment import ProcessEnvironment
from marker_sim.worlds.cluster.settings import ClusterSettings
from marker_sim.worlds.processes.coordinator import CoordinatorClient
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.processes.seams import CountedStorage, Counters, Steps, ThreadRuntime
from marker_sim.worlds.processes.wire import HttpWire
from marker_sim.writer.attempt import Assignment


class AttemptEnded(BaseException):
    """The attempt of this thread ends here and now; its process lives on."""


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

    spec: as cluster.py makes it.
    """

    me: ActorIdentity
    wire: HttpWire

    def __init__(self, spec: dict[str, Any]) -> None:
        self.link = link = CoordinatorClient(spec["hub"], spec["process"], spec["role"])
        self.steps = Steps(Counters(Path(spec["counters"])), spec["slot"], spec["faults"], self._strike)
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
        """Have an embedded server started that is not there."""
        self.link.ask("need-server")

    def began(self, place: MarkerDirectory) -> None:
        """Report the table and instant of a write to the kit, as soon as it has one."""
        self.link.ask("began", *place)

    def write_file(self, work: Assignment, create: Callable[[str, str], object], slow_ms: int) -> WriteStat:
        """An attempt whose rows are Parquet."""
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
    """A marker directory as requests write it."""
    return f"s3a://{storage['bucket']}/{directory}" if storage["kind"] == "s3" else f"{storage['root']}/{directory}"
