"""Judges of a write that completes: G13 marker-before-data and G14 reconcile-exact."""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.history.index.write_path import Completion, Key
from marker_sim.judges.findings import OUTCOMES, Inquiry
from marker_sim.judges.write_path.steps import ended_badly, judge_of_writes
from marker_sim.names import TEMP
from marker_sim.timeline import WriteStat, WriteToken, parse_data_file

_STEPS = ("begin", "sweep", "attempt", "finalize", "commit")


@judge_of_writes("G13")
def marker_before_data(case: Inquiry) -> None:
    """G13: before the first effect of an instant on each of its data files, a marker that names it was stored.

    Where the markers' format is not Hudi's, an answered create counts as a stored marker. The answer shown is that of
    the create, else of the attempt; an attempt that never ended is shown by its invocation.
    """
    view, path = case.view, case.view.writes
    for key, first in path.first.items():
        named = _named(view, key)
        for file, index in first.items():
            if index < view.start:
                continue
            case.judged += 1
            since = named.get(file)
            if since is None or since >= index:
                late = f"the first was stored at event {since}" if since is not None else "none named it later"
                marked = path.marked(key, file)
                late += _asked(view, key, index, *marked)
                message = f"{file!r} was put at event {index} and no marker had named it before; {late}"
                shown = index if since is None else since
                case.about(key, message, index, shown, also=marked)


def _asked(view: HistoryIndex, key: Key, put: int, begun: int = NEVER, done: int = NEVER) -> str:
    """The end of a sentence: what happened to the create of a stored file's marker.

    begun, done: the first and last event of the create that names it, or of its attempt.
    """
    directory = view.writes.directory(key)
    if directory is None or begun > put:
        return ""
    if view.events[begun].operation == "create":
        return f", although a create of one was answered at event {done}" if done < put else ""
    own = (call for call in directory.creates if begun < call.invoke < put)
    call = next((call for call in own if view.events[call.invoke].process == view.events[begun].process), None)
    if call is None:
        return ""
    ended = f"ended {OUTCOMES[call.outcome]} at event {call.done}" if call.done < put else "had no answer yet"
    return f"; its attempt asked for {call.name!r} at event {call.invoke}, which {ended}"


def _named(view: HistoryIndex, key: Key) -> dict[str, int]:
    """The event since which a marker of the instant has named each data path."""
    named: dict[str, int] = {}
    if view.reads:
        directory = view.writes.directory(key)
        since = [(call.name, call.done) for call in directory.answers] if directory else []
    else:
        home = view.rest.homes.get(f"{key[0]}{TEMP}{key[1]}")
        since = [(name, span[0]) for name, span in home.spans.items() if span] if home else []
    for name, index in since:
        file = view.names_data(name)[1]
        known = named.get(file)
        if known is None or index < known:
            named[file] = index
    return named


@judge_of_writes("G14")
def reconcile_exact(case: Inquiry) -> None:
    """G14, at each completed commit: every file it names is stored and stays; every other data file of the instant that
    was stored before finalize listed the markers has been deleted; it names each task once. And a begin, sweep,
    finalize or commit does not fail without a fault.

    A file that returns after the listing is a late write. Removals and changes of committed files count here unless a
    rollback or sweep makes them.
    """
    path = case.view.writes
    for done in path.commits:
        if done.at >= case.view.start:
            case.judged += 1
            _inexact(case, done)
    for harm in path.harms:
        step = path.acting(harm.process, harm.at)
        if step is None or step.operation not in ("rollback", "sweep"):
            message = f"the committed file {harm.path!r} was removed or changed at event {harm.at}"
            ends = (end for done in path.commits if done.key == harm.key for end in (done.at, path.answer(done)))
            case.about(harm.key, message, harm.at, also=ends)
    for step in path.of(*_STEPS):
        ended_badly(case, step)
    for step in path.of("commit"):
        key = (step.table, step.instant)
        if step.outcome == "ok" and not path.committed(key, step.done):
            message = "its commit ended ok, and the timeline has no completed instant"
            case.about(key, message, step.invoke, step.done)


def _inexact(case: Inquiry, done: Completion) -> None:
    path = case.view.writes
    table, at, answer = done.key[0], done.at, (path.answer(done),)
    if done.stats is None:
        case.about(done.key, f"the commit completed at event {at} cannot be read", at, also=answer)
        return
    named = {stat.path for stat in done.stats}
    for file in sorted(named):
        if not path.there(table, file, at):
            gone = path.gone(table, file, at)
            what = "" if gone is None else f"; it was gone from event {gone} on"
            message = f"the commit completed at event {at} names {file!r}, which is not stored{what}"
            case.about(done.key, message, at, also=answer)
    steps = [step for step in path.about(done.key, "finalize", "commit") if step.invoke < at]
    step = next((s for s in reversed(steps) if s.operation == "finalize"), steps[-1] if steps else None)
    for left in path.left_since(done.key, at, at):
        if left.path in named:
            continue
        since = at if step is None else path.known_from(step, left.path)
        if left.start < since:
            how = f"was stored before the markers were listed at event {since}" if step else "was stored"
            message = f"{left.path!r} {how}, the commit completed at event {at} does not name it, and it is stored then"
            case.about(done.key, message, left.start, *(since,) * (step is not None), at, also=answer)
        else:
            case.view.excuse("late-write")
    for one, other in _twice(done.stats):
        message = f"the commit completed at event {at} names two attempts of one task, {one!r} and {other!r}"
        case.about(done.key, message, at, also=answer)


def _twice(stats: tuple[WriteStat, ...]) -> Iterator[tuple[str, str]]:
    """Pairs of paths that different attempts of one task made in one file group (Hudi I 19593)."""
    if len({(stat.partition, stat.file_id) for stat in stats}) == len(stats):
        return
    known: dict[tuple[str, str, int], tuple[WriteToken, str]] = {}
    for stat in stats:
        file = parse_data_file(stat.path)
        if file is not None:
            token, first = known.setdefault((file.partition, file.file_id, file.token.task), (file.token, stat.path))
            if token != file.token:
                yield first, stat.path
