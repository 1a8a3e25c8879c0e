"""Judges of the recovery from a failed write: G15 rollback-complete, G16 rollback-retryable, G19 rollback-first."""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.history.index.calls import WriteStep
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, present
from marker_sim.history.index.write_path import Completion, Key, ObservedWrite, WritePathIndex
from marker_sim.judges.findings import OUTCOMES, Inquiry
from marker_sim.judges.write_path.steps import ended_badly, judge_of_writes
from marker_sim.names import TEMP
from marker_sim.timeline import State


@judge_of_writes("G15")
def rollback_complete(case: Inquiry) -> None:
    """G15, when a rollback is completed on the timeline, or ended ok without that: no data file of the instant that was
    stored before the markers were listed is left.

    No rollback or sweep removes or changes committed files, and no committed instant is rolled back. A failed listing
    is no excuse.
    """
    view, path = case.view, case.view.writes
    _committed_and_rolled_back(case)
    for moment, step, key in _completions(path):
        case.judged += 1
        _files_left(case, key, moment, step)
    for done in path.commits:
        earlier = next((r for r in path.rollbacks if r.key == done.key and r.at < done.at), None)
        if earlier is None:
            continue
        if view.ended(done.process) >= earlier.at:
            view.excuse("driver-alive")
        else:
            message = f"its commit completes at event {done.at}, after it was rolled back"
            case.about(done.key, message, earlier.at, done.at, also=(path.answer(done),))
    for harm in path.harms:
        acting = path.acting(harm.process, harm.at)
        if acting is not None and acting.operation in ("rollback", "sweep"):
            what = f"the {acting.operation} of {acting.instant} removed or changed"
            message = f"{what} the committed file {harm.path!r} at event {harm.at}"
            case.about(harm.key, message, acting.invoke, harm.at)


def _committed_and_rolled_back(case: Inquiry) -> None:
    path = case.view.writes
    moments = [(step.invoke, (step.table, step.instant)) for step in path.of("rollback")]
    moments += [(done.at, done.key) for done in path.rollbacks]
    reported: dict[Key, None] = {}
    for moment, key in sorted(moments):
        if key not in reported and path.committed(key, moment):
            reported[key] = None
            done = next(done for done in path.commits if done.key == key)
            message = f"it is committed from event {done.at} on, and rolled back at event {moment}"
            case.about(key, message, done.at, moment, also=(path.answer(done),))


def _completions(path: WritePathIndex) -> Iterator[tuple[int, WriteStep | None, Key]]:
    """The end of each rollback: when it was stored as completed, or its `ok` when that did not happen."""
    for done in path.rollbacks:
        yield done.at, _step_of(path, done), done.key
    for step in path.of("rollback"):
        key = (step.table, step.instant)
        if step.outcome == "ok" and not path.rolled_back(key, step.done):
            yield step.done, step, key


def _step_of(path: WritePathIndex, done: Completion) -> WriteStep | None:
    """The rollback step of a completed record: the last one of its process, else the last one of any."""
    before = [step for step in path.about(done.key, "rollback") if step.invoke < done.at]
    own = [step for step in before if step.process == done.process]
    return (own or before or [None])[-1]  # type: ignore[list-item]


def _files_left(case: Inquiry, key: Key, moment: int, step: WriteStep | None) -> None:
    view, path = case.view, case.view.writes
    listed = path.listed(step) if step is not None else None
    since = listed[0] if listed else step.invoke if step is not None else moment
    for left in path.left_since(key, moment, moment):
        if left.start >= since:
            view.excuse("late-write")
            continue
        how = "its markers were listed" if listed else "its rollback began" if step is not None else "it ended"
        how = "a listing of its markers was invoked" if listed and listed[1] == NEVER else how
        over = f"is left when its rollback is over at event {moment}"
        message = f"{left.path!r} was stored before {how} at event {since} and {over}"
        message += _in_listing(view, step, left.path)
        commit = next((done for done in path.commits if done.key == key and done.at < moment), None)
        message += f"; its instant was committed at event {commit.at}" if commit is not None else ""
        also = path.marked(key, left.path, moment)
        case.about(key, message, left.start, *(since,) * (step is not None), moment, also=also)


def _in_listing(view: HistoryIndex, step: WriteStep | None, file: str) -> str:
    """The end of a sentence: whether the listings of a rollback had the marker of a file."""
    calls = [call for call in view.writes.listings(step) if call.done != NEVER] if step is not None else []
    if not calls:
        return ""
    shown = [call.value for call in calls if isinstance(call.value, tuple)]
    if not shown:
        return f"; its listing ended {OUTCOMES[calls[-1].outcome]} at event {calls[-1].done}"
    named = any(file in (name, view.names_data(name)[1]) for names in shown for name in names)
    return f"; its listing {'has' if named else 'does not have'} the marker of this file"


@judge_of_writes("G16")
def rollback_retryable(case: Inquiry) -> None:
    """G16: an interrupted rollback is finished in the end, if a later write on the table completed.

    Finished: its instant is not pending on the timeline, and has none of the data files that were stored before the
    markers were listed last. And no rollback fails without a fault.
    """
    view, path = case.view, case.view.writes
    interrupted: dict[Key, WriteStep] = {}
    for step in path.of("rollback"):
        ended_badly(case, step)
        if step.outcome != "ok":
            interrupted.setdefault((step.table, step.instant), step)
    for key, step in interrupted.items():
        write = _next_write(path, key, step)
        if write is None:
            view.excuse("no-later-write")
            continue
        case.judged += 1
        stopped = min(step.done, view.ended(step.process))
        interrupted_at = f"its rollback was interrupted{f' at event {stopped}' if stopped < NEVER else ''}"
        again = _done_again(path, key, step)
        if path.pending(key, path.end):
            message = f"{interrupted_at}, a later write has completed and it is still on the timeline{again}"
            case.about(key, message, step.invoke, write.begin.invoke, write.committed)
        rounds = [path.listed(other) for other in path.about(key, "rollback")]
        last = max((listed[0] for listed in rounds if listed is not None), default=write.begin.invoke)
        for left in path.left_since(key, path.end, path.end) if not path.committed(key, path.end) else ():
            if left.start >= last:
                view.excuse("late-write")
                continue
            message = f"{interrupted_at}, a later write has completed and {left.path!r} is left{again}"
            case.about(key, message, left.start, step.invoke, write.begin.invoke, write.committed, also=(last,))


def _done_again(path: WritePathIndex, key: Key, step: WriteStep) -> str:
    """The end of a sentence: whether an interrupted rollback was completed or begun again."""
    done = max((done.at for done in path.rollbacks if done.key == key and done.at > step.invoke), default=None)
    if done is not None:
        return f"; a rollback of it is completed at event {done}"
    begun = max((other.invoke for other in path.about(key, "rollback") if other.invoke > step.invoke), default=None)
    none = "; no other rollback of it was begun"
    none += "" if path.pending(key, path.end) else ", and the timeline does not have it any more"
    return none if begun is None else f"; the last other rollback of it began at event {begun}"


def _next_write(path: WritePathIndex, key: Key, step: WriteStep) -> ObservedWrite | None:
    """The first completed write on the table that began after a step, or that continued after its interruption."""
    return next(
        (w for w in path.writes if w.key[0] == key[0] and w.begin.done > step.invoke and w.committed < NEVER), None
    )


@judge_of_writes("G19")
def rollback_first(case: Inquiry) -> None:
    """G19: at a write's first effect on data, every instant that was left unfinished is over.

    And the write's own instant has been on the timeline as requested and inflight, so that others can do that.

    Unfinished: it was on the timeline when the write began, or its own `begin` had ended ok, it was not completed, and
    its driver was dead or gone, had failed and did nothing since, or began this write itself. Over: completed, or
    rolled back, or never on the timeline and without any stored file.
    """
    view, path = case.view, case.view.writes
    known = {write.key: (write.begin.done, write.begin.process) for write in path.writes}
    for key, since in path.began.items():
        known[key] = min(since, known.get(key, since))
    reported: dict[Key, None] = {}
    for write in path.writes:
        effects = path.first.get(write.key)
        if not effects:
            continue
        touched = min(effects.values())
        stated = path.stated.get(write.key, {})
        unsaid = [state.value for state in (State.REQUESTED, State.INFLIGHT) if stated.get(state, NEVER) > touched]
        if unsaid and write.begin.outcome == "ok":
            what = f"data is put at event {touched}, and it is not on the timeline by then as {' or '.join(unsaid)}"
            if touched < write.begin.invoke:
                what += f"; the write begun at event {write.begin.invoke} takes an instant that has data already"
            case.about(write.key, what, write.begin.invoke, touched)
        for key, (index, driver) in known.items():
            if key[0] != write.key[0] or key == write.key or index > write.begin.invoke:
                continue
            if path.committed(key, write.begin.invoke) or path.rolled_back(key, write.begin.invoke):
                continue
            over = path.rolled_back(key, touched) or path.committed(key, touched) or _never_was(view, key, touched)
            if not _unfinished(view, driver, write, index):
                if not over:
                    view.excuse("driver-alive")
                continue
            case.judged += 1
            if not over and key not in reported:
                reported[key] = None
                message = f"it was unfinished when {write.key[1]} began, and not rolled back when that wrote data"
                message += f" at event {touched}"
                ended = view.ended(driver)
                also = (ended if ended < write.begin.invoke else None,)
                case.about(key, message, index, write.begin.invoke, touched, also=also)


def _never_was(view: HistoryIndex, key: Key, moment: int) -> bool:
    """Whether an instant has no timeline entry so far and neither data file nor marker at an event."""
    path = view.writes
    if key in path.began and path.began[key][0] <= moment:
        return False
    home = view.rest.homes.get(f"{key[0]}{TEMP}{key[1]}")
    marked = home is not None and any(present(span, moment) is not None for span in home.spans.values())
    return not marked and not path.left_since(key, moment, moment)


def _unfinished(view: HistoryIndex, driver: str, write: ObservedWrite, since: int) -> bool:
    at = write.begin.invoke
    if driver == write.begin.process or view.ended(driver) < at or since < view.start:
        return True
    own = [step for step in view.writes.steps if step.process == driver]
    return any(s.outcome != "ok" and s.done < at for s in own) and all(s.invoke < at for s in own)
