"""Walks over the storage calls of a released Hudi: each call of a write and of the rollback of one, with each fate.

    numbered   on a fresh table: a write; and one that dies when its data files are whole, with the write after it, up
               to that one's own beginning: the rollback
    a point    the n-th call of a kind on paths of a role, in one of both, and a fate (walks.py)
    a run      the same on a fresh table, with the point as its fault; then a driver without faults writes, which must
               roll back, and the table is read

First calls of a kind come before later ones, tables in the order of `TABLES`: a short walk has met each kind of call on
the first.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from marker_sim.faults import Call, FaultKind
from marker_sim.outcome.result import KEPT, NOT_MET, WalkedCall
from marker_sim.plan import Plan, TableShape
from marker_sim.search.seeds import plan_seed
from marker_sim.search.walks import fates_of, names_of, numbered, shown
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.spark.hudi.settings import partition_names, shape_of, table_type
from marker_sim.worlds.spark.hudi.steps import KILLED_AT, Stage, TableStep, phases, with_steps
from marker_sim.worlds.spark.plans import DRIVER, STORAGE

DEATHS_MAX = 3
TABLES = ((False, False), (True, False), (False, True))  # Whether they are merge-on-read, and have a metadata table.
STAGES: dict[Stage, str] = {"write": "a write", "rollback": "the rollback after it"}
KILLED = {stage: KILLED_AT + stage for stage in STAGES}  # As steps of a table are called and counted.
FAILED = {stage: f"storage failed in a {stage}" for stage in STAGES}
BEGINS = re.compile(r"/\.hoodie/(timeline/)?\d+\.(delta)?commit\.requested$")  # A write's own first entry.


class TablePoint(NamedTuple):
    """A call of a numbered workload and a fate of it. base: of `TableWalk.bases`. number: of the call, from 1."""

    base: int
    number: int
    fate: str
    turn: int
    plan: Plan


@dataclass(slots=True)
class TableWalk:
    """The points of one walk in the order in which they are tried, which a seed draws, and what came of each.

    bases: the workloads without faults, each with its stage.
    """

    modes: tuple[str, ...]
    seed: int
    bases: list[tuple[Stage, Plan]] = field(init=False)
    _given: int = 0  # How many of them are being numbered, or were.
    _calls: dict[int, tuple[StorageCall, ...]] = field(default_factory=dict)
    _left: list[TablePoint] = field(default_factory=list)
    _came: dict[TablePoint, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The workloads, table by table."""
        self.bases = [
            (stage, with_steps(table_of(mode, self.seed, *table), (step(stage),)))
            for table in TABLES
            for mode in self.modes
            for stage in STAGES
        ]

    def next(self) -> TablePoint | Plan | None:
        """The next point, or a workload that has to be numbered first; None when all were given, or while workloads are
        being numbered.
        """
        base, numbering = self._given, self._given > len(self._calls)
        first = not numbering and (not self._left or self._left[-1].turn > 1)
        if base < len(self.bases) and (first or base % (len(self.modes) * len(STAGES))):
            self._given += 1
            return self.bases[base][1]  # The workloads of one table are numbered together.
        return self._left.pop() if self._left and not numbering else None

    def number(self, plan: Plan, calls: Sequence[Sequence[StorageCall]]) -> None:
        """Take in the run of a workload. calls: of each of its writes, with paths below the table's folder."""
        base = next(n for n, (_, known) in enumerate(self.bases) if known == plan)
        stage = self.bases[base][0]
        own = calls[1 if stage == "write" else 2] if len(calls) > (stage == "rollback") + 1 else ()
        found = tuple(call._replace(path=call.path.partition("/")[2]) for call in own)
        if stage == "rollback":
            ends = next((n for n, call in enumerate(found) if BEGINS.search(f"/{call.path}")), len(found))
            found = found[:ends]
        self._calls[base] = found
        turns = Counter[tuple[str, tuple[str, ...]]]()
        for number, (call, trigger) in enumerate(zip(found, numbered(found), strict=True), 1):
            kind = shown(call), call.also  # A file that is cut and written again differs from a new one.
            turns[kind] += 1
            for fate in fates_of("local", call):
                kills = fate.kind.row.kills
                torn = fate.kind is FaultKind.TORN_WRITE  # Of which half is written before the death.
                placed = (fate._replace(when="after") if torn else fate).at(below(trigger))
                fault = replace(placed, target=DRIVER if kills else STORAGE)
                name = KILLED[stage] if kills else FAILED[stage]
                made = with_steps(plan, (TableStep(name=name, stage=stage, faults=(fault,)),))
                self._left.append(TablePoint(base, number, fate.name, turns[kind], made))
        self._left.sort(key=lambda point: point[:3])  # Workloads end in any order.
        random.Random(f"table walk/1/{self.seed}").shuffle(self._left)
        self._left.sort(key=lambda point: -point.turn)

    def took(self, point: TablePoint, struck: bool, broken: Collection[str], settled: str = "") -> None:
        """Take in the run of a point. struck: its fault happened. settled: what came of it if its run broke nothing."""
        self._came[point] = names_of(broken) or settled or (KEPT if struck else NOT_MET)

    def give_up(self, point: TablePoint) -> None:
        """Leave a point that was given untried."""
        self._came[point] = ""

    def kind(self, point: TablePoint) -> Hashable:
        """What the points of one story share: the kind of their call, in a write or in a rollback, and its fate."""
        call = self._calls[point.base][point.number - 1]
        return self.bases[point.base][0], shown(call), call.also, point.fate

    def shown(self, point: TablePoint) -> str:
        """A point in words."""
        return f"{point.fate} at {shown(self._calls[point.base][point.number - 1])} ({self._words(point.base)})"

    def rows(self) -> tuple[WalkedCall, ...]:
        """The calls in their order, with the fates of each."""
        fates: dict[tuple[int, int], dict[str, str]] = {}
        for point in sorted({*self._left, *self._came}, key=lambda each: each[:3]):
            fates.setdefault(point[:2], {})[point.fate] = self._came.get(point, "")
        return tuple(
            WalkedCall(base=self._words(base), number=number, call=shown(self._calls[base][number - 1]), fates=own)
            for (base, number), own in fates.items()
        )

    def _words(self, base: int) -> str:
        stage, plan = self.bases[base]
        metadata = ", metadata table" if shape_of(plan).metadata else ""
        return f"{STAGES[stage]}, {plan.mode}, {table_type(plan)}{metadata}"


def below(call: Call) -> Call:
    """A call as steps of a table have it, whose patterns begin at the table."""
    return call._replace(pattern=call.pattern.removeprefix("^"))


def step(stage: Stage) -> TableStep:
    """A step without faults."""
    return TableStep(name="", stage=stage, faults=())


def table_of(mode: str, seed: int, merges: bool = False, metadata: bool = False) -> Plan:
    """A plan of a small table on local files, without writes; each write writes a marker file again."""
    shape = TableShape(metadata=metadata)
    return Plan(mode=mode, storage="local", num_threads=1, merge_on_read=merges, shape=shape, seed=seed)


def draw_deaths(modes: tuple[str, ...], seed: int, number: int) -> Plan:
    """The plan of a number: a table of `TABLES` whose driver dies in a few writes and rollbacks."""
    rng = random.Random(f"{seed} {number}")
    mode = modes[number % len(modes)]
    plan = table_of(mode, plan_seed(seed, number), *rng.choice(TABLES))
    steps = []
    for _ in range(rng.randint(1, DEATHS_MAX)):
        stage: Stage = rng.choice(("write", "rollback"))
        metadata = shape_of(plan).metadata
        places = phases(mode, stage, metadata=metadata, deletes=not plan.merge_on_read, rewrites=False)
        steps.append(rng.choice(places).step(rng, len(partition_names(plan)), "local"))
    return with_steps(plan, steps)
