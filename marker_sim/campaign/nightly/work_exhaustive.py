"""Units of the exhaustive search: its space on one line of numbers, so that it can be cut anywhere.

A space of n crash points is 2n numbers: number k below n is the run with the k-th crash alone, n + k stands for all
runs with the k-th crash first and another one after it.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any

from marker_sim.campaign.exhaustive import Case, Cursor, Space, examine
from marker_sim.campaign.nightly.failures import kind_of
from marker_sim.campaign.nightly.work import ROWS, SPACE, NightlyTask, counts_of, sightings
from marker_sim.campaign.pieces import COLLECT_EVERY, RECHECK_EVERY
from marker_sim.campaign.result import Failure
from marker_sim.campaign.run_rows import RunRow, run_row
from marker_sim.campaign.runs import execute
from marker_sim.campaign.statistics import Statistics
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system

SINGLES_A_UNIT, ROOTS_A_UNIT = 100, 2
COVERED = "exhaustive runs in which each crash happened"
RUNS = "exhaustive runs"
NOT_JUDGED = "exhaustive runs left out: the system needs what the storage does not offer"


class ExhaustiveWork:
    """Does units; the crash points of the space are found once."""

    def __init__(self, sut: str) -> None:
        self.system = load_system(sut)
        self.space = Space(self.system)

    def __exit__(self, *_: object) -> None:
        """Nothing is left."""

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The number after the last crash point of each part."""
        return tuple(accumulate(len(points) for points in self.space.points))

    @property
    def size(self) -> int:
        """How many crash points there are; twice as many numbers."""
        return self.ends[-1] if self.ends else 0

    @cached_property
    def digest(self) -> str:
        """Of all parts and points: where it differs, the same numbers stand for other runs."""
        parts = [
            (part.mode, part.storage, part.plan, points)
            for part, points in zip(self.space.parts, self.space.points, strict=True)
        ]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def units(self, task: NightlyTask) -> dict[str, Any]:
        """Cases by number; or how many crash points there are."""
        if task.stream == SPACE:
            return {"points": self.size, "digest": self.digest}
        if task.space.split(".")[:2] != [str(self.size), self.digest]:
            raise HarnessError(
                f"the crash points are not those that were counted: {self.size}.{self.digest}, {task.space}"
            )
        profile, statistics, found = load_profile(task.profile), Statistics(), dict[str, Failure]()
        listed = list[RunRow]()
        steps = differences = 0
        gc.disable()
        try:
            for number, (place, case) in enumerate(self.numbered(task.first, task.count)):
                if number % COLLECT_EVERY == 0:
                    gc.collect()
                seen = examine(case, self.system, profile)
                if not seen.findings:
                    statistics.reach(NOT_JUDGED)
                    continue
                steps += seen.steps
                statistics.add(seen.history, seen.findings)
                statistics.reach(RUNS)
                if task.listing:
                    listed.append(run_row(*place, case.plan, seen.history, seen.steps, seen.findings, profile))
                statistics.reach(COVERED, int(seen.covered))
                for guarantee, breach in seen.breaches:
                    found.setdefault(
                        kind_of(guarantee, case.plan.mode, case.plan.storage),
                        Failure(
                            guarantee=guarantee,
                            message=breach.message,
                            evidence=breach.evidence,
                            history=seen.history,
                            plan=case.plan,
                            seed=task.first,
                            entries_before=case.plan.entries,
                            mode=case.plan.mode,
                        ),
                    )
                if seen.breaches or number % RECHECK_EVERY == 0:
                    differences += execute(case.plan, self.system)[0].events != seen.history.events
        finally:
            gc.enable()
        shown = sightings(tuple(found[kind] for kind in sorted(found)), self.system, profile, not differences)
        rows = {ROWS: tuple(listed)} if task.listing else {}
        return counts_of(statistics, steps, profile) | {"differences": differences, "sightings": shown} | rows

    def cases(self, first: int, count: int) -> Iterator[Case]:
        """The runs that the numbers from `first` on stand for."""
        return (case for _, case in self.numbered(first, count))

    def numbered(self, first: int, count: int) -> Iterator[tuple[tuple[int, int], Case]]:
        """The same, each with its number and its place among the runs of that number."""
        for number in range(first, first + count):
            depth, root = (1, number) if number < self.size else (2, number - self.size)
            part = next(place for place, end in enumerate(self.ends) if root < end)
            place = root - (self.ends[part - 1] if part else 0)
            before = Cursor(depth, part, place, -1)
            for run, case in enumerate(self.space.cases(before, (depth,))):
                if case.cursor[:3] != before[:3]:
                    break
                yield (number, run), case
