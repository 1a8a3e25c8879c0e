"""A failure of a simulated run: the smallest plan found that shows it, and the event of its run that decides it."""

from __future__ import annotations

import time
from dataclasses import replace

from marker_sim.campaign.runs import (
    MODES_AGREE,
    broken_in,
    execute,
    failure_of,
    findings_in,
    findings_of,
    promised_breach,
    reusing,
)
from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.judges.findings import Breach
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.curve import CurvePoint, LikelihoodCurve, likelihood_curve
from marker_sim.outcome.failure import Failure, Kind
from marker_sim.plan import Plan
from marker_sim.search.shrinking import RUNS_MAX
from marker_sim.search.shrinking.candidates import without_one
from marker_sim.search.shrinking.shrinker import Watch, shrink
from marker_sim.system import System
from marker_sim.worlds.simulated.cluster import Branch, Cluster
from marker_sim.worlds.simulated.watchdog import watched

CURVE_RUNS = 20  # Of each point of a curve.
CURVE_POINTS = 40
CURVE_POINTS_MIN = 8
CURVE_STEPS = 1_000_000  # Of all runs of a curve; a plan with long runs has fewer points,
CURVE_STEPS_OF_RUN = 20_000  # and one with very long runs no curve, which would take minutes.
Subject = tuple[str | None, str | None, str | None]  # A table, an instant, and a name or path.


def with_curve(failure: Failure, system: System, profile: Profile) -> Failure:
    """The failure with its curve; as it was, where that has none, a branch of its run does not end, or runs are slow
    because the system is a program.
    """
    if system.outside is not None:
        return failure
    try:
        return replace(failure, curve=curve_of(failure, system, profile))
    except (HarnessError, UsageError):
        return failure


def curve_of(failure: Failure, system: System, profile: Profile, seed: int = 0) -> LikelihoodCurve | None:
    """The probability of a simulated failure along its run; equal arguments give equal curves.

    None where a run of its plan does not show it, because it is of two runs or the system is not deterministic, and for
    runs of more than `CURVE_STEPS_OF_RUN` steps.
    """
    plan, guarantee = failure.own_plan, failure.guarantee
    if guarantee == MODES_AGREE:
        return None
    cluster, calm = Cluster(plan, system), Cluster(replace(plan, faults=()), system)
    for each in (cluster, calm):
        with watched(lambda each=each: each.scheduler.steps):  # type: ignore[misc]
            each.run()
    if cluster.scheduler.steps > CURVE_STEPS_OF_RUN:
        return None
    made = (cluster.host.steps_of_faults, calm.host.steps_of_faults)
    steps = {name: max(each.get(name, 0) for each in made) for name in sorted({*made[0], *made[1]})}
    events = failure.history.events
    ends = (event.index for event in events if event.operation == "phase" and event.value == "end")

    def measure(stays: int) -> CurvePoint:
        broken = 0
        for number in range(CURVE_RUNS):
            branch = Branch(stays, 1 + (seed * CURVE_RUNS + number), steps)
            history, _ = execute(plan, system, branch)
            found = findings_in(history, system, frozenset({guarantee}))
            broken += any(promised_breach(each, plan, profile) is not None for each in found)
        return CurvePoint(stays, broken, CURVE_RUNS)

    points = max(CURVE_POINTS_MIN, min(CURVE_POINTS, CURVE_STEPS // (CURVE_RUNS * max(1, cluster.scheduler.steps))))
    curve = likelihood_curve(guarantee, seed, events, next(ends, len(events) - 1) + 1, points, measure)
    return curve if curve.points[-1].violated == CURVE_RUNS else None


def smaller(
    kind: Kind,
    plan: Plan,
    system: System,
    profile: Profile,
    budget_s: float,
    runs_max: int = RUNS_MAX,
    watch: Watch | None = None,
) -> Failure | None:
    """The failure of the smallest plan found; None for a plan that does not fail again. watch: gets each candidate."""
    small = plan
    if budget_s > 0:
        small = make_small(plan, system, kind.guarantee, profile, kind.cause, budget_s, runs_max, watch)
    seen = failure_of(kind, small, system, profile)
    if seen is None:
        return None
    also = (each.also for each in broken_in(seen.history, small, profile).values())
    return replace(seen, entries_before=plan.entries, also=frozenset[str]().union(*also))


def make_small(
    plan: Plan,
    system: System,
    guarantee: str,
    profile: Profile,
    cause: str,
    budget_s: float,
    runs_max: int = RUNS_MAX,
    watch: Watch | None = None,
) -> Plan:
    """The smallest plan found that breaks a guarantee by a cause, or without an entry that the cause depends on.

    With a kill a loss has the cause lost-at-kill, without it never-stored. So when no smaller plan breaks the guarantee
    by the same cause, single entries are removed if it still breaks for the same name or directory by any cause, which
    then counts. Other candidates must keep the cause, or one defect would become another.
    """
    until, left = time.monotonic() + budget_s, runs_max

    def breaches(candidate: Plan, cause: str = "") -> list[tuple[Breach, frozenset[Subject]]]:
        nonlocal left
        left -= 1
        try:
            with reusing(system, True):
                history, findings = findings_of(candidate, system, guarantee)
        except (HarnessError, UsageError):  # It hangs, or a fresh instance fails on what it stored: another defect.
            return []
        broken = (breach for each in findings for breach in profile.broken_by(each, candidate.mode, candidate.storage))
        return [(breach, _subject(history, breach)) for breach in broken if cause in ("", breach.cause)]

    def fails(candidate: Plan) -> bool:
        failed = bool(breaches(candidate, cause))
        if watch is not None:
            watch(candidate, failed)
        return failed

    while True:
        plan = shrink(plan, fails, left, until - time.monotonic())
        about = next((subject for _, subject in breaches(plan, cause)), frozenset())
        for less in without_one(plan):
            if left <= 0 or time.monotonic() > until:
                return plan
            found = next((breach for breach, subject in breaches(less) if subject & about), None)
            if found is not None:
                plan, cause = less, found.cause
                break
        else:
            return plan


def _subject(history: History, breach: Breach) -> frozenset[Subject]:
    """The subject of a breach: names in the calls that prove it, else files, else directories."""
    events = [history.events[index] for index in breach.evidence]
    named = [event for event in events if event.path]
    called = [event for event in named if event.kind in ("invoke", "ok", "fail", "info")]
    about = called or named or [event for event in events if event.instant]
    return frozenset((event.table, event.instant, event.path) for event in about)
