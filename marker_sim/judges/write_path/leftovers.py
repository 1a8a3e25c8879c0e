"""Judges of the end of an instant: G17 markers-last, G18 no-residue, G20 no-late-write."""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.history.index.calls import MS, Directory, WriteStep
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, present
from marker_sim.history.index.write_path import Key, ObservedWrite, WritePathIndex
from marker_sim.judges.findings import Inquiry
from marker_sim.judges.write_path.steps import calm, judge_of_writes
from marker_sim.names import TEMP

_Residues = dict[int, dict[Key, list[str]]]


@judge_of_writes("G17")
def markers_last(case: Inquiry) -> None:
    """G17, at each invocation of a deletion of an instant's markers, and each removal that no deletion explains.

    The instant is committed, or no data file is left that a marker named when the last rollback or sweep listed them
    (without such a listing: when they are deleted). A file that returned after the listing is a late write.
    """
    view, path = case.view, case.view.writes
    for key in _instants(path):
        directory = path.directory(key) or Directory(f"{key[0]}{TEMP}{key[1]}")
        for moment, only in _removals(view, key, directory):
            case.judged += 1
            if path.committed(key, moment):
                continue
            known = _known_until(path, key, moment)
            named = [only] if only else list(_names(view, directory, known))
            files = {view.names_data(name)[1] for name in named}
            there = [file for file in path.left_since(key, moment, moment) if file.path in files]
            left = [file for file in there if file.start < known]
            if len(left) < len(there):
                view.excuse("late-write")
            if left:
                what = "a marker of it was deleted" if only else "the deletion of its markers was invoked"
                named_by = "whose marker was requested" if view.reads else "which one of them names"
                message = (
                    f"{what} at event {moment} although it is not committed and the file {left[0].path!r}, {named_by},"
                    " is stored"
                )
                marker = next(name for name in named if view.names_data(name)[1] == left[0].path)
                also = (*path.marked(key, left[0].path, moment), view.life_of(directory.path, marker).since(known))
                case.about(key, message, left[0].start, moment, also=also)


def _instants(path: WritePathIndex) -> dict[Key, None]:
    """The instants of writes: those on the timeline and those named by a step."""
    named = ((step.table, step.instant) for step in path.steps if step.instant)
    return dict.fromkeys((*path.began, *named))


def _removals(view: HistoryIndex, key: Key, directory: Directory) -> Iterator[tuple[int, str]]:
    """The removals of markers: an invocation ("" for all), or an effect that no deletion explains."""
    for call in directory.deletes:
        yield call.invoke, ""
    if view.reads:
        return
    home = view.rest.homes.get(directory.path)
    good = view.writes.committed_for_good(key)
    for name, span in home.spans.items() if home else ():
        for gone in span[1::2]:
            if gone < good and view.events[gone].value is None and not directory.disturbed(gone - 1, gone + 1):
                yield gone, name


def _known_until(path: WritePathIndex, key: Key, moment: int) -> int:
    """The invocation of the last listing by a rollback or sweep that ended before an event; without one, that event."""
    steps = (step for step in path.about(key, "rollback", "sweep") if step.invoke < moment)
    listings = (call for step in steps for call in path.listings(step))
    return max((call.invoke for call in listings if call.done <= moment), default=moment)


def _names(view: HistoryIndex, directory: Directory, before: int) -> Iterator[str]:
    """The markers stored at an event; where only answers are known, those created after the last deletion.

    A marker that an earlier deletion removed does not count: a file that came later is a late write.
    """
    if view.reads:
        since = directory.settled_before(before)
        yield from (call.name for call in directory.answers if since < call.invoke and call.done < before)
    elif directory.path in view.rest.homes:
        spans = view.rest.homes[directory.path].spans
        yield from (name for name, span in spans.items() if present(span, before) is not None)


@judge_of_writes("G18")
def no_residue(case: Inquiry) -> None:
    """G18: no file of an instant's marker directory is left when a write commits that began after the last action of
    the instant's attempts, and that no fault affected; nor of its own, when it is committed after that.

    Last action: the last request or answer of its attempts and creates, the last put of a data file, or of a file in
    its marker directory by a create that was open or of unknown outcome. Of markers in a format that is not Hudi's only
    the last read of storage counts.
    """
    view, path = case.view, case.view.writes
    ends = {} if view.reads else _ends(view)
    commits = [write.committed for write in path.writes if write.committed != NEVER]
    residues = {} if view.reads else path.residues((*commits, *ends.values()))
    own = _own_residue(case, ends, residues)
    for key in _instants(path):
        last = _last_action(view, key)
        if last < 0 or key in own:
            continue
        decided = False
        for write in path.writes:
            left = _left_by(view, key, write, last, residues)
            if left is None or (decided and not left):
                continue
            if not _undisturbed(view, write, write.committed):
                if left:
                    view.excuse("fault-in-write")
                continue
            if left and _still_deleting(view, key, write) and view.excuse("still-deleting"):
                continue
            decided = True
            if left:
                message = (
                    f"{_left(view, left, write.committed)} although it is over, the last action of its attempts"
                    f" was event {last}, and the write begun at event {write.begin.invoke} is committed"
                    f"{_deleted_by(path, key, write.committed)}"
                )
                case.about(key, message, last, write.begin.invoke, write.committed)
                break
        case.judged += decided
        later = (w for w in path.writes if w.key[0] == key[0] and w.key != key and w.begin.invoke >= last)
        if not decided and any(later):
            view.excuse("no-later-write")


def _ends(view: HistoryIndex) -> dict[Key, int]:
    """The event by which a write has to delete its markers: its driver's next begin, or the end of the phase."""
    phases = (view.phase("probe"), view.phase("end"))
    ends: dict[Key, int] = {}
    for write in view.writes.writes:
        begins = (other.begin.invoke for other in view.writes.writes if other.begin.process == write.begin.process)
        ends[write.key] = min((at for at in (*phases, *begins) if at > write.committed), default=NEVER)
    return {key: at for key, at in ends.items() if at != NEVER}


def _own_residue(case: Inquiry, ends: dict[Key, int], residues: _Residues) -> set[Key]:
    """The instants whose write did not delete its markers after the commit, each with a breach."""
    view, path, found = case.view, case.view.writes, set[Key]()
    for write in path.writes:
        done, until = write.committed, ends.get(write.key)
        if until is None or _last_action(view, write.key) > done:
            continue
        left = residues[until].get(write.key, [])
        if not _undisturbed(view, write, until):
            if left:
                view.excuse("fault-in-write")
            continue
        if left and _still_deleting(view, write.key, write._replace(committed=until)):
            view.excuse("still-deleting")
            continue
        case.judged += 1
        if left:
            message = f"{_left(view, left, until)} after its commit, at event {until}"
            message += _deleted_by(path, write.key, until)
            case.about(write.key, message, done, until)
            found.add(write.key)
    return found


def _left(view: HistoryIndex, files: list[str], moment: int) -> str:
    """The beginning of a sentence: the files left in a marker directory at an event, and since when."""
    puts = (e.index for e in view.writes.marker_effects if e.path == files[0] and e.index <= moment)
    put = max(puts, default=None) if not view.reads else None
    since = f", put at event {put}," if put is not None else ""
    return f"{files[0]!r}{since} is left in its marker directory ({len(files)} file(s) in all)"


def _deleted_by(path: WritePathIndex, key: Key, before: int) -> str:
    """The end of a sentence: the last deletion of an instant's markers."""
    directory = path.directory(key)
    call = max((call for call in directory.deletes if call.invoke < before), default=None) if directory else None
    if call is None:
        return "; no deletion of them was invoked"
    how = "never ended" if call.outcome == "open" else f"ended {call.outcome}"
    return f"; the last deletion of them, event {call.invoke}, {how}"


def _left_by(view: HistoryIndex, key: Key, write: ObservedWrite, last: int, residues: _Residues) -> list[str] | None:
    """The marker files of an instant that a write left; None when the write began too early, did not complete, or is
    unknown.
    """
    at = write.committed
    if write.key[0] != key[0] or write.key == key or write.begin.invoke < last or at == NEVER:
        return None
    if not view.writes.over(key, at):
        return None
    if not view.reads:
        return residues[at].get(key, [])
    home = view.rest.homes.get(f"{key[0]}{TEMP}{key[1]}")
    return sorted(home.present) if home is not None and home.begun and home.begun[-1] >= at else None


def _undisturbed(view: HistoryIndex, write: ObservedWrite, until: int) -> bool:
    return calm(view, write.begin.invoke, until, write.begin.process, f"{write.key[0]}{TEMP}{write.key[1]}")


def _still_deleting(view: HistoryIndex, key: Key, write: ObservedWrite) -> bool:
    """Whether the write stopped waiting for a server that was still deleting an instant's markers."""
    directory = view.writes.directory(key)
    return directory is not None and any(
        view.timed_out(call) and view.keeps_deleting(call, directory.path, view.header.answer_bound_ms * MS)
        for call in directory.deletes
        if write.begin.invoke < call.invoke < write.committed
        and view.events[call.invoke].process == write.begin.process
    )


def _last_action(view: HistoryIndex, key: Key) -> int:
    path = view.writes
    directory = path.directory(key)
    creates = directory.creates if directory else []
    acts = [path.last_put.get(key, -1)]
    for call in creates:
        acts += [call.invoke, call.done]
    for step in path.about(key, "attempt"):
        acts += [step.invoke, step.done]
    last = max(act for act in acts if act != NEVER)
    for put in path.marker_puts(key, last):
        open_ = (c for c in creates if put < c.done or c.outcome != "ok" or view.may_act_again(c))
        if any(call.invoke < put for call in open_):
            return put
    return last


@judge_of_writes("G20")
def no_late_write(case: Inquiry) -> None:
    """G20: no data file of an instant is stored after a finalize or rollback of the instant has listed the markers.
    Nothing fences an attempt that its driver counts as dead, so the reference does not promise it.
    """
    path = case.view.writes
    over: dict[Key, list[WriteStep]] = {}
    for step in path.of("finalize", "rollback"):
        if path.listed(step) is not None:
            over.setdefault((step.table, step.instant), []).append(step)
    for key, steps in over.items():
        files = path.files.get(key, ())
        case.judged += len(files)
        last = max((file.start for file in files), default=-1)
        if last < steps[0].invoke:
            continue
        for file in files:
            if file.start < steps[0].invoke:
                continue
            told = (step for step in steps if path.listed(step, file.path, answered=True) is not None)
            listed_at = min((path.known_from(step, file.path, answered=True) for step in told), default=NEVER)
            if file.start > listed_at:
                message = f"{file.path!r} was put at event {file.start}, after {_listing(case.view, listed_at)}"
                case.about(key, message, listed_at, file.start)


def _listing(view: HistoryIndex, at: int) -> str:
    """A listing as described in a message: event `at` is its answer with the file's marker, or its last invocation."""
    if view.events[at].kind != "invoke":
        return f"its markers were listed at event {at}"
    return f"a listing of its markers was invoked at event {at}, which ended at event {view.answers[at]}"
