"""Holds the statistics of a campaign against the coverage goals of its system, modes and storages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from marker_sim.campaign.coverage.goals import GOALS, OPERATIONS, SURE, WRITES
from marker_sim.campaign.result import CoverageGap
from marker_sim.campaign.statistics import Statistics
from marker_sim.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageGoals:
    """Which goals a campaign reached.

    counts: how often.
    gaps: goals that were missed although they were expected.
    too_rare: names of goals that were missed and need not have been reached.
    not_applicable: those that are not goals of such a system, with the reason.
    """

    counts: dict[str, int]
    gaps: tuple[CoverageGap, ...]
    too_rare: tuple[str, ...]
    not_applicable: dict[str, str]


def reached(
    statistics: Statistics, combinations: Iterable[tuple[str, str]], system: System, write_plans: bool
) -> CoverageGoals:
    """Check a campaign's statistics against every coverage goal that its modes, storages and system allow.

    write_plans: whether the campaign made only plans of writes.
    """
    pairs = tuple(combinations)
    kinds = (WRITES,) if write_plans else (OPERATIONS, WRITES)
    counts: dict[str, int] = {}
    gaps: list[CoverageGap] = []
    too_rare: list[str] = []
    not_applicable: dict[str, str] = {}
    for goal in GOALS:
        places = [pair for pair in pairs if any(goal.applies(*pair, kind) for kind in kinds)]
        if not places:
            continue
        times, looked = goal.times(statistics), goal.looked(statistics.looked)
        expected = goal.expected(statistics.looked, system.layout != "hudi")
        if why := goal.why_not(system):
            not_applicable[goal.name] = why
        elif times:
            counts[goal.name] = times
        elif expected < SURE:
            too_rare.append(goal.name)
        else:
            gaps.append(
                CoverageGap(
                    sentence=f"{goal.name}: {goal.sentence}"
                    f" (0 of {looked} sampled runs, expected at least {expected:.0f})",
                    guarantees=goal.guarantees,
                    modes=tuple(sorted({mode for mode, _ in places})),
                    storages=tuple(sorted({storage for _, storage in places})),
                )
            )
    return CoverageGoals(counts=counts, gaps=tuple(gaps), too_rare=tuple(too_rare), not_applicable=not_applicable)
