"""Judge of G12 hostile-input-refused."""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.history.index.calls import MS, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, directory_of
from marker_sim.judges.findings import Inquiry, judge_of

_ENDS = {"ok": "accepted", "fail": "refused-and-done"}


@judge_of("G12")
def hostile_input_refused(case: Inquiry) -> None:
    """G12: an invocation `hostile` ends `fail`, and the files at its path are the same afterwards.

    `ok` means that it was accepted, `info` that there was no clear error; 503 is one while two servers live, for a
    directory may be the other one's, whatever the request is. No answer within the bound of
    every-request-answered is a breach as well, shown by the invocation alone, if server and client were well and no
    fault touched the connection. A change counts when its effect names the request as the cause, or happened during the
    request and no other request can be the reason.
    """
    view = case.view
    for directory in view.directories.values():
        for call in directory.hostile:
            why = _inconclusive(view, call) if call.outcome != "ok" else ""
            if why:
                view.excuse(why)
                continue
            changed = None if view.timed_out(call) else _changed(view, call)
            if changed is None and view.sent_elsewhere(call) and view.excuse("second-server"):
                continue
            case.judged += 1
            if call.outcome == "fail" and changed is None:
                continue
            path = "" if changed is None else f" and changed {view.events[changed].path!r} at event {changed}"
            message = f"expected a refusal of the hostile request {call.asked!r}, it was {_how(view, call)}{path}"
            evidence = (*call.span, NEVER if changed is None else changed)
            case.breach(message, evidence, cause=_ENDS.get(call.outcome, "no-clear-answer"))


def _inconclusive(view: HistoryIndex, call: RecordedCall) -> str:
    """The reason why a request's end proves nothing about the server, "" when it does."""
    life = view.lives.get(call.life)
    if call.invoke in view.touched:
        return "wire-fault"
    if life is not None and not life.well(call.invoke, view.awaited_until(call)):
        return "server-unwell"
    if call.outcome == "open" and view.ended(view.events[call.invoke].process) < NEVER:
        return "client-died"
    return "no-answer" if view.timed_out(call) and _waited_ns(view, call) < view.header.answer_bound_ms * MS else ""


def _how(view: HistoryIndex, call: RecordedCall) -> str:
    """The way in which a request ended, as the end of a sentence."""
    if view.timed_out(call):
        return f"not answered in {_waited_ns(view, call) / 1e9:.1f} s"
    if call.outcome == "ok":
        return f"accepted ({call.value!r})"
    how = "refused" if call.outcome == "fail" else "not refused clearly"
    return f"{how} ({view.error_of(call)})"


def _waited_ns(view: HistoryIndex, call: RecordedCall) -> int:
    """The ns without an answer since the last fault; 0 when the kit itself was delayed."""
    until = view.awaited_until(call)
    if any(call.invoke < late <= until for late in view.late_echoes):
        return 0
    faults = [min(view.time_ns(fault.end), view.time_ns(until)) for fault in view.faults if fault.begin <= until]
    return view.time_ns(until) - max(view.time_ns(call.invoke), *faults, 0)


def _changed(view: HistoryIndex, call: RecordedCall) -> int | None:
    """The first change in the target directory that only this request can have made; None when there is none."""
    busy = False
    for index, others in _changes_by_reads(view, call) if view.reads else _changes_by_effects(view, call):
        if not others:
            return index
        busy = True
    if busy:
        view.excuse("other-request")
    return None


def _changes_by_effects(view: HistoryIndex, call: RecordedCall) -> Iterator[tuple[int, bool]]:
    """The changes that a request may have made, each with whether others may have made it."""
    for event in view.events[call.invoke : call.done]:
        if event.kind != "effect" or event.role == "kit":
            continue
        if event.caused_by == call.invoke:
            yield event.index, False
        elif _below(call, event.path):
            yield event.index, _busy(view, call, event.path, event.index, event.index)
    for event in view.events[call.done :]:
        if event.kind == "effect" and event.caused_by == call.invoke:
            yield event.index, False


def _changes_by_reads(view: HistoryIndex, call: RecordedCall) -> Iterator[tuple[int, bool]]:
    """The changes between readings of storage: each may have happened once the reading before it had begun."""
    before: dict[str | None, tuple[int, object]] = {}
    for event in view.file_reads:
        if event.operation != "file" or not _below(call, event.path):
            continue
        since, known = before.get(event.path, (-1, None))
        if event.index > call.done and known != event.value:
            yield event.index, _busy(view, call, event.path, since, event.index)
        if event.index < call.invoke or event.index > call.done:
            home = view.rest.homes.get(directory_of(event.path or "") or "")
            before[event.path] = (home.began(event.index) if home else event.index, event.value)


def _below(call: RecordedCall, path: str | None) -> bool:
    target = call.name.rstrip("/")
    return bool(target) and path is not None and (path == target or path.startswith(target + "/"))


def _busy(view: HistoryIndex, call: RecordedCall, path: str | None, since: int, until: int) -> bool:
    """Whether another request, or a removal of the directory, may be why it changed between two moments.

    A request that was refused cannot. A hostile one that was accepted may have an effect at any later time.
    """
    directory = view.directories.get(directory_of(path or "") or "")
    if directory is None:
        return False
    if any(other != call and other.invoke < until and not view.refused(other) for other in directory.hostile):
        return True
    if directory.disturbed(since, until):
        return True
    return any(other.invoke < until and view.over(other) > since for other in (*directory.creates, *directory.deletes))
