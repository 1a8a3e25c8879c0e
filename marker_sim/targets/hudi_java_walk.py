"""Walks over the storage calls of a released Hudi: each call of a write, of the rollback of one and of table services,
with each fate.

    numbered   on a fresh table: a write; and one that dies when its data files are whole, with the write after it, up
               to that one's own beginning: the rollback. A lazy one comes after its commit; and each service, after
               what gives it something to do
    a point    the n-th call of a kind on paths of a role, in one of both, and a fate (walks.py)
    a run      the same on a fresh table, with the point as its fault; then a driver without faults writes, which must
               roll back, and the table is read; after a service it is begun once more as well
    a pair     a death in a write, and a death at a call of the rollback after it, which a run with the first showed

Plain tables come first, then services on them, then the others; in each, first calls of a kind before later ones,
tables in the order of `TABLES`: a short walk has met each kind of call on the first. Pairs come when all single points
are through, then plans of several points, which are drawn.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.faults.row import READS
from marker_sim.outcome.result import KEPT, NOT_MET
from marker_sim.plan import FutureStep, Plan, Service, TableShape
from marker_sim.search.numbered_calls import CallWalk, Fate, WalkPoint, numbered, shown
from marker_sim.search.seeds import plan_seed
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.spark.hudi.future import FUTURES, with_future
from marker_sim.worlds.spark.hudi.settings import partition_names, shape_of, table_type, traits
from marker_sim.worlds.spark.hudi.steps import (
    KILLED_AT,
    PREPARED,
    Stage,
    TableStep,
    phases,
    preparation,
    steps_of,
    with_steps,
)
from marker_sim.worlds.spark.plans import DRIVER, STORAGE

DEATHS_MAX = 3
BEYOND_MAX = 4  # Points of a plan beyond the walk.
DELETES = TableShape(deletes=True, grows=True, rests=True)
OWN_FILES = replace(DELETES, small_files=False)
# Whether they are merge-on-read, and their shapes. On merge-on-read tables new rows get files of their own: where they
# join small ones, the Java client loses rows without any fault, which the last of `controls` shows.
TABLES = (
    (False, DELETES),
    (True, OWN_FILES),
    (False, replace(DELETES, metadata=True)),
    (True, replace(OWN_FILES, version6=True)),
    (False, replace(DELETES, lazy=True)),
    (False, replace(DELETES, version6=True, upgrades=True)),
    (False, replace(DELETES, resends=True)),
)
PLAIN = 2  # Tables which are walked through before others are begun.
_OF_EACH: tuple[Service, ...] = ("archive", "clean", "cluster", "savepoint", "restore")
SERVICES: dict[bool, tuple[Service, ...]] = {False: _OF_EACH, True: ("compact", *_OF_EACH)}
CONTROLS = (*TABLES, (True, DELETES))
CONTROL_WRITES = 5
SHIFT = 3  # So that the futures of a table's rollbacks are not those of its controls.
STAGES: dict[Stage, str] = {"write": "a write", "rollback": "the rollback after it"}
# As steps of a table are called and counted.
KILLED: dict[Stage, str] = {stage: KILLED_AT + stage for stage in (*STAGES, *PREPARED)}
FAILED: dict[Stage, str] = {stage: f"storage failed in a {stage}" for stage in KILLED}
# A write's own first entry, and its last: of the table, not of its metadata table.
BEGINS = re.compile(r"^\.hoodie/(timeline/)?\d+\.(delta)?commit\.requested$")
COMMITTED = re.compile(r"^\.hoodie/(timeline/)?\d+(_\d+)?\.(delta)?commit$")


@dataclass(slots=True)
class TableWalk(CallWalk):
    """The points of one walk of a table in the order in which they are tried, which a seed draws.

    bases: the workloads without faults, each with its stage. Those of rollbacks are numbered with a future.
    services: whether those of table services are all.
    controls: plans of a few writes without a fault on each table, and a future, which come first: what they break, no
        fault does.
    """

    modes: tuple[str, ...]
    seed: int
    services: bool = False
    bases: list[tuple[Stage, Plan]] = field(init=False)
    controls: list[Plan] = field(init=False)
    _begins: dict[int, bool] = field(default_factory=dict)  # First bases of tables; whether all before comes first.
    _controlled: int = 0  # How many controls were given.
    _given: int = 0  # How many of them are being numbered, or were.
    _numbered: set[int] = field(default_factory=set)
    _drawn: int = 0  # Plans beyond the walk.

    def __post_init__(self) -> None:
        """The workloads, table by table."""
        made = partial(table_of, seed=self.seed, storage=self.storage)
        self.bases = []
        for waits, stages, (merges, shape) in _workloads(self.services):
            self._begins[len(self.bases)] = waits
            self.bases += [
                (stage, with_steps(made(mode, merges=merges, shape=shape), (step(stage),)))
                for mode in self.modes
                if mode == "timeline" or not shape.resends
                for stage in stages
            ]
        writes = (step("write"),) * CONTROL_WRITES
        tables = [
            (mode, *table)
            for table in CONTROLS
            for mode in self.modes
            if not self.services and (mode == "timeline" or not table[1].resends)
        ]
        self.controls = [
            with_future(with_steps(made(mode, merges=merges, shape=shape), writes), _future(number))
            for number, (mode, merges, shape) in enumerate(tables)
        ]

    def next(self) -> WalkPoint | Plan | None:
        """The next point, or a workload that has to be numbered first; None when all were given, or while workloads are
        being numbered.
        """
        if self._controlled < len(self.controls):
            self._controlled += 1
            return self.controls[self._controlled - 1]
        base, numbering = self._given, self._given > len(self._numbered)
        due = not self._left or (self._left[-1].turn > 1 and not self._begins.get(base))
        if base < len(self.bases) and (base not in self._begins or (due and not numbering)):
            self._given += 1
            return self.with_own_future(base)  # The workloads of one table are numbered together.
        return None if numbering else self.pop()

    def with_own_future(self, base: int) -> Plan:
        """A workload with its future: a rollback has one."""
        stage, plan = self.bases[base]
        before = sum(stage == "rollback" for stage, _ in self.bases[:base])  # As many controls are before its table's.
        return with_future(plan, _future(before, SHIFT) if stage == "rollback" else ())

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
        table = with_steps(first.plan, ())
        own = [each for each in kept if with_steps(each.plan, ()) == table]
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
        plan = with_future(plan, ())
        base = next((n for n, (_, known) in enumerate(self.bases) if known == plan), None)
        if base is None:  # A control, or a plan beyond the walk.
            return
        stage = self.bases[base][0]
        self._numbered.add(base)

        def made(_: StorageCall, fate: Fate, trigger: Call) -> Plan:
            name = KILLED[stage] if fate.kind.row.kills else FAILED[stage]
            return with_steps(plan, (TableStep(name=name, stage=stage, faults=(_placed(fate, trigger),)),))

        own = enumerate(_own(stage, plan, calls), 1)
        self.add(((base, self._words(base), number, *pair) for number, pair in own), _alike, made)
        self._left.sort(key=lambda point: point[:3])  # Workloads end in any order.
        random.Random(f"table walk/1/{self.seed}").shuffle(self._left)
        self._left.sort(key=lambda point: -point.turn)

    def took(
        self,
        point: WalkPoint,
        struck: bool,
        broken: Collection[str],
        settled: str = "",
        calls: Sequence[Sequence[StorageCall]] = (),
    ) -> None:
        """Take in the run of a point.

        struck: its fault happened. settled: what came of it if its run broke nothing. calls: as of `number`.
        """
        self.settle(point, broken, settled or (KEPT if struck else NOT_MET))
        if not struck or self.bases[point.base][0] != "write" or not point.fault.kind.row.kills:
            return
        base = point.base + 1
        plan, place = self.bases[base][1], f"pairs: {self._words(base)}, after a death"

        def made(fate: Fate, trigger: Call) -> Plan:
            faults = (_placed(fate, trigger),)
            own = TableStep(name=KILLED["rollback"], stage="rollback", faults=faults, before=(point.fault,))
            return with_steps(plan, (own,))

        death = f"{point.fate} at {point.call}"
        self.add_pairs(base, place, _own("rollback", point.plan, calls), death, made, by_fate=True)

    def kind(self, point: WalkPoint) -> Hashable:
        """What the points of one story share: the kind of their call, in a write or in a rollback, and its fate; for
        pairs, after any death.
        """
        return self.bases[point.base][0], point.kind, point.fate, bool(point.death)

    def shown(self, point: WalkPoint) -> str:
        """A point in words."""
        after = f", after {point.death}" if point.death else ""
        return f"{point.fate} at {point.call} ({self._words(point.base)}{after})"

    def _words(self, base: int) -> str:
        stage, plan = self.bases[base]
        return ", ".join((STAGES.get(stage, stage), plan.mode, table_type(plan), *traits(plan)))


def _workloads(services: bool) -> Iterator[tuple[bool, Iterable[Stage], tuple[bool, TableShape]]]:
    """The stages of each table, and whether all points before come first. services: these alone."""
    plain = TABLES[:PLAIN]
    yield from ((False, STAGES, table) for table in plain if not services)
    yield from ((not n, SERVICES[table[0]], table) for n, table in enumerate(plain))
    yield from ((not n, STAGES, table) for n, table in enumerate(TABLES[PLAIN:]) if not services)
    for merges, shape in plain:
        listed = replace(shape, metadata=True)
        yield False, SERVICES[merges], (merges, listed)
        for each in (shape, listed):
            yield False, ("upgrade",), (merges, replace(each, version6=True))


def _future(number: int, shift: int = 0) -> tuple[FutureStep, ...]:
    """The future of a number, such that two modes in turn have all of them each."""
    futures = list(FUTURES.values())
    return futures[(number + number // len(futures) + shift) % len(futures)]


def _alike(call: StorageCall) -> tuple[str, tuple[str, ...]]:
    return shown(call), call.also  # A file that is cut and written again differs from a new one.


def _own(stage: Stage, plan: Plan, calls: Sequence[Sequence[StorageCall]]) -> tuple[tuple[StorageCall, Call], ...]:
    """The calls of a stage among those of the writes of a run, with paths below the table, and how a plan names each:
    by its turn in the whole write, for a lazy rollback has calls like those of the write before it.
    """
    before = 1 + (stage == "rollback") + len(preparation(stage, plan.merge_on_read))
    own = next(iter(calls[before:]), ())
    found = [call._replace(path=call.path.partition("/")[2]) for call in own if "/" in call.path]
    pairs = tuple(zip(found, numbered(found), strict=True))
    if stage not in ("rollback", "upgrade"):
        return pairs
    # A rollback deletes the entries of the write that it undoes, and goes on.
    put = [(n, call.path) for n, call in enumerate(found) if call.operation not in (*READS, "delete", "request")]
    if shape_of(plan).lazy:
        committed = [n for n, path in put if COMMITTED.search(path)]
        return pairs[committed[-1] + 1 :] if committed else ()
    begun = [path for _, path in put if BEGINS.search(path)][-1:]  # An upgrade moves such entries of others.
    return pairs[: next((n for n, path in put if path in begun), len(pairs))]


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
    """A plan of a small table, without writes; each write writes a marker file again. A request that is sent again goes
    to another thread of its server than one that never ends there.
    """
    threads = 1 + shape.resends
    return Plan(mode=mode, storage=storage, num_threads=threads, merge_on_read=merges, shape=shape, seed=seed)


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
