"""One exception class for each guarantee, so that shrinking and `pytest.raises` cannot slide from one bug to another.

Violation
 ├── FlushedBeforeAck   G1      ├── ExistsIsDurable      G2      ├── AckedMarkerSurvives  G3
 ├── ExactSet           G4      ├── OneCreator           G5      ├── EveryRequestAnswered G6
 ├── Isolation          G7      ├── BoundedFiles         G8      ├── TypeRecorded         G9
 ├── DeleteComplete     G10     ├── ReadableWhileWritten G11     ├── HostileInputRefused  G12
 ├── MarkerBeforeData   G13     ├── ReconcileExact       G14     ├── RollbackComplete     G15
 ├── RollbackRetryable  G16     ├── MarkersLast          G17     ├── NoResidue            G18
 ├── RollbackFirst      G19     ├── NoLateWrite          G20     ├── ModesAgree           G21
 ├── HdfsFallsBack      G22     ├── RewriteAtomic        G23
 └── RowsSurvive        G24      └── WritesGoOn           G25
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from marker_sim.errors import Violation
from marker_sim.history import Event, History
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.guarantees import BY_ID

_VALUE_SHOWN_MAX = 160


class GuaranteeViolation(Violation):
    """A guarantee was broken; the text is its sentence, what happened, and the events that prove it."""

    guarantee: ClassVar[str]

    def __init__(self, text: str, breach: Breach) -> None:
        super().__init__(text)
        self.breach = breach

    def __reduce__(self) -> tuple[type[GuaranteeViolation], tuple[str, Breach]]:
        return (type(self), (str(self), self.breach))


class FlushedBeforeAck(GuaranteeViolation):
    """G1."""

    guarantee = "G1"


class ExistsIsDurable(GuaranteeViolation):
    """G2."""

    guarantee = "G2"


class AckedMarkerSurvives(GuaranteeViolation):
    """G3."""

    guarantee = "G3"


class ExactSet(GuaranteeViolation):
    """G4."""

    guarantee = "G4"


class OneCreator(GuaranteeViolation):
    """G5."""

    guarantee = "G5"


class EveryRequestAnswered(GuaranteeViolation):
    """G6."""

    guarantee = "G6"


class Isolation(GuaranteeViolation):
    """G7."""

    guarantee = "G7"


class BoundedFiles(GuaranteeViolation):
    """G8."""

    guarantee = "G8"


class TypeRecorded(GuaranteeViolation):
    """G9."""

    guarantee = "G9"


class DeleteComplete(GuaranteeViolation):
    """G10."""

    guarantee = "G10"


class ReadableWhileWritten(GuaranteeViolation):
    """G11."""

    guarantee = "G11"


class HostileInputRefused(GuaranteeViolation):
    """G12."""

    guarantee = "G12"


class MarkerBeforeData(GuaranteeViolation):
    """G13."""

    guarantee = "G13"


class ReconcileExact(GuaranteeViolation):
    """G14."""

    guarantee = "G14"


class RollbackComplete(GuaranteeViolation):
    """G15."""

    guarantee = "G15"


class RollbackRetryable(GuaranteeViolation):
    """G16."""

    guarantee = "G16"


class MarkersLast(GuaranteeViolation):
    """G17."""

    guarantee = "G17"


class NoResidue(GuaranteeViolation):
    """G18."""

    guarantee = "G18"


class RollbackFirst(GuaranteeViolation):
    """G19."""

    guarantee = "G19"


class NoLateWrite(GuaranteeViolation):
    """G20."""

    guarantee = "G20"


class ModesAgree(GuaranteeViolation):
    """G21, over two histories; evidence are events of the second."""

    guarantee = "G21"


class HdfsFallsBack(GuaranteeViolation):
    """G22."""

    guarantee = "G22"


class RewriteAtomic(GuaranteeViolation):
    """G23."""

    guarantee = "G23"


class RowsSurvive(GuaranteeViolation):
    """G24."""

    guarantee = "G24"


class WritesGoOn(GuaranteeViolation):
    """G25."""

    guarantee = "G25"


VIOLATIONS: dict[str, type[GuaranteeViolation]] = {cls.guarantee: cls for cls in GuaranteeViolation.__subclasses__()}


def raise_first(history: History, findings: Iterable[Finding]) -> None:
    """Raise the violation of the first breach, if there is one. Findings come in the order of the table."""
    for finding in findings:
        for breach in finding.breaches:
            raise violation(history, finding.guarantee, breach)


def violation(history: History, guarantee: str, breach: Breach) -> GuaranteeViolation:
    """The exception for one breach, with everything a reader needs to believe it."""
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
        words.append(event.path)
    if event.value is not None:
        shown = repr(event.value)
        words.append(shown if len(shown) <= _VALUE_SHOWN_MAX else f"{shown[:_VALUE_SHOWN_MAX]}... ({len(shown)} long)")
    if event.error:
        words.append(f"({event.error})")
    if event.caused_by is not None:
        words.append(f"<- [{event.caused_by}]")
    return " ".join(words)
