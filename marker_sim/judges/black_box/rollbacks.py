"""Judge of interrupted rollbacks: G16 rollback-retryable.

Interrupted is a rollback in which a driver was killed, one that is not completed, and one whose record was torn. A
rollback of a compaction or clustering that runs again under its instant is not judged.
"""

from __future__ import annotations

from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.tables import Tables
from marker_sim.judges.black_box.files import Count, add, breach, judge_of_tables, left
from marker_sim.judges.black_box.refusals import refused_for_good
from marker_sim.judges.findings import Breach
from marker_sim.timeline import UNDOING

_ROLLBACK = "rollback"
_Found = dict[tuple[str, str], Breach]


def _rollback_retryable(view: HistoryIndex, tables: Tables) -> Count:
    """G16: an interrupted rollback is finished when the next write completes, it does not make all later writes fail,
    and a completed rollback can be read.
    """
    found: _Found = {}
    judged, open_ = _cut_short(view, tables, found)
    judged += _unreadable(view, tables, found) + _abandoned(view, tables, found)
    stuck, refused, unsure = refused_for_good(view, tables, in_rollback=True)
    return judged + stuck, [*found.values(), *refused], open_ + unsure


def _cut_short(view: HistoryIndex, tables: Tables, found: _Found) -> tuple[int, int]:
    """The numbers of kills in a rollback judged, and of instants undecided: at the audit after the next completed write
    no instant that was rolled back since the audit before is pending or has files. The rollback's records may differ.
    """
    judged, open_ = 0, 0
    for fault in view.faults:
        phase = view.events[fault.begin].error or ""
        audit = tables.after(fault.begin, fault.path or "") if phase.startswith(_ROLLBACK) else None
        if audit is None:
            continue
        before = tables.before(audit)
        old = before.rolled_back if before else {}
        targets = [t for t in sorted(audit.rolled_back.keys() | audit.rolling_back.keys()) if t not in old]
        judged += bool(targets)
        cut = "its rollback was interrupted" + (f" at {phase}" if phase != _ROLLBACK else "")
        for instant in targets:
            if instant in audit.waiting:
                open_ += view.excuse("waits-its-turn")
                continue
            if instant in audit.pending:
                entry = audit.pending[instant]
                message = f"{cut}, and {entry.path} is left after the next write"
                add(found, audit, entry.path, breach(view, audit, instant, message, fault.begin, entry.event))
            entries = audit.rolled_back.get(instant) or audit.rolling_back[instant]
            for path in audit.owned.get(instant, ()) if instant not in audit.committed else ():
                if not left(view, audit, entries[-1], path):
                    continue
                if not tables.surely_before_rollback(audit, path, entries[-1]):
                    open_ += view.excuse("late-write")
                    continue
                message = f"{cut}, and {path!r} is left after the next write"
                add(found, audit, path, breach(view, audit, instant, message, fault.begin, audit.files[path]))
    return judged, open_


def _unreadable(view: HistoryIndex, tables: Tables, found: _Found) -> int:
    """The number of completed rollbacks and restores that cannot be read; the breach of each is added to `found`."""
    bad = [(audit, e) for audit in tables.audits for e in audit.entries if e.done and e.error and e.action in UNDOING]
    for audit, entry in bad:
        targets = ", ".join(entry.of("rolled-back")) or "an instant that its plan does not say either"
        message = f"the record {entry.path} of a completed {entry.action} of {targets} cannot be read: {entry.error}"
        add(found, audit, entry.path, breach(view, audit, entry.instant, message, entry.event))
    return len({(audit.table, entry.path) for audit, entry in bad})


def _abandoned(view: HistoryIndex, tables: Tables, found: _Found) -> int:
    """The number of uncompleted rollbacks begun before a completed commit; the breach of each is added to `found`.

    Each write begins by finishing the pending rollbacks of its table.
    """
    seen = set()
    for audit in tables.audits:
        again = {e.instant for target in audit.waiting for e in audit.rolling_back.get(target, ())}
        for entry in audit.begun if audit.recovered else ():
            later = audit.begun_after(entry.instant)
            if entry.action != _ROLLBACK or later is None or entry.instant in again:
                continue
            seen.add((audit.table, entry.instant))
            message = f"{entry.path} is not completed, although the commit {later.instant} that began after it is"
            add(found, audit, entry.instant, breach(view, audit, entry.instant, message, entry.event, later.event))
    return len(seen)


rollback_retryable = judge_of_tables("G16", _rollback_retryable)
