"""A run of a plan as jobs of Spark applications: the cluster of worlds/processes, whose executors Spark starts.

    driver                 a Spark application, which is given one write after another; a new one when it died
    executors              Python workers, which Spark starts as it needs them; they register when they begin
    timeline server        forked by the kit, as in worlds/processes; it dies with its driver, in the same moment

Storage, coordinator, phases, the last write, what is read at the end and the header are those of worlds/processes.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.history import NOT_GETTING_ON, History
from marker_sim.plan import Plan
from marker_sim.surroundings import supervisor
from marker_sim.surroundings.requirements import find_java, spark_home
from marker_sim.system import System
from marker_sim.worlds.interceptor import ArmedFault, StorageCall
from marker_sim.worlds.processes.cluster import ProcessCluster
from marker_sim.worlds.processes.faults import CallerIsDead
from marker_sim.worlds.processes.fork_server import ForkServer, ManagedProcess
from marker_sim.worlds.processes.host import ProcessHost
from marker_sim.worlds.spark.application import driver_words
from marker_sim.worlds.spark.fault_injector import JobFaultInjector
from marker_sim.worlds.spark.outcome import SparkRun, left_files
from marker_sim.worlds.spark.plans import DRIVER, EXECUTOR, SERVER, first_writes
from marker_sim.worlds.spark.standalone import Standalone

NOT_FIRED = "fault on Spark that did not fire"
STRAY = "data file on Spark that no commit names at the end"


def run_spark(plan: Plan, processes: SparkProcesses, system: str = "reference", until: float = math.inf) -> SparkRun:
    """Execute a plan on a cluster, on a fresh local directory or behind a fresh S3 front.

    system: as in --sut; a mutant's as well.
    until: from then on (time.monotonic) only the last write begins, which must leave the table in order.
    HarnessError when the kit or Spark fails.
    """
    cluster = SparkCluster(plan, system, processes, until)
    history = cluster.run()
    missed, begun = cluster.injector.missed(), sum(e.kind == "ok" and e.operation == "begin" for e in history.events)
    counts = {NOT_FIRED: len(missed), STRAY: len(left_files(history).strays), "Spark job": begun}
    cut = cluster.plan != plan
    return SparkRun(history=history, plan=cluster.plan, counts=counts, missed=missed, cut=cut)


class SparkProcesses(ForkServer):
    """A Spark cluster, and the processes of successive runs on it; a context manager that leaves none.

    It must be entered by a thread that lives as long as it. HarnessError when Spark does not start.
    """

    def __enter__(self) -> SparkProcesses:
        super().__enter__()
        self.cluster = Standalone(self.scratch / "cluster", java=find_java(), home=spark_home(), door=self.front)
        try:
            self.cluster.__enter__()
        except BaseException:
            super().__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end_lives()
        self.cluster.__exit__()
        super().__exit__()

    def fork(self, life: ManagedProcess, spec: Mapping[str, Any]) -> None:
        """Start a driver as a program that leads a session; any other process is forked."""
        if life.role != DRIVER:
            super().fork(life, spec)
            return
        told = {**spec, "settings": {"spark.master": self.cluster.url}}
        words = driver_words("jobs", told, self.scratch / f"{life.name}.spec")
        start = supervisor.start_program if self.front is None else self.front.start
        environment = self.cluster.environment()
        life.program = start(words, environment, process=life.name, role=DRIVER, stdout=self._log)
        self._watch(life, life.program.pid)

    def register(self, worker: ManagedProcess, pid: int) -> None:
        """A Python worker has begun; CallerIsDead when its run is over."""
        with self._forking:
            if self._over:
                raise CallerIsDead
            self._watch(worker, pid)

    def _watch(self, life: ManagedProcess, pid: int) -> None:
        """Serve the calls of a process from now on, until it ends; OSError when it has ended."""
        handle = os.pidfd_open(pid)
        life.pid = pid
        self.lives[life.name] = self._by_pid[pid] = life
        life.forked.set()
        threading.Thread(target=self._await, args=(life, handle), daemon=True, name=life.name).start()

    def _await(self, life: ManagedProcess, handle: int) -> None:
        """Wait for the end of a process, and of a driver for that of its session."""
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll()
        os.close(handle)
        self._ended(life.pid, None if life.program is None else supervisor.end(life.program.popen))


class SparkHost(ProcessHost):
    """The processes of one run on Spark."""

    ready_s = 90.0

    def exit(self, process: ManagedProcess, why: str) -> None:
        """As of every process; HarnessError for a driver that does not get on: a busy machine may be the reason."""
        if why == NOT_GETTING_ON:
            said = self.fork_server.last_words()
            raise HarnessError(f"{process.name} did not end its write in {self.limit_ms // 1000} s: {said}")
        super().exit(process, why)

    def _end(self, process: ManagedProcess, follow: Callable[[], None] | None, record: Callable[[], int]) -> None:
        super()._end(process, follow, partial(self._record_end, process, record))

    def _record_end(self, process: ManagedProcess, record: Callable[[], int]) -> int:
        """Record an end; a driver's timeline server, which Hudi has in the same process, dies in the same moment."""
        index = record()
        for each in tuple(self.fork_server.lives.values()):
            if process.role == DRIVER and each.role == SERVER:
                self.kill(each, "with-its-driver")
        return index


class SparkCluster(ProcessCluster):
    """All processes of one run on Spark, from the kit's side. until: as for `run_spark`; `plan` has what was done."""

    host_type = SparkHost
    world = "spark"

    def __init__(self, plan: Plan, system: str, processes: SparkProcesses, until: float) -> None:
        self._processes = processes
        self._until = until
        super().__init__(plan, system, processes)
        self.writes.slots = 0  # Spark starts executors.
        self.writes.lasting = True

    def run(self) -> History:
        """Play the phases and close the history; of this run's processes none is left but executors about to end."""
        try:
            return super().run()
        finally:
            self.injector.over.set()

    def play(self) -> None:
        """Perform the writes of the plan, each with its own faults."""
        for ordinal, write in enumerate(self.plan.writes, 1):
            if ordinal > 1 and time.monotonic() > self._until:
                self.plan = first_writes(self.plan, ordinal - 1)
                break
            self.injector.arm(ordinal)
            self.writes.play(write)
            self.interceptor.disarm()

    def end(self) -> None:
        """As everywhere, after late attempts of the last write may go on."""
        self.injector.begin(len(self.plan.writes) + 1)
        super().end()

    def _prepared(self, plan: Plan, system: System) -> Plan:
        self.injector = JobFaultInjector(self, plan, self._processes.cluster)
        return plan

    def _inject(self, armed: ArmedFault, call: StorageCall) -> None:
        self.injector.inject(armed, call)

    def _exited(self, process: ManagedProcess) -> None:
        if process.role == DRIVER:
            raise HarnessError(f"{process.name} ended by itself: {self.host.fork_server.last_words()}")
        super()._exited(process)

    def _answers(self, lives: dict[str, ManagedProcess]) -> dict[str, Callable[..., Any]]:
        return {
            **super()._answers(lives),
            "hello": self._hello,
            "moment": self.injector.moment,
            "step": self.injector.step,
        }

    def _hello(self, name: str, pid: int, host: str, counters: str) -> None:
        """A Python worker begins; one whose executor belongs to an earlier run gets no answer."""
        if counters != str(self._counters):
            raise CallerIsDead
        self.storage.expect(name, EXECUTOR)
        self._processes.register(ManagedProcess(name, host, EXECUTOR), pid)
