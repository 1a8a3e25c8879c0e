"""Judges of markers in storage after an answer: G1 flushed-before-ack, G2 exists-is-durable, G3 acked-marker-survives,
G23 rewrite-atomic.

An answer that a deletion overlaps is not judged: the deletion may have removed the marker between its flush and the
answer. Where storage was only read now and then, an answer is judged at the first snapshot whose reading began after
it; when a server was killed in between, or an effect shows that the marker was stored at the answer, a missing one
counts against G3 and not against G1 or G2. So one loss breaks one of them.
"""

from __future__ import annotations

from marker_sim.history.index.calls import RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, DirectoryPresence, present
from marker_sim.judges.findings import Inquiry, judge_of
from marker_sim.names import decode_names, is_marker_name, marker_file_index


@judge_of("G1")
def flushed_before_ack(case: Inquiry) -> None:
    """G1: a marker is stored at the moment its create is answered "created"."""
    _stored_at_answer(case, "created")


@judge_of("G2")
def exists_is_durable(case: Inquiry) -> None:
    """G2: a marker is stored at the moment its create is answered "exists"."""
    _stored_at_answer(case, "exists")


def _stored_at_answer(case: Inquiry, answer: str) -> None:
    view = case.view
    for directory in view.directories.values():
        home = view.rest.home(directory.path)
        spans, calm = home.spans, not directory.deletions
        for call in directory.answers:
            invoke, done, _, _, name, value, _, _ = call
            if value != answer:
                continue
            if not calm and directory.disturbed(invoke, done):
                if present(spans.get(name), done) is None:
                    view.excuse("deletion-open")
                continue
            case.eligible += 1
            moment = done
            if view.reads:
                looked = home.seen_at(done)
                if looked is None or directory.disturbed(done, looked) or view.killed(done, looked) is not None:
                    view.excuse("read-too-late")
                    continue
                moment = looked
            case.judged += 1
            if present(spans.get(name), moment) is None:
                life = view.life_of(directory.path, name)
                if life.stored(done):
                    continue  # It was lost between the answer and the reading, which breaks G3.
                instead = case.causes.instead(directory, call, moment)
                if answer == "exists" and not instead and life.gone(-1, moment) is None:
                    instead = case.causes.meant_by_exists(directory, call)
                what = f'{name!r} was answered "{answer}" at event {done} and is not stored in {directory.path}'
                message = what + (f" at event {moment}" if moment != done else "") + life.around(moment) + instead
                cause = case.causes.of_loss(directory, call, moment)
                case.breach(message, (invoke, done, moment), directory.path, cause)


@judge_of("G3")
def acked_marker_survives(case: Inquiry) -> None:
    """G3: a marker that was stored when it was answered, or came later, stays."""
    view, causes = case.view, case.causes
    for directory in view.directories.values():
        home = view.rest.home(directory.path)
        reported: set[tuple[str, int]] = set()
        for call in directory.answers:
            moment = home.seen_at(call.done)
            if moment is None:
                view.excuse("read-too-late")
                continue
            span = home.spans.get(call.name)
            if span is not None and len(span) == 1 and span[0] <= moment:
                case.judged += 1
                continue
            decided = False
            for low, limit in directory.protected(call.done):
                since = home.seen_at(low)
                if since is None or since >= limit:
                    continue
                # A deletion or the kit may have removed the marker by then; if it is there, it must stay.
                if present(span, since) is None and (low > call.done or directory.disturbed(call.invoke, since)):
                    continue
                lost = _lost(view, home, call, since, limit)
                decided = decided or lost is not None or bool(span)
                if lost is not None and (call.name, lost[0]) not in reported:
                    reported.add((call.name, lost[0]))
                    cause = causes.of_loss(directory, call, lost[0])
                    message = lost[1] + causes.instead(directory, call, lost[0])
                    case.breach(message, (*call.span, lost[0]), directory.path, cause)
            case.judged += decided
            if not decided and present(span, moment) is None:
                view.excuse("deletion-open")


def _lost(
    view: HistoryIndex, home: DirectoryPresence, call: RecordedCall, moment: int, limit: int
) -> tuple[int, str] | None:
    """The loss of an answered marker before `limit`: event and message.

    moment: where presence is known first. One that was not stored at its answer breaks G1 or G2; where that is not
    known, since its server was killed before storage was read, it counts here.
    """
    span = home.spans.get(call.name) or []
    what = f"{call.name!r} was answered {call.value!r} at event {call.done}"
    life = view.life_of(home.path, call.name)
    to = present(span, moment)
    if to is None and life.stored(call.done):
        to = life.gone(call.done, moment)
    elif to is None:
        kill = view.killed(call.done, moment)
        if kill is not None:
            unseen = f"the first reading of storage after it, at event {moment}, does not show it"
            return moment, f"{what}, and {unseen}; {view.events[kill].process} was killed at event {kill}, in between"
        to = present(span, next((start for start in span[::2] if start > moment), NEVER))
    if to is None or to >= limit:
        return None
    to = life.gone(call.done, to) or to
    back = life.came(to)
    until = "on" if back is None else f"until event {back}, when it was stored again"
    gone = f"is no longer stored in {home.path} from event {to} {until}, with no deletion invoked"
    return to, f"{what} and {gone}"


@judge_of("G23")
def rewrite_atomic(case: Inquiry) -> None:  # noqa: C901
    """G23: in the raw view, answered markers that were visible do not vanish."""
    view = case.view
    case.applicable = view.header.layout == "hudi"
    if not case.applicable:
        return
    if view.reads:
        _raw_reads(case)
        return
    for directory in view.directories.values():
        rest, raw = view.rest.home(directory.path), view.raw.home(directory.path)
        reported: set[tuple[str, int]] = set()
        for call in directory.answers:
            span = raw.spans.get(call.name)
            if span is None:
                continue
            if len(span) == 1 and span[0] <= call.done:
                case.judged += 1
                continue
            decided = False
            for low, limit in directory.protected(call.done):
                to = present(span, low)
                if to is None and low > call.done:
                    continue
                decided = True
                if to is None:
                    if present(rest.spans.get(call.name), low) is None:
                        continue
                    to = max((end for end in span[1::2] if end <= low), default=low)
                if to < limit and (call.name, to) not in reported:
                    reported.add((call.name, to))
                    message = (
                        f"{call.name!r} was answered {call.value!r} at event {call.done} and a reader at event {to}"
                        f" does not see it in {directory.path}"
                    )
                    case.breach(message, (*call.span, to), directory.path, "not-atomic")
            case.judged += decided
            if not decided and present(span, call.done) is None:
                view.excuse("deletion-open")


def _raw_reads(case: Inquiry) -> None:
    """G23 where storage was read: every later single read of a file has the answered names seen in it and not moved."""
    view = case.view
    for directory in view.directories.values():
        answered: dict[str, RecordedCall] = {}
        for call in directory.answers:
            answered.setdefault(call.name, call)
        prefix = directory.path + "/"
        held: dict[str, tuple[int, frozenset[str]]] = {}
        for event in view.file_reads:
            path = event.path or ""
            relative = path[len(prefix) :] if path.startswith(prefix) else ""
            names = _names_of(relative, event.value if isinstance(event.value, bytes) else None)
            if names is None:
                continue
            before, known = held.get(path, (event.index, frozenset()))
            began = event.caused_by if event.caused_by is not None else before
            held[path] = (event.index, names | known if event.operation == "raw-file" else names)
            if event.operation != "raw-file":
                continue
            due = sorted(name for name in known if name in answered and answered[name].done <= began)
            case.judged += bool(due)
            elsewhere = frozenset().union(*(seen for other, (_, seen) in held.items() if other != path))
            for name in due:
                call = answered[name]
                if name in names or name in elsewhere:
                    continue
                if directory.disturbed(call.invoke, event.index):
                    if not directory.deleted(call.done, event.index):
                        view.excuse("deletion-open")
                    continue
                message = f"{name!r} was answered at event {call.done} and a single read of {path} does not show it"
                case.breach(message, (call.done, before, event.index), directory.path, "not-atomic")


def _names_of(relative: str, content: bytes | None) -> frozenset[str] | None:
    """The names in a file of a marker directory; None for one that is neither a marker file nor a MARKERS file."""
    if marker_file_index(relative) is not None:
        return frozenset(decode_names(content)) if content is not None else frozenset()
    if is_marker_name(relative):
        return frozenset({relative}) if content is not None else frozenset()
    return None
