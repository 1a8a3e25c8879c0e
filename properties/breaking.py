"""Whether a plan breaks a guarantee of a system, which shrinkers are given, and a broken one as an exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from marker_sim.history import History
from marker_sim.judges import Finding
from marker_sim.plan import Plan
from marker_sim.system import System
from properties.faces.campaign import findings_of, promised_breach
from properties.faces.judges import Profile, violation


def fails_with(guarantee: str, system: System, profile: Profile, cause: str = "") -> Callable[[Plan], bool]:
    """The same guarantee breaks by that cause, "" for any, where the profile promises it."""

    def fails(plan: Plan) -> bool:
        _, findings = findings_of(plan, system, guarantee)
        return any(promised_breach(finding, plan, profile, cause) is not None for finding in findings)

    return fails


def raise_first(history: History, findings: Iterable[Finding]) -> None:
    """Raise the violation of the first breach, if there is one. Findings come in the order of the table."""
    for finding in findings:
        for breach in finding.breaches:
            raise violation(history, finding.guarantee, breach)
