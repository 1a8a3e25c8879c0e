"""Everything measured about one mutant: times to detection, the guarantees that detect it, and the shrunk plan."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from marker_sim.campaign.hunting.hunts import COMBINATIONS, SEARCHES, Found, Limit, Search
from marker_sim.campaign.runs import comparable, compare_modes, execute, promised_breach, smaller
from marker_sim.judges import judge
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.mutants.mutant import Mutant
from marker_sim.outcome.failure import Failure, Kind
from marker_sim.plan import Plan
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System

MATRIX_SEEDS = 4
SHRINK_SHARE = 0.15
SHRINK_MAX_S = 10.0
SHRINK_RUNS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The results for one mutant.

    searches: what each needed, as mutants.json has it.
    plan: the shrunk one, None for a survivor.
    cells: by guarantee, on how many of `runs` plans its judge alone saw a promise broken.
    entries_found: of the plan before it was shrunk.
    message: the breach.
    """

    mutant: Mutant
    searches: dict[str, dict[str, Any]]
    cells: dict[str, int]
    runs: int
    entries_found: int
    plan: Plan | None
    message: str

    @property
    def killed(self) -> bool:
        """Whether any search caught it by its own guarantee."""
        return any(times["caught"] for times in self.searches.values())

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            **{name: getattr(self.mutant, name) for name in ("name", "record", "module", "kills")},
            "killed": self.killed,
            "runs": self.runs,
            "cells": {name: count for name, count in self.cells.items() if count},
            "searches": self.searches,
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
        """The results for the mutant of the task."""
        return kill(find_mutant(self.name), self.seeds, self.budget_s, plans=self.plans)


def kill(
    mutant: Mutant,
    seeds: int = 1,
    budget_s: float = 60.0,
    searches: Sequence[Search] = SEARCHES,
    shrinking: bool = True,
    plans: int | None = None,
) -> Kill:
    """The results for a mutant: hunted by every search, judged by every guarantee, its first failing plan shrunk.

    seeds: how many ranges of seeds a search without its own number has.
    budget_s: process time, divided by the searches' shares; an unused share is not passed on.
    plans: how many each hunt runs at most, instead of seconds; then only times differ between calls.
    """
    system = load_mutant(mutant)
    times, caught = dict[str, dict[str, Any]](), list[Failure]()
    for search in searches:
        deadline, found = time.process_time() + budget_s * search.share, list[Found]()
        while len(found) < (search.ranges or seeds) and (left_s := deadline - time.process_time()) > 0:
            found.append(search.hunt(mutant, system, len(found), Limit(left_s, plans)))
        caught += [each.failure for each in found if each.failure is not None]
        times[search.name] = _times(found)
    cells, runs = matrix_row(system, [failure.plan for failure in caught if failure.plan is not None])
    first = caught[0] if caught else None
    plan = first.plan if first else None
    if plan is not None and shrinking:
        share_s = min(SHRINK_MAX_S, budget_s * SHRINK_SHARE) if plans is None else math.inf
        kind = Kind(mutant.kills, plan.mode, plan.storage, "")
        small = smaller(kind, plan, system, load_profile("reference"), share_s, SHRINK_RUNS)
        plan = small.plan if small else plan
    return Kill(
        mutant=mutant,
        searches=times,
        cells=cells,
        runs=runs,
        entries_found=first.entries if first else 0,
        plan=plan,
        message=first.message if first else "",
    )


def _times(found: Sequence[Found]) -> dict[str, Any]:
    """The times of a search over all seeds: the median where most caught the mutant, the worst where all did."""
    seconds = sorted(each.seconds for each in found if each.failure is not None)
    plans = [each.plans for each in found if each.failure is not None]
    return {
        "ranges": len(found),
        "caught": len(seconds),
        "median_s": statistics.median(seconds) if 2 * len(seconds) > len(found) else None,
        "worst_s": seconds[-1] if found and len(seconds) == len(found) else None,
        "median_plans": statistics.median(plans) if plans else None,
        "worst_plans": max(plans, default=None),
    }


def matrix_row(system: System, more: Iterable[Plan] = ()) -> tuple[dict[str, int], int]:
    """For each guarantee the number of plans that break it, judged alone; and the number of plans.

    The plans are the first of both generators everywhere, and `more`. Judges share nothing but the history, so one run
    serves them all; G21 compares a run of its own in the other mode.
    """
    profile = load_profile("reference")
    cells = dict.fromkeys((guarantee.id for guarantee in GUARANTEES), 0)
    plans = [
        make(seed, mode, storage)
        for seed in range(MATRIX_SEEDS)
        for mode, storage in COMBINATIONS
        for make in (make_plan, make_write_plan)
    ]
    plans += more
    for plan in plans:
        findings = [*judge(execute(plan, system)[0])]
        if comparable(plan, system):
            findings.append(compare_modes(plan, system)[2])
        for finding in findings:
            cells[finding.guarantee] += promised_breach(finding, plan, profile) is not None
    return cells, len(plans)
