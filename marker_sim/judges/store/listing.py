"""Judges of deletions and listings: G10 delete-complete and G11 readable-while-written."""

from __future__ import annotations

from marker_sim.history.index.calls import NO_LIFE, Deletion, Directory, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, periods
from marker_sim.judges.findings import Inquiry, judge_of
from marker_sim.judges.store.directory_presence import Owed, denied, made_up, may_fail, outlived


@judge_of("G10")
def delete_complete(case: Inquiry) -> None:
    """G10: after a deletion was answered ok, each name stored or listed has a create that was open when the deletion
    was invoked, or was invoked later and before the name shows.

    A create of unknown outcome, or with a copy on the wire, is open as long as it may take effect. A listing of a
    server that did not delete is judged only if it was alone from the deletion on. Only deletions of at least one
    answered marker count. After those `exists` answers False, and before the first create (directory_presence.py).
    A deletion of answered markers that no fault and no other request met does not fail.
    """
    for directory in case.view.directories.values():
        made_up(case, directory)
        _refused(case, directory)
        done = [deletion for deletion in directory.deletions if deletion.answered != NEVER]
        if not done:
            continue
        creates = _creates(case.view, directory)
        case.judged += sum(any(call.done < deletion.invoke for call in directory.answers) for deletion in done)
        _stored_again(case, directory, done, creates)
        _listed_again(case, directory, done, creates)
        outlived(case, directory, done)


def _refused(case: Inquiry, directory: Directory) -> None:
    """Deletions of answered markers that failed or ended unknown without another call or a fault as the reason."""
    view = case.view
    for call in directory.deletes:
        if call.outcome not in ("fail", "info"):
            continue
        floor = directory.settled_before(call.invoke)
        stored = any(answer.done < call.invoke and answer.invoke > floor for answer in directory.answers)
        if not stored or may_fail(view, directory, call):
            continue
        if _met(view, directory, call) and view.excuse("other-request"):
            continue
        why = view.error_of(call) or "no reason given"
        message = f"a deletion of {directory.path} ended {call.outcome} without a fault or another request: {why}"
        case.breach(message, call.span, directory.path, "not-deleted")
        case.judged += 1


def _met(view: HistoryIndex, directory: Directory, call: RecordedCall) -> bool:
    """Whether another change of the directory, or another server, was active during a call."""
    others = (*directory.creates, *directory.hostile)
    return (
        view.overlapping_servers(*call.span)
        or any(
            d.invoke != call.invoke and d.invoke < call.done and d.settled > call.invoke for d in directory.deletions
        )
        or any(other.invoke < call.done and view.over(other) > call.invoke for other in others)
    )


_Creates = dict[str, list[RecordedCall]]


def _creates(view: HistoryIndex, directory: Directory) -> _Creates:
    """The creates of each name that may have had an effect, hostile ones included."""
    creates: _Creates = {}
    for call in (*directory.creates, *directory.hostile):
        if not view.had_no_effect(call):
            creates.setdefault(call.asked if call.operation == "hostile" else call.name, []).append(call)
    return creates


def _belongs(view: HistoryIndex, creates: list[RecordedCall], deletion: Deletion, shown: int) -> bool:
    """Whether a create was open at the deletion or came later, and was invoked before the name shows."""
    asked = [call for call in creates if call.invoke <= shown]
    if any(call.done > deletion.invoke for call in asked if call.done != NEVER):
        return True
    late = any(view.over(call) > deletion.invoke for call in asked)
    return late and view.excuse("create-unknown")


def _stored_again(case: Inquiry, directory: Directory, done: list[Deletion], creates: _Creates) -> None:
    view, causes, before = case.view, case.causes, len(case.breaches)
    home = view.rest.home(directory.path)
    looked = [(deletion, home.seen_at(deletion.answered)) for deletion in done]
    for name, span in home.spans.items():
        for since, to in periods(span):
            for deletion, empty in looked:
                if empty is None or empty >= to:
                    continue
                shown = max(empty, since)
                if _belongs(view, creates.get(name, []), deletion, shown) or _kit_meddled(
                    view, directory, deletion, shown
                ):
                    continue
                last = max((d for d in done if deletion <= d and d.answered < since), default=deletion)
                again = span[0] < min(since, last.invoke)
                how = "still stored" if since < deletion.invoke else "stored again" if again else "stored"
                when = "" if last == deletion else f", the last time at event {last.answered}"
                what = f"{name!r} is {how} at event {shown} after {directory.path} was deleted{when}"
                came = view.life_of(directory.path, name).since(shown) if view.reads else None
                message = f"{what}, with no create since" + (f"; it was stored at event {came}" if came else "")
                message += f"; it was gone from event {to} on" if to != NEVER else ""
                evidence = (deletion.invoke, deletion.answered, shown)
                instead, source = ("", ()) if name in creates else causes.asked_instead(directory, name, since)
                cause = _back_by(since, deletion) if name in creates else causes.of_stranger(directory, name)
                also = (since, last.invoke, *source)
                case.breach(message + instead, evidence, directory.path, cause, also)
                break
    # The order of `spans` comes from sets of names and differs between processes; that of a verdict must not.
    case.sort(before)


def _back_by(since: int, deletion: Deletion) -> str:
    """The way in which a requested name is stored after a deletion; since: the event at which it was."""
    if since < deletion.invoke:
        return "not-deleted"
    return "back-during-deletion" if since < deletion.answered else "back-after-deletion"


def _kit_meddled(view: HistoryIndex, directory: Directory, deletion: Deletion, until: int) -> bool:
    """Whether the kit damaged or restored a file of the directory between a deletion and an event."""
    return any(
        other.kit and other.invoke <= until and deletion.invoke <= other.settled for other in directory.deletions
    ) and view.excuse("kit-damage")


def _listed_again(case: Inquiry, directory: Directory, done: list[Deletion], creates: _Creates) -> None:
    view, causes = case.view, case.causes
    by_kind: dict[str, _Creates] = {"list": creates}
    for listing in directory.listings:
        if listing.outcome != "ok" or not isinstance(listing.value, tuple) or not listing.value:
            continue
        known = by_kind.get(listing.operation)
        if known is None:
            known = by_kind[listing.operation] = _by_path(view, creates, listing.operation)
        for deletion in done:
            if deletion.answered > listing.invoke:
                continue
            back = [n for n in listing.value if not _belongs(view, known.get(n, []), deletion, listing.done)]
            if back and not _kit_meddled(view, directory, deletion, listing.done):
                other = listing.life != deletion.life and listing.life != NO_LIFE
                if other and view.overlapping_servers(deletion.invoke, listing.done) and view.excuse("second-server"):
                    continue
                message = f"a {listing.operation} of {directory.path} shows {back[0]!r} after the directory was deleted"
                names = {call.name for call in known.get(back[0], ())} or {back[0]}
                came = [view.life_of(directory.path, name).since(listing.done) for name in sorted(names)]
                stored = max((at for at in came if at is not None), default=None)
                message += f"; it is stored from event {stored} on" if stored is not None else ""
                strange = stored is not None and back[0] not in known
                instead, source = causes.asked_instead(directory, back[0], stored or 0) if strange else ("", ())
                evidence = (deletion.invoke, deletion.answered, *listing.span)
                message, cause = message + instead, "listed-after-deletion"
                case.breach(message, evidence, directory.path, cause, source)
                break


def _by_path(view: HistoryIndex, creates: _Creates, kind: str) -> _Creates:
    found: _Creates = {}
    for name, calls in creates.items():
        shows, path = view.names_data(name)
        if shows == kind:
            found.setdefault(path, []).extend(calls)
    return found


@judge_of("G11")
def readable_while_written(case: Inquiry) -> None:
    """G11: a listing answered ok holds each marker answered before its invocation, and listings are answered ok.

    `exists` answers True whenever a listing would have to show a name.

    Not expected are markers that a deletion may have removed, and at one server markers that another live server may
    have stored. Either may fail, or end unknown, under a fault: of storage in that directory, of its own connection,
    or of its server. Time-outs are judged by G6.
    """
    view = case.view
    for directory in view.directories.values():
        denied(case, directory)
        if not directory.listings:
            continue
        answers = directory.answers
        shown: dict[str, dict[str, RecordedCall]] = {"list": {}, "list-data": {}, "list-log": {}}
        only_all = all(call.operation == "list" for call in directory.listings)
        at = 0
        for listing in sorted(directory.listings):
            while at < len(answers) and answers[at].done < listing.invoke:
                call = answers[at]
                _show(shown["list"], call.name, call)
                if not only_all:
                    kind, path = view.names_data(call.name)
                    _show(shown[kind], path, call)
                at += 1
            if listing.outcome == "ok" and isinstance(listing.value, tuple):
                count, missing = _missing(view, directory, listing, shown[listing.operation])
                case.judged += count > 0
                for name, call in missing:
                    _short(case, directory, listing, name, call)
            elif listing.outcome in ("fail", "info") and not may_fail(view, directory, listing):
                why = view.error_of(listing) or "no reason given"
                message = f"a {listing.operation} of {directory.path} ended {listing.outcome} without a fault: {why}"
                cause = _refused_by(case, directory, listing)
                case.breach(message, listing.span, directory.path, cause)


def _show(shown: dict[str, RecordedCall], key: str, call: RecordedCall) -> None:
    """Record an answered marker that listings must show from now on; of several, the last invoked create counts."""
    known = shown.get(key)
    if known is None or known.invoke < call.invoke:
        shown[key] = call


def _missing(
    view: HistoryIndex, directory: Directory, listing: RecordedCall, expected: dict[str, RecordedCall]
) -> tuple[int, list[tuple[str, RecordedCall]]]:
    """The number of names that a listing must show, and those that are missing."""
    assert isinstance(listing.value, tuple)
    missing = sorted(expected.keys() - listing.value)
    owed = Owed(view, directory, listing)
    if owed.all:
        return len(expected), [(name, expected[name]) for name in missing]
    excuses = {name: owed.excuse(call) for name, call in expected.items()}
    for why in sorted({excuses[n] for n in missing if not directory.deleted(expected[n].done, listing.done)} - {""}):
        view.excuse(why)
    count = sum(not why for why in excuses.values())
    return count, [(name, expected[name]) for name in missing if not excuses[name]]


def _short(case: Inquiry, directory: Directory, listing: RecordedCall, name: str, call: RecordedCall) -> None:
    message = (
        f"a {listing.operation} of {directory.path}, answered at event {listing.done}, lacks {name!r}, which was"
        f" answered at event {call.done}, before it was invoked"
    )
    evidence = (*call.span, *listing.span)
    life = case.view.life_of(directory.path, call.name)
    if life.stored(listing.done):
        message += f"; it is stored from event {life.since(listing.done)} on"
    elif life.witnessed or life.gone(call.done, listing.done) is not None:
        instead = case.causes.instead(directory, call, listing.done)
        message += f"; it is not stored at event {listing.done}{life.around(listing.done)}{instead}"
    case.breach(message, evidence, directory.path, _left_out_by(case, directory, listing, name, call))


def _left_out_by(case: Inquiry, directory: Directory, listing: RecordedCall, name: str, call: RecordedCall) -> str:
    """The cause for which a name is missing in a listing."""
    view, causes = case.view, case.causes
    if other := causes.shown_otherwise(directory, listing, name):
        return other
    gone = view.rest.home(directory.path).gone_from(call.name, call.done, listing.done)
    life = view.life_of(directory.path, call.name)
    if gone is not None and not (life.witnessed and life.stored(listing.done)):
        return causes.of_loss(directory, call, gone)
    return "after-deletion" if causes.deleted_before(directory, listing.done) else "stored-and-not-listed"


def _refused_by(case: Inquiry, directory: Directory, listing: RecordedCall) -> str:
    """The cause of a failed listing: an unreadable file, or concurrent creates."""
    if case.causes.unreadable(directory, listing.done):
        return "unreadable-file"
    busy = any(call.invoke < listing.done and call.done > listing.invoke for call in directory.creates)
    return "failed-during-creates" if busy else "failed"
