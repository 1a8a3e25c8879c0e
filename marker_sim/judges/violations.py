"""One exception class for each guarantee, so that shrinking and `pytest.raises` cannot slide from one bug to another.

A class is called like the slug of its guarantee: `ExactSet` is raised for exact-set.
"""

from __future__ import annotations

from typing import ClassVar

from marker_sim.errors import Violation
from marker_sim.history import Event, History
from marker_sim.judges.findings import Breach
from marker_sim.judges.guarantees import BY_ID, GUARANTEES, Guarantee
from marker_sim.names import legible

_VALUE_SHOWN_MAX = 160


class GuaranteeViolation(Violation):
    """A guarantee was broken; the text is its sentence, the message of the breach, and the events that prove it."""

    guarantee: ClassVar[str]

    def __init__(self, text: str, breach: Breach) -> None:
        super().__init__(text)
        self.breach = breach

    def __reduce__(self) -> tuple[type[GuaranteeViolation], tuple[str, Breach]]:
        return (type(self), (str(self), self.breach))


def _class_of(guarantee: Guarantee) -> type[GuaranteeViolation]:
    name = guarantee.slug.title().replace("-", "")
    content = {"guarantee": guarantee.id, "__doc__": f"{guarantee.id}.", "__module__": __name__}
    return type(name, (GuaranteeViolation,), content)


VIOLATIONS: dict[str, type[GuaranteeViolation]] = {each.id: _class_of(each) for each in GUARANTEES}


def __getattr__(name: str) -> type[GuaranteeViolation]:
    """The classes by their names, for imports and unpickling."""
    for known in VIOLATIONS.values():
        if known.__name__ == name:
            return known
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def violation(history: History, guarantee: str, breach: Breach) -> GuaranteeViolation:
    """The exception for one breach: the guarantee's sentence, the message, the fault class and the evidence."""
    known = BY_ID[guarantee]
    lines = [f"{known.id} {known.slug}: {known.sentence}", breach.message, f"under: {breach.under}", "evidence:"]
    lines += [f"  {format_event(history.events[index])}" for index in breach.evidence if index < len(history.events)]
    return VIOLATIONS[guarantee]("\n".join(lines), breach)


def format_event(event: Event) -> str:
    """One event on one line: "[12] 104.0 ms  client-1 invoke create t/001 a/x.marker.CREATE"."""
    words = [f"[{event.index}] {event.time_ns / 1e6:.1f} ms  {event.process} {event.kind} {event.operation}"]
    if event.table is not None:
        words.append(f"{event.table}/{event.instant}")
    if event.path is not None:
        words.append(legible(event.path))
    if event.value is not None:
        shown = legible(repr(event.value))
        words.append(shown if len(shown) <= _VALUE_SHOWN_MAX else f"{shown[:_VALUE_SHOWN_MAX]}... ({len(shown)} long)")
    if event.error:
        words.append(f"({event.error})")
    if event.caused_by is not None:
        words.append(f"<- [{event.caused_by}]")
    return " ".join(words)
