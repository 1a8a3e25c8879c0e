"""Clients of a marker store, without writes: each performs its operations in order, over several lives.

A client never acts again after an unknown outcome: its operations go on in another process.
"""

from __future__ import annotations

from typing import Any

from marker_sim.plan import Op
from marker_sim.worlds.cluster.lives import ClientLife, Restarts
from marker_sim.worlds.host import Host


class ClusterClients:
    """The clients of one phase after another."""

    def __init__(self, host: Host, restarts: Restarts) -> None:
        self._host = host
        self._restarts = restarts
        self._at_work = 0

    def play(self, ops: tuple[Op, ...]) -> None:
        """Let one client for each name perform its operations, until all are done or the time is over."""
        by_actor: dict[str, list[Op]] = {}
        for op in ops:
            by_actor.setdefault(op.actor, []).append(op)
        for name, own in by_actor.items():
            self._at_work += 1
            role = "driver" if name.startswith("driver") else "executor"
            self._host.start(name, role, ClientLife(name=name, role=role, ops=tuple(own)))
        if ops and not self._host.run(self._host.limit_ms):
            self._host.overdue(f"clients did not get through their operations in {self._host.limit_ms // 1000} s")

    def go_on(self, before: Any) -> None:
        """Continue the work of a client in a new process."""
        client: ClientLife = before.life
        self._host.start(client.name, client.role, client)

    def died(self, process: Any, after_ms: int) -> None:
        """Arrange that a new process replaces a killed client after `after_ms`, none if that is negative."""
        if after_ms >= 0:
            self._restarts.expect(process, self.go_on)
            self._host.after(after_ms, self._restarts.due, process)
        else:
            self.left()

    def left(self) -> None:
        """Count one client less at work: it is done, or ended for good; the last one ends the phase."""
        self._at_work -= 1
        if self._at_work == 0:
            self._host.stop()
