"""A stored plan again, with today's code and today's judges."""

from __future__ import annotations

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.findings import Finding
from marker_sim.plan import Plan
from marker_sim.search.campaign import execute, findings_of
from marker_sim.sut.python import load_system


def replay_plan(plan: Plan, sut: str, guarantee: str | None) -> tuple[History, tuple[Finding, ...]]:
    """Run a plan against a system and judge it, by one guarantee or by all."""
    system = load_system(sut)
    if guarantee is not None:
        return findings_of(plan, system, guarantee)
    history, _ = execute(plan, system)
    return history, judge(history)
