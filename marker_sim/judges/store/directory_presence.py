"""What `exists` owes: G11's half, a directory with answered markers is there, and G10's, a deleted one is gone.

"Gone" is decided only where nothing but the markers can keep a directory: a correct server may answer True for an empty
one, a placeholder key or a side file. So True is a breach only if nothing whatever is known to lie below the directory.
"""

from __future__ import annotations

from marker_sim.history.index.calls import DAMAGE, NO_LIFE, Deletion, Directory, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.judges.findings import Breach, breach_of


class Owed:
    """What a listing or an `exists` owes: every marker answered before it, but what a deletion may have removed since,
    and what another server that is live during the call may have stored unseen.
    """

    def __init__(self, view: HistoryIndex, directory: Directory, call: RecordedCall) -> None:
        self._floor = directory.settled_before(call.done) if directory.deletions else -1
        life = call.life if call.life in view.lives else None
        overlapping_servers = (
            call.life != NO_LIFE
            and bool(view.crowded)
            and (life is None or view.overlapping_servers(call.invoke, call.done))
        )
        self._own = life if overlapping_servers else None
        self._crowd = overlapping_servers
        self.all = self._floor < 0 and not overlapping_servers

    def excuse(self, create: RecordedCall) -> str:
        """Why a create is owed nothing, "" when its marker must show."""
        if create.invoke < self._floor:
            return "deletion-open"
        return "second-server" if self._crowd and create.life != self._own else ""


def denied(view: HistoryIndex, directory: Directory) -> tuple[int, list[Breach]]:
    """How many answers of `exists` were owed a True, and a breach for each that was False."""
    judged = 0
    breaches: list[Breach] = []
    newest: RecordedCall | None = None
    at = 0
    for call in _asked(directory):
        while at < len(directory.answers) and directory.answers[at].done < call.invoke:
            answer = directory.answers[at]
            newest = answer if newest is None or newest.invoke < answer.invoke else newest
            at += 1
        if newest is None:
            continue
        why = Owed(view, directory, call).excuse(newest)
        if why:
            if call.value is False and not directory.deleted(newest.done, call.done):
                view.excuse(why)
            continue
        judged += 1
        if call.value is False:
            message = (
                f"{directory.path} is said not to exist, and {newest.name!r} was answered at event {newest.done},"
                f" before that was asked"
            )
            evidence = (newest.invoke, newest.done, call.invoke, call.done)
            breaches.append(breach_of(view, message, evidence, directory.path, "denied"))
    return judged, breaches


def outlived(view: HistoryIndex, directory: Directory, done: list[Deletion]) -> tuple[int, list[Breach]]:
    """How many answers of `exists` after the deletions `done` were owed a False, and a breach for each True.

    None where storage is read now and then: an empty directory, which is reason enough for True, has no file to read.
    """
    judged = 0
    breaches: list[Breach] = []
    for call in _asked(directory):
        before = [deletion for deletion in done if deletion.answered < call.invoke]
        if not before:
            continue
        deletion = before[-1]
        if directory.answers and directory.answers[0].done < deletion.invoke:
            why = _company(view, directory, deletion, call)
            if call.value is False:
                judged += not why
            elif why or _something_there(view, directory, call):
                view.excuse(why or "something-there")
            else:
                judged += 1
                message = f"{directory.path} is said to exist after it was deleted, and nothing is left there"
                evidence = (deletion.invoke, deletion.answered, call.invoke, call.done)
                breaches.append(breach_of(view, message, evidence, directory.path, "said-to-exist"))
    return judged, breaches


def _asked(directory: Directory) -> list[RecordedCall]:
    """The answers of `exists`, in the order in which they were asked for."""
    return sorted(c for c in directory.others if c.operation == "exists" and c.outcome == "ok")


def _company(view: HistoryIndex, directory: Directory, deletion: Deletion, call: RecordedCall) -> str:
    """Who else can have put anything into a directory from its deletion's invocation to an answer, "" for nobody.

    Refused and hostile requests count as well: they owe no clean directory.
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
    """Whether anything, of whatever kind, lay below a directory when a call was asked, or came until it ended."""
    below = directory.path + "/"
    there: set[str] = set()
    for event in view.events[: call.done]:
        if event.kind != "effect" or event.path is None or not event.path.startswith(below):
            continue
        if event.value is None:
            if event.index < call.invoke:  # What is removed later was there when it was asked.
                there.discard(event.path)
        elif event.index > call.invoke:
            return True
        else:
            there.add(event.path)
    return bool(there)
