"""Runs a stored plan again, with today's code and today's judges."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from marker_sim.campaign.played_shrinking import broken_in
from marker_sim.campaign.runs import execute, findings_of
from marker_sim.campaign.servability import findings_in
from marker_sim.history import History
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.loading import load_system
from marker_sim.plan import Plan
from marker_sim.system import System
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, ServerOptions

LONG_S = 600.0


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
    target = parse_target(sut)
    with TemporaryDirectory(prefix="marker-sim-") as scratch:
        request = CampaignRequest(
            target=target, modes=(plan.mode,), storages=(plan.storage,), seed=plan.seed, profile=profile,
            budget_s=LONG_S, server=server, report=Path(scratch),
        )  # fmt: skip
        target.prepare(request, lambda line: None)
        seen: list[tuple[History, str, Breach]] = []
        with target.real_runs(request, lambda line: None) as runs:
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
