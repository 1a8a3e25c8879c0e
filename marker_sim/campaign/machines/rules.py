"""The rules of the state machine of the write path: tasks, and faults with their target and step.

A rule adds a piece to the open write; `finish` and `give_up` run it. A write is always open, because Hypothesis
switches whole rules off and no piece may depend on another rule. Fault rules are disabled where system, mode and
storage cannot have the fault. `ahead` counts the target's own steps from the beginning of the write, rollbacks of
earlier writes included, so a fault may also fall in a later write.

The steps so far are a plan at any time (`Cluster.plan`), and running that plan gives the same history; this is checked
for a share of the examples and every failing one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, initialize, precondition

from marker_sim.campaign.machines.machine import DrawnFault, JudgedExample, step
from marker_sim.campaign.planned_runs import NOT_DETERMINISTIC
from marker_sim.campaign.runs import execute, findings_in
from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind, FaultSettings
from marker_sim.faults.row import in_batches
from marker_sim.judges.guarantees import ALL
from marker_sim.outcome.failure import failures_in
from marker_sim.plan import TASK_KINDS, Plan, Task, Write
from marker_sim.search.writes import TABLES
from marker_sim.unusual_names import PARTITIONS
from marker_sim.worlds.simulated.cluster import Cluster
from marker_sim.worlds.simulated.watchdog import watched

Group = tuple[str, str]
TASKS_MAX = 6
# Guarantees that need the end of faults and the passing of time are judged only at the end.
SAFETY = ALL - {"G6", "G7", "G18"}


_AHEAD = st.integers(1, 24)
# A first write begins in five steps; the steps from finalize to marker deletion get as many draws.
_DRIVER_AHEAD = st.integers(1, 9) | st.integers(6, 16) | st.integers(10, 40)
_SLOT = st.integers(0, 3)
_ANYBODY = st.sampled_from(("driver", "driver", "executor-0", "executor-1", "server"))
_BACK_MS = st.sampled_from((0, 20, 100, 400))


class WritePathMachine(JudgedExample):
    """The machine of the write path; `machine_for` makes a subclass for a system, a mode and a storage."""

    file_groups = Bundle("file_groups")

    def __init__(self) -> None:
        super().__init__()
        self.left_behind = False
        self._cluster: Cluster | None = None
        self._broken = False
        self._faults_max = 1
        self._write = Write()
        self._tasks: dict[Group, Task] = {}
        self._faults: list[tuple[FaultKind, str, int, FaultSettings]] = []

    @initialize(
        tables=st.sampled_from(TABLES[2:]),
        merge_on_read=st.booleans(),
        executors=st.integers(1, 4),
        embedded=st.sampled_from((True, True, True, False)),
        num_threads=st.sampled_from((1, 2, 4, 20)),
        interval_ms=st.sampled_from((50, 10, 200)),
        jitter=st.integers(0, 1 << 30),
        faults_a_write=st.integers(1, 5),
    )
    def the_cluster_is(self, faults_a_write: int, **changes: Any) -> None:
        """Start with an empty cluster.

        One fault or task too many finishes the open write, so that examples in which the rule `finish` is off have
        more than one write too.
        """
        self._faults_max = faults_a_write
        plan = Plan(mode=self.mode, storage=self.storage, directories=(), **changes)
        self._cluster = Cluster(plan, self.system)
        self._cluster.begin()

    # The write.

    @step(table=st.integers(0, 1), markers=st.sampled_from(("", "direct", "timeline")))
    def begin_a_write(self, table: int, markers: str) -> None:
        """Finish the open write; the next one is to this table, in the plan's marker mode or in another."""
        if self.pieces:
            self.play(abandon=False)
        self.change_write(table=table, markers=markers)

    @precondition(lambda self: self.left_behind and not self.write.markers)
    @step(markers=st.sampled_from(("direct", "timeline")))
    def change_the_marker_mode_after_a_failure(self, markers: str) -> None:
        """The write that rolls back the previous one has another marker mode (Hudi HUDI-2305)."""
        self.change_write(markers=markers)

    @step(target=file_groups, partition=st.sampled_from(PARTITIONS[:4]) | st.sampled_from(PARTITIONS), number=_SLOT)
    def insert(self, partition: str, number: int) -> Group:
        """A task makes the first file of a group; in a group that is there already it becomes an update."""
        return self.add_task((partition, f"f{number}"))

    @step(group=file_groups)
    def update(self, group: Group) -> None:
        """A task rewrites the base file of a group."""
        self.add_task(group, kind="MERGE")

    @step(group=file_groups)
    def append(self, group: Group) -> None:
        """A task adds a log file to a group, on a merge-on-read table."""
        self.add_task(group, kind="APPEND")

    @step(group=file_groups, kind=st.sampled_from(TASK_KINDS), copies=st.integers(2, 3))
    def run_speculative_copies(self, group: Group, kind: str, copies: int) -> None:
        """Several attempts of a task start at once, and more than one may succeed."""
        self.add_task(group, kind=kind, copies=copies)

    @step(group=file_groups, kind=st.sampled_from(TASK_KINDS), slow_ms=st.sampled_from((10, 60, 900)))
    def slow_down(self, group: Group, kind: str, slow_ms: int) -> None:
        """The attempts of a task take their time between marker and file."""
        self.add_task(group, kind=kind, slow_ms=slow_ms)

    @precondition(lambda self: not self.write.after_ms)
    @step(after_ms=st.sampled_from((40, 500, 3500)))
    def let_time_pass(self, after_ms: int) -> None:
        """Time passes before the next write: batches are flushed, late requests arrive, zombies continue."""
        self.change_write(after_ms=after_ms)

    @precondition(lambda self: self.pieces)
    @step()
    def finish(self) -> None:
        """Run the tasks, finalize, commit."""
        self.play(abandon=False)

    @precondition(lambda self: self.pieces)
    @step()
    def give_up(self) -> None:
        """Run the tasks and abandon the write; the next write rolls it back."""
        self.play(abandon=True)

    # Faults.

    @step("process", "task", role="executor", data=st.data(), slot=_SLOT, ahead=_AHEAD)
    def strike_an_executor(self, fault: DrawnFault, slot: int, ahead: int) -> None:
        """An executor or its attempt is killed, paused or duplicated, or the stage runs again."""
        self.add_fault(fault.kind, f"executor-{slot}", ahead, fault.settings)

    @step("process", "task", role="driver", data=st.data(), ahead=_DRIVER_AHEAD)
    def strike_the_driver(self, fault: DrawnFault, ahead: int) -> None:
        """The driver is paused, its clock jumps, or its stage runs again after its results were counted.

        Source: Hudi I 19593.
        """
        self.add_fault(fault.kind, "driver", ahead, fault.settings)

    @step(ahead=_DRIVER_AHEAD, next_ms=_BACK_MS, executors_go_on_ms=st.sampled_from((0, 1, 30, 200, 2000, 6000)))
    def kill_driver(self, ahead: int, next_ms: int, executors_go_on_ms: int) -> None:
        """The driver dies in its begin, its tasks, finalize, commit, marker deletion or a rollback."""
        settings = FaultSettings(restart_ms=next_ms, executors_ms=executors_go_on_ms)
        self.add_fault(FaultKind.KILL, "driver", ahead, settings)

    @step(ahead=_DRIVER_AHEAD, later=st.integers(1, 14), next_ms=_BACK_MS)
    def kill_driver_and_its_successor(self, ahead: int, later: int, next_ms: int) -> None:
        """The next driver dies too, during its rollbacks."""
        for at in (ahead, ahead + later):
            self.add_fault(FaultKind.KILL, "driver", at, FaultSettings(restart_ms=next_ms, executors_ms=0))

    @step("process", role="server", data=st.data(), ahead=_AHEAD)
    def strike_the_server(self, fault: DrawnFault, ahead: int) -> None:
        """The server is killed, paused, overloaded or joined by a second one, or its type files are damaged."""
        self.add_fault(fault.kind, "server", ahead, fault.settings)

    @step("process", role="server", ahead=_AHEAD, back_ms=st.sampled_from((2000, 20_000)))
    def crash_the_server_and_restart_it_late(self, ahead: int, back_ms: int) -> None:
        """The server is killed, and restarts after clients gave up."""
        self.add_fault(FaultKind.KILL, "server", ahead, FaultSettings(restart_ms=back_ms))

    @step("storage", data=st.data(), who=_ANYBODY, ahead=_AHEAD)
    def strike_storage(self, fault: DrawnFault, who: str, ahead: int) -> None:
        """A call on storage is refused, lost, late or applied without an answer."""
        self.add_fault(fault.kind, who, ahead, fault.settings)

    @step("wire", role="executor", data=st.data(), slot=_SLOT, ahead=_AHEAD)
    def strike_the_wire(self, fault: DrawnFault, slot: int, ahead: int) -> None:
        """A request or a reply is lost, delayed or doubled, or the link of an executor is cut."""
        self.add_fault(fault.kind, f"executor-{slot}", ahead, fault.settings)

    # The plan in the making.

    @property
    def pieces(self) -> int:
        """The tasks and faults of the open write."""
        return len(self._tasks) + len(self._faults)

    @property
    def write(self) -> Write:
        """The open write, without its tasks."""
        return self._write

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

    def add_fault(self, kind: FaultKind, who: str, ahead: int, settings: FaultSettings) -> None:
        """Add a fault `ahead` steps of its target after the next write's begin; without a server it hits the driver."""
        if len(self._faults) >= self._faults_max:
            self.play(abandon=False)
        role, _, slot = who.partition("-")
        if role == "executor":
            who = f"executor-{int(slot) % self._running.plan.executors}"
        elif role == "server" and not in_batches(self.mode, self.storage):
            who = "driver"
        self._faults.append((kind, who, ahead, settings))

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
