"""How fast each mutant dies when its guarantee is judged alone: seeds, seconds, and the plan that is left."""

from __future__ import annotations

import time
from dataclasses import dataclass

from marker_sim.judges.profiles import Profile, load_profile
from marker_sim.mutants.catalogue import Mutant
from marker_sim.mutants.load import load_mutant
from marker_sim.plan import Plan
from marker_sim.search.campaign import fails_with, findings_of, promised_breach
from marker_sim.search.shrink import shrink
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan

COMBINATIONS = (
    ("timeline", "s3"),
    ("timeline", "local"),
    ("timeline", "hdfs"),
    ("direct", "s3"),
    ("direct", "local"),
    ("timeline", "s3-unconditional"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What it took to kill a mutant; `plan` is None for a survivor.

    seeds: plans run until the first violation. seconds: the search alone, without shrinking. message: the breach.
    """

    mutant: str
    guarantee: str
    seeds: int
    seconds: float
    entries_found: int
    plan: Plan | None
    message: str


def kill(mutant: Mutant, seeds_max: int = 3_000, first_seed: int = 0, shrink_s: float = 10.0) -> Kill:
    """Search a mutant with its guarantee judged alone, then shrink the first plan that fails."""
    system = load_mutant(mutant)
    profile: Profile = load_profile("reference")
    make = make_write_plan if mutant.of_writes else make_plan
    began = time.perf_counter()
    for number in range(seeds_max):
        mode, storage = COMBINATIONS[number % len(COMBINATIONS)]
        plan = make(first_seed + number // len(COMBINATIONS), mode, storage)
        for finding in findings_of(plan, system, mutant.kills)[1]:
            breach = promised_breach(finding, plan, profile)
            if breach is not None:
                seconds = time.perf_counter() - began
                small = shrink(plan, fails_with(mutant.kills, system, profile), budget_s=shrink_s)
                return Kill(
                    mutant=mutant.name,
                    guarantee=mutant.kills,
                    seeds=number + 1,
                    seconds=seconds,
                    entries_found=plan.entries,
                    plan=small,
                    message=breach.message,
                )
    return Kill(
        mutant=mutant.name,
        guarantee=mutant.kills,
        seeds=seeds_max,
        seconds=time.perf_counter() - began,
        entries_found=0,
        plan=None,
        message="survived",
    )
