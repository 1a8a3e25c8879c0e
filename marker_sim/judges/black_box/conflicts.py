"""Judges of conflicts between writers of one table: G27 conflict-detected, G28 conflict-real.

Which file groups a writer wants is known from its markers and files. A writer that early detection refused, also one
that failed because the markers of another could not be read, has no marker of the group for which it was refused. Then
what it may want follows from its rows: a key stays in its group, and each completed write of the key has a file of it.
So it wants no group that some of them has not; of a key that no completed write has nothing is known. Source:
HoodieIndex and UpsertPartitioner of Hudi 1.2.0.
"""

from __future__ import annotations

from itertools import product

from marker_sim.history.index.presence import NEVER
from marker_sim.judges.black_box.lives import (
    EARLY,
    UNREAD,
    Group,
    InstantLife,
    SharedCase,
    SharedTable,
    judge_of_writers,
)

# The value of the header's option `early` for the strategy that makes its check and its marker one transaction.
_TRANSACTION = "transaction"


def _conflict_detected(case: SharedCase, table: SharedTable) -> None:
    """G27, with early detection: of two live instants that both have a marker of one file group never both are
    completed; and with the strategy of transactions never two have one, unless one of them is refused early.

    The other strategies do not promise the second, because they may look before both markers are there. That of
    transactions does, as only one writer at a time looks and makes its marker: RFC-56.
    """
    early = case.view.header.options.get("early", "")
    if not early:
        return
    for one, other in table.pairs():
        held = _held(one, other)
        if held is None:
            continue
        group, at = held
        who = f"{one.instant} of {one.process} and {other.instant} of {other.process}"
        if NEVER not in (one.completed, other.completed):
            message = f"{who} both had a marker of {group} at event {at}, and both are completed"
            case.breach(table, message, at, one.completed, other.completed)
        elif table.refused(one, EARLY) or table.refused(other, EARLY):
            case.judged += 1
        elif table.silent(one.instant, at, at) or table.silent(other.instant, at, at):
            case.excuse("holder-expired")
        elif early != _TRANSACTION:
            case.excuse("strategy-may-miss")
        else:
            message = f"{who} both had a marker of {group} at event {at}, and neither was refused for it"
            case.breach(table, message, max(one.begun, other.begun), at)


def _held(one: InstantLife, other: InstantLife) -> tuple[Group, int] | None:
    """The first file group of which two live instants had a marker at the same time, and from when on."""
    for group in sorted(one.marked.keys() & other.marked.keys()):
        for (low, high), (since, until) in product(one.marked[group], other.marked[group]):
            at = max(low, since)
            if at < min(high, until, one.ended, other.ended):
                return group, at
    return None


def _conflict_real(case: SharedCase, table: SharedTable) -> None:
    """G28, of every write that was refused for a conflict: another instant that was not over had a file group that it
    wants, and its heartbeat lived or it was completed; and not all writers that were in conflict were refused.
    """
    wants = {life.instant: _wanted(table, life) for life in table.lives.values()}
    for life in table.lives.values():
        if life.write is None or not table.refused(life):
            continue
        begun, done, wanted = life.begun, life.write.done, wants[life.instant]
        others = [other for other in table.lives.values() if other.begun < done and life.overlaps(other)]
        rivals = [other for other in others if wanted is None or other.groups & wanted]
        what = f"{life.instant} of {life.process} was refused at event {done}"
        if table.refused(life, UNREAD) and table.struck(life.write):
            case.excuse("fault-in-writer")
        elif table.services:
            case.excuse("service-at-work")
        elif not any(rival.groups for rival in rivals):
            if table.chased(life):
                case.excuse("rolled-back")
                continue
            message = f"{what}, and no instant that was not over when it began has a file group that it wants"
            case.breach(table, message, begun, done)
        elif wanted is None:
            case.excuse("group-unknown")
        elif any(rival.completed < done or not table.silent(rival.instant, done, done) for rival in rivals):
            _survived(case, table, life, wants)
        elif all(table.silent(rival.instant, begun, done) for rival in rivals):
            message = f"{what} because of {rivals[0].instant}, whose heartbeat had ended before it began"
            case.breach(table, message, begun, done)
        else:
            case.excuse("expired-meanwhile")


def _survived(case: SharedCase, table: SharedTable, life: InstantLife, wants: dict[str, set[Group] | None]) -> None:
    """Whether one of the writers in conflict was not refused: of all that a chain of common file groups connects."""
    found = [life]
    for one in found:  # It grows meanwhile.
        for other in table.lives.values():
            if other in found or not one.overlaps(other):
                continue
            mine, theirs = wants[one.instant], wants[other.instant]
            if mine is None or theirs is None:
                case.excuse("group-unknown")
                return
            if mine & theirs:
                found.append(other)
    instants = sorted(each.instant for each in found)
    if not all(map(table.refused, found)):
        case.judged += 1
    elif any(map(table.chased, found)):
        case.excuse("rolled-back")
    elif life.instant == instants[0]:
        message = f"all writers that were in conflict were refused: {', '.join(instants)}"
        case.breach(table, message, life.begun, *(each.write.done for each in found if each.write))


def _wanted(table: SharedTable, life: InstantLife) -> set[Group] | None:
    """The file groups that an instant may want; None when they are not known."""
    wanted = life.groups
    if life.write is None or not table.refused(life, EARLY, UNREAD):
        return wanted
    earlier = [o for o in table.lives.values() if o.completed < life.begun and not table.undoing(o.instant)]
    for row in life.write.rows:
        key = row.rpartition("=")[0]
        wrote = [o for o in earlier if o.write and any(each.rpartition("=")[0] == key for each in o.write.rows)]
        if not wrote or any(other.write and f"{key}=" in other.write.rows for other in wrote):
            return None
        wanted |= set.intersection(*({*other.files.values()} for other in wrote))
    return wanted


conflict_detected = judge_of_writers("G27", _conflict_detected)
conflict_real = judge_of_writers("G28", _conflict_real)
