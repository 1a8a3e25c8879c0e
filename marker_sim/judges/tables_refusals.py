"""Tables that take no write any more: what a fault left keeps every later writer from completing.

One writer writes a table, each time in a driver of its own once the last one failed. A refusal is a write of unknown
outcome of which Spark said why, in a driver in whose whole life no fault fell or lasted. After a write that completed,
`REFUSALS_MIN` of them and no write that completes show that the table cannot be written any more. A driver that said
nothing, because it died or did not answer in time, shows nothing; neither does one whose machine lacked room.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from marker_sim.judges.calls import FaultSpan, TableWrite
from marker_sim.judges.findings import Breach
from marker_sim.judges.tables import Tables
from marker_sim.judges.view import View

REFUSALS_MIN = 2
# What a caller says of a driver that said nothing (docs/history.md).
UNTOLD = frozenset({"the driver died", "the driver did not answer", "the run was over"})
# What the machine lacks is no fault of the table's.
NO_ROOM = ("OutOfMemoryError", "No space left on device", "Too many open files", "Cannot allocate memory")
_ROLLBACK = "rollback"
_SHOWN = 400


class Refusal(NamedTuple):
    """The writes that a table refused until the end of a run, and the last fault before them."""

    table: str
    fault: FaultSpan
    writes: tuple[TableWrite, ...]


def refused_for_good(view: View, tables: Tables, *, in_rollback: bool) -> tuple[int, list[Breach], int]:
    """How many tables take no write any more, the breaches, and of how many tables too little was tried.

    in_rollback: those that a fault in a rollback made so or whose last audit shows a rollback that is not completed;
    otherwise the others.
    """
    breaches: list[Breach] = []
    open_ = 0
    for table, fault, writes in _refusals(view, tables):
        last = tables.last(table)
        phase = view.events[fault.begin].error or fault.kind
        if in_rollback != (phase.startswith(_ROLLBACK) or bool(last and last.rolling_back)):
            continue
        if len(writes) < REFUSALS_MIN:
            open_ += view.excuse("too-few-refusals")
            continue
        said = view.events[writes[-1].done].error or ""
        message = (
            f"{table}: no write completes any more after {fault.kind} of {fault.process} ({phase}): {len(writes)} of"
            f" them failed in drivers that no fault touched, the last with {said:.{_SHOWN}}"
        )
        evidence = (fault.begin, *(index for write in writes for index in (write.invoke, write.done)))
        breaches.append(view.breach(message, evidence))
    return len(breaches), breaches, open_


def _refusals(view: View, tables: Tables) -> Iterator[Refusal]:
    for table in sorted({write.table for write in tables.writes}):
        mine = [write for write in tables.writes if write.table == table]
        done = max((number for number, write in enumerate(mine) if write.outcome == "ok"), default=None)
        if done is None:
            continue
        refused = [w for w in mine[done + 1 :] if w.outcome == "info" and _said(view, w) and _calm(view, tables, w)]
        drivers = {write.process for write in mine}
        faults = [f for f in view.faults if refused and f.begin < refused[0].invoke and _concerns(f, table, drivers)]
        if faults:
            yield Refusal(table, faults[-1], tuple(refused))


def _said(view: View, write: TableWrite) -> bool:
    error = view.events[write.done].error or ""
    if error in {"", *UNTOLD}:
        return not view.excuse("driver-said-nothing")
    return not any(lack in error for lack in NO_ROOM) or not view.excuse("machine-lacked-room")


def _calm(view: View, tables: Tables, write: TableWrite) -> bool:
    """Whether no fault fell or lasted from the first write of a driver to the end of this one."""
    low = min(other.invoke for other in tables.writes if other.process == write.process)
    hit = any(event.kind == "fault" for event in view.events[low : write.done])
    hit = hit or any(fault.begin < low <= fault.end for fault in view.faults)
    return not hit or not view.excuse("fault-in-driver")


def _concerns(fault: FaultSpan, table: str, drivers: set[str]) -> bool:
    return fault.process in drivers or (fault.path or "").startswith(f"{table}/")
