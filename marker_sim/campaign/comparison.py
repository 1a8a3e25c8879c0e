"""Two systems on the same plans: what only one of them breaks, and what both break.

Both campaigns have the same seed, so they draw the same plans. One campaign does not show which promises a system
keeps, because real servers may break one rarely. So the small plan of each story of one system is run on the other as
well, and counts there too.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from marker_sim.campaign.runs import LOST, broken_in, findings_in, findings_of
from marker_sim.judges.findings import UNEXPLAINED
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.failure import Kind, failures_in, stories
from marker_sim.outcome.result import Campaign
from marker_sim.outcome.statistics import BOTH
from marker_sim.plan import Plan
from marker_sim.system import System
from marker_sim.targets.target import CampaignRequest

SERVER_TIMES = 5
CROSSED_MAX = 12
RUN_S = 60.0  # Limit for one run when the time is over.

Planned = tuple[Kind, Plan]
Broke = frozenset[Kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedPlan:
    """The small plan of a violation of one system, run on the other.

    kind: what it breaks where it was found.
    on_second: whether the other one is that of `--against`.
    broke: in how many of its `runs` there it broke the same guarantee by the same cause, or lost a name by it.
    found: all that broke there.
    """

    kind: Kind
    on_second: bool
    broke: int
    runs: int
    found: frozenset[Kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedViolation:
    """A violation that counts in one system or in both. counts: how often each campaign saw it."""

    kind: Kind
    counts: tuple[int, int]
    broken: tuple[bool, bool]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**self.kind._asdict(), "violations": list(self.counts), "broken": list(self.broken)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two campaigns with the same plans, that of `--sut` first.

    second: the campaign of `--against`.
    rows: of the second, by the profile of the first.
    """

    first: Campaign
    second: Campaign
    rows: tuple[VerdictRow, ...]
    violations: tuple[ComparedViolation, ...]
    crossed: tuple[CrossedPlan, ...]

    def broken_by(self, first: bool, second: bool) -> tuple[ComparedViolation, ...]:
        """The violations of only one of the systems, or of both."""
        return tuple(each for each in self.violations if each.broken == (first, second))

    def to_dict(self) -> dict[str, Any]:
        """The content of `against` in verdict.json; in pairs the system of `--sut` comes first."""
        second = self.second
        return {
            "sut": second.sut,
            "sut_version": second.sut_version,
            "runs": [self.first.runs, second.runs],
            "trouble": second.trouble,
            "guarantees": [
                {"id": row.id, "mode": row.mode, "storage": row.storage, "verdict": row.verdict}
                | {"judged": row.judged, "violations": row.violations}
                for row in self.rows
            ],
            "violations": [each.to_dict() for each in self.violations],
            "plans": [
                {**each.kind._asdict(), "run_on": second.sut if each.on_second else self.first.sut}
                | {"broke": each.broke, "runs": each.runs}
                for each in self.crossed
            ],
        }


def compare(first: Campaign, second: Campaign, request: CampaignRequest, until: float) -> Comparison:
    """The comparison: small plans of each system run on the other until a time (time.monotonic).

    request: that of `--sut`, with that of `--against`.
    """
    profile, other = request.profile, request.against
    assert other is not None
    left_s = until - time.monotonic()
    crossed = _crossed(first, other, profile, time.monotonic() + left_s / 2, on_second=True)
    crossed += _crossed(second, request, profile, until, on_second=False)
    counts = (_counts(first, profile), _counts(second, profile))
    seen = tuple(
        frozenset(counts[n]) | {kind for each in crossed if each.on_second == bool(n) for kind in each.found}
        for n in (0, 1)
    )
    order = {guarantee.id: number for number, guarantee in enumerate(GUARANTEES)}
    kinds = sorted(seen[0] | seen[1], key=lambda kind: (order[kind[0]], kind))
    wanted = [kind for kind in kinds if request.guarantees is None or kind[0] in request.guarantees]
    return Comparison(
        first=first,
        second=second,
        rows=second.statistics.rows(profile),
        violations=tuple(
            ComparedViolation(
                kind=kind,
                counts=(counts[0][kind], counts[1][kind]),
                broken=(kind in seen[0], kind in seen[1]),
            )
            for kind in wanted
        ),
        crossed=crossed,
    )


def _counts(campaign: Campaign, profile: Profile) -> Counter[Kind]:
    """The number of breaches of each promise."""
    counts: Counter[Kind] = Counter()
    for row in campaign.statistics.rows(profile):
        for under, causes in row.breakdown.items():
            for cause, count in causes.items():
                if count and profile.promise(row.id, row.mode, row.storage, under).promised:
                    kind = Kind(row.id, row.mode, row.storage, cause)
                    counts[kind] += count
    return counts


def _crossed(
    campaign: Campaign, other: CampaignRequest, profile: Profile, until: float, *, on_second: bool
) -> tuple[CrossedPlan, ...]:
    """The results of a campaign's small plans on the other system, one for each story."""
    told = [story[0] for story in stories(failure for failure in campaign.failures if failure.plan is not None)]
    plans = [(failure.kind, failure.plan) for failure in told[:CROSSED_MAX] if failure.plan is not None]
    if not plans:
        return ()
    system = other.target.load()
    if system is None:
        seen = _on_servers(plans, other, profile, until)
    else:
        seen = [[_simulated(kind, plan, system, profile)] for kind, plan in plans]
    return tuple(
        CrossedPlan(
            kind=kind,
            on_second=on_second,
            broke=sum(any(_alike(kind, each) for each in one) for one in runs),
            runs=len(runs),
            found=frozenset[Kind]().union(*runs),
        )
        for (kind, _), runs in zip(plans, seen, strict=True)
        if runs
    )


def _simulated(kind: Kind, plan: Plan, system: System, profile: Profile) -> Broke:
    """The violations of a plan in a simulated run; a guarantee that compares modes needs two runs."""
    history, findings = findings_of(plan, system, kind[0])
    if kind[1] == BOTH:
        return frozenset(failures_in(history, findings, profile, plan, mode=BOTH))
    return frozenset(failures_in(history, findings_in(history, system), profile))


def _alike(kind: Kind, seen: Kind) -> bool:
    """Whether two kinds of violation most likely are the same defect: a name that is lost breaks several guarantees."""
    same = kind[0] == seen[0] or {kind[0], seen[0]} <= LOST
    return same and (kind[3] == seen[3] or UNEXPLAINED in (kind[3], seen[3]))


def _on_servers(plans: list[Planned], other: CampaignRequest, profile: Profile, until: float) -> list[list[Broke]]:
    """The violations of plans in a few runs on a real server; the first plan runs even when the time is over."""
    found: list[list[Broke]] = []
    request = replace(other, budget_s=max(1.0, until - time.monotonic()))
    with other.target.real_runs(request, lambda line: None) as runs:
        for _, plan in plans:
            seen: list[Broke] = []
            for _ in range(SERVER_TIMES):
                if (found or seen) and time.monotonic() > until:
                    break
                fresh = bool(seen and seen[-1])
                history = runs.again(plan, max(until, time.monotonic() + RUN_S), fresh).history
                seen.append(frozenset(broken_in(history, plan, profile)))
            found.append(seen)
    return found
