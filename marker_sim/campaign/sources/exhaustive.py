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
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from marker_sim.campaign.pieces import RECHECK_EVERY, NumberedRun
from marker_sim.errors import UsageError
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
        self._points: dict[int, tuple[Fault, ...]] = {}
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

    @property
    def points(self) -> tuple[tuple[Fault, ...], ...]:
        """The crash points of each part."""
        return tuple(map(self.points_of, range(len(self.parts))))

    def points_of(self, at: int) -> tuple[Fault, ...]:
        """The crash points of a part, counted by one run of it when they are first asked for."""
        if at not in self._points:
            part = self.parts[at]
            points = watch(part.plan, self.system, before=part.schedule.before).points()
            self._points[at] = tuple(point for point in points if point not in part.plan.faults)
        return self._points[at]

    @cached_property
    def size(self) -> int:
        """The number of crash points; the space has twice as many numbers."""
        return sum(map(len, self.points))

    def place(self, number: int) -> tuple[int, Fault, bool]:
        """The part and crash of a number, and whether it stands for pairs; later parts are not counted."""
        left = number
        for pairs in (False, True):
            for at in range(len(self.parts)):
                points = self.points_of(at)
                if left < len(points):
                    return at, points[left], pairs
                left -= len(points)
        raise UsageError(f"crash {number} is not in a space of {2 * self.size} numbers")

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
            at, crash, pairs = self.place(number)
            part = self.parts[at]
            plan = replace(part.plan, faults=(*part.plan.faults, crash))
            if not pairs:
                yield Case((number, 0), part, plan, (crash,))
                continue
            seconds = watch(plan, self.system, (crash,)).points()
            for run in range(number % self.size % every, len(seconds), every):
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
