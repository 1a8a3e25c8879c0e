"""One example of the state machine: a cluster, the write that is being composed, and the judgement.

The steps so far are a plan at any time (`Cluster.plan`), and running that plan gives the same history; this is checked
for one example in `COMPARE_EVERY` and every failing one.

A failing example leaves its plan as a file in `plans`, by default `.hypothesis/marker-sim` of the project, beside
Hypothesis' example database, which git already ignores; a temporary directory of pytest would be deleted after three
sessions. The file of a guarantee is overwritten by each example that breaks it, and the last one that Hypothesis runs
is the shrunk one.
"""

from __future__ import annotations

import json
import shlex
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from marker_sim.campaign.planned_runs import NOT_DETERMINISTIC
from marker_sim.campaign.runs import execute, promised_breach
from marker_sim.campaign.servability import cannot_serve
from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind, FaultSettings
from marker_sim.faults.row import BATCHED_STORAGES
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.guarantees import ALL
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.violations import GuaranteeViolation, violation
from marker_sim.plan import Plan, Task, Write, write_plan
from marker_sim.system import System
from marker_sim.worlds.simulated.cluster import Cluster
from marker_sim.worlds.simulated.watchdog import watched

Group = tuple[str, str]
TASKS_MAX = 6
COMPARE_EVERY = 4
PLAN_SHOWN_MAX = 3_000
# What needs faults to stop and time to pass is judged at the end alone.
SAFETY = ALL - {"G6", "G7", "G18"}


@dataclass(slots=True, kw_only=True)
class MachineStatistics:
    """Counts over all examples of one machine, shrinking included.

    rules: how often each ran.
    faults: those that happened, by their word in histories.
    deaths: the phase of a driver that was killed.
    operations: "<operation> <ok|fail|info>".
    judged: decided cases, by guarantee.
    violations, unpromised: examples that broke it, by guarantee.
    unsupported: examples that a foreign class could not serve on this storage, which are not judged.
    """

    examples: int = 0
    writes: int = 0
    steps: int = 0
    compared: int = 0
    unsupported: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    unpromised: Counter[str] = field(default_factory=Counter)

    def add(self, history: History) -> None:
        """Count one history."""
        doing: dict[str, dict[int, str]] = {}
        for event in history.events:
            match event.kind:
                case "invoke":
                    doing.setdefault(event.process, {})[event.index] = event.operation
                case "ok" | "fail" | "info":
                    doing.get(event.process, {}).pop(event.caused_by or 0, None)
                    self.operations[f"{event.operation} {event.kind}"] += 1
                case "fault" if event.value not in ("end", "end-of-run"):
                    self.faults[event.operation] += 1
                    if event.operation == "kill" and event.role == "driver":
                        self.deaths["/".join(doing.get(event.process, {}).values()) or "tasks"] += 1


class Example(RuleBasedStateMachine):
    """What the rules (machine_rules.py) act on."""

    system: ClassVar[System]
    profile: ClassVar[Profile]
    mode: ClassVar[str]
    storage: ClassVar[str]
    guarantees: ClassVar[frozenset[str] | None]
    plans: ClassVar[Path]
    seen: ClassVar[MachineStatistics]

    def __init__(self) -> None:
        super().__init__()
        self.left_behind = False
        self._cluster: Cluster | None = None
        self._broken = False
        self._accused = False
        self._findings: tuple[Finding, ...] = ()
        self._faults_max = 1
        self._write = Write()
        self._tasks: dict[Group, Task] = {}
        self._faults: list[tuple[FaultKind, str, int, FaultSettings]] = []

    @classmethod
    def can(cls, kind: FaultKind) -> bool:
        """Whether a fault can happen here; type files are Hudi's, other formats have none to damage."""
        damage = kind is FaultKind.TYPE_DAMAGED and cls.system.layout != "hudi"
        return not damage and kind.row.possible(cls.mode, cls.storage)

    @property
    def pieces(self) -> int:
        """Tasks and faults of the write that is open."""
        return len(self._tasks) + len(self._faults)

    @property
    def write(self) -> Write:
        """The write that is open, without its tasks."""
        return self._write

    def start(self, faults_max: int, **changes: Any) -> None:
        """Begin a run of writes; a write has at most so many faults, the other arguments are fields of Plan.

        One fault or task too many finishes the open write, so that examples in which the rule `finish` is off have
        more than one write too.
        """
        self._faults_max = faults_max
        plan = Plan(mode=self.mode, storage=self.storage, directories=(), **changes)
        self._cluster = Cluster(plan, self.system)
        self._cluster.begin()

    def change_write(self, **changes: Any) -> None:
        """Settle fields of the next write."""
        self._write = replace(self._write, **changes)

    def add_task(self, group: Group, **changes: Any) -> Group:
        """A task of the next write, or a change to it if the write has one for that group."""
        if len(self._tasks) >= TASKS_MAX:
            self.play(abandon=False)
        partition, name = group
        self._tasks[group] = replace(self._tasks.get(group, Task(partition=partition, group=name)), **changes)
        return group

    def add_fault(self, kind: FaultKind, who: str, ahead: int, **settings: Any) -> None:
        """A fault `ahead` steps of its victim from the next write's beginning; without a server the driver is hit."""
        if len(self._faults) >= self._faults_max:
            self.play(abandon=False)
        role, _, slot = who.partition("-")
        if role == "executor":
            who = f"executor-{int(slot) % self._running.plan.executors}"
        elif role == "server" and not (self.mode == "timeline" and self.storage in BATCHED_STORAGES):
            who = "driver"
        self._faults.append((kind, who, ahead, FaultSettings(**settings)))

    def play(self, abandon: bool) -> None:
        """Let the driver perform the open write, of one task if none was added, and judge the history so far."""
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
        plan, history = self._running.plan, self._running.history()
        if cannot_serve(self.system, history) or self._first_breach(plan, history, SAFETY) is None:
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
            return  # It did not begin, or hangs where the watchdog reported it.
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
        if self._accused or not cluster.plan.writes:
            return
        history = cluster.history()
        # The choice must not differ between two runs of one example, so it is made from the plan.
        if zlib.crc32(repr(cluster.plan).encode()) % COMPARE_EVERY == 0:
            self.seen.compared += 1
            if execute(cluster.plan, self.system)[0].events != history.events:
                raise HarnessError(NOT_DETERMINISTIC)
        if cannot_serve(self.system, history):
            self.seen.unsupported += 1  # It needs an operation that this storage lacks, and is not judged.
            return
        self.seen.add(history)
        self._decide(cluster.plan, history)

    @property
    def _running(self) -> Cluster:
        assert self._cluster is not None, "the initialize rule comes first"
        return self._cluster

    def _first_breach(self, plan: Plan, history: History, among: frozenset[str]) -> tuple[str, Breach] | None:
        self._findings = judge(history, among if self.guarantees is None else among & self.guarantees)
        for finding in self._findings:
            breach = promised_breach(finding, plan, self.profile)
            if breach is not None:
                return finding.guarantee, breach
        return None

    def _decide(self, plan: Plan, history: History) -> None:
        """Raise for the first promise that a finished history breaks, if there is one."""
        first = self._first_breach(plan, history, ALL)
        for finding in self._findings:
            self.seen.judged[finding.guarantee] += finding.judged
        if first is None:
            self.seen.unpromised.update(f.guarantee for f in self._findings if f.breaches)
        else:
            self.seen.violations[first[0]] += 1
            self._accused = True
            raise self._violation(plan, history, *first)

    def _violation(self, plan: Plan, history: History, guarantee: str, breach: Breach) -> GuaranteeViolation:
        """The exception for a breach, with the plan on disk and the command that runs it."""
        plain = violation(history, guarantee, breach)
        shown = json.dumps(plan.to_dict(), ensure_ascii=False)
        lines = [str(plain)]
        if len(shown) <= PLAN_SHOWN_MAX:
            lines.append(f"plan: {shown}")
        try:
            path = self._store(plan, f"{guarantee}-{type(self).__name__}.json")
            sut = "" if self.system.name == "reference" else f" --sut {shlex.quote(self.system.name)}"
            lines.append(f"replay: marker-sim replay {shlex.quote(str(path))}{sut}")
        except OSError as error:
            lines.append(f"its plan cannot be stored ({error}); write the one above to a file and replay that")
        return type(plain)("\n".join(lines), breach)

    def _store(self, plan: Plan, name: str) -> Path:
        """Write the plan; a directory that is created for it is ignored by git, as Hypothesis does."""
        missing = [folder for folder in (self.plans, *self.plans.parents) if not folder.exists()]
        self.plans.mkdir(parents=True, exist_ok=True)
        if missing:
            (missing[-1] / ".gitignore").write_text("*\n", encoding="utf-8")
        write_plan(plan, self.plans / name)
        return self.plans / name
