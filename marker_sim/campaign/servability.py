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
    return bool(lacking(system, history))


def lacking(system: System, history: History) -> str:
    """The first operation that a third-party class called and this storage lacks, "" for none."""
    asked = (e for e in history.events if e.kind == "observe" and e.operation == UNSUPPORTED)
    event = next(asked, None) if system.layout == "names" else None
    return "" if event is None else event.error or "an operation"
