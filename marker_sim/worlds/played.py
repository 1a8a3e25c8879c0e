"""A run in real time that is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marker_sim.history import History
from marker_sim.judges.findings import Finding
from marker_sim.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRun:
    """A finished run.

    counts: what happened how often.
    interrupted: by Ctrl-C.
    cut: by its deadline, so that what it did not break it may well have broken.
    trouble: of the kit, or "".
    findings: of the judges, None where they were not asked yet; () for a run that does not count.
    """

    history: History
    plan: Plan
    counts: Mapping[str, int]
    interrupted: bool = False
    cut: bool = False
    trouble: str = ""
    findings: tuple[Finding, ...] | None = None
