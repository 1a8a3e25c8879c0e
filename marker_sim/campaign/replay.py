"""Runs a stored plan again, with today's code and today's judges, or makes it smaller."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from marker_sim.campaign.pieces import NO_TIME, NONE_SMALLER, Broken
from marker_sim.campaign.played_shrinking import PlayedShrinker, SmallPlan, broken_in
from marker_sim.campaign.runs import execute, findings_of, make_small, promised_breach
from marker_sim.campaign.servability import findings_in
from marker_sim.history import History
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.loading import load_system
from marker_sim.plan import Plan
from marker_sim.system import System
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, RealRuns, ServerOptions

LONG_S = 600.0
CLOSING_S = 2.0
SEEN_SHARE = 0.3  # Of the time of shrinking, for seeing the failure again.


def replay_plan(plan: Plan, sut: str, guarantee: str | None) -> tuple[History, tuple[Finding, ...]]:
    """Run a plan against a system and judge it, by one guarantee or by all."""
    system = load_system(sut)
    if guarantee is not None:
        return findings_of(plan, system, guarantee)
    history, _ = execute(plan, system)
    return history, findings_in(history, system)


def replay_on_servers(
    plan: Plan,
    sut: str,
    server: ServerOptions,
    profile: Profile,
    guarantee: str | None,
    cause: str,
    times: int,
) -> tuple[int, tuple[History, str, Breach] | None]:
    """In how many of `times` runs against a real server or Hudi a promise was broken, and the first of these.

    guarantee: None for any.
    cause: of its breach; one of another cause counts where none of that cause was seen.
    """
    seen: list[tuple[History, str, Breach]] = []
    with _real_runs(plan, sut, server, profile, LONG_S) as runs:
        fresh = False
        for _ in range(times):
            history = runs.again(plan, time.monotonic() + LONG_S, fresh).history
            broken = broken_in(history, plan, profile)
            found = {kind: each for kind, each in broken.items() if guarantee in (None, kind[0])}
            fresh = bool(broken)
            if found:
                kind = min(found, key=lambda kind: kind[3] != cause)
                seen.append((history, kind[0], found[kind].breach))
    return len(seen), min(seen, key=lambda each: each[2].cause != cause) if seen else None


@contextmanager
def _real_runs(plan: Plan, sut: str, server: ServerOptions, profile: Profile, budget_s: float) -> Iterator[RealRuns]:
    target = parse_target(sut)
    with TemporaryDirectory(prefix="marker-sim-") as scratch:
        request = CampaignRequest(
            target=target, modes=(plan.mode,), storages=(plan.storage,), seed=plan.seed, profile=profile,
            budget_s=budget_s, server=server, report=Path(scratch),
        )  # fmt: skip
        target.prepare(request, lambda line: None)
        with target.real_runs(request, lambda line: None) as runs:
            yield runs


def shrink_on_servers(
    plan: Plan, sut: str, server: ServerOptions, profile: Profile, guarantee: str, cause: str, budget_s: float
) -> tuple[SmallPlan | None, int]:
    """A plan made small on a real server or Hudi once it broke the guarantee there again; None when it did not.

    Also how many runs it took to see that.
    """
    began, runs_made = time.monotonic(), 0
    until = began + budget_s - CLOSING_S
    with _real_runs(plan, sut, server, profile, budget_s) as runs:

        def again(candidate: Plan, deadline: float, fresh: bool, probing: bool) -> History | None:
            played = runs.again(candidate, deadline, fresh, probing)
            return None if played.cut else played.history

        while not runs_made or time.monotonic() < began + budget_s * SEEN_SHARE:
            history = again(plan, until, False, True)
            if history is None:
                break
            runs_made += 1
            broken = broken_in(history, plan, profile)
            found = sorted((kind for kind in broken if kind[0] == guarantee), key=lambda kind: kind[3] != cause)
            if found:
                shrinker = PlayedShrinker(again, profile, runs.at_once)
                return shrinker.shrink(found[0], [broken[found[0]]], until), runs_made
    return None, runs_made


def shrink_simulated(
    plan: Plan, sut: str, profile: Profile, guarantee: str, cause: str, budget_s: float
) -> tuple[SmallPlan | None, int]:
    """The same in the simulated world, where one run shows whether a plan breaks it."""
    system, began = load_system(sut), time.monotonic()
    seen = _breaks(plan, system, profile, guarantee, cause)
    if seen is None:
        return None, 1
    small = make_small(plan, system, guarantee, profile, seen.breach.cause, budget_s, runs_max=sys.maxsize)
    shown = _breaks(small, system, profile, guarantee, seen.breach.cause) or seen
    assert shown.plan is not None
    kind = (guarantee, plan.mode, plan.storage, shown.breach.cause)
    ended = time.monotonic() - began >= budget_s
    why = NO_TIME if ended else NONE_SMALLER if shown.plan == plan else ""
    return SmallPlan(plan=shown.plan, broken={kind: shown}, told=kind, failed=0, runs=0, stopped=why), 1


def _breaks(plan: Plan, system: System, profile: Profile, guarantee: str, cause: str) -> Broken | None:
    history, findings = findings_of(plan, system, guarantee)
    shown = (promised_breach(each, plan, profile, by) for by in (cause, "") for each in findings)
    breach = next((breach for breach in shown if breach is not None), None)
    return None if breach is None else Broken(0, plan, history, breach)


def undecided(
    plan: Plan,
    system: System,
    guarantee: str | None,
    history: History,
    findings: tuple[Finding, ...],
    deterministic: bool = True,
) -> str:
    """Why a run without a violation does not prove that the plan is fixed; "" when it does.

    deterministic: whether the system seemed deterministic when the plan was stored.
    """
    if not findings or not (
        any(finding.judged for finding in findings) or any(event.kind == "ok" for event in history.events)
    ):
        # A fixed system may leave nothing to judge when operations succeed: no error, no second rollback.
        return f"no operation succeeded, and there was nothing to judge for {guarantee or 'any guarantee'}"
    if not deterministic:
        return "the system was not deterministic when this failure was found, so one run proves nothing"
    again = execute(plan, system)[0] if guarantee is None else findings_of(plan, system, guarantee)[0]
    if again.events != history.events:
        return "the same plan gave two different histories, so the system is not deterministic"
    return ""
