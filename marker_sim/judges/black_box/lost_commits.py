"""Judges of what writers of one table do to each other's instants: G26 no-lost-commit, G29 one-rollback."""

from __future__ import annotations

from itertools import combinations

from marker_sim.history.index.presence import NEVER
from marker_sim.judges.black_box.lives import (
    Group,
    InstantLife,
    RollbackLife,
    SharedCase,
    SharedTable,
    judge_of_writers,
)
from marker_sim.timeline import HEARTBEATS

# In the error of a writer that could not roll back. Source: row 7 of the facts about several writers, Hudi 1.2.0.
_ROLLER_FAILED = ("Could not delete instant", "HoodieRollbackException", HEARTBEATS)


def _no_lost_commit(case: SharedCase, table: SharedTable) -> None:
    """G26: nothing of a completed instant is deleted by another writer, and of two that overlap and wrote one file
    group at most one is completed.

    A file counts when the completed entry names it, or cannot be read; also one that was deleted before the instant
    was completed. Two that overlap in time need not overlap in what they read: only when the later one was inflight
    before the other was completed can it not have seen it. But of two base files readers take that of the newer
    instant, whatever it was made of, so the one that is completed later must not be the older.
    """
    if table.unowned:
        case.excuse("owner-unknown")
    for life in table.lives.values():
        if life.completed != NEVER:
            _kept(case, table, life)
    for first, second in table.pairs():
        common = sorted({*first.files.values()} & {*second.files.values()})
        if not common or NEVER in (first.completed, second.completed):
            continue
        hidden = sorted(_bases(first) & _bases(second)) if second.instant < first.instant else []
        if second.inflight > first.completed and not hidden:
            case.excuse("may-have-read-it")
            continue
        message = (
            f"{first.instant} of {first.process} and {second.instant} of {second.process} wrote the file group"
            f" {(hidden or common)[0]} at the same time, and both are completed, at event {first.completed} and event"
            f" {second.completed}{', of which readers see the first' * bool(hidden)}"
        )
        both = table.both_locked.get(frozenset({first.process, second.process}), NEVER)
        if both < second.completed:
            message += f"; both had the lock of the table at event {both}"
        case.breach(table, message, second.inflight, both, first.completed, second.completed)


def _bases(life: InstantLife) -> set[Group]:
    """The groups of an instant's base files."""
    return {group for path, group in life.files.items() if path.endswith(".parquet")}


def _kept(case: SharedCase, table: SharedTable, life: InstantLife) -> None:
    """Whether others left alone what a completed instant consists of; one breach for each instant."""
    for path, index in sorted(life.gone.items(), key=lambda each: each[1]):
        group, process = life.files.get(path), case.view.events[index].process
        archived, cleaned = (any(life.completed < at < index for at in put) for put in (table.archived, table.cleaned))
        if group is not None and life.wrote is not None and path not in life.wrote:
            continue  # The commit does without it.
        undone = [rollback for rollback in table.undoing(life.instant) if rollback.acts[0] < index]
        if not undone and group is None and archived:
            case.excuse("archive-took-it")
        elif not undone and group is not None and cleaned and _replaced(table, life, group, index):
            case.excuse("clean-took-it")
        else:
            write = life.write
            told = f", and its writer was told so at event {write.done}" if write and write.outcome == "ok" else ""
            why = f" in the rollback {undone[0].instant}" if undone else ""
            message = (
                f"{process} deleted {path!r} at event {index}{why}; {life.instant} of {life.process} was completed at"
                f" event {life.completed}{told}"
            )
            case.breach(table, message, index, life.completed, *(rollback.acts[0] for rollback in undone))
            return
    case.judged += 1


def _replaced(table: SharedTable, life: InstantLife, group: Group, index: int) -> bool:
    """Whether a commit that was completed after an instant, and before an event, has a newer file of a group; one of a
    service, or one that replaces groups, may have replaced any.
    """
    later = (other for other in table.lives.values() if life.completed < other.completed < index)
    return table.services or any(group in other.files.values() for other in later)


def _one_rollback(case: SharedCase, table: SharedTable) -> None:
    """G29: the rollback of another's instant begins only when its heartbeat has ended, never after it was completed,
    and goes on by one plan; a writer that rolls back does not fail at what another one did.
    """
    for rollback in table.rollbacks.values():
        life = table.lives.get(rollback.target)
        if life is None:
            case.excuse("plan-unknown" if not rollback.target else "began-before-the-run")
            continue
        late = next((index for index in rollback.acts if index > life.completed), None)
        begun = rollback.acts[0]
        what = f"the rollback {rollback.instant} of {life.instant} by {rollback.process}"
        if late is not None:
            message = f"{what} goes on at event {late}, and {life.instant} was completed at event {life.completed}"
            case.breach(table, message, life.completed, late)
        elif rollback.process == life.process or begun > life.ended:
            case.judged += 1
        elif life.instant not in table.beats:
            case.excuse("no-heartbeat")
        elif table.silent(life.instant, begun, begun):
            case.judged += 1
        else:
            message = f"{what} began at event {begun}, while the heartbeat of {life.process} was alive"
            case.breach(table, message, life.begun, begun)
    for one, other in combinations(table.rollbacks.values(), 2):
        if one.target and one.target == other.target:
            _twice(case, table, one, other)
    _failed(case, table)


def _twice(case: SharedCase, table: SharedTable, one: RollbackLife, other: RollbackLife) -> None:
    """Two rollbacks of one instant, of which the first began first. An instant whose writer, or whose service, went on
    after the first one is rolled back again.
    """
    again = any(one.completed < at < other.acts[0] for at in table.stood.get(one.target, ()))
    if NEVER not in (one.completed, other.completed) and not again:
        how = "are both completed"
    elif other.acts[0] > one.completed or other.plan == one.plan:
        case.judged += 1
        return
    elif one.acts[-1] < other.acts[0]:
        case.excuse("first-plan-abandoned")
        return
    else:
        how = "are under way at the same time with different plans"
    which = f"{one.instant} of {one.process} and {other.instant} of {other.process}"
    message = f"two rollbacks of {one.target}, {which}, {how}"
    case.breach(table, message, one.acts[0], other.acts[0], one.acts[-1], other.acts[-1])


def _failed(case: SharedCase, table: SharedTable) -> None:
    """Writes that failed in a rollback."""
    for write in case.view.table_writes:
        said = case.view.error_of(write)
        for life in table.lives.values():
            if life.write is write:  # Its own heartbeat, which who rolled it back deleted, is no rollback of its own.
                said = said.replace(f"{HEARTBEATS}{life.instant}", "")
        if write.table != table.name or write.outcome != "info" or not any(error in said for error in _ROLLER_FAILED):
            continue
        if table.struck(write):
            case.excuse("fault-in-writer")
        else:
            message = f"{write.process} failed in a rollback, which it should have finished: {said:.400}"
            case.breach(table, message, write.invoke, write.done)


no_lost_commit = judge_of_writers("G26", _no_lost_commit)
one_rollback = judge_of_writers("G29", _one_rollback)
