"""One row a judged run, for tables of runs: what was run, how much happened, and every promise that it broke."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from marker_sim.campaign.coverage.process_phase import NO_FAULT
from marker_sim.history import History
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan

# The columns of a promise that a run broke, by one cause. under: the faults that were active, as in `verdict.json`.
BROKEN = ("guarantee", "cause", "under", "message")


class RunRow(NamedTuple):
    """A judged run.

    number, run: its number in the stream, and which run of that number it is; together they occur once.
    plans: "writes" or "operations".
    entries: the size of its plan.
    judged: how much was judged, over all guarantees.
    broken: a row of BROKEN for each breach.
    """

    number: int
    run: int
    seed: int
    mode: str
    storage: str
    plans: str
    entries: int
    steps: int
    events: int
    faults: int
    judged: int
    broken: tuple[tuple[str, ...], ...]


def run_row(
    number: int, run: int, plan: Plan, history: History, steps: int, findings: Iterable[Finding], profile: Profile
) -> RunRow:
    """The row of a run of a plan."""
    findings = tuple(findings)
    broken = [
        (finding.guarantee, breach.cause, breach.under, breach.message)
        for finding in findings
        for breach in profile.broken_by(finding, plan.mode, plan.storage)
    ]
    return RunRow(
        number=number,
        run=run,
        seed=plan.seed,
        mode=plan.mode,
        storage=plan.storage,
        plans="writes" if plan.writes else "operations",
        entries=plan.entries,
        steps=steps,
        events=len(history.events),
        faults=sum(event.kind == "fault" and event.value not in NO_FAULT for event in history.events),
        judged=sum(finding.judged for finding in findings if finding.applicable),
        broken=tuple(sorted(broken)),
    )
