"""The one rule for what a system cannot be judged on, which every search obeys.

A foreign class may need what a storage has not, conditional puts for instance. A run in which it asked for that says
nothing: it is neither judged nor counted, and no search may blame the class for it.
"""

from __future__ import annotations

from marker_sim.history import UNSUPPORTED, History
from marker_sim.judges import judge
from marker_sim.judges.findings import Finding
from marker_sim.system import System

NOT_SERVED = "mode that the system does not serve"
LEFT_OUT = "run left out: the system needs what the storage does not offer"


def findings_in(history: History, system: System, guarantees: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """One finding for each guarantee asked for; none at all when the system cannot be judged on this storage."""
    return () if cannot_serve(system, history) else judge(history, guarantees)


def cannot_serve(system: System, history: History) -> bool:
    """Whether a foreign class asked for what this storage has not; the storage says so, whatever the class raises."""
    return system.layout == "names" and any(e.kind == "observe" and e.operation == UNSUPPORTED for e in history.events)
