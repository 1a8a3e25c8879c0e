"""Walks: a short workload is run once to number its storage calls, then once for each call and each fate of it.

numbered   the workload without faults, and the same with one death in its middle: what a restarted server calls,
           while it starts and when it serves
a point    the n-th call of a kind on a path, and a fate: the server dies before or after it, or it fails
a run      the workload with the point as its last fault; what a failed change left meets a death and a start at its
           end as well; then a server lives, is probed, and all is judged
a pair     a death that was played, and a death at a call of the start after it: when all single points are played
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.faults.row import READ_CALLS, READS
from marker_sim.outcome.result import KEPT, NO_ANSWER, NOT_MET
from marker_sim.plan import COPY, Op, Plan
from marker_sim.search.numbered_calls import (
    CHANGES,
    DELETED,
    VARYING,
    WRITTEN,
    CallWalk,
    Fate,
    WalkPoint,
    numbered,
    parted,
)
from marker_sim.worlds.interceptor import StorageCall

AT_ONCE = 4
AFTER_IT = 2  # Requests after the death at the end.
SECOND_MS = 250  # When a second client asks, where a change fails.
# How many times less often they come: what differs little from a death after the call before, or an error; reads.
OF_OPERATIONS = 0.65  # The power for deaths and for failures of an operation; writes have five kinds of failures.
LATER, READS_LATER = dict.fromkeys(("death before", "disk full"), 3), 1.5
FIRST = 6  # Deaths that come before all else: none of them makes requests wait, and what they break is quick to show.
BASES = ("whole life", "after a restart", "while starting after a death", "pairs: while starting after each death")
STARTING, PAIRS = 2, 3


@dataclass(slots=True)
class Walk(CallWalk):
    """The points of one walk of a server in the order in which they are tried, which a seed draws.

    The next plan may be asked for while others run. While a workload is being numbered, plans are given that need no
    number; there are few.
    """

    storage: str
    threads: int
    interval_ms: int
    seed: int
    _bases: list[Plan] = field(default_factory=list)
    _numbered: int = 0
    _going: dict[Plan, WalkPoint | None] = field(default_factory=dict)
    _ahead: list[Plan] = field(default_factory=list)
    _silent: set[Hashable] = field(default_factory=set)  # Kinds of calls after which requests were awaited in vain.

    def next(self) -> Plan | None:
        """The plan of the next run; None when all were given, or while the calls of a workload are not known."""
        if None in self._going.values():
            return self._ahead.pop() if self._ahead else None
        if not self._bases:
            self._bases.append(workload(self.storage, self.threads, self.interval_ms, self.seed))
            few = replace(self._bases[0], directories=(WRITTEN,), ops=self._bases[0].ops[1:4])  # Three creates.
            deaths = (Fault.of(FaultKind.KILL, "server", Site("server: reply", number)) for number in (3, 1, 2))
            self._ahead = [replace(few, faults=(death,)) for death in deaths]
        point = None
        if self._numbered == len(self._bases) and (point := self.pop()) is None:
            return None
        plan = self._bases[-1] if point is None else point.plan
        self._going[plan] = point
        return plan

    def point(self, plan: Plan) -> WalkPoint | None:
        """The point of a plan that was given and not taken in so far; None for one without a numbered call."""
        return self._going.get(plan)

    def patient(self, plan: Plan) -> bool:
        """Whether requests of a plan that was given are awaited: not after a kind of call that broke G6 already."""
        point = self._going.get(plan)
        return point is None or point.kind not in self._silent

    def took(
        self, plan: Plan, calls: Sequence[StorageCall], struck: bool, broken: Collection[str], hung: bool = False
    ) -> None:
        """Take in a run. calls: of servers, while faults were armed, with the paths of the plan, in order.

        struck: whether the last fault happened, in a run that was judged. broken: the guarantees that the run broke.
        hung: whether requests hung and were not awaited.
        """
        if plan not in self._going:
            return
        point = self._going.pop(plan)
        if point is None:
            self._number(tuple(calls))
            return
        self.settle(point, broken, NO_ANSWER if hung else KEPT if struck else NOT_MET)
        if "G6" in broken:
            self._silent.add(point.kind)
        if point.base == 0 and point.fault.kind.row.kills:
            later = [call for call in calls if call.starting]

            def made(fate: Fate, trigger: Call) -> Plan:
                return replace(self._bases[0], faults=(point.fault, fate.at(trigger)))

            self.add_pairs(PAIRS, BASES[PAIRS], zip(later, numbered(later), strict=True), "a death", made)

    def _number(self, calls: tuple[StorageCall, ...]) -> None:
        """The points of a workload; then the next workload is the same with a death in the middle of this one."""
        base, first = self._numbered, calls[0].process if calls else ""
        self._numbered += 1
        whole, changes = self._bases[0], CHANGES[self.storage]
        deaths = tuple(fault for fault in self._bases[base].faults if fault.kind.row.kills)
        found = list(zip(calls, numbered(calls), strict=True))
        # The death at the end of a run in which a change fails.
        reply = Site("server: reply", len(whole.single_ops) + len(asked_again()) - AFTER_IT)
        end = Fault.of(FaultKind.KILL, "server", reply)

        def made(call: StorageCall, fate: Fate, trigger: Call) -> Plan:
            if fate.kind.row.kills or call.operation not in changes:
                return replace(whole, faults=(*deaths, fate.at(trigger)))
            return replace(whole, ops=(*whole.ops, *asked_again()), faults=(*deaths, end, fate.at(trigger)))

        places = [STARTING if call.starting else base for call in calls]
        own = [
            (place, BASES[place], number, *pair)
            for number, (place, pair) in enumerate(zip(places, found, strict=True), 1)
            if not base or pair[0].process != first  # Others are before the death, as in the workload before.
        ]
        self.add(own, _alike, made)
        random.Random(f"walk/1/{self.seed}").shuffle(self._left)
        ordered = in_order(self._left)
        opening = [point for point in ordered if point.fault.kind.row.kills][:FIRST]
        self._left = [*opening, *(point for point in ordered if point not in opening)][::-1]
        changing = [trigger for call, trigger in found if call.operation in changes]
        if not base and changing:
            death = Fault.of(FaultKind.KILL, "server", changing[len(changing) // 2]._replace(when="after"))
            self._bases.append(replace(whole, faults=(death, *whole.faults)))


def _alike(call: StorageCall) -> tuple[str, str]:
    """What a call is called on, in any marker directory, and its operation."""
    return VARYING.sub("#", parted(call.path)[1]), call.operation


def in_order(points: Sequence[WalkPoint]) -> list[WalkPoint]:
    """Points so that deaths and failures of each operation take turns, among these fates, and among these kinds of
    paths: one that has n points has the square root of n turns, so that calls of each create come more often than those
    of a directory and do not crowd them out.

    `LATER` fates and reads come less often. What is equal stays in its order.
    """

    def group(point: WalkPoint, *more: object) -> tuple[object, ...]:
        return point.trigger.operations, point.trigger.starting, *more

    def in_turns(sized: Sequence[WalkPoint], keys: Sequence[object], power: float = 0.5) -> dict[WalkPoint, float]:
        size, met, turns = Counter(keys), Counter[object](), dict[WalkPoint, float]()
        for point, key in zip(sized, keys, strict=True):
            met[key] += 1
            turns[point] = met[key] / size[key] ** power
        return turns

    found = sorted(points, key=in_turns(points, [group(point, point.fate, point.kind) for point in points]).__getitem__)
    found.sort(key=in_turns(found, [group(point, point.fate) for point in found]).__getitem__)
    turns = in_turns(found, [group(point, point.fault.kind.row.kills) for point in found], OF_OPERATIONS)
    return sorted(found, key=lambda point: turns[point] * _rarity(point))


def _rarity(point: WalkPoint) -> float:
    changes = READS.isdisjoint(point.trigger.operations)
    return LATER.get(point.fate, 1 if changes else READS_LATER)


def workload(storage: str, threads: int, interval_ms: int, seed: int) -> Plan:
    """Creates in two directories, one after the other and a few at once; one is deleted and used again.

    The first creates are repeated at once, as by a client that had no answer.
    Its only fault shows the reads: the first one is a millisecond late.
    """

    def read(actor: str, directory: int, kind: str) -> Op:
        return Op(actor=actor, kind=kind, directory=directory)

    return Plan(
        mode="timeline",
        storage=storage,
        num_threads=threads,
        interval_ms=interval_ms,
        directories=(WRITTEN, DELETED),
        ops=(
            *(_create("executor-0", 0, number) for number in (0, 0, 1, 2, 3)),
            _create("executor-1", 0, f"c{COPY}", copies=AT_ONCE),
            *(_create("executor-2", 1, number) for number in (0, 0, 1, 2)),
            read("executor-2", 1, "list"),
            read("executor-2", 1, "delete"),
            _create("executor-2", 1, 0),
            read("executor-2", 1, "exists"),
            read("executor-0", 0, "list"),
            _create("executor-0", 0, 0),
        ),
        faults=(Fault.of(FaultKind.SLOW_STORAGE, "server", Call("", READ_CALLS), late_ms=1),),
        seed=seed,
    )


def asked_again() -> tuple[Op, ...]:
    """A second client asks for the names of the first one, whose requests wait at that time if a write failed."""
    return tuple(_create("executor-3", 0, number, after_ms=0 if number else SECOND_MS) for number in range(4))


def _create(actor: str, directory: int, number: int | str, **more: Any) -> Op:
    name = f"p={number}/f{number}_0-0-0_001.parquet.marker.CREATE"
    return Op(actor=actor, kind="create", directory=directory, name=name, **more)
