"""Every crash point of a short workload, then every pair of them: a finite space, walked in one order.

    space      parts: a marker mode on a storage under one of the schedules (crash_points.py)
    depth 1    a part with one crash: of each actor, at each of its seam calls, in each way it can die there
    depth 2    the same with a second crash, at each call that is made after the first one in the run with the first one
    order      by number: all of depth 1, then all of depth 2; a case is made from its number alone

A storage on which timeline-server markers fall back to direct ones makes no part of that mode: the run would be the
same. Not in this space: other faults than crashes, three crashes, other workloads. A second crash during recovery is
covered as long as a write is left in which faults arm; the probe write, which recovers last, has no faults.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from marker_sim.campaign.pieces import RECHECK_EVERY, NumberedRun
from marker_sim.faults import Fault
from marker_sim.plan import MODES, STORAGES, Plan
from marker_sim.search.crash_points import NAMES, SCHEDULES, Schedule, watch
from marker_sim.system import System
from marker_sim.worlds.simulated.storage import CAPABILITIES

COVERED = "exhaustive runs in which each crash happened"
RUNS = "exhaustive runs"


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
    """One run of the space.

    place: its number, and its place among the runs of that number.
    crashes: the last faults of the plan, in the order in which they happen.
    """

    place: tuple[int, int]
    part: Part
    plan: Plan
    crashes: tuple[Fault, ...]


class Space:
    """The single crashes and pairs of crashes of a system, by number.

    A space of n crash points is 2n numbers: number k below n is the case with the k-th crash alone, n + k stands for
    all cases with the k-th crash first and another one after it.
    """

    def __init__(
        self,
        system: System,
        modes: tuple[str, ...] = MODES,
        storages: tuple[str, ...] = STORAGES,
        schedules: tuple[str, ...] = NAMES,
    ) -> None:
        self.system = system
        self.parts = tuple(
            Part(mode, storage, schedule)
            for mode in modes
            for storage in storages
            if system.factory(mode) is not None and self._stays(mode, storage)
            for schedule in SCHEDULES
            if schedule.name in schedules
            and mode in schedule.only
            and (not schedule.needs_both or all(self._stays(other, storage) for other in MODES))
        )

    def _stays(self, mode: str, storage: str) -> bool:
        """Whether markers of a mode do not fall back to the other one."""
        return self.system.chosen(mode, CAPABILITIES[storage]).mode == mode

    @cached_property
    def points(self) -> tuple[tuple[Fault, ...], ...]:
        """The crash points of each part, counted by one run of each."""
        found = []
        for part in self.parts:
            points = watch(part.plan, self.system, before=part.schedule.before).points()
            found.append(tuple(point for point in points if point not in part.plan.faults))
        return tuple(found)

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

    def cases(self, numbers: Iterable[int], every: int = 1) -> Iterator[Case]:
        """The cases of these numbers. every: of the second crashes after a first one only one in so many."""
        for number in numbers:
            pairs, root = divmod(number, self.size)
            at = bisect_right(self.ends, root)
            part, crash = self.parts[at], self.points[at][root - self.ends[at]]
            plan = replace(part.plan, faults=(*part.plan.faults, crash))
            if not pairs:
                yield Case((number, 0), part, plan, (crash,))
                continue
            seconds = watch(plan, self.system, (crash,)).points()
            for run in range(root % every, len(seconds), every):
                crashes = (crash, seconds[run])
                yield Case((number, run), part, replace(plan, faults=(*part.plan.faults, *crashes)), crashes)


class Crashes:
    """The runs of a space of crashes, or of some of its cases in their order."""

    def __init__(self, space: Space, cases: Iterable[Case] | None = None) -> None:
        self.system = space.system
        self._space = space
        self._cases = cases

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The runs of the numbers from `first` on; where cases were given, of the cases from the `first`-th on."""
        if self._cases is None:
            cases = self._space.cases(range(first, first + count))
        else:
            cases = islice(self._cases, first, first + count)
        for made, case in enumerate(cases):
            seen = watch(case.plan, self.system, case.crashes)
            yield NumberedRun(
                number=case.place[0],
                plan=case.plan,
                history=seen.history,
                steps=seen.steps,
                place=case.place,
                again=made % RECHECK_EVERY == 0,
                reached=((RUNS, 1), (COVERED, int(set(case.crashes) <= set(seen.happened)))),
            )
