"""Every crash point of a short workload, then every pair of them: a finite space, walked in one order.

    space      parts: a marker mode on a storage under one of the schedules (schedules.py)
    depth 1    a part with one crash: of each actor, at each of its seam calls, in each way it can die there
    depth 2    the same with a second crash, at each call that is made after the first one in the run with the first one
    order      by cursor: all of depth 1, then all of depth 2; a case is made from its cursor alone

A storage on which timeline-server markers fall back to direct ones makes no part of that mode: the run would be the
same. Not in this space: other faults than crashes, three crashes, other workloads. A second crash during recovery is
covered as long as a write is left in which faults arm; the probe write, which recovers last, has no faults.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from itertools import accumulate, islice
from math import isqrt
from typing import NamedTuple

from marker_sim.campaign.pieces import RECHECK_EVERY, NumberedRun
from marker_sim.errors import UsageError
from marker_sim.faults import Fault
from marker_sim.plan import MODES, STORAGES, Plan
from marker_sim.search.crash_points import watch
from marker_sim.search.schedules import NAMES, SCHEDULES, Schedule
from marker_sim.system import System
from marker_sim.worlds.simulated.storage import CAPABILITIES

COVERED = "exhaustive runs in which each crash happened"
RUNS = "exhaustive runs"


class Cursor(NamedTuple):
    """The position of a case in the space.

    first, second: positions among the crash points of the part, and after its first crash.
    """

    depth: int = 0
    part: int = 0
    first: int = 0
    second: int = 0


START = Cursor()


class Part(NamedTuple):
    """One workload on one storage, whose crash points are searched."""

    mode: str
    storage: str
    schedule: Schedule

    @property
    def plan(self) -> Plan:
        """The plan without crashes."""
        return self.schedule.plan(self.mode, self.storage)


class Case(NamedTuple):
    """One run of the space; `crashes` are the last faults of the plan, in the order in which they happen."""

    cursor: Cursor
    part: Part
    plan: Plan
    crashes: tuple[Fault, ...]


class Space:
    """The single crashes and pairs of crashes of a system. fell_back: what is left out, "<mode> on <storage>"."""

    def __init__(
        self,
        system: System,
        modes: tuple[str, ...] = MODES,
        storages: tuple[str, ...] = STORAGES,
        schedules: tuple[str, ...] = NAMES,
    ) -> None:
        unknown = sorted(set(schedules) - set(NAMES))
        if unknown:
            raise UsageError(f"there is no schedule {', '.join(unknown)}; there are: {', '.join(NAMES)}")
        self.system = system
        self.points_of = cache(self._points_of)
        kept = {
            (mode, storage): system.factory(mode) is not None
            and system.chosen(mode, CAPABILITIES[storage]).mode == mode
            for mode in modes
            for storage in storages
        }
        self.fell_back = tuple(f"{mode} on {storage}" for (mode, storage), same in kept.items() if not same)
        self.parts = tuple(
            Part(mode, storage, schedule)
            for (mode, storage), same in kept.items()
            for schedule in SCHEDULES
            if same and schedule.name in schedules and mode in schedule.only
            if not schedule.needs_both or all(system.chosen(each, CAPABILITIES[storage]).mode == each for each in MODES)
        )

    @property
    def points(self) -> tuple[tuple[Fault, ...], ...]:
        """The crash points of each part."""
        return tuple(map(self.points_of, range(len(self.parts))))

    def _points_of(self, number: int) -> tuple[Fault, ...]:
        """The crash points of a part, counted by one run of it."""
        plan, before = self.parts[number].plan, self.parts[number].schedule.before
        points = watch(plan, self.system, before=before).points()
        return tuple(point for point in points if point not in plan.faults)

    def cases(
        self,
        after: Cursor = START,
        depths: tuple[int, ...] = (1, 2),
        every: int = 1,
        shard: tuple[int, int] = (0, 1),
    ) -> Iterator[Case]:
        """The cases after a cursor, in order.

        every: of pairs only about one in so many, spread over first and second crashes alike; to know the second ones
        of a first takes a run. shard: (k, n) is the k-th of n disjoint pieces, counted from 0, together the whole.
        """
        number, pieces = shard
        if not 0 <= number < pieces or every < 1:
            raise UsageError(f"shard {number} of {pieces}, every {every}: give 0 <= shard < pieces and every >= 1")
        for depth in (depth for depth in (1, 2) if depth in depths):
            for part, points in enumerate(map(self.points_of, range(len(self.parts)))):
                stride = 1 if depth == 1 else isqrt(every)
                for first in range(number * stride, len(points), pieces * stride):
                    if depth == 1 and (depth, part, first, 0) > after:
                        yield self._case(Cursor(depth, part, first), (points[first],))
                    elif depth == 2 and (depth, part, first + 1) > after[:3]:
                        yield from self._pairs(part, first, after, every)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The number after the last crash point of each part."""
        return tuple(accumulate(len(points) for points in self.points))

    @property
    def size(self) -> int:
        """The number of crash points; the space has twice as many numbers."""
        return self.ends[-1] if self.ends else 0

    @cached_property
    def digest(self) -> str:
        """The digest of all parts and points: under another digest the same numbers mean other runs."""
        parts = [
            (part.mode, part.storage, part.plan, points) for part, points in zip(self.parts, self.points, strict=True)
        ]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def numbered(self, first: int, count: int) -> Iterator[tuple[tuple[int, int], Case]]:
        """The cases from the number `first` on, each with its number and its place among the cases of that number.

        A space of n crash points is 2n numbers: number k below n is the case with the k-th crash alone, n + k stands
        for all cases with the k-th crash first and another one after it.
        """
        for number in range(first, first + count):
            depth, root = (1, number) if number < self.size else (2, number - self.size)
            part = next(place for place, end in enumerate(self.ends) if root < end)
            place = root - (self.ends[part - 1] if part else 0)
            before = Cursor(depth, part, place, -1)
            for run, case in enumerate(self.cases(before, (depth,))):
                if case.cursor[:3] != before[:3]:
                    break
                yield (number, run), case

    def _pairs(self, part: int, first: int, after: Cursor, every: int) -> Iterator[Case]:
        crash = self.points_of(part)[first]
        plan = self.parts[part].plan
        seconds = watch(replace(plan, faults=(*plan.faults, crash)), self.system, (crash,)).points()
        stride = isqrt(every)
        apart = -(-every // stride)
        for second in range(first // stride % apart, len(seconds), apart):
            cursor = Cursor(2, part, first, second)
            if cursor > after:
                yield self._case(cursor, (crash, seconds[second]))

    def _case(self, cursor: Cursor, crashes: tuple[Fault, ...]) -> Case:
        plan = self.parts[cursor.part].plan
        return Case(cursor, self.parts[cursor.part], replace(plan, faults=(*plan.faults, *crashes)), crashes)


class Crashes:
    """The runs of a space of crashes, or of some of its cases in their order."""

    def __init__(self, space: Space, cases: Iterable[Case] | None = None) -> None:
        self.system = space.system
        self._space = space
        self._cases = cases

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The runs from the number `first` on; where cases were given, each of them is a number of its own."""
        numbered = self._space.numbered(first, count)
        if self._cases is not None:
            numbered = (((n, 0), case) for n, case in enumerate(islice(self._cases, first, first + count), first))
        for made, (place, case) in enumerate(numbered):
            seen = watch(case.plan, self.system, case.crashes)
            yield NumberedRun(
                number=place[0],
                plan=case.plan,
                history=seen.history,
                steps=seen.steps,
                place=place,
                again=made % RECHECK_EVERY == 0,
                reached=((RUNS, 1), (COVERED, int(set(case.crashes) <= set(seen.happened)))),
            )
