"""Runs of several writers of one table, by a released Hudi's Java client: which plans, in which order.

    a race without faults, whose steps are numbered ─► in turn, for each race:
        one pause before each step of each writer but the last, short or past its heartbeat
        a pause before what the first writer changes at a place that others change as well, as a lock file, and one
            before what another one changes while it has that place
        two or three pauses, each of another writer than the one before, and deaths, drawn
        and after each of these: a pause before a step at what another writer touches as well, to which the pauses of an
            earlier plan led first, beside them

One writer goes on until its pause, so a plan is a schedule of priorities that change at so many steps (PCT). A pause
of a writer that has no other left to go on does nothing, so the last one has none alone. All lives are warm: nobody is
killed, so what a paused thread shows needs no process to confirm it. Deaths are of the writer's thread, and of its
heartbeat's.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from marker_sim.faults import Fault, FaultKind
from marker_sim.outcome.failure import Kind
from marker_sim.plan import Plan, Sharing, TableShape, Task, Write
from marker_sim.search.numbered_calls import CHANGES, numbered
from marker_sim.targets.hudi_java_runs import DrawnPoint, JavaRuns
from marker_sim.targets.hudi_java_walk import below, table_of
from marker_sim.targets.hudi_spark_runs import tally
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.spark.hudi.java_driver import HEARTBEAT_OVER_MS
from marker_sim.worlds.spark.hudi.settings import SHARING, shape_of, traits
from marker_sim.worlds.spark.hudi.steps import call_of
from marker_sim.worlds.spark.hudi.writers import DIED, EXPIRED, PEEK, ROLLS
from marker_sim.worlds.spark.outcome import SparkRun

DECIDES = ("G24", "G26", "G28", "G29")
PAUSED = ("writer paused", "writer paused past its heartbeat", "writer: kill")
SHORT_MS = 1_000
DEATHS = 0.2  # Of drawn faults.
PAUSES_MAX = 3
_LENGTHS_MS = (SHORT_MS, HEARTBEAT_OVER_MS)
_GROUP = Write(tasks=(Task(partition="p0", group="a"),))
_OTHER = Write(tasks=(Task(partition="p0", group="b"),))
_LIKE = tuple(  # Of two groups each: a detector sees the markers that its writer has made before.
    Write(tasks=tuple(Task(partition=f"event_date={part}", group=f"{part}{number}") for number in (1, 2)))
    for part in "ab"
)
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
_UNDERSCORES = "two partitions with underscores"
# The races to which a setting matters; those of `_UNDERSCORES` to a detector that reads names of markers alone.
MATTERS: dict[Sharing, tuple[str, ...]] = {
    "default": tuple(name for name in SCENARIOS if name != _UNDERSCORES),
    "prefer-writer": ("two of one group", "one and one that rolls back", "three"),
    "one-plan": ("one and one that rolls back", "one and two that roll back"),
    "early-detection": ("two of one group", "two groups of a partition", "three"),
    "early-transaction": ("two of one group", "three"),
    "file-lock": ("two of one group", "three"),
}
_ACTS = frozenset({*CHANGES["local"], "close"} - {"mkdir"})
_HAS = {"open": True, "delete": False}  # Whether who has done it at a file that others change has it then.
_Faults = tuple[Fault, ...]


@dataclass(slots=True, kw_only=True)
class WriterRuns(JavaRuns):
    """The runs of one campaign; `targets.target.RealRuns` says what each method is for.

    writers: how many at most.
    """

    decides = dict.fromkeys(PAUSED, DECIDES)
    writers: int
    _bases: list[tuple[str, Plan]] = field(default_factory=list)
    _races: dict[Plan, Race] = field(default_factory=dict)
    _plans: Iterator[tuple[str, Plan]] | None = None

    def draw(self, reached: Mapping[str, int]) -> DrawnPoint | None:
        """The next run, None when none fits into the budget."""
        if not self._has_room:
            return None
        self._plans = self._plans or self._search()
        words, plan = next(self._plans)
        self._drawn += 1
        return DrawnPoint(number=self._drawn, plan=plan, point=None, words=f"{words}, {_shown(plan)}")

    def _search(self) -> Iterator[tuple[str, Plan]]:
        for merges, shape in SHAPES:
            for mode in self.request.modes:
                names = MATTERS[shape.sharing]
                if mode == "timeline" and shape.sharing.startswith("early-"):  # Hudi has one strategy there.
                    names = (*names, _UNDERSCORES) if shape.sharing == "early-detection" else ()
                for name in names:
                    if len(SCENARIOS[name]) <= self.writers:
                        plan = table_of(mode, self.request.seed, merges, shape, self.request.storage)
                        self._bases.append((name, replace(plan, writes=SCENARIOS[name])))
        yield from self._bases
        rng = random.Random(f"writers/2/{self.request.seed}")
        for turn in count():
            for name, plan in self._bases:
                metadata = shape_of(plan).metadata
                if turn % 2 == metadata or not (plan.merge_on_read or metadata):  # They are raced half as often.
                    race = self._races.get(plan)  # None while its first run goes on.
                    yield name, replace(plan, faults=race.faults(rng) if race else ())
                    if race and race.later:
                        yield name, replace(plan, faults=race.later.pop(0))

    def play(self, drawn: DrawnPoint) -> SparkRun:
        """The result of the drawn run."""
        began = time.monotonic()
        played = self._run(drawn.plan, self.program.deadline - self.spared_s)
        self._took_s = (self._took_s + time.monotonic() - began) / 2
        return played

    def took(self, drawn: DrawnPoint, played: SparkRun, broken: Collection[Kind]) -> None:
        """Take in that a run has ended."""
        tally(played, self.tried, self.met)
        if len(played.calls) > 1:  # Else the time was over before the race.
            base = replace(drawn.plan, faults=())
            self._races.setdefault(base, Race()).add(drawn.plan.faults, played.calls[-1])


@dataclass(slots=True)
class Race:
    """What is left to try of a race; drawing has no end.

    steps: of each writer, a short pause before each. later: plans with a step to which their other pauses led.
    """

    steps: dict[str, list[Fault]] = field(default_factory=dict)
    later: list[_Faults] = field(default_factory=list)
    _alone: list[_Faults] = field(default_factory=list)
    _pairs: list[_Faults] = field(default_factory=list)
    _known: set[tuple[str, object]] = field(default_factory=set)
    _turn: int = 0

    def add(self, faults: _Faults, calls: Sequence[StorageCall]) -> None:
        """Take in the calls of a run with some faults; the first is without."""
        steps = steps_of_writers(calls)
        if len(faults) == PAUSES_MAX or any(fault.kind is not FaultKind.PAUSE for fault in faults):
            return
        touched = Counter(path for _, path in {(call.process, call.path) for _, call in steps})
        shared = reversed([fault for fault, call in steps if touched[call.path] > 1])  # The first of a kind counts.
        late = {(fault.target, call_of(fault)[:2]): fault for fault in shared}
        fresh = [fault for kind, fault in late.items() if kind not in self._known]
        self._known |= late.keys()
        if self.steps:  # Who was paused last goes on when the others are paused or over.
            self.later.extend((*faults, fault) for fault in fresh if [fault.target] != [f.target for f in faults[-1:]])
            return
        for fault, _ in steps:
            self.steps.setdefault(fault.target, []).append(fault)
        first, *_, last = self.steps
        alone = [fault for fault, _ in steps if fault.target != last]
        self._alone.extend((fault.but(for_ms=ms),) for fault in alone for ms in _LENGTHS_MS)
        acts = [each for each in steps if each[1].operation in _ACTS]
        own = [each for each in acts if each[0].target == first]
        for place in sorted({call.path for _, call in own}):
            has = False
            for fault, call in acts[len(own) :]:
                if has:
                    self._pairs.extend((one, fault) for one, at in own if at.path == place)
                if call.path == place:
                    has = _HAS.get(call.operation, has)

    def faults(self, rng: random.Random) -> _Faults:
        """The faults of the next plan: each way in its turn, and drawn when it has none left."""
        self._turn += 1
        way = (self._pairs, self._alone, self._pairs, [])[self._turn % 4]
        return way.pop(rng.randrange(len(way))) if way else self._drawn(rng)

    def _drawn(self, rng: random.Random) -> _Faults:
        """Pauses of writers in turn; a death in place of some."""
        found, names = list[Fault](), list(self.steps)
        for number in range(rng.randint(2, PAUSES_MAX)):
            fault = rng.choice(self.steps[names[number % len(names)]])
            fault = fault.but(for_ms=rng.choice(_LENGTHS_MS))
            if rng.random() < DEATHS and call_of(fault).operations[0] in CHANGES["local"]:
                fault = Fault.of(FaultKind.KILL, fault.target, fault.trigger)
            found.append(fault)
        return tuple(dict.fromkeys(found))


def steps_of_writers(calls: Sequence[StorageCall]) -> list[tuple[Fault, StorageCall]]:
    """A short pause before each step of each writer of a race, and the step. calls: of all, in their order."""
    own = dict[str, list[StorageCall]]()
    for call in calls:
        if call.operation not in (PEEK, EXPIRED, DIED):
            own.setdefault(call.process, []).append(call._replace(path=call.path.partition("/")[2]))
    return [
        (Fault.of(FaultKind.PAUSE, writer, below(trigger), for_ms=SHORT_MS), call)
        for writer, theirs in sorted(own.items())
        for call, trigger in zip(theirs, numbered(theirs), strict=True)
    ]


def _shown(plan: Plan) -> str:
    faults = ", ".join(f"{fault.target} {fault.kind.value}" for fault in plan.faults) or "without a fault"
    return ", ".join((*traits(plan), faults))
