"""Judge of G12 hostile-input-refused."""

from __future__ import annotations

from marker_sim.judges.calls import Call
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.stored import NEVER, directory_of
from marker_sim.judges.view import View


def hostile_input_refused(view: View) -> Finding:
    """G12: an invocation `hostile` ends `fail`, and what its path names is the same afterwards.

    An end `ok` means that it was accepted, `info` that there was no clear error; a time-out, a server that was not well
    and a connection that a fault touched decide nothing. A change counts when an effect says that the request caused
    it, or happened meanwhile and no create or delete of that directory can be the reason.
    """
    breaches: list[Breach] = []
    judged = 0
    for directory in view.directories.values():
        for call in directory.hostile:
            why = _unheard(view, call) if call.outcome != "ok" else ""  # Nothing accepts for a server but itself.
            if why:
                view.excuse(why)
                continue
            judged += 1
            if call.outcome != "fail":
                how = "accepted" if call.outcome == "ok" else f"not refused clearly: {view.events[call.done].error}"
                message = f"the hostile request {call.identity!r} was {how}"
                breaches.append(view.breach(message, (call.invoke, call.done)))
            changed = _changed_by_reads(view, call) if view.reads else _changed_by_effects(view, call)
            if changed is not None:
                message = f"the hostile request {call.identity!r} changed {view.events[changed].path!r}"
                breaches.append(view.breach(message, (call.invoke, call.done, changed)))
    return Finding(guarantee="G12", applicable=True, judged=judged, breaches=tuple(breaches))


def _unheard(view: View, call: Call) -> str:
    """Why the end of a request says nothing about the server, "" when it does."""
    life = view.lives.get(call.life)
    if call.invoke in view.touched:
        return "wire-fault"
    if life is not None and not life.well(call.invoke, min(call.done, view.end - 1)):
        return "server-unwell"
    return "no-answer" if call.done == NEVER or view.timed_out(call) else ""


def _changed_by_effects(view: View, call: Call) -> int | None:
    for event in view.events[call.invoke : call.done]:
        if event.kind != "effect" or event.process == "kit":
            continue
        if event.caused_by == call.invoke or (_below(call, event.path) and not _busy(view, event.path, event.index)):
            return event.index
    return next((e.index for e in view.events[call.done :] if e.kind == "effect" and e.caused_by == call.invoke), None)


def _changed_by_reads(view: View, call: Call) -> int | None:
    before: dict[str | None, object] = {}
    for event in view.file_reads:
        if event.operation != "file" or not _below(call, event.path):
            continue
        if event.index < call.invoke:
            before[event.path] = event.value
        elif event.index > call.done:
            if before.get(event.path) != event.value and not _busy(view, event.path, event.index):
                return event.index
            before[event.path] = event.value
    return None


def _below(call: Call, path: str | None) -> bool:
    target = call.name.rstrip("/")
    return bool(target) and path is not None and (path == target or path.startswith(target + "/"))


def _busy(view: View, path: str | None, moment: int) -> bool:
    """Whether a create or a deletion of the directory can be the reason of a change seen at a moment."""
    directory = view.directories.get(directory_of(path or "") or "")
    if directory is None:
        return False
    return any(
        call.invoke < moment and (view.reads or view.over(call) > moment)
        for call in (*directory.creates, *directory.deletes)
    ) and view.excuse("other-request")
