"""Judge of interrupted rollbacks: G16 rollback-retryable.

Interrupted is a rollback in which a driver was killed, one that is not completed, and one whose record was torn. A
rollback of a compaction or clustering that runs again under its instant is not judged.
"""

from __future__ import annotations

from itertools import chain

from marker_sim.judges.black_box.files import TableInquiry, judge_of_tables, left
from marker_sim.judges.black_box.refusals import refused_for_good
from marker_sim.timeline import ROLLBACK, UNDOING


def _rollback_retryable(case: TableInquiry) -> None:
    """G16: an interrupted rollback is finished when the next write completes, it does not make all later writes fail,
    and a completed rollback can be read.
    """
    _cut_short(case)
    _unreadable(case)
    _abandoned(case)
    refused_for_good(case, in_rollback=True)


def _cut_short(case: TableInquiry) -> None:
    """Kills in a rollback: at the audit after the next completed write no instant that was rolled back since the audit
    before is pending or has files. The rollback's records may differ.
    """
    for fault in case.view.faults:
        phase = case.view.events[fault.begin].error or ""
        audit = case.tables.after(fault.begin, fault.path or "") if phase.startswith(ROLLBACK) else None
        if audit is None:
            continue
        before = case.tables.before(audit)
        old = before.rolled_back if before else {}
        targets = [t for t in sorted(audit.rolled_back.keys() | audit.rolling_back.keys()) if t not in old]
        case.judged += bool(targets)
        cut = "its rollback was interrupted" + (f" at {phase}" if phase != ROLLBACK else "")
        for instant in targets:
            entry = audit.pending.get(instant)
            if entry is not None:
                message = f"{cut}, and {entry.path} is left after the next write"
                case.add(audit, entry.path, instant, message, fault.begin, entry.event)
            rollback = audit.rolled_back.get(instant) or audit.rolling_back[instant][-1]
            for path, _ in left(case, audit, instant, rollback):
                message = f"{cut}, and {path!r} is left after the next write"
                case.add(audit, path, instant, message, fault.begin, audit.files[path])


def _unreadable(case: TableInquiry) -> None:
    """Completed rollbacks and restores that cannot be read."""
    seen = set()
    for audit in case.tables.audits:
        for entry in audit.entries:
            if not (entry.done and entry.error and entry.action in UNDOING):
                continue
            seen.add((audit.table, entry.path))
            named = (target for target, rollback in audit.rolled_back.items() if rollback.instant == entry.instant)
            targets = ", ".join(named) or "an instant that its plan does not say either"
            message = (
                f"the record {entry.path} of a completed {entry.action} of {targets} cannot be read: {entry.error}"
            )
            case.add(audit, entry.path, entry.instant, message, entry.event)
    case.judged += len(seen)


def _abandoned(case: TableInquiry) -> None:
    """Uncompleted rollbacks begun before a completed commit: each write begins by finishing those of its table."""
    seen = set()
    for audit in case.tables.audits:
        again = {e.instant for target in audit.waiting for e in audit.rolling_back.get(target, ())}
        for entry in chain.from_iterable(audit.unfinished.values()) if audit.recovered else ():
            later = audit.begun_after(entry.instant)
            if entry.action != ROLLBACK or later is None or entry.instant in again:
                continue
            seen.add((audit.table, entry.instant))
            message = f"{entry.path} is not completed, although the commit {later.instant} that began after it is"
            case.add(audit, entry.instant, entry.instant, message, entry.event, later.event)
    case.judged += len(seen)


rollback_retryable = judge_of_tables("G16", _rollback_retryable)
