"""The processes of a marker store: its clients, and its timeline servers, "server" and for a while "second".

A client performs its operations in order, over several lives. It never acts again after an unknown outcome: its
operations go on in another process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marker_sim.plan import Op, Plan
from marker_sim.worlds.host import ClientLife, Host, Restarts, TimelineServerLife

ROLE = "timeline-server"


@dataclass(eq=False)
class ClusterClients:
    """The clients of one phase after another."""

    host: Host
    restarts: Restarts
    _at_work: int = 0

    def play(self, ops: tuple[Op, ...]) -> None:
        """Let one client for each name perform its operations, until all are done or the time is over."""
        by_actor: dict[str, list[Op]] = {}
        for op in ops:
            by_actor.setdefault(op.actor, []).append(op)
        for name, own in by_actor.items():
            self._at_work += 1
            role = "driver" if name.startswith("driver") else "executor"
            self.host.start(name, role, ClientLife(name=name, role=role, ops=tuple(own)))
        if ops and not self.host.run(self.host.limit_ms):
            self.host.overdue(f"clients did not get through their operations in {self.host.limit_ms // 1000} s")

    def go_on(self, before: Any) -> None:
        """Continue the work of a client in a new process."""
        client: ClientLife = before.life
        self.host.start(client.name, client.role, client)

    def died(self, process: Any, after_ms: int) -> None:
        """Arrange that a new process replaces a killed client after `after_ms`, none if that is negative."""
        if after_ms >= 0:
            self.restarts.expect(process, self.go_on)
            self.host.after(after_ms, self.restarts.due, process)
        else:
            self.left()

    def left(self) -> None:
        """Count one client less at work: it is done, or ended for good; the last one ends the phase."""
        self._at_work -= 1
        if self._at_work == 0:
            self.host.stop()


@dataclass(eq=False)
class TimelineServers:
    """Starts, deaths and addresses of the timeline servers."""

    plan: Plan
    host: Host
    restarts: Restarts
    _lives: dict[str, Any] = field(default_factory=lambda: {"server": None, "second": None})

    def start(self, name: str) -> Any:
        """Start a new life of "server" or "second", which answers when this returns."""
        life = TimelineServerLife(first=self._lives["server"] is None)
        process = self._lives[name] = self.host.start(name, ROLE, life)
        self.host.ready(process)
        return process

    def need(self) -> None:
        """Start the server that a driver's write needs: an embedded one, or any one that never started."""
        server = self._lives["server"]
        if server is None or (not server.alive and self.plan.embedded):
            if server is not None:
                self.restarts.forget(server)
            self.start("server")

    def address(self, name: str) -> Any:
        """The process with a server's name, dead or alive, or None; the first replaces a second that is gone."""
        second = self._lives["second"]
        if name == "second" and second is not None and second.alive:
            return second
        return self._lives["server"]

    def start_second(self, duration_ms: int) -> None:
        """Start a second server on the same storage for a while; once in a run."""
        if self._lives["server"] is not None and self._lives["second"] is None:
            second = self.start("second")
            self.host.record(second.name, second.role, "fault", "second-server", value="begin")
            self.host.after(duration_ms, self._stop_second, second)

    def end_embedded(self) -> None:
        """End an embedded server because its driver has ended."""
        server = self._lives["server"]
        if self.plan.embedded and server is not None and server.alive:
            self.host.kill(server, "with-its-driver")

    def died(self, server: Any, after_ms: int) -> None:
        """Arrange that a killed server restarts after `after_ms`, never if that is negative."""
        if after_ms >= 0:
            self.restarts.expect(server, lambda process: self.start(process.name.partition("#")[0]))
            self.host.after(after_ms, self.restarts.due, server)

    def heal(self) -> None:
        """Restart all processes that are to come back, clients too, except a second server, which ends."""
        second, server = self._lives["second"], self._lives["server"]
        if second is not None:
            self.restarts.forget(second)
        self.restarts.all_due()
        if second is not None:
            self._stop_second(second)
        server = self._lives["server"]
        if server is not None:
            self.host.resume(server)

    def _stop_second(self, second: Any) -> None:
        if second.alive:
            self.host.kill(second, "second-server")
            self.host.record(second.name, second.role, "fault", "second-server", value="end")
        if self._lives["second"] is second:
            self.restarts.forget(second)
