"""What it takes to kill a mutant: times to detect, the guarantees that see it, and the plan that is left of it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from marker_sim.campaign.runs import comparable, compare_modes, execute, fails_with, promised_breach
from marker_sim.judges import judge
from marker_sim.judges.findings import Finding
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.hunts import COMBINATIONS, SEARCHES, Found, Limit, Search
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.mutants.mutant import Mutant
from marker_sim.plan import Plan
from marker_sim.search.shrinking.shrinker import shrink
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System

MATRIX_SEEDS = 4
SHRINK_SHARE = 0.15
SHRINK_MAX_S = 10.0
SHRINK_RUNS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """What one search needed from all its places.

    seconds, plans: of those that caught the mutant, sorted.
    """

    search: str
    ranges: int
    seconds: tuple[float, ...]
    plans: tuple[int, ...]

    @property
    def median_s(self) -> float | None:
        """Of all places, where most caught it; None otherwise."""
        return statistics.median(self.seconds) if 2 * len(self.seconds) > self.ranges else None

    @property
    def worst_s(self) -> float | None:
        """Of all places, where all caught it; None otherwise."""
        return self.seconds[-1] if self.ranges and len(self.seconds) == self.ranges else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "ranges": self.ranges,
            "caught": len(self.seconds),
            "median_s": self.median_s,
            "worst_s": self.worst_s,
            "median_plans": statistics.median(self.plans) if self.plans else None,
            "worst_plans": max(self.plans, default=None),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Everything about one mutant.

    plan: the shrunk one, None for a survivor of the swarm.
    cells: by guarantee, on how many of `runs` plans its judge alone saw a promise broken.
    entries_found: of the plan before it was shrunk.
    message: the breach.
    """

    mutant: Mutant
    times: tuple[Times, ...]
    cells: dict[str, int]
    runs: int
    entries_found: int
    plan: Plan | None
    message: str

    @property
    def killed(self) -> bool:
        """Whether any search caught it by its own guarantee."""
        return any(times.seconds for times in self.times)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "name": self.mutant.name,
            "record": self.mutant.record,
            "module": self.mutant.module,
            "kills": self.mutant.kills,
            "killed": self.killed,
            "runs": self.runs,
            "cells": {name: count for name, count in self.cells.items() if count},
            "searches": {times.search: times.to_dict() for times in self.times},
            "entries_found": self.entries_found,
            "entries": self.plan.entries if self.plan else None,
            "plan": self.plan.to_dict() if self.plan else None,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class KillTask:
    """The task of a process: a mutant by its name, how many ranges of seeds, and the limits of `kill`."""

    name: str
    seeds: int
    budget_s: float
    plans: int | None

    def do(self) -> Kill:
        """Kill it."""
        return kill(find_mutant(self.name), self.seeds, self.budget_s, plans=self.plans)


def kill(
    mutant: Mutant,
    seeds: int = 1,
    budget_s: float = 60.0,
    searches: Sequence[Search] = SEARCHES,
    shrinking: bool = True,
    plans: int | None = None,
) -> Kill:
    """Hunt a mutant by every search, judge it by every guarantee, and shrink the first failing plan of the swarm.

    seeds: how many ranges of seeds a search without its own number has.
    budget_s: process time, divided by the searches' shares; an unused share is not passed on.
    plans: how many each hunt runs at most, instead of seconds; then only times differ between calls.
    """
    system = load_mutant(mutant)
    times, caught = [], []
    for search in searches:
        found, ranges = _hunt(mutant, system, search, search.ranges or seeds, Limit(budget_s * search.share, plans))
        good = [each for each in found if each.caught]
        caught += [each for each in good if each.plan is not None]
        times.append(
            Times(
                search=search.name,
                ranges=ranges,
                seconds=tuple(sorted(each.seconds for each in good)),
                plans=tuple(sorted(each.plans for each in good)),
            )
        )
    cells, runs = matrix_row(system, [each.plan for each in caught if each.plan is not None])
    first = caught[0] if caught else None
    plan = first.plan if first else None
    if plan is not None and shrinking:
        share_s = min(SHRINK_MAX_S, budget_s * SHRINK_SHARE) if plans is None else math.inf
        plan = shrink(
            plan, fails_with(mutant.kills, system, load_profile("reference")), runs_max=SHRINK_RUNS, budget_s=share_s
        )
    return Kill(
        mutant=mutant,
        times=tuple(times),
        cells=cells,
        runs=runs,
        entries_found=first.plan.entries if first and first.plan else 0,
        plan=plan,
        message=first.message if first else "",
    )


def _hunt(mutant: Mutant, system: System, search: Search, ranges: int, limit: Limit) -> tuple[list[Found], int]:
    """How each hunt ended; as many as given, or as the seconds allow."""
    ended: list[Found] = []
    deadline = time.process_time() + limit.seconds
    while len(ended) < ranges and (left := deadline - time.process_time()) > 0:
        ended.append(search.hunt(mutant, system, len(ended), Limit(left, limit.plans)))
    return ended, len(ended)


def matrix_row(system: System, more: Iterable[Plan] = ()) -> tuple[dict[str, int], int]:
    """On how many plans each guarantee, judged alone, was broken; and how many plans there were.

    The plans are the first of both generators everywhere, and `more`. Judges share nothing but the history, so one run
    serves them all; G21 compares a run of its own in the other mode.
    """
    profile = load_profile("reference")
    cells = {guarantee.id: 0 for guarantee in GUARANTEES}
    plans = [
        make(seed, mode, storage)
        for seed in range(MATRIX_SEEDS)
        for mode, storage in COMBINATIONS
        for make in (make_plan, make_write_plan)
    ]
    plans += more
    for plan in plans:
        findings: list[Finding] = list(judge(execute(plan, system)[0]))
        if comparable(plan, system):
            findings.append(compare_modes(plan, system)[2])
        for finding in findings:
            cells[finding.guarantee] += promised_breach(finding, plan, profile) is not None
    return cells, len(plans)
