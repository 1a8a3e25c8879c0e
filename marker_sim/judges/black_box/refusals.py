"""Writes of a black-box write path that do not complete: after a fault for good (G16, G19), or without one (G25).

A table has one writer, in a new driver after each failure. A refusal is a write of unknown outcome for which Spark
gave a reason, in a driver without a fault in its whole life. After a write that completed, `REFUSALS_MIN` of them and
no completed write show that the table cannot be written any more. A driver that gave no reason, because it died or did
not answer in time, does not count; neither does one whose machine lacked memory or space.

Without a fault since the last write that completed one such write is enough, or `REFUSALS_MIN` that were not answered.

Table services are judged apart: one that is refused for good is so too where writes complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from marker_sim.history import CallError
from marker_sim.history.index.calls import FaultSpan, TableWrite
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.black_box.files import TableInquiry
from marker_sim.judges.black_box.lives import AT_COMMIT, EARLY, GOES_ON, shared
from marker_sim.judges.findings import Inquiry, breach_of, judge_of
from marker_sim.timeline import UNDOING

REFUSALS_MIN = 2
# Errors that the kit records for a driver without an error of its own (docs/history.md).
UNTOLD = frozenset({CallError.DRIVER_DIED, CallError.DRIVER_SILENT, CallError.RUN_OVER})
# Errors of the machine, not of the table.
NO_ROOM = ("OutOfMemoryError", "No space left on device", "Too many open files", "Cannot allocate memory")
_SHOWN = 400


class RefusedWrite(NamedTuple):
    """The writes that a table refused until the end of a run, with the last fault before them."""

    table: str
    fault: FaultSpan
    writes: tuple[TableWrite, ...]


def refused_for_good(case: TableInquiry, *, in_rollback: bool) -> None:
    """Tables that refuse every write; those with too few writes are undecided.

    in_rollback: only tables with a fault in a rollback, or with an incomplete rollback in the last audit, and restores;
    otherwise only the others.
    """
    view = case.view
    for table, fault, writes in _refusals(view):
        last = case.tables.last(table)
        phase = writes[-1].service or view.events[fault.begin].error or fault.kind
        if in_rollback != (phase.startswith(tuple(UNDOING)) or bool(last and last.rolling_back)):
            continue
        if len(writes) < REFUSALS_MIN:
            case.excuse("too-few-refusals")
            continue
        said = view.error_of(writes[-1])
        message = (
            f"{table}: no {writes[-1].service or 'write'} completes any more after {fault.kind} of {fault.process}"
            f" ({phase}): {len(writes)} of"
            f" them failed in drivers that no fault touched, the last with {said:.{_SHOWN}}"
        )
        evidence = (fault.begin, *(index for write in writes for index in (write.invoke, write.done)))
        case.breaches[table, writes[-1].service] = breach_of(view, message, evidence)
        case.judged += 1


def _refusals(view: HistoryIndex) -> Iterator[RefusedWrite]:
    writes = view.tables.writes
    for table, service in sorted({(write.table, write.service) for write in writes}):
        mine = [write for write in writes if (write.table, write.service) == (table, service)]
        done = max((number for number, write in enumerate(mine) if write.outcome == "ok"), default=-1)
        if done < 0 and not service:
            continue
        refused = [w for w in mine[done + 1 :] if w.outcome == "info" and _stands(view, w) and _calm(view, w)]
        drivers = {write.process for write in writes if write.table == table}
        faults = [f for f in view.faults if refused and f.begin < refused[0].invoke and _concerns(f, table, drivers)]
        if faults:
            yield RefusedWrite(table, faults[-1], tuple(refused))


def _stands(view: HistoryIndex, write: TableWrite) -> bool:
    error = view.error_of(write)
    if error in {"", *UNTOLD}:
        return not view.excuse("driver-said-nothing")
    if AT_COMMIT in error or EARLY in error:
        return not view.excuse("refused-for-a-conflict")
    return not any(lack in error for lack in NO_ROOM) or not view.excuse("machine-lacked-room")


def _calm(view: HistoryIndex, write: TableWrite) -> bool:
    """Whether no fault was active from a driver's first write to the end of this one."""
    low = min(other.invoke for other in view.tables.writes if other.process == write.process)
    hit = any(event.kind == "fault" for event in view.events[low : write.done])
    hit = hit or any(fault.begin < low <= fault.end for fault in view.faults)
    return not hit or not view.excuse("fault-in-driver")


def _concerns(fault: FaultSpan, table: str, drivers: set[str]) -> bool:
    return fault.process in drivers or (fault.path or "").startswith(f"{table}/")


@judge_of("G25")
def writes_go_on(case: Inquiry) -> None:
    """G25 of a black box: a write completes when there was no fault since the last completed write of its table, and so
    does a table service.

    Until one completed, the environment may be the reason; after a fault G16 and G19 judge. They do not judge several
    writers, of which a pause is over for the writes that begin when those beside it have ended.
    """
    view, unanswered = case.view, 0
    case.applicable = bool(view.tables.writes)
    first: dict[str, int] = {}
    completed: dict[tuple[str, str], int] = {}
    for write in view.tables.writes:
        own = write.table, write.service
        since = completed.get(own, first.get(write.table))  # A service may have been done by no one yet.
        if write.outcome == "ok":
            completed[own] = write.done
            first.setdefault(write.table, write.done)
        elif _explained(view, write, since) or since is None:
            continue
        else:
            said = view.error_of(write)
            unanswered += said == CallError.DRIVER_SILENT
            if said == CallError.DRIVER_SILENT and unanswered < REFUSALS_MIN:
                view.excuse("driver-said-nothing")
                continue
            message = (
                f"{write.table}: a {write.service or 'write'} of {write.process} failed without a fault:"
                f" {said:.{_SHOWN}}"
            )
            case.breach(message, (since, write.invoke, write.done))
        case.judged += 1


def _explained(view: HistoryIndex, write: TableWrite, completed: int | None) -> bool:
    """Whether the failure of a write has an allowed reason. completed: the `ok` before which faults are over."""
    if write.outcome == "open":
        return view.excuse("run-ended")
    if completed is None:
        return view.excuse("none-completed-yet")
    mine = [other for other in view.tables.writes if other.table == write.table]
    drivers = {other.process for other in mine}
    faults = [f for f in view.faults if completed < f.begin < write.done and _concerns(f, write.table, drivers)]
    if shared(view) and all(fault.kind in GOES_ON for fault in faults):  # Over, for a write that began after the race.
        since = min(other.invoke for other in mine if other.done >= write.invoke)
        faults = [fault for fault in faults if fault.begin > since]
    if faults:
        return view.excuse("after-a-fault")
    if not _calm(view, write):
        return True
    return view.error_of(write) != CallError.DRIVER_SILENT and not _stands(view, write)
