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

import gc
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isqrt
from typing import NamedTuple

from marker_sim.campaign.pieces import COLLECT_EVERY
from marker_sim.campaign.runs import promised_breach
from marker_sim.campaign.servability import findings_in
from marker_sim.errors import UsageError
from marker_sim.faults import Fault
from marker_sim.history import History
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import MODES, STORAGES, Plan
from marker_sim.search.crash_points import watch
from marker_sim.search.schedules import NAMES, SCHEDULES, Schedule
from marker_sim.system import System
from marker_sim.worlds.simulated.storage import CAPABILITIES


class Cursor(NamedTuple):
    """The place of a case.

    first, second: positions among the crash points of the part, and after its first crash.
    """

    depth: int = 0
    part: int = 0
    first: int = 0
    second: int = 0


START = Cursor()


class Part(NamedTuple):
    """One workload on one storage."""

    mode: str
    storage: str
    schedule: Schedule

    @property
    def plan(self) -> Plan:
        """Without crashes."""
        return self.schedule.plan(self.mode, self.storage)


class Case(NamedTuple):
    """One run of the space; `crashes` are the last faults of the plan, in the order in which they happen."""

    cursor: Cursor
    part: Part
    plan: Plan
    crashes: tuple[Fault, ...]


class Space:
    """All crashes, and pairs of them, of a system. fell_back: combinations that are left out, "<mode> on <storage>"."""

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
            if same and schedule.name in schedules and mode in schedule.only and self._runs(schedule, storage)
        )

    def _runs(self, schedule: Schedule, storage: str) -> bool:
        both = all(self.system.chosen(mode, CAPABILITIES[storage]).mode == mode for mode in MODES)
        return both or not schedule.needs_both

    @cached_property
    def points(self) -> tuple[tuple[Fault, ...], ...]:
        """The crash points of each part, from one run of each, so the number of single crashes is known early."""
        found = []
        for part in self.parts:
            points = watch(part.plan, self.system, before=part.schedule.before).points()
            found.append(tuple(point for point in points if point not in part.plan.faults))
        return tuple(found)

    def cases(
        self,
        after: Cursor = START,
        depths: tuple[int, ...] = (1, 2),
        every: int = 1,
        shard: tuple[int, int] = (0, 1),
    ) -> Iterator[Case]:
        """The cases behind a cursor, in order.

        every: of pairs only about one in so many, spread over first and second crashes alike; to know the second ones
        of a first takes a run. shard: (k, n) is the k-th of n disjoint pieces, counted from 0, together the whole.
        """
        number, pieces = shard
        if not 0 <= number < pieces or every < 1:
            raise UsageError(f"shard {number} of {pieces}, every {every}: give 0 <= shard < pieces and every >= 1")
        for depth in (depth for depth in (1, 2) if depth in depths):
            for part, points in enumerate(self.points):
                stride = 1 if depth == 1 else isqrt(every)
                for first in range(number * stride, len(points), pieces * stride):
                    if depth == 1 and (depth, part, first, 0) > after:
                        yield self._case(Cursor(depth, part, first), (points[first],))
                    elif depth == 2 and (depth, part, first + 1) > after[:3]:
                        yield from self._pairs(part, first, after, every)

    def _pairs(self, part: int, first: int, after: Cursor, every: int) -> Iterator[Case]:
        crash = self.points[part][first]
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


class Examined(NamedTuple):
    """A case that was run and judged.

    covered: each of its crashes happened.
    breaches: by guarantee, promised ones.

    findings: none when the system cannot be judged on the storage.
    """

    covered: bool
    steps: int
    history: History
    findings: tuple[Finding, ...]
    breaches: tuple[tuple[str, Breach], ...]


def examine(case: Case, system: System, profile: Profile, guarantees: frozenset[str] | None = None) -> Examined:
    """Run and judge one case."""
    seen = watch(case.plan, system, case.crashes)
    findings = findings_in(seen.history, system, guarantees)
    found = ((f.guarantee, promised_breach(f, case.plan, profile)) for f in findings)
    breaches = tuple((guarantee, breach) for guarantee, breach in found if breach is not None)
    return Examined(set(case.crashes) <= set(seen.happened), seen.steps, seen.history, findings, breaches)


@dataclass(slots=True, kw_only=True)
class ScheduleRow:
    """What was done at one depth.

    seconds: of process time.
    violations: runs that broke a promise.
    """

    points: int = 0
    runs: int = 0
    covered: int = 0
    steps: int = 0
    seconds: float = 0.0
    violations: int = 0


@dataclass(slots=True, kw_only=True)
class Explored:
    """Rows by (mode, storage, schedule, depth); failures: the first case of each (guarantee, mode, storage)."""

    rows: dict[tuple[str, str, str, int], ScheduleRow] = field(default_factory=dict)
    failures: dict[tuple[str, str, str], tuple[Case, Breach]] = field(default_factory=dict)
    last: Cursor = START


def explore(
    space: Space,
    cases: Iterable[Case],
    profile: Profile,
    guarantees: frozenset[str] | None = None,
    seconds_max: float = float("inf"),
) -> Explored:
    """Examine cases one after another, until they or the seconds of process time end."""
    explored = Explored()
    began = clock = time.process_time()
    gc.disable()
    try:
        for number, case in enumerate(cases):
            if clock - began > seconds_max:
                break
            if number % COLLECT_EVERY == 0:
                gc.collect()
            examined = examine(case, space.system, profile, guarantees)
            explored.last = case.cursor
            before, clock = clock, time.process_time()
            if not examined.findings:
                continue
            mode, storage, schedule = case.part
            row = explored.rows.setdefault((mode, storage, schedule.name, case.cursor.depth), ScheduleRow())
            row.points = len(space.points[case.cursor.part])
            row.runs += 1
            row.covered += examined.covered
            row.steps += examined.steps
            row.violations += bool(examined.breaches)
            for guarantee, breach in examined.breaches:
                explored.failures.setdefault((guarantee, mode, storage), (case, breach))
            row.seconds += clock - before
    finally:
        gc.enable()
    return explored
