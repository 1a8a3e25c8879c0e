"""Runs one plan in the simulated world, judges it in one mode or both, shrinks it, and finds the event that decides it.

A third-party class may need an operation that the storage does not offer, for example conditional puts. No search
judges or counts a run in which it called one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults.row import BATCHED_STORAGES
from marker_sim.history import UNSUPPORTED, History
from marker_sim.judges import judge, modes_agree
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.curve import CurvePoint, LikelihoodCurve, likelihood_curve
from marker_sim.outcome.failure import Failure, Kind, failures_in
from marker_sim.plan import Plan
from marker_sim.search.shrinking.candidates import without_one
from marker_sim.search.shrinking.shrinker import RUNS_MAX, Watch, shrink
from marker_sim.system import System
from marker_sim.worlds.simulated.cluster import Branch, Cluster
from marker_sim.worlds.simulated.watchdog import watched

MODES_AGREE = "G21"
CURVE_RUNS = 20  # Of each point of a curve.
CURVE_POINTS = 40
CURVE_POINTS_MIN = 8
CURVE_STEPS = 1_000_000  # Of all runs of a curve; a plan with long runs has fewer points,
CURVE_STEPS_OF_RUN = 20_000  # and one with very long runs no curve, which would take minutes.
NOT_SERVED = "mode that the system does not serve"
NO_FACTORY = "the system has no factory for the markers that are chosen there"
LEFT_OUT = "run left out: the system needs what the storage does not offer"
Subject = tuple[str | None, str | None, str | None]  # A table, an instant, and a name or path.
LOST = frozenset(("G1", "G2", "G3", "G4", "G11"))  # A lost name breaks one of them, depending on when it is noticed.


def broken_in(history: History, plan: Plan | None, profile: Profile) -> dict[Kind, Failure]:
    """The first breach of each kind in a run, by today's judges."""
    return failures_in(history, judge(history, None), profile, plan)


def execute(plan: Plan, system: System, branch: Branch | None = None) -> tuple[History, int]:
    """The history and steps of one simulated run under the watchdog."""
    cluster = Cluster(plan, system, branch)
    try:
        with watched(lambda: cluster.scheduler.steps):
            history = cluster.run()
    except HarnessError:
        if system.outside is None or not system.outside.stop_reuse():
            raise
        return execute(plan, system, branch)
    return history, cluster.scheduler.steps


@contextmanager
def reusing(system: System | None, reused: bool) -> Iterator[None]:
    """A context in which the processes of runs may be played by programs that played others, or by new ones alone."""
    outside = None if system is None else system.outside
    if outside is None:
        yield
        return
    before, outside.reused = outside.reused, reused
    try:
        yield
    finally:
        outside.reused = before


def same_again(plan: Plan, history: History, system: System, reused: bool) -> bool:
    """Whether a plan gives the same history again; reused: by programs that may have played other processes."""
    with reusing(system, reused):
        return execute(plan, system)[0].events == history.events


def digest(history: History) -> str:
    """A digest of every byte of a history."""
    made = hashlib.sha256()
    for line in history.lines():
        made.update(line.encode("utf-8", "surrogatepass"))
    return made.hexdigest()


def compare_modes(plan: Plan, system: System) -> tuple[History, History, Finding]:
    """A plan's two histories, with direct and with timeline-server markers, and the finding of G21 modes-agree."""
    first, _ = execute(replace(plan, mode="direct"), system)
    second, _ = execute(replace(plan, mode="timeline"), system)
    return first, second, modes_agree(first, second)


def comparable(plan: Plan, system: System) -> bool:
    """Whether a plan has two modes to compare."""
    both = system.direct is not None and system.server is not None
    return both and bool(plan.writes) and plan.storage in BATCHED_STORAGES


def findings_in(
    history: History, system: System | None, guarantees: frozenset[str] | None = None
) -> tuple[Finding, ...]:
    """One finding per requested guarantee; none when the system cannot be judged on this storage."""
    return () if lacking(system, history) else judge(history, guarantees)


def lacking(system: System | None, history: History) -> str:
    """The first operation that a third-party class called and this storage lacks, whatever it raised; else ""."""
    asked = (e for e in history.events if e.kind == "observe" and e.operation == UNSUPPORTED)
    event = next(asked, None) if system and system.layout == "names" else None
    return "" if event is None else event.error or "an operation"


def lacks(what: str) -> str:
    """The reason for which a system is not judged on a storage, for an operation that it lacks."""
    return f"the system needs {what}, which that storage does not offer"


def findings_of(plan: Plan, system: System, guarantee: str | None) -> tuple[History, tuple[Finding, ...]]:
    """The findings of one guarantee for a plan, which may need runs in both modes; of all of one run for None."""
    if guarantee == MODES_AGREE:
        if not comparable(plan, system):
            return execute(plan, system)[0], ()
        first, history, finding = compare_modes(plan, system)
        return history, () if lacking(system, first) or lacking(system, history) else (finding,)
    history, _ = execute(plan, system)
    return history, findings_in(history, system, None if guarantee is None else frozenset({guarantee}))


def promised_breach(finding: Finding, plan: Plan, profile: Profile, cause: str = "") -> Breach | None:
    """The first promised breach; cause: the cause it must have, "" for any."""
    found = profile.broken_by(finding, plan.mode, plan.storage)
    return next((breach for breach in found if cause in ("", breach.cause)), None)


def failure_of(kind: Kind, plan: Plan, system: System, profile: Profile) -> Failure | None:
    """The failure of a plan of the given kind, by its cause if possible, else by any; None when the guarantee holds."""
    history, findings = findings_of(plan, system, kind.guarantee)
    shown = (promised_breach(each, plan, profile, by) for by in (kind.cause, "") for each in findings)
    breach = next((breach for breach in shown if breach is not None), None)
    return None if breach is None else Failure(kind=kind, breach=breach, history=history, plan=plan)


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
    return seen and replace(seen, entries_before=plan.entries)


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
