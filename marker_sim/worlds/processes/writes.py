"""The driver and the executors of a cluster of real processes, from the kit's side: it is their cluster manager.

Attempts, their ends and the loss of executors pass through the kit, which is where a plan can say that one was lost. A
driver that is gone takes the embedded server along at once and its executors after a while.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from marker_sim.faults import FaultKind
from marker_sim.history import APPLICATION_ENDED, NOT_GETTING_ON
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Task, Write
from marker_sim.worlds.processes.fork_server import ManagedProcess

if TYPE_CHECKING:
    from marker_sim.worlds.processes.cluster import ProcessCluster

WRITE_LIMIT_S = 120.0
GONE_S = 20.0
LOST_EXECUTOR_MS = 20
LINGER_AFTER_END_MS = 200
PROBE_GROUP = "probe"


class Writes:
    """Writes one after another. instants: the marker directories of those that began. attempts: driver and path."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self.instants: dict[MarkerDirectory, None] = {}
        self.attempts: dict[int, tuple[ManagedProcess, str]] = {}
        self._cluster = cluster
        self._tables: dict[int, None] = {}
        self._executors: dict[str, ManagedProcess] = {}
        self._driver: ManagedProcess | None = None
        self._working = False
        self._ordinal = 0
        self._turn = threading.Condition()
        self._ending = threading.Lock()

    def answers(self) -> dict[str, Callable[..., Any]]:
        """What drivers and executors ask and tell."""
        return {
            "launch": self._launch,
            "ended": self._ended,
            "through": self._through,
            "leaving": self._leaving,
            "began": lambda _, table, instant: self.instants.setdefault(MarkerDirectory(table, instant)),
        }

    def play(self, write: Write) -> None:
        """Let the driver perform one write, until it is through or gone and its successor may begin."""
        self._ordinal += 1
        self._tables[write.table] = None
        driver = self._driver or self._start_driver()
        with self._turn:
            self._working = True
        self._cluster.coordinator.post(driver.name, "write", write, self._ordinal)
        with self._turn:
            self._turn.wait_for(lambda: not self._working or self._cluster.trouble, WRITE_LIMIT_S)
        if self._cluster.trouble:
            raise self._cluster.trouble[0]
        if self._working:
            self._leave(driver, NOT_GETTING_ON, 0)
        fault = driver.fault
        if not driver.alive and fault is not None and fault.duration_ms > 0:
            time.sleep(fault.duration_ms / 1000)

    def wake(self) -> None:
        """Let whoever waits look again."""
        with self._turn:
            self._turn.notify_all()

    def probe(self) -> None:
        """A new driver writes to each table: something new, and something on top of what it may hold already."""
        if not self._tables:
            return
        if self._driver is not None:
            self._leave(self._driver, APPLICATION_ENDED, LINGER_AFTER_END_MS)
        for table in list(self._tables):
            known = next((t for w in self._cluster.plan.writes if w.table == table for t in w.tasks), None)
            more = (Task(partition=known.partition, group=known.group, kind="APPEND"),) if known else ()
            self.play(Write(table=table, tasks=(Task(group=PROBE_GROUP), *more)))

    def tables(self) -> tuple[str, ...]:
        """Those that were written to."""
        return tuple(self._cluster.plan.tables[number] for number in self._tables)

    def gone(self, life: ManagedProcess) -> None:
        """A driver or an executor is dead."""
        if life is self._driver:
            fault = life.fault
            lingers = fault is not None and fault.kind is FaultKind.KILL
            self._without_driver(life, max(0, fault.value) if fault is not None and lingers else 0)
        elif life.role == "executor":
            self._executor_gone(life)

    def _start_driver(self) -> ManagedProcess:
        cluster = self._cluster
        driver = self._driver = cluster.spawn("driver", "driver")
        self._executors = {}
        for slot in range(cluster.plan.executors):
            self._new_executor(slot)
        cluster.ready(driver, *self._executors.values())
        return driver

    def _new_executor(self, slot: int) -> ManagedProcess:
        executor = self._cluster.spawn(f"executor-{slot}", "executor", slot)
        self._executors[executor.actor] = executor
        return executor

    def _replace_executor(self, driver: ManagedProcess, slot: int) -> None:
        if driver.alive and driver is self._driver:
            self._cluster.ready(self._new_executor(slot))
            self._cluster.tell(driver, "executor", slot, True)

    def _leave(self, driver: ManagedProcess, why: str, linger_ms: int) -> None:
        """A driver ends by itself."""
        self._exit(driver, why)
        self._without_driver(driver, linger_ms)

    def _exit(self, life: ManagedProcess, why: str) -> None:
        with self._cluster.recorder.lock:
            if life.kill_sent:
                return
            life.kill_sent = True
            self._cluster.recorder.record(life.name, life.role, "observe", "exited", error=why)
            life.signal(signal.SIGKILL)
        life.gone.wait(GONE_S)

    def _without_driver(self, driver: ManagedProcess, linger_ms: int) -> None:
        """What follows from the end of a driver, once; whoever asks again comes back when it has followed."""
        with self._ending:
            if driver is not self._driver:
                return
            cluster, executors = self._cluster, tuple(self._executors.values())
            cluster.later(linger_ms, lambda: self._follow(executors))
            cluster.servers.end_embedded()
            with self._turn:
                self._driver = None
                self._working = False
                self._turn.notify_all()

    def _follow(self, executors: tuple[ManagedProcess, ...]) -> None:
        for executor in executors:
            self._exit(executor, "its driver is gone")

    def _executor_gone(self, executor: ManagedProcess) -> None:
        driver, cluster = self._driver, self._cluster
        if driver is None or self._executors.get(executor.actor) is not executor:
            return
        cluster.tell(driver, "executor", executor.slot, False)
        for number in list(executor.running):
            cluster.later(LOST_EXECUTOR_MS, lambda number=number: cluster.tell(driver, "lost", number))  # type: ignore[misc]
        after_ms = executor.fault.duration_ms if executor.fault is not None else 0
        if after_ms >= 0:
            cluster.later(after_ms, lambda: self._replace_executor(driver, executor.slot))

    def _launch(self, name: str, slot: int, work: Any, slow_ms: int, mode: str) -> int:
        cluster = self._cluster
        driver, executor = cluster.fork_server.lives[name], self._executors[f"executor-{slot}"]
        number = len(self.attempts)
        self.attempts[number] = (driver, work.path)
        executor.running[number] = None
        if executor.alive:
            cluster.coordinator.post(executor.name, number, work, slow_ms, mode)
        else:
            cluster.later(LOST_EXECUTOR_MS, lambda: cluster.tell(driver, "lost", number))
        return number

    def _ended(self, name: str, number: int, result: Any, well: bool) -> None:
        self._cluster.fork_server.lives[name].running.pop(number, None)
        self._cluster.tell(self.attempts[number][0], "ended", number, result, well)

    def _through(self, _: str) -> None:
        with self._turn:
            self._working = False
            self._turn.notify_all()

    def _leaving(self, name: str, why: str) -> None:
        driver = self._cluster.fork_server.lives[name]
        with self._cluster.recorder.lock:
            driver.kill_sent = True
            self._cluster.recorder.record(driver.name, driver.role, "observe", "exited", error=why)
