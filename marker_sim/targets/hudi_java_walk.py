"""Walks over the storage calls of a released Hudi: each call of a write and of the rollback of one, with each fate.

    numbered   on a fresh table: a write; and one that dies when its data files are whole, with the write after it, up
               to that one's own beginning: the rollback. A lazy one comes after its commit
    a point    the n-th call of a kind on paths of a role, in one of both, and a fate (walks.py)
    a run      the same on a fresh table, with the point as its fault; then a driver without faults writes, which must
               roll back, and the table is read
    a pair     a death in a write, and a death at a call of the rollback after it, which a run with the first showed

Plain tables come first, then the others; in both, first calls of a kind before later ones, tables in the order of
`TABLES`: a short walk has met each kind of call on the first. Pairs come when all single points are through, then plans
of several points, which are drawn.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.faults.row import READ_CALLS
from marker_sim.judges.findings import by_number
from marker_sim.outcome.result import KEPT, NOT_MET, WalkedCall
from marker_sim.plan import Plan, TableShape
from marker_sim.search.seeds import plan_seed
from marker_sim.search.walks import Fate, fates_of, numbered, shown, walked_call
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.spark.hudi.settings import partition_names, shape_of, table_type, traits
from marker_sim.worlds.spark.hudi.steps import KILLED_AT, Stage, TableStep, phases, steps_of, with_steps
from marker_sim.worlds.spark.plans import DRIVER, STORAGE

DEATHS_MAX = 3
BEYOND_MAX = 4  # Points of a plan beyond the walk.
DELETES = TableShape(deletes=True)
OWN_FILES = replace(DELETES, small_files=False)
# Whether they are merge-on-read, and their shapes. On merge-on-read tables new rows get files of their own: where they
# join small ones, the Java client loses rows without any fault, which the last of `controls` shows.
TABLES = (
    (False, DELETES),
    (True, OWN_FILES),
    (False, replace(DELETES, metadata=True)),
    (True, replace(OWN_FILES, version6=True)),
    (False, replace(DELETES, lazy=True)),
)
PLAIN = 2  # Tables which are walked through before others are begun.
CONTROLS = (*TABLES, (True, DELETES))
CONTROL_WRITES = 5
STAGES: dict[Stage, str] = {"write": "a write", "rollback": "the rollback after it"}
KILLED = {stage: KILLED_AT + stage for stage in STAGES}  # As steps of a table are called and counted.
FAILED = {stage: f"storage failed in a {stage}" for stage in STAGES}
# A write's own first entry, and its last: of the table, not of its metadata table.
BEGINS = re.compile(r"^\.hoodie/(timeline/)?\d+\.(delta)?commit\.requested$")
COMMITTED = re.compile(r"^\.hoodie/(timeline/)?\d+(_\d+)?\.(delta)?commit$")


class TablePoint(NamedTuple):
    """A call and a fate of it.

    base: of `TableWalk.bases`. number: of the call in its numbered workload, from 1; of a pair, of its kind of call.
    turn: how many there were of its kind by then. death: of a pair, the words of the one before.
    """

    base: int
    number: int
    fate: str
    turn: int
    plan: Plan
    death: str = ""


@dataclass(slots=True)
class TableWalk:
    """The points of one walk in the order in which they are tried, which a seed draws, and what came of each.

    bases: the workloads without faults, each with its stage.
    controls: plans of a few writes without a fault on each table, which come first: what they break, no fault does.
    """

    modes: tuple[str, ...]
    seed: int
    storage: str = "local"
    bases: list[tuple[Stage, Plan]] = field(init=False)
    controls: list[Plan] = field(init=False)
    _controlled: int = 0  # How many controls were given.
    _given: int = 0  # How many of them are being numbered, or were.
    _calls: dict[int, tuple[StorageCall, ...]] = field(default_factory=dict)
    _left: list[TablePoint] = field(default_factory=list)
    _pairs: list[TablePoint] = field(default_factory=list)
    _kinds: dict[str, int] = field(default_factory=dict)  # Calls of pairs, as shown, numbered.
    _came: dict[TablePoint, str] = field(default_factory=dict)
    _drawn: int = 0  # Plans beyond the walk.

    def __post_init__(self) -> None:
        """The workloads, table by table."""
        made = partial(table_of, seed=self.seed, storage=self.storage)
        self.bases = [
            (stage, with_steps(made(mode, merges=merges, shape=shape), (step(stage),)))
            for merges, shape in TABLES
            for mode in self.modes
            for stage in STAGES
        ]
        writes = (step("write"),) * CONTROL_WRITES
        self.controls = [
            with_steps(made(mode, merges=merges, shape=shape), writes)
            for mode in self.modes
            for merges, shape in CONTROLS
        ]

    def next(self) -> TablePoint | Plan | None:
        """The next point, or a workload that has to be numbered first; None when all were given, or while workloads are
        being numbered.
        """
        if self._controlled < len(self.controls):
            self._controlled += 1
            return self.controls[self._controlled - 1]
        base, numbering = self._given, self._given > len(self._calls)
        table, within = divmod(base, len(self.modes) * len(STAGES))
        due = not self._left or (self._left[-1].turn > 1 and table != PLAIN)
        if base < len(self.bases) and (within or (due and not numbering)):
            self._given += 1
            return self.bases[base][1]  # The workloads of one table are numbered together.
        if numbering or not (self._left or self._pairs):
            return None
        if self._left:
            return self._left.pop()
        self._pairs.remove(pair := min(self._pairs, key=lambda each: each.turn))
        return pair

    def beyond(self) -> Plan | None:
        """A plan of a few points of one table, each of which alone broke nothing, where what fails in a rollback comes
        after any failure of the write that it undoes; None before the walk is through.
        """
        kept = sorted(
            (each for each, came in self._came.items() if came == KEPT and not each.death), key=lambda p: p[:3]
        )
        if self._left or self._pairs or self._given < len(self.bases) or not kept:
            return None
        self._drawn += 1
        rng = random.Random(f"table walk/2/{self.seed}/{self._drawn}")
        first = rng.choice(kept)
        own = [each for each in kept if each.base // len(STAGES) == first.base // len(STAGES)]
        points = (first, *rng.choices(own, k=rng.randint(1, BEYOND_MAX - 1)))
        writes = [each.plan.faults for each in own if self.bases[each.base][0] == "write"]
        return with_steps(
            first.plan,
            [
                replace(each, before=rng.choice(writes)) if each.stage == "rollback" and writes else each
                for point in points
                for each in steps_of(point.plan)
            ],
        )

    def number(self, plan: Plan, calls: Sequence[Sequence[StorageCall]]) -> None:
        """Take in the run of a workload. calls: of each of its writes, with paths below the table's folder."""
        base = next((n for n, (_, known) in enumerate(self.bases) if known == plan), None)
        if base is None:  # A control, or a plan beyond the walk.
            return
        stage = self.bases[base][0]
        found = _own(stage, plan, calls)
        self._calls[base] = tuple(call for call, _ in found)
        turns = Counter[tuple[str, tuple[str, ...]]]()
        for number, (call, trigger) in enumerate(found, 1):
            kind = shown(call), call.also  # A file that is cut and written again differs from a new one.
            turns[kind] += 1
            for fate in fates_of(self.storage, call):
                name = KILLED[stage] if fate.kind.row.kills else FAILED[stage]
                made = with_steps(plan, (TableStep(name=name, stage=stage, faults=(_placed(fate, trigger),)),))
                self._left.append(TablePoint(base, number, fate.name, turns[kind], made))
        self._left.sort(key=lambda point: point[:3])  # Workloads end in any order.
        random.Random(f"table walk/1/{self.seed}").shuffle(self._left)
        self._left.sort(key=lambda point: -point.turn)

    def took(
        self,
        point: TablePoint,
        struck: bool,
        broken: Collection[str],
        settled: str = "",
        calls: Sequence[Sequence[StorageCall]] = (),
    ) -> None:
        """Take in the run of a point.

        struck: its fault happened. settled: what came of it if its run broke nothing. calls: as of `number`.
        """
        self._came[point] = " ".join(by_number(broken)) or settled or (KEPT if struck else NOT_MET)
        (fault,), stage = point.plan.faults[-1:], self.bases[point.base][0]
        if struck and stage == "write" and fault.kind.row.kills:
            self._pair(point, fault, _own("rollback", point.plan, calls))

    def _pair(self, point: TablePoint, death: Fault, calls: Sequence[tuple[StorageCall, Call]]) -> None:
        """The pairs of a death that was played: with a death at each call of the rollback after it."""
        base, death_words = point.base + 1, f"{point.fate} at {self._call(point)}"
        turns = Counter((pair.number, pair.fate) for pair in (*self._pairs, *self._came) if pair.death)
        for call, trigger in calls:
            number = self._kinds.setdefault(shown(call), len(self._kinds) + 1)
            for fate in (fate for fate in fates_of(self.storage, call) if fate.kind.row.kills):
                turns[number, fate.name] += 1
                own = TableStep(
                    name=KILLED["rollback"], stage="rollback", faults=(_placed(fate, trigger),), before=(death,)
                )
                made = with_steps(self.bases[base][1], (own,))
                turn = turns[number, fate.name]
                self._pairs.append(TablePoint(base, number, fate.name, turn, made, death_words))

    def give_up(self, point: TablePoint) -> None:
        """Leave a point that was given untried."""
        self._came[point] = ""

    def kind(self, point: TablePoint) -> Hashable:
        """What the points of one story share: the kind of their call, in a write or in a rollback, and its fate; for
        pairs, after any death.
        """
        also = () if point.death else self._calls[point.base][point.number - 1].also
        return self.bases[point.base][0], self._call(point), also, point.fate, bool(point.death)

    def shown(self, point: TablePoint) -> str:
        """A point in words."""
        after = f", after {point.death}" if point.death else ""
        return f"{point.fate} at {self._call(point)} ({self._words(point.base)}{after})"

    def rows(self) -> tuple[WalkedCall, ...]:
        """The calls in their order, with the fates of each."""
        fates: dict[tuple[bool, int, int, str], dict[str, list[str]]] = {}
        for point in sorted({*self._left, *self._pairs, *self._came}, key=lambda each: (bool(each.death), *each[:3])):
            row = fates.setdefault((bool(point.death), point.base, point.number, self._call(point)), {})
            row.setdefault(point.fate, []).append(self._came.get(point, ""))
        return tuple(
            walked_call(
                f"pairs: {self._words(base)}, after a death" if pair else self._words(base),
                number,
                call,
                own,
                pair=pair,
            )
            for (pair, base, number, call), own in fates.items()
        )

    def _call(self, point: TablePoint) -> str:
        """The call of a point, as shown."""
        if point.death:
            return next(call for call, number in self._kinds.items() if number == point.number)
        return shown(self._calls[point.base][point.number - 1])

    def _words(self, base: int) -> str:
        stage, plan = self.bases[base]
        return ", ".join((STAGES[stage], plan.mode, table_type(plan), *traits(plan)))


def _own(stage: Stage, plan: Plan, calls: Sequence[Sequence[StorageCall]]) -> tuple[tuple[StorageCall, Call], ...]:
    """The calls of a stage among those of the writes of a run, with paths below the table, and how a plan names each:
    by its turn in the whole write, for a lazy rollback has calls like those of the write before it.
    """
    own = next(iter(calls[1 if stage == "write" else 2 :]), ())
    found = [call._replace(path=call.path.partition("/")[2]) for call in own if "/" in call.path]
    pairs = tuple(zip(found, numbered(found), strict=True))
    if stage == "write":
        return pairs
    # A rollback deletes the entries of the write that it undoes, and goes on.
    put = [(n, call.path) for n, call in enumerate(found) if call.operation not in (*READ_CALLS, "delete")]
    if shape_of(plan).lazy:
        committed = [n for n, path in put if COMMITTED.search(path)]
        return pairs[committed[-1] + 1 :] if committed else ()
    return pairs[: next((n for n, path in put if BEGINS.search(path)), len(pairs))]


def _placed(fate: Fate, trigger: Call) -> Fault:
    """The fault of a fate at a call of a table."""
    torn = fate.kind is FaultKind.TORN_WRITE  # Of which half is written before the death.
    placed = (fate._replace(when="after") if torn else fate).at(below(trigger))
    return replace(placed, target=DRIVER if fate.kind.row.kills else STORAGE)


def below(call: Call) -> Call:
    """A call as steps of a table have it, whose patterns begin at the table."""
    return call._replace(pattern=call.pattern.removeprefix("^"))


def step(stage: Stage) -> TableStep:
    """A step without faults."""
    return TableStep(name="", stage=stage, faults=())


def table_of(
    mode: str, seed: int, merges: bool = False, shape: TableShape = TABLES[0][1], storage: str = "local"
) -> Plan:
    """A plan of a small table, without writes; each write writes a marker file again."""
    return Plan(mode=mode, storage=storage, num_threads=1, merge_on_read=merges, shape=shape, seed=seed)


def draw_deaths(modes: tuple[str, ...], storage: str, seed: int, number: int) -> Plan:
    """The plan of a number: a table of `TABLES` whose driver dies in a few writes and rollbacks."""
    rng = random.Random(f"{seed} {number}")
    mode = modes[number % len(modes)]
    plan = table_of(mode, plan_seed(seed, number), *rng.choice(TABLES), storage=storage)
    steps = []
    for _ in range(rng.randint(1, DEATHS_MAX)):
        stage: Stage = rng.choice(("write", "rollback"))
        shape = shape_of(plan)
        deletes = not (plan.merge_on_read and shape.version6)
        places = phases(mode, stage, metadata=shape.metadata, deletes=deletes, rewrites=False)
        steps.append(rng.choice(places).step(rng, len(partition_names(plan)), storage))
    return with_steps(plan, steps)
