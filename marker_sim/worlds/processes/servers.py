"""The timeline servers of a cluster of real processes: their births, deaths and addresses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from marker_sim.faults import FaultKind
from marker_sim.plan import Fault
from marker_sim.worlds.processes.fork_server import ManagedProcess

if TYPE_CHECKING:
    from marker_sim.worlds.processes.cluster import ProcessCluster

ROLE = "timeline-server"
END_S = 20.0


class Servers:
    """ "server" and, for a while, "second"."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self._cluster = cluster
        self._lives: dict[str, ManagedProcess | None] = {"server": None, "second": None}
        self._turn = threading.RLock()

    def answers(self) -> dict[str, Callable[..., Any]]:
        """What children ask about servers."""
        return {
            "listening": self._listening,
            "need-server": lambda _: self.need(),
            "server-started": self._started,
            "address": self._where,
        }

    def start(self, name: str) -> ManagedProcess:
        """A new life of "server" or "second", which answers when this returns."""
        cluster = self._cluster
        server = cluster.spawn(name, ROLE)
        self._lives[name] = server
        cluster.ready(server)
        return server

    def need(self) -> None:
        """An embedded server is started with its driver's write, and where there never was one."""
        with self._turn:
            server = self._lives["server"]
            if server is None or (not server.alive and self._cluster.plan.embedded):
                self.start("server")

    def second(self, duration_ms: int) -> None:
        """Another server on the same storage for a while."""
        cluster = self._cluster
        if self._lives["second"] is None and self._lives["server"] is not None:
            second = self.start("second")
            cluster.recorder.record(second.name, second.role, "fault", "second-server", value="begin")
            cluster.later(duration_ms, self.stop_second)

    def stop_second(self) -> None:
        """The end of `second`."""
        second, self._lives["second"] = self._lives["second"], None
        if second is not None and second.alive:
            self._end(second, "second-server")
            self._cluster.recorder.record(second.name, second.role, "fault", "second-server", value="end")

    def end_embedded(self) -> None:
        """The server of a driver that is gone."""
        server = self._lives["server"]
        if self._cluster.plan.embedded and server is not None and server.alive:
            self._end(server, "with-its-driver")
            server.gone.wait(END_S)

    def heal(self) -> None:
        """Whoever was to come back is back, and nobody else is there."""
        self.stop_second()
        server = self._lives["server"]
        if server is not None and server.kill_sent:
            server.gone.wait(END_S)
            if _comes_back(server):
                self._restart(server)

    def gone(self, server: ManagedProcess) -> None:
        """A server is dead."""
        if _comes_back(server) and self._lives[server.actor] is server and server.fault is not None:
            self._cluster.later(server.fault.duration_ms, lambda: self._restart(server))

    def _restart(self, server: ManagedProcess) -> None:
        with self._turn:
            if self._lives[server.actor] is server and not self._cluster.recorder.closed:
                self.start(server.actor)

    def _end(self, server: ManagedProcess, why: str) -> None:
        fault = Fault(kind=FaultKind.KILL, actor=server.actor, step=0, duration_ms=-1)
        self._cluster.injector.kill(server, fault, why)

    def there(self, name: str) -> ManagedProcess | None:
        """The server behind a name, unless it is dead; the first stands in for a second that is gone."""
        second = self._lives["second"]
        if name == "second" and second is not None and second.alive:
            return second
        server = self._lives["server"]
        return server if server is not None and not server.kill_sent else None

    def _listening(self, name: str, port: int) -> None:
        life = self._cluster.fork_server.lives[name]
        life.port = port
        life.started = self._cluster.recorder.record(name, life.role, "observe", "started")
        life.ready.set()

    def _started(self, _: str, server: str = "server") -> int | None:
        life = self.there(server)
        return life.started if life is not None else None

    def _where(self, _: str, server: str) -> tuple[str, int] | None:
        life = self.there(server)
        return (life.name, life.port) if life is not None and life.port else None


def _comes_back(server: ManagedProcess) -> bool:
    return server.fault is not None and server.fault.duration_ms >= 0
