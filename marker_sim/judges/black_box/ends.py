"""Judges of markers before data, and of what writes leave: G13 marker-before-data, G18 no-residue, G19
rollback-first.
"""

from __future__ import annotations

from typing import NamedTuple

from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import periods
from marker_sim.history.index.table_audit import Audit
from marker_sim.history.index.tables import Tables
from marker_sim.judges.black_box.files import TableInquiry, judge_of_tables
from marker_sim.judges.black_box.refusals import refused_for_good
from marker_sim.judges.findings import Inquiry, judge_of
from marker_sim.names import TEMP
from marker_sim.timeline import UNDOING, parse_data_file


class _Marked(NamedTuple):
    """A period, from event to event, in which a marker in an instant's directory named a data file."""

    since: int
    until: int
    instant: str


@judge_of("G13")
def marker_before_data(case: Inquiry) -> None:
    """G13, where every effect is known: when a data file of a table first comes into storage, a marker of its instant
    names it.

    A log file of timeline layout 1 does not say which instant wrote it. It is judged when a commit names it; otherwise
    it may hold a rollback's command block, which is no data. A marker that was deleted before is a breach only if the
    same driver deleted it and no task can outlive its driver. Not applicable where storage was read now and then.
    """
    view, tables = case.view, case.view.tables
    case.applicable = view.header.witness == "effects" and bool(tables.writes)
    if not case.applicable:
        return
    marked = _marked(view)
    written = {(audit.table, path) for audit in tables.audits for path in audit.claims}
    blocks = {(audit.table, path) for audit in tables.audits for path in audit.saying("appended")}
    later = {audit.table for audit in tables.audits if audit.layout > 1}
    for path, index in tables.first_puts().items():
        table, relative = path
        file = parse_data_file(relative)
        if file is None or path in blocks:
            continue
        if file.log and table not in later and path not in written:
            view.excuse("owner-unknown")
            continue
        wrong, event = _unmarked(view, marked.get(path, []), _owner(tables, table, relative), index)
        if event is None:
            view.excuse("tasks-outlive-driver")
            continue
        case.judged += 1
        if wrong:
            message = f"{table}: {relative!r} was put at event {index}, and {wrong}"
            asked = [write[:2] for write in tables.writes if write.table == table and write.invoke < index]
            case.breach(message, (index, event), also=asked[-1] if asked else ())


def _unmarked(view: HistoryIndex, marked: list[_Marked], instant: str, index: int) -> tuple[str, int | None]:
    """The mistake in the markers of a stored file, "" for none, with an event that shows it; None when
    it cannot be decided. instant: "" when it may be of any.
    """
    mine = [mark for mark in marked if instant in ("", mark.instant)]
    if any(mark.since < index < mark.until for mark in mine):
        return "", index
    gone = max((mark.until for mark in mine if mark.until < index), default=None)
    if gone is not None:
        if not view.tables.stayed_alone() or view.events[gone].process != view.events[index].process:
            return "", None
        return f"its marker was deleted at event {gone}, before it came", gone
    other = next((mark for mark in marked if mark.since < index), None)
    if other is not None:
        return f"no marker of {instant} had named it before, only one of {other.instant}", other.since
    since = min((mark.since for mark in mine), default=None)
    late = "none named it later" if since is None else f"the first was stored at event {since}"
    return f"no marker had named it before; {late}", index if since is None else since


def _owner(tables: Tables, table: str, path: str) -> str:
    """The instant of a data file, "" when it is unknown."""
    audit = tables.last(table)
    if audit is not None:
        return audit.owner(path)
    file = parse_data_file(path)
    return file.instant if file is not None and not file.log else ""


def _marked(view: HistoryIndex) -> dict[tuple[str, str], list[_Marked]]:
    """The periods in which markers named data files, by table and path."""
    marked: dict[tuple[str, str], list[_Marked]] = {}
    for directory, home in view.rest.homes.items():
        table, _, instant = directory.partition(TEMP)
        for name, span in home.spans.items():
            times = marked.setdefault((table, view.names_data(name)[1]), [])
            times += [_Marked(*period, instant) for period in periods(span)]
    return marked


def _no_residue(case: TableInquiry) -> None:
    """G18, at every audit: no marker file of an instant that is over is left when a commit that began after it is
    completed. Not decided where tasks may outlive their driver, because a late one may have created markers again.
    """
    over: set[tuple[str, str]] = set()
    alone = case.tables.stayed_alone()
    for audit in case.tables.audits:
        done = audit.completed.keys() | audit.rolled_back.keys()
        ended = {(audit.table, instant) for instant in done if audit.begun_after(instant)}
        if alone:
            over |= ended
        else:
            case.open += len(ended)
        for instant, files in audit.markers.items():
            later = audit.begun_after(instant)
            if later is None or (instant in audit.known and instant not in done):
                continue
            if instant not in audit.known and audit.hidden(*UNDOING):
                case.view.excuse("timeline-hidden")
            elif not alone:
                case.excuse("tasks-outlive-driver")
            else:
                over.add((audit.table, instant))
                message = (
                    f"{files[0].path!r} is left of its markers ({len(files)} files in all) although it is"
                    f" {_how(audit, instant)} and the commit {later.instant} that began after it is completed"
                )
                case.add(audit, instant, instant, message, files[0].index, later.event)
    case.judged += len(over)


def _how(audit: Audit, instant: str) -> str:
    """The way in which an instant ended."""
    entry = audit.ended(instant)
    if entry is None:
        return "not on the timeline"
    return "completed" if entry.instant == instant else "rolled back"


def _rollback_first(case: TableInquiry) -> None:
    """G19, at every audit after failed writes: no older write is on the timeline and not completed. And of every table:
    later writes complete.

    Pending table services do not count. With a single writer a failed write is over when the next one begins, whether
    its driver died or raised an error.
    """
    since = -1
    for audit in case.tables.audits:
        if not audit.recovered:
            continue
        until = audit.write.invoke if audit.write else audit.begin
        writes = (write for write in case.tables.writes if write.table == audit.table and since < write.invoke < until)
        case.judged += sum(write.outcome != "ok" for write in writes)
        since = until
        for instant, entry in audit.pending.items():
            later = audit.begun_after(instant)
            if later is not None:
                message = (
                    f"{entry.path} is neither completed nor rolled back, although the commit {later.instant} that"
                    " began after it is completed"
                )
                case.add(audit, instant, instant, message, entry.event, later.event)
    refused_for_good(case, in_rollback=False)


no_residue = judge_of_tables("G18", _no_residue)
rollback_first = judge_of_tables("G19", _rollback_first)
