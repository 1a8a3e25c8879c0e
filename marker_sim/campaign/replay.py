"""Runs a stored plan again, with today's code and today's judges."""

from __future__ import annotations

from marker_sim.campaign.runs import execute, findings_of
from marker_sim.campaign.servability import findings_in
from marker_sim.history import History
from marker_sim.judges.findings import Finding
from marker_sim.loading import load_system
from marker_sim.plan import Plan
from marker_sim.system import System


def replay_plan(plan: Plan, sut: str, guarantee: str | None) -> tuple[History, tuple[Finding, ...]]:
    """Run a plan against a system and judge it, by one guarantee or by all."""
    system = load_system(sut)
    if guarantee is not None:
        return findings_of(plan, system, guarantee)
    history, _ = execute(plan, system)
    return history, findings_in(history, system)


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
        # When operations succeed, a fixed system may leave nothing to judge: no error, no second rollback.
        return f"no operation succeeded, and there was nothing to judge for {guarantee or 'any guarantee'}"
    if not deterministic:
        return "the system was not deterministic when this failure was found, so one run proves nothing"
    again = execute(plan, system)[0] if guarantee is None else findings_of(plan, system, guarantee)[0]
    if again.events != history.events:
        return "the same plan gave two different histories, so the system is not deterministic"
    return ""
