"""One example of the state machine: a cluster, the write that is being composed, and the judgement.

The steps so far are a plan at any time (`Cluster.plan`), and running that plan gives the same history; this is checked
for a share of the examples and every failing one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marker_sim.campaign.machine import JudgedExample
from marker_sim.campaign.planned_runs import NOT_DETERMINISTIC
from marker_sim.campaign.runs import execute, findings_in
from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind, FaultSettings
from marker_sim.faults.row import BATCHED_STORAGES
from marker_sim.judges.guarantees import ALL
from marker_sim.outcome.failure import failures_in
from marker_sim.plan import Plan, Task, Write
from marker_sim.worlds.simulated.cluster import Cluster
from marker_sim.worlds.simulated.watchdog import watched

Group = tuple[str, str]
TASKS_MAX = 6
# Guarantees that need the end of faults and the passing of time are judged only at the end.
SAFETY = ALL - {"G6", "G7", "G18"}


class Example(JudgedExample):
    """The state that the rules (machine_rules.py) change: a plan in the making."""

    def __init__(self) -> None:
        super().__init__()
        self.left_behind = False
        self._cluster: Cluster | None = None
        self._broken = False
        self._faults_max = 1
        self._write = Write()
        self._tasks: dict[Group, Task] = {}
        self._faults: list[tuple[FaultKind, str, int, FaultSettings]] = []

    @property
    def pieces(self) -> int:
        """The tasks and faults of the open write."""
        return len(self._tasks) + len(self._faults)

    @property
    def write(self) -> Write:
        """The open write, without its tasks."""
        return self._write

    def start(self, faults_max: int, **changes: Any) -> None:
        """Begin a run of writes. faults_max: the most that one write may have; the other arguments are fields of Plan.

        One fault or task too many finishes the open write, so that examples in which the rule `finish` is off have
        more than one write too.
        """
        self._faults_max = faults_max
        plan = Plan(mode=self.mode, storage=self.storage, directories=(), **changes)
        self._cluster = Cluster(plan, self.system)
        self._cluster.begin()

    def change_write(self, **changes: Any) -> None:
        """Set fields of the next write."""
        self._write = replace(self._write, **changes)

    def add_task(self, group: Group, **changes: Any) -> Group:
        """Add a task to the next write, or change the one that it has for that file group; returns the group."""
        if len(self._tasks) >= TASKS_MAX:
            self.play(abandon=False)
        partition, name = group
        self._tasks[group] = replace(self._tasks.get(group, Task(partition=partition, group=name)), **changes)
        return group

    def add_fault(self, kind: FaultKind, who: str, ahead: int, **settings: Any) -> None:
        """Add a fault `ahead` steps of its target after the next write's begin; without a server it hits the driver."""
        if len(self._faults) >= self._faults_max:
            self.play(abandon=False)
        role, _, slot = who.partition("-")
        if role == "executor":
            who = f"executor-{int(slot) % self._running.plan.executors}"
        elif role == "server" and not (self.mode == "timeline" and self.storage in BATCHED_STORAGES):
            who = "driver"
        self._faults.append((kind, who, ahead, FaultSettings(**settings)))

    def play(self, abandon: bool) -> None:
        """Let the driver perform the open write (with one task if it has none), and judge the history so far."""
        self._perform(abandon)
        self._judge_so_far()

    def _perform(self, abandon: bool) -> None:
        cluster, events = self._running, self._running.scheduler.events
        table = self._write.table % len(cluster.plan.tables)
        write = replace(self._write, table=table, tasks=tuple(self._tasks.values()) or (Task(),), abandon=abandon)
        for kind, who, ahead, settings in self._faults:
            cluster.add_fault(kind, who, ahead, settings)
        before = len(events)
        self._broken = True
        with watched(lambda: cluster.scheduler.steps):
            cluster.add_write(write)
        self._broken = False
        self.left_behind = not any(e.kind == "ok" and e.operation == "commit" for e in events[before:])
        self._write, self._tasks, self._faults = Write(table=table), {}, []
        self.seen.writes += 1

    def _judge_so_far(self) -> None:
        """The invariant: no promise is broken, liveness aside; a breach counts if the plan so far has it by itself.

        Not an @invariant of Hypothesis', which would put a line after every step of the program it prints.
        """
        if self.seen.on_example is not None:
            return  # The receiver of whole examples shrinks their plans.
        plan, history = self._running.plan, self._running.history()
        asked = SAFETY if self.guarantees is None else SAFETY & self.guarantees
        if not failures_in(history, findings_in(history, self.system, asked), self.profile):
            return
        alone, _ = execute(plan, self.system)
        if alone.events[: len(history.events)] != history.events:
            raise HarnessError(NOT_DETERMINISTIC)
        self._decide(plan, alone)

    def teardown(self) -> None:
        """Finish the open write, heal, read storage, judge; raises the violation of the first broken promise.

        HarnessError when the plan gives another history: such a system cannot be judged.
        """
        cluster = self._cluster
        if cluster is None or self._broken:
            return  # The run did not begin, or hangs as the watchdog reported.
        try:
            if self.pieces and not self._accused:
                self._perform(abandon=False)
            if not self._accused:
                with watched(lambda: cluster.scheduler.steps):
                    cluster.end()
        finally:
            cluster.close()
        self.seen.examples += 1
        self.seen.steps += cluster.scheduler.steps
        if not self._accused and cluster.plan.writes:
            self.judge_whole(cluster.plan, cluster.history(), cluster.scheduler.steps)

    @property
    def _running(self) -> Cluster:
        assert self._cluster is not None, "the initialize rule comes first"
        return self._cluster
