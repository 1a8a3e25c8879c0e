"""Runs of several writers of one table, by a released Hudi's Java client: which plans, in which order.

    a race without faults, whose steps are numbered ─► one pause before each step of each writer, short or past its
    heartbeat ─► plans of two or three pauses, and deaths, drawn

All lives are warm: nobody is killed, so what a paused thread shows needs no process to confirm it. Deaths are of the
writer's thread, and of its heartbeat's.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle

from marker_sim.faults import Fault, FaultKind
from marker_sim.outcome.failure import Kind
from marker_sim.outcome.result import Campaign, Deciding
from marker_sim.plan import Plan, TableShape, Task, Write
from marker_sim.search.numbered_calls import CHANGES, numbered
from marker_sim.targets.hudi_java_runs import DrawnPoint, JavaRuns
from marker_sim.targets.hudi_java_walk import below, table_of
from marker_sim.targets.hudi_spark_runs import tally
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.spark.hudi.java_driver import HEARTBEAT_OVER_MS
from marker_sim.worlds.spark.hudi.settings import SHARING, traits
from marker_sim.worlds.spark.hudi.steps import call_of
from marker_sim.worlds.spark.hudi.writers import DIED, EXPIRED, PEEK, ROLLS
from marker_sim.worlds.spark.outcome import SparkRun

DECIDES = ("G24", "G26", "G28", "G29")
PAUSED = ("writer paused", "writer paused past its heartbeat", "writer: kill")
SHORT_MS = 1_000
DEATHS = 0.2  # Of drawn faults.
_GROUP = Write(tasks=(Task(partition="p0", group="a"),))
_OTHER = Write(tasks=(Task(partition="p0", group="b"),))
_LIKE = Write(tasks=(Task(partition="day=1_a", group="a"),)), Write(tasks=(Task(partition="day=1_b", group="b"),))
_ROLLER = Write(name=ROLLS)
SCENARIOS: dict[str, tuple[Write, ...]] = {
    "two of one group": (_GROUP, _GROUP),
    "one and one that rolls back": (_GROUP, _ROLLER),
    "two groups of a partition": (_GROUP, _OTHER),
    "two partitions with underscores": _LIKE,
    "one and two that roll back": (_GROUP, _ROLLER, _ROLLER),
    "three": (_GROUP, _GROUP, _OTHER),
}
SHAPE = TableShape(writers=2, small_files=False)
SHAPES = (
    (False, SHAPE),
    (True, SHAPE),
    (False, replace(SHAPE, metadata=True)),
    *((False, replace(SHAPE, sharing=sharing)) for sharing in SHARING if sharing != "default"),
)


@dataclass(slots=True, kw_only=True)
class WriterRuns(JavaRuns):
    """The runs of one campaign; `targets.target.RealRuns` says what each method is for.

    writers: how many at most.
    """

    writers: int
    _bases: list[tuple[str, Plan]] = field(default_factory=list)
    _steps: dict[Plan, list[Fault]] = field(default_factory=dict)  # A short pause before each step, by base.
    _plans: Iterator[tuple[str, Plan]] | None = None

    def draw(self, reached: Mapping[str, int]) -> DrawnPoint | None:
        """The next run, None when none fits into the budget."""
        if self._drawn and self.program.left_s() - self.spared_s < 2 * self._took_s:
            return None
        self._plans = self._plans or self._search()
        words, plan = next(self._plans)
        self._drawn += 1
        return DrawnPoint(number=self._drawn, plan=plan, point=None, words=f"{words}, {_shown(plan)}")

    def _search(self) -> Iterator[tuple[str, Plan]]:
        rng = random.Random(f"writers/1/{self.request.seed}")
        for merges, shape in SHAPES:
            for mode in self.request.modes:
                for name, writes in SCENARIOS.items():
                    if len(writes) <= self.writers:
                        plan = table_of(mode, self.request.seed, merges, shape, self.request.storage)
                        self._bases.append((name, replace(plan, writes=writes)))
        yield from self._bases
        left = dict[Plan, list[Fault]]()
        for number, (name, plan) in enumerate(cycle(self._bases)):
            if plan in self._steps and plan not in left:  # Its race may have ended after others began.
                left[plan] = self._pauses(plan, rng)
            turn = number // len(self._bases)
            if turn % 2 == 0 and left.get(plan):
                yield name, replace(plan, faults=(left[plan].pop(),))
            else:
                yield name, replace(plan, faults=self._drawn_faults(plan, rng))

    def _pauses(self, plan: Plan, rng: random.Random) -> list[Fault]:
        """One pause before each step, short or long, in an order that is drawn."""
        own = [fault.but(for_ms=ms) for fault in self._steps[plan] for ms in (SHORT_MS, HEARTBEAT_OVER_MS)]
        rng.shuffle(own)
        return own

    def _drawn_faults(self, plan: Plan, rng: random.Random) -> tuple[Fault, ...]:
        """Two or three pauses; a death in place of some."""
        steps = self._steps.get(plan, [])
        if not steps:
            return ()
        found = [
            fault.but(for_ms=rng.choice((SHORT_MS, HEARTBEAT_OVER_MS)))
            for fault in rng.sample(steps, min(len(steps), rng.randint(2, 3)))
        ]
        for number, fault in enumerate(found):
            if rng.random() < DEATHS and call_of(fault).operations[0] in CHANGES["local"]:
                found[number] = Fault.of(FaultKind.KILL, fault.target, fault.trigger)
        return tuple(found)

    def play(self, drawn: DrawnPoint) -> SparkRun:
        """The result of the drawn run."""
        began = time.monotonic()
        played = self._run(drawn.plan, self.program.deadline - self.spared_s)
        self._took_s = (self._took_s + time.monotonic() - began) / 2
        return played

    def took(self, drawn: DrawnPoint, played: SparkRun, broken: Collection[Kind]) -> None:
        """Take in that a run has ended."""
        tally(played, self.tried, self.met)
        if not drawn.plan.faults:
            self._steps[drawn.plan] = steps_of_writers(played.calls[-1])

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result with what its faults met."""
        found = super(WriterRuns, self).complete(campaign)
        return replace(
            found,
            walked=(),
            deciding=tuple(
                Deciding(
                    name=name, guarantees=DECIDES, mode=mode, tried=self.tried[mode, name], met=self.met[mode, name]
                )
                for mode in self.request.modes
                for name in PAUSED
            ),
        )


def steps_of_writers(calls: Sequence[StorageCall]) -> list[Fault]:
    """A short pause before each step of each writer of a race. calls: of all, in their order."""
    own = dict[str, list[StorageCall]]()
    for call in calls:
        if call.operation not in (PEEK, EXPIRED, DIED):
            own.setdefault(call.process, []).append(call._replace(path=call.path.partition("/")[2]))
    return [
        Fault.of(FaultKind.PAUSE, writer, below(trigger), for_ms=SHORT_MS)
        for writer, theirs in sorted(own.items())
        for trigger in numbered(theirs)
    ]


def _shown(plan: Plan) -> str:
    faults = ", ".join(f"{fault.target} {fault.kind.value}" for fault in plan.faults) or "without a fault"
    return ", ".join((*traits(plan), faults))
