"""When a system cannot be judged; every search follows this rule.

A third-party class may need an operation that the storage does not offer, for example conditional puts. A run in which
it called one is neither judged nor counted.
"""

from __future__ import annotations

from marker_sim.history import UNSUPPORTED, History
from marker_sim.judges import judge
from marker_sim.judges.findings import Finding
from marker_sim.system import System

NOT_SERVED = "mode that the system does not serve"
LEFT_OUT = "run left out: the system needs what the storage does not offer"


def findings_in(history: History, system: System, guarantees: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """One finding per requested guarantee; none when the system cannot be judged on this storage."""
    return () if cannot_serve(system, history) else judge(history, guarantees)


def cannot_serve(system: System, history: History) -> bool:
    """Whether a third-party class called an operation that this storage lacks, whatever error it then raised."""
    return system.layout == "names" and any(e.kind == "observe" and e.operation == UNSUPPORTED for e in history.events)
