"""Judges of names: G4 exact-set and G5 one-creator."""

from __future__ import annotations

from collections import Counter

from marker_sim.history import CallError
from marker_sim.history.index.calls import NO_LIFE, Directory, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import DirectoryPresence, present
from marker_sim.judges.findings import Inquiry, judge_of, next_answer

_ONE_ANSWER = "; a request and its resends have one answer"


@judge_of("G4")
def exact_set(case: Inquiry) -> None:
    """G4, both ways, in each directory that was named: no name is stored or listed that was not requested before, and
    every answered one is stored in the end.

    A create that provably had no effect, or a hostile request that was refused, does not count as a request. An
    answered name is not expected in the end when a deletion may have had an effect after the create was invoked.
    """
    view, causes = case.view, case.causes
    hostile = [call for directory in view.directories.values() for call in directory.hostile]
    for path in view.named:
        directory = view.directories.get(path) or Directory(path)
        home = view.rest.home(path)
        asked = _asked(view, directory, [call for call in hostile if call.name == path])
        case.judged += len(home.spans)
        for name, span in home.spans.items():
            if asked.get(name, view.end) > span[0]:
                late = f" until event {asked[name]}" if name in asked else ""
                of_it, source = causes.asked_instead(directory, name, span[0])
                message = f"{name!r} is stored in {path} from event {span[0]} on and no create had requested it{late}"
                cause = "asked-for-later" if name in asked else causes.of_stranger(directory, name)
                also = () if of_it else next_answer(view, path, span[0], name)
                case.breach(message + of_it, (span[0], *source), path, cause, also)
        _listed(case, directory, asked)
        _missing_in_the_end(case, directory, home)
    case.sort()


def _asked(view: HistoryIndex, directory: Directory, aimed: list[RecordedCall]) -> dict[str, int]:
    """The event of the first request for each name, from creates that may have had an effect.

    aimed: hostile requests whose malformed directory resolves to this one.
    """
    asked: dict[str, int] = {}
    for call in directory.creates:
        if call.outcome == "fail" and view.had_no_effect(call):
            continue
        known = asked.get(call.name)
        if known is None or call.invoke < known:
            asked[call.name] = call.invoke
    if view.start:
        spans = view.rest.home(directory.path).spans
        asked |= {name: span[0] for name, span in spans.items() if span[0] < view.start}
    for call in (*directory.hostile, *aimed):
        if not view.refused(call) and call.identity is not None:
            for name in call.asked_names:
                asked[name] = min(asked.get(name, call.invoke), call.invoke)
    return asked


def _listed(case: Inquiry, directory: Directory, asked: dict[str, int]) -> None:
    """The listed names that no create had requested when the listing was answered."""
    listings = [call for call in directory.listings if call.outcome == "ok" and isinstance(call.value, tuple)]
    listings.sort(key=lambda call: call.done)
    if not listings:
        return
    order = sorted(asked, key=lambda name: asked[name])
    known: dict[str, set[str]] = {"list": set(), "list-data": set(), "list-log": set()}
    only_all = all(call.operation == "list" for call in listings)
    at = 0
    for call in listings:
        while at < len(order) and asked[order[at]] < call.done:
            known["list"].add(order[at])
            if not only_all:
                kind, shows = case.view.names_data(order[at])
                known[kind].add(shows)
            at += 1
        listed = call.value
        assert isinstance(listed, tuple)
        if known[call.operation].issuperset(listed):
            continue
        for name in sorted(set(listed) - known[call.operation]):
            message = f"a {call.operation} of {directory.path} shows {name!r}, which no create had requested"
            cause = case.causes.of_stranger(directory, name, call.operation)
            of_it, source = _where_from(case, directory, call, name)
            case.breach(message + of_it, call.span, directory.path, cause, source)
    case.judged += len(listings)


def _where_from(
    case: Inquiry, directory: Directory, listing: RecordedCall, stranger: str
) -> tuple[str, tuple[int, ...]]:
    """Since when an unrequested listed name is stored, and the request it may stand for: the end of a sentence."""
    if listing.operation != "list":
        return "", ()
    span = [] if case.view.reads else case.view.rest.home(directory.path).spans.get(stranger, [])
    stored = present(span, listing.done) is not None
    since = max(at for at in span[::2] if at <= listing.done) if stored else listing.done
    instead, source = case.causes.asked_instead(directory, stranger, since)
    return (f"; it is stored from event {since} on" if stored else "") + instead, source


def _missing_in_the_end(case: Inquiry, directory: Directory, home: DirectoryPresence) -> None:
    view, causes = case.view, case.causes
    if view.reads and not home.seen:
        view.excused["read-too-late"] += len(directory.answers)
        return
    last, begun = (home.seen[-1], home.begun[-1]) if view.reads else (view.end, view.end)
    settled = directory.settled_before(last)
    reported: set[str] = set()
    for call in (*directory.answers, *_accepted(directory)):
        if present(home.spans.get(call.name), last) is not None:
            continue
        if call.done > begun or call.invoke < settled:
            if not directory.deleted(call.done, last):
                view.excuse("read-too-late" if call.done > begun else "deletion-open")
            continue
        if call.name not in reported:
            reported.add(call.name)
            when = view.life_of(directory.path, call.name).around(last)
            message = (
                f"{call.name!r} was answered {call.value!r} at event {call.done} and is not stored in {directory.path}"
                f" in the end{when}{causes.instead(directory, call, last)}"
            )
            cause = causes.of_loss(directory, call, home.gone_from(call.name, call.done, last) or last)
            evidence = (*call.span, min(last, view.end - 1))
            case.breach(message, evidence, directory.path, cause)


def _accepted(directory: Directory) -> list[RecordedCall]:
    """Creates of hostile names answered "created" or "exists", without those in malformed directories."""
    named = [call for call in directory.hostile if call.name == directory.path]
    answered = [call for call in named if call.outcome == "ok" and call.value in ("created", "exists")]
    return [call._replace(name=call.asked) for call in answered]


@judge_of("G5")
def one_creator(case: Inquiry) -> None:
    """G5: two answers "created" to different requests, "exists" to the resend of the request that created, or "exists"
    to the only request that there ever was for a name.

    Not judged when a deletion may have had an effect, or two servers were live, between the first invocation and the
    last answer. In direct mode it needs a storage that can put if absent.
    """
    view = case.view
    absent = view.header.capabilities.get("put_if_absent", False)
    case.applicable = view.batches or absent
    for directory in view.directories.values():
        direct = view.mode_of(directory.path) == "direct"
        if direct and not absent:
            continue
        _created_by_nobody(case, directory)
        if len({call.name for call in directory.answers}) == len(directory.answers) == len(directory.creates):
            continue
        by_name: dict[str, list[RecordedCall]] = {}
        for call in directory.creates:
            by_name.setdefault(call.name, []).append(call)
        for calls in by_name.values():
            answers = [call for call in calls if call.outcome == "ok"]
            if len(calls) == 1 or not answers:
                continue
            case.judged += len(answers)
            _second_creators(case, directory, answers)
            if view.header.identity and not direct:
                _forgotten_resends(case, directory, calls)


def _second_creators(case: Inquiry, directory: Directory, answers: list[RecordedCall]) -> None:
    view, causes = case.view, case.causes
    first: RecordedCall | None = None
    told: list[RecordedCall] = []
    for call in answers:
        if call.value != "created":
            continue
        if first is not None and (call.identity is None or call.identity != first.identity):
            low = min(first.invoke, call.invoke)
            repeated = any(_repeated(view, other, call) for other in told)
            if not _disturbed(view, directory, low, call.done) and not (repeated and view.excuse("answer-repeated")):
                message = f'two requests were answered "created" for {call.name!r}: {_who(first)} and {_who(call)}'
                evidence = (*first.span, *call.span)
                looked = view.rest.home(directory.path).seen_at(first.done)
                at = max(looked or call.done, call.invoke)
                life = view.life_of(directory.path, call.name)
                cause = "forgotten" if life.stored(at) else causes.of_loss(directory, first, at)
                moment = max(first.done, call.invoke) if life.witnessed else at
                if life.stored(moment):
                    message += f"; it was stored from event {life.since(moment)} on"
                elif life.witnessed or looked is not None:
                    instead = causes.instead(directory, first, moment)
                    message += f"; it is not stored at event {moment}{life.around(moment)}{instead}"
                case.breach(message, evidence, directory.path, cause)
        first = call
        told.append(call)


def _created_by_nobody(case: Inquiry, directory: Directory) -> None:
    """Answers "exists" to the only request for a name not stored before it."""
    view = case.view
    asked = Counter(call.name for call in directory.creates)
    spans = view.rest.home(directory.path).spans
    for call in directory.answers:
        if asked[call.name] > 1 or present(spans.get(call.name), call.invoke) is not None:
            continue
        if call.value == "exists":
            if call.invoke in view.touched and view.excuse("wire-fault"):
                continue  # A copy of the request may have been first.
            if _failed_meanwhile(view, directory, *call.span) and view.excuse("storage-fault"):
                continue  # A put may have been applied without an answer.
            if _disturbed(view, directory, *call.span):
                continue
            only = f'the only request for {call.name!r} was answered "exists"'
            message = f"{only}, and nothing of that name had been stored before it"
            came = view.life_of(directory.path, call.name).came(call.invoke)
            message += f"; it was stored at event {came}" if came is not None else ""
            case.breach(message, call.span, directory.path, "created-by-nobody")
        case.judged += 1


def _failed_meanwhile(view: HistoryIndex, directory: Directory, low: int, high: int) -> bool:
    """Whether a storage fault that concerns a directory was active between two events."""
    return any(
        fault.storage and fault.begin <= high and low <= fault.end and fault.concerns(directory.path)
        for fault in view.faults
    )


def _disturbed(view: HistoryIndex, directory: Directory, low: int, high: int) -> bool:
    """Whether a deletion or a second server may be why a name has two creators."""
    if directory.disturbed(low, high):
        return view.excuse("deletion-open")
    return view.overlapping_servers(low, high) and view.excuse("second-server")


def _forgotten_resends(case: Inquiry, directory: Directory, calls: list[RecordedCall]) -> None:
    """Resends answered "exists" although only their first request can have created the name in this server life."""
    view = case.view
    for call in calls:
        if call.outcome != "ok" or call.value != "exists" or call.identity is None or call.life not in view.lives:
            continue
        before = [other for other in calls if other.invoke < call.done and other is not call]
        low = min((other.invoke for other in before), default=call.invoke)
        first = next((other for other in before if _same(other, call) and other.value == "created"), None)
        if first is not None:
            # The two may overlap, so a deletion or second server counts until the later one was answered.
            high = max(first.done, call.done)
            if _disturbed(view, directory, low, high):
                continue
            one = f'{call.name!r} was answered "created" at event {first.done}'
            message = f'{one} and its resend in the same server life "exists" at event {call.done}{_ONE_ANSWER}'
            evidence = (*first.span, *call.span)
            case.breach(message, evidence, directory.path, "resend-forgotten")
        elif before and _alone(view, directory, before, call) and not _disturbed(view, directory, low, call.done):
            message = f'only one request created {call.name!r}, and its resend was answered "exists"{_ONE_ANSWER}'
            case.breach(message, (low, *call.span), directory.path, "resend-forgotten")


def _alone(view: HistoryIndex, directory: Directory, before: list[RecordedCall], call: RecordedCall) -> bool:
    """Whether all earlier creates of a name are the same unanswered request in the same server life.

    A request that the server answered with an error, or may have because of a storage fault, does not count: to the
    server it was never created, and if storage holds the name, "exists" is a correct answer.
    """
    low = min(other.invoke for other in before)
    span = view.rest.home(directory.path).spans.get(call.name)
    if (span is not None and span[0] <= low) or any(not _same(other, call) for other in before):
        return False
    if view.overlapping_servers(view.lives[call.life].start, call.done):
        return not view.excuse("second-server")
    if not all(view.timed_out(other, CallError.CUT) for other in before):
        return not view.excuse("answered-with-an-error")
    return not (_failed_meanwhile(view, directory, low, call.done) and view.excuse("storage-fault"))


def _repeated(view: HistoryIndex, told: RecordedCall, call: RecordedCall) -> bool:
    """Whether a request answered "created" was sent again to the server that answered: its answer is repeated."""
    if call.identity is None or call.identity != told.identity or call.invoke < told.done:
        return False
    events = view.events
    return call.life == told.life and (
        call.life != NO_LIFE or events[call.invoke].process == events[told.invoke].process
    )


def _same(one: RecordedCall, other: RecordedCall) -> bool:
    return one.identity == other.identity and one.life == other.life != NO_LIFE


def _who(call: RecordedCall) -> str:
    return f"event {call.done}" + (f" (request {call.identity!r})" if call.identity is not None else "")
