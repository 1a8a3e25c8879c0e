"""Clients of the marker store alone, from the kit's side: each performs its operations over several lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from marker_sim.errors import HarnessError
from marker_sim.plan import Op
from marker_sim.worlds.processes.fork_server import ManagedProcess

if TYPE_CHECKING:
    from marker_sim.worlds.processes.cluster import ProcessCluster

LIMIT_S = 120.0


class Clients:
    """A client that met an unknown end goes on in another process, with the operations that are left."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self._cluster = cluster
        self._at_work: dict[str, bool] = {}
        self._turn = threading.Condition()

    def answers(self) -> dict[str, Callable[..., Any]]:
        """What clients tell."""
        return {"op": self._op, "client-through": self._through}

    def play(self, ops: tuple[Op, ...]) -> None:
        """Let one client for each name perform its operations, until all are through or the time is over."""
        for name in dict.fromkeys(op.actor for op in ops):
            self._start(name, tuple(op for op in ops if op.actor == name))
        with self._turn:
            ended = self._turn.wait_for(lambda: not any(self._at_work.values()) or self._cluster.trouble, LIMIT_S)
        if self._cluster.trouble:
            raise self._cluster.trouble[0]
        if not ended:
            raise HarnessError(f"clients did not get through their operations within {LIMIT_S:.0f} s")

    def wake(self) -> None:
        """Let whoever waits look again."""
        with self._turn:
            self._turn.notify_all()

    def gone(self, client: ManagedProcess) -> None:
        """A client is dead, or did what it could."""
        after_ms = client.fault.duration_ms if client.fault is not None else 0
        if after_ms > 0:
            time.sleep(after_ms / 1000)
        self._start(client.actor, client.ops[client.done :] if after_ms >= 0 else ())

    def _start(self, name: str, ops: tuple[Op, ...]) -> None:
        with self._turn:
            self._at_work[name] = bool(ops)
            self._turn.notify_all()
        if ops:
            self._cluster.spawn(name, "driver" if name.startswith("driver") else "executor", ops=ops)

    def _op(self, name: str, number: int) -> None:
        self._cluster.fork_server.lives[name].done = number + 1

    def _through(self, name: str) -> None:
        self._cluster.fork_server.lives[name].kill_sent = True
