"""A driver and its executors, as Spark runs them: a plan's writes, one after another.

A write whose tasks fail leaves its instant behind and the driver goes on with the next; a driver whose own calls fail
exits. When a driver is gone, its executors go on for a while, its embedded timeline server does not, and the next
write has a new driver. Messages between driver and executors take a moment and are not lost: what a network between
them can do to an attempt is the fault `zombie`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marker_sim.faults import Fault, FaultKind
from marker_sim.history import APPLICATION_ENDED, NOT_GETTING_ON
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Plan, Task, Write
from marker_sim.worlds.cluster.store import TimelineServers
from marker_sim.worlds.host import ExecutorLife, Host, WriteDriverLife
from marker_sim.writer.stage import STAGES_MAX

MESSAGE_MS = 0.5
LOST_EXECUTOR_MS = 20
PROBE_GROUP = "probe"
# The action that the affected process has to do itself, with a number; None if nothing remains.
Instruction = tuple[str, int] | None


@dataclass(eq=False)
class ClusterWrites:
    """The writes of one cluster, from the cluster manager's side.

    instants: the marker directories of those that began.
    slots: how many executors a driver has.
    lasting: whether its application goes on when all is healed, because a new one would start slowly.
    executors: of the driver that there is.
    lost: the stages whose results no driver may use any more, by table (two may have one instant), instant and number
        as in write tokens; never the last that a driver tries.
    """

    plan: Plan
    host: Host
    servers: TimelineServers
    instants: dict[MarkerDirectory, None] = field(default_factory=dict)
    slots: int = field(init=False)
    lasting: bool = False
    executors: list[Any] = field(default_factory=list)
    lost: set[tuple[str, str, int]] = field(default_factory=set)
    _driver: Any = None
    _ordinal: int = 0
    _tables: dict[int, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slots = self.plan.executors

    def play(self, write: Write) -> None:
        """Let the driver perform one write, until it is done, or the driver died and the next one may start."""
        self._ordinal += 1
        self._tables[write.table] = None
        driver = self._driver or self._start_driver()
        driver.life.working = True
        self.host.give(driver, write, self._ordinal)
        self.host.run(self.host.limit_ms)
        if driver.alive and driver.life.working:
            self._leave(driver, NOT_GETTING_ON, 0)

    def probe(self, writes: tuple[Write, ...]) -> None:
        """Let a driver, a new one unless `lasting`, write to each table after everything is healed; these writes must
        complete.
        """
        if self._driver is not None and self._tables and not self.lasting:
            self._leave(self._driver, APPLICATION_ENDED, self.host.linger_ms)
        for table in list(self._tables):
            self.play(probe_of(table, writes))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that were written to."""
        return tuple(self.plan.tables[number] for number in self._tables)

    def through(self, driver: Any, why: str) -> None:
        """End a driver's write, done or given up; why: the reason for which the driver exits, "" when it goes on."""
        if why:
            self._leave(driver, why, 0)
        driver.life.working = False
        self.host.stop()

    def driver_died(self, driver: Any, fault: Fault | None) -> None:
        """Let executors outlive a killed driver for a while, but not one that ended by itself (None); end its write."""
        if driver is not self._driver:
            return
        kills = fault is not None and fault.kind is FaultKind.KILL
        self._without_driver(max(0, fault.settings.executors_ms) if fault is not None and kills else 0)
        self.host.after(max(0, fault.settings.restart_ms) if fault is not None else 0, self.host.stop)

    def executor_died(self, executor: Any, after_ms: int) -> None:
        """Report a dead executor's attempts lost; a new one replaces it after `after_ms`, none if that is negative."""
        life: ExecutorLife = executor.life
        for attempt in self.host.lost_with(executor, life.driver):
            self.lose(life.driver, attempt, LOST_EXECUTOR_MS)
        if after_ms >= 0:
            self.host.after(after_ms, self._replace_executor, (life.driver, life.slot))

    def strike(self, process: Any, fault: Fault, attempt: Any) -> Instruction:
        """Inject a fault of a task. attempt: the one that makes this step, None for none."""
        if process is self._driver and fault.kind is FaultKind.STAGE_RETRIED:
            return ("run-again", 0)
        driver = self._driver
        if attempt is None or driver is None:
            return None
        match fault.kind:
            case FaultKind.ATTEMPT_KILLED:
                self._record(process, fault, attempt)
                self.lose(driver, attempt, MESSAGE_MS + max(0, fault.settings.late_ms))
                return ("end", 0)
            case FaultKind.ZOMBIE:
                self._record(process, fault, attempt)
                self.lose(driver, attempt, MESSAGE_MS)
                return ("sleep", max(0, fault.settings.for_ms))
            case FaultKind.SPECULATIVE if attempt.counted:
                self._record(process, fault, attempt)
                self.host.tell(driver, "speculate", attempt, max(1, fault.settings.attempts), MESSAGE_MS)
            case FaultKind.STAGE_RETRIED if attempt.counted:
                self._record(process, fault, attempt)
                work = attempt.work
                if work.token.stage % 100 < STAGES_MAX - 1:  # It ends with the stage's number in its write.
                    self.lost.add((work.table, work.instant, work.token.stage))
                self.host.tell(driver, "stage-lost", attempt, None, MESSAGE_MS)
        return None

    def _record(self, process: Any, fault: Fault, attempt: Any) -> None:
        self.host.record(process.name, "nemesis", "fault", fault.kind.value, path=attempt.work.path)

    def lose(self, driver: Any, attempt: Any, after_ms: float) -> None:
        """Tell a driver after a while that an attempt is lost, if it still waits for it."""
        if attempt.counted:
            attempt.counted = False
            self.host.tell(driver, "lost", attempt, None, after_ms)

    def _start_driver(self) -> Any:
        driver = self._driver = self.host.start("driver", "driver", WriteDriverLife())
        self.executors = [self._new_executor(driver, slot) for slot in range(self.slots)]
        self.host.ready(driver, *self.executors)
        return driver

    def _new_executor(self, driver: Any, slot: int) -> Any:
        return self.host.start(f"executor-{slot}", "executor", ExecutorLife(driver=driver, slot=slot))

    def _replace_executor(self, argument: tuple[Any, int]) -> None:
        driver, slot = argument
        if driver.alive and driver is self._driver:
            executor = self.executors[slot] = self._new_executor(driver, slot)
            self.host.ready(executor)
            self.host.tell(driver, "executor", None, slot, MESSAGE_MS)

    def _leave(self, driver: Any, why: str, linger_ms: int) -> None:
        """Let a driver exit as if by itself; its executors outlive it by `linger_ms`."""
        self.host.exit(driver, why)
        self._without_driver(linger_ms)

    def _without_driver(self, linger_ms: int) -> None:
        self._driver = None
        for executor in self.executors:
            self.host.after(linger_ms, self._follow, executor)
        self.servers.end_embedded()

    def _follow(self, executor: Any) -> None:
        if executor.alive:
            self.host.exit(executor, "its driver is gone")


def probe_of(table: int, writes: tuple[Write, ...]) -> Write:
    """The probing write to a table: a new file group, and an APPEND to a group that the plan's writes know, if any."""
    known = next((task for write in writes if write.table == table for task in write.tasks), None)
    more = (Task(partition=known.partition, group=known.group, kind="APPEND"),) if known else ()
    return Write(table=table, tasks=(Task(group=PROBE_GROUP), *more))
