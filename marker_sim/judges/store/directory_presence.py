"""Answers of `exists`: True for a directory with answered markers (part of G11), False after a deletion (part of G10).

A correct server may answer True for an empty directory, a placeholder key or a side file. So True after a deletion is a
breach only if no file of any kind is known to lie below the directory.
"""

from __future__ import annotations

from marker_sim.history import IN_CHUNKS, SPELLED
from marker_sim.history.index.calls import DAMAGE, NO_LIFE, Deletion, Directory, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.judges.findings import Inquiry


class Owed:
    """The markers that a listing or an `exists` must show: those answered before it, except those that a deletion may
    have removed since, and those that another server, live during the call, may have stored.
    """

    def __init__(self, view: HistoryIndex, directory: Directory, call: RecordedCall) -> None:
        self._floor = directory.settled_before(call.done) if directory.deletions else -1
        life = call.life if call.life in view.lives else None
        overlapping_servers = (
            call.life != NO_LIFE and bool(view.crowded) and (life is None or view.overlapping_servers(*call.span))
        )
        self._own = life if overlapping_servers else None
        self._crowd = overlapping_servers
        self.all = self._floor < 0 and not overlapping_servers

    def excuse(self, create: RecordedCall) -> str:
        """The reason why a create's marker need not show, "" when it must."""
        if create.invoke < self._floor:
            return "deletion-open"
        return "second-server" if self._crowd and create.life != self._own else ""


def denied(case: Inquiry, directory: Directory) -> None:
    """Judge the `exists` answers that had to be True: a breach for each unexplained False or failure."""
    view = case.view
    newest: RecordedCall | None = None
    at = 0
    for call in sorted(c for c in directory.others if c.operation == "exists" and c.outcome != "open"):
        while at < len(directory.answers) and directory.answers[at].done < call.invoke:
            answer = directory.answers[at]
            newest = answer if newest is None or newest.invoke < answer.invoke else newest
            at += 1
        if newest is None:
            continue
        why = Owed(view, directory, call).excuse(newest)
        if why:
            if call.value is not True and not directory.deleted(newest.done, call.done):
                view.excuse(why)
            continue
        if call.outcome != "ok" and may_fail(view, directory, call):
            continue
        case.judged += 1
        if call.value is not True:
            error = view.error_of(call) or "no reason given"
            how = "was answered False" if call.outcome == "ok" else f"ended {call.outcome} without a fault ({error})"
            message = (
                f"exists of {directory.path} {how} at event {call.done}, expected True: {newest.name!r}"
                f" was answered at event {newest.done}"
            )
            evidence = (*newest.span, *call.span)
            case.breach(message, evidence, directory.path, "denied")


def outlived(case: Inquiry, directory: Directory, done: list[Deletion]) -> None:
    """Judge the `exists` answers after the deletions `done` that had to be False: a breach for each True.

    None where storage is only read: a read shows files, and a correct server may answer True for an empty directory.
    """
    view = case.view
    for call in _asked(directory):
        before = [deletion for deletion in done if deletion.answered < call.invoke]
        if not before:
            continue
        deletion = before[-1]
        if directory.answers and directory.answers[0].done < deletion.invoke:
            why = _other_cause(view, directory, deletion, call)
            if call.value is False:
                case.judged += not why
            elif why or _something_there(view, directory, call):
                view.excuse(why or "something-there")
            else:
                case.judged += 1
                message = (
                    f"exists of {directory.path} was answered True at event {call.done}, expected False: it was deleted"
                    f" at event {deletion.answered} and no file is left there"
                )
                evidence = (deletion.invoke, deletion.answered, *call.span)
                case.breach(message, evidence, directory.path, "said-to-exist")


def made_up(case: Inquiry, directory: Directory) -> None:
    """Judge the `exists` answers before any request or file: a breach for each True.

    None where storage is read now and then.
    """
    asked = _asked(directory) if case.view.header.witness == "effects" else []
    first = min((call.invoke for call in (*directory.creates, *directory.hostile)), default=NEVER)
    for call in asked:
        if call.done < first and not _something_there(case.view, directory, call):
            case.judged += 1
            if call.value is True:
                message = (
                    f"exists of {directory.path} was answered True at event {call.done}, expected False: nothing was"
                    f" created there and no file is there"
                )
                case.breach(message, call.span, directory.path, "never-there")


def _asked(directory: Directory) -> list[RecordedCall]:
    """The answers of `exists` by invocation."""
    return sorted(c for c in directory.others if c.operation == "exists" and c.outcome == "ok")


def _other_cause(view: HistoryIndex, directory: Directory, deletion: Deletion, call: RecordedCall) -> str:
    """The reason why a deleted directory may exist, "" for none.

    Refused and hostile requests count as well: they may leave an empty directory.
    """
    if view.header.witness == "reads":
        return "reads-only"
    other = call.life not in (deletion.life, NO_LIFE)
    if other and view.overlapping_servers(deletion.invoke, call.done):
        return "second-server"
    for asked in (*reversed(directory.creates), *directory.hostile):
        if asked.invoke > call.done:
            continue
        if deletion.invoke < asked.done < NEVER:
            return "create-open"
        if view.over(asked) > deletion.invoke:
            return "create-unknown"
    below = directory.path + "/"
    hit = any(
        fault.storage
        and (fault.path or "").startswith(below)
        and fault.begin <= call.done
        and (fault.kind == DAMAGE or fault.end >= deletion.invoke)
        for fault in view.faults
    )
    return "storage-fault" if hit else ""


def _something_there(view: HistoryIndex, directory: Directory, call: RecordedCall) -> bool:
    """Whether a file of any kind was below a directory when a call was invoked, or came before the call ended."""
    below = directory.path + "/"
    there: set[str] = set()
    for event in view.events[: call.done]:
        if event.kind != "effect" or event.path is None or not event.path.startswith(below):
            continue
        if event.value is None:
            if event.index < call.invoke:  # A file that is removed later was there when the call was invoked.
                there.discard(event.path)
        elif event.index > call.invoke:
            return True
        else:
            there.add(event.path)
    return bool(there)


def may_fail(view: HistoryIndex, directory: Directory, call: RecordedCall) -> bool:
    """Whether a call may fail, or end unknown, for a reason other than requests for its directory."""
    written = view.events[call.invoke].value
    if written in (IN_CHUNKS, SPELLED) and view.error_of(call).startswith("4"):
        return view.excuse("in-chunks" if written == IN_CHUNKS else "other-spelling")
    if call.invoke in view.touched:
        return view.excuse("wire-fault")
    if not view.served_well(directory.path, call, call.done):
        return view.excuse("server-unwell")
    if view.timed_out(call):
        return view.excuse("no-answer")
    if view.sent_elsewhere(call):
        return view.excuse("second-server")
    begin_ns, end_ns = view.time_ns(call.invoke), view.time_ns(call.done)
    return any(
        fault.storage
        and fault.concerns(directory.path)
        and view.time_ns(fault.begin) <= end_ns
        and begin_ns <= view.time_ns(fault.end) + view.rest_ns
        for fault in view.faults
    ) and view.excuse("storage-fault")
