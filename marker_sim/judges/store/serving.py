"""Judges of answers: G6 every-request-answered and G7 isolation."""

from __future__ import annotations

from itertools import pairwise

from marker_sim.history import CallError
from marker_sim.history.index.calls import LISTINGS, MS, SPREADING, Directory, FaultSpan, RecordedCall, ServerLife
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, directory_of, stores_elsewhere
from marker_sim.judges.findings import Inquiry, judge_of
from marker_sim.judges.store.silence import Silence

_Windows = list[tuple[int, int]]  # In ns, of the faults that are confined to one directory.
_CHANGES = frozenset({"create", "delete"})
_STOPS = {"client": "client-died", "pause": "server-unwell", "restart": "server-unwell"}
_HOLDING = frozenset({"delayed", "duplicated", "slow-link"})  # These cut no connection: the answer is only later.


@judge_of("G6")
def every_request_answered(case: Inquiry) -> None:
    """G6, in two parts, both after the last fault; not applicable without a server. A request that was never answered
    is shown by its invocation alone.

    Requests: one that arrived at a server that stayed alive and unpaused, over a connection no wire fault touched, is
    answered within the bound, counted from its invocation or the end of the last fault, whichever is later; a time-out
    is no answer. An answer may come later when its server answered others all the time, in the order of their requests.
    A request whose client gave up sooner, or was killed, is not judged.
    Probes: at least num_threads + 1 creates after phase "probe", each of them ok. Late echoes of the kit, a server that
    was left dead or paused, and a fault during the probe leave it undecided. A server that exits by itself breaks it.
    """
    view = case.view
    case.applicable = view.batches
    if not case.applicable:
        return
    for life in view.lives.values():
        if life.exited:
            message = f"server {life.process}, started at event {life.start}, {_how_exited(view, life)}"
            case.breach(message, (life.start, life.end), cause="server-exited")
    case.undecided = _cannot_decide(view)
    if case.undecided:
        view.excuse("run-undecided")
    if not view.late_echoes:
        silence = Silence(view)
        _judge_answers(case, silence)
        if not case.undecided:
            _judge_probes(case, silence)


def _how_exited(view: HistoryIndex, life: ServerLife) -> str:
    how = view.events[life.end].value  # Of one that was started again after a death and never served.
    return f"{how} after a death, with all faults over" if isinstance(how, str) else "exited by itself"


def _cannot_decide(view: HistoryIndex) -> str:
    """The reason why a run's probes prove nothing, "" when they do."""
    if view.late_echoes:
        return f"the kit's own echo was late (event {view.late_echoes[0]}), so slowness proves nothing"
    probe = view.phase("probe")
    if probe == NEVER:
        return "the run has no probe phase"
    alive = [life for life in view.lives.values() if life.end > probe]
    if not alive:
        return "no server was live when the probes began"
    if any(life.paused(probe, view.end) for life in alive):
        return "a server was left paused"
    if any(fault.begin > probe for fault in view.faults):
        return "a fault began during the probes"
    probes, needed = len(_probes(view)), view.header.num_threads + 1
    if view.steps and not (view.header.plan or {}).get("directories", True):
        return ""  # A plan without marker directories of its own ends with a write, which reconcile-exact judges.
    return f"{probes} probe creates, {needed} are needed" if probes < needed else ""


def _probes(view: HistoryIndex) -> list[tuple[Directory, RecordedCall]]:
    """The creates of the probe phase for which a server lived; an embedded one lives as long as its driver."""
    begin, end = view.phase("probe"), view.phase("end")
    return [
        (directory, call)
        for directory in view.directories.values()
        if view.mode_of(directory.path) == "timeline"
        for call in directory.creates
        if begin < call.invoke < end and any(life.start < call.invoke < life.end for life in view.lives.values())
    ]


def _judge_probes(case: Inquiry, silence: Silence) -> None:
    """A breach for each failed probe; one that a later try repeated with success did not fail.

    Attempts of a write all create at once, and a store may answer all but one of them with "try again".
    """
    view = case.view
    probes = _probes(view)
    served = {(directory.path, call.name): call.invoke for directory, call in probes if call.outcome == "ok"}
    for directory, call in probes:
        if call.outcome != "ok" and served.get((directory.path, call.name), -1) > call.done:
            view.excuse("asked-again")
            continue
        waited_ns = _end_ns(view, call) - view.time_ns(call.invoke)
        gone = view.ended(view.events[call.invoke].process) < NEVER
        if call.outcome == "open" and (gone or waited_ns < view.header.answer_bound_ms * MS):
            view.excuse("client-died" if gone else "run-ended")
            continue
        if view.timed_out(call) and _starved(view, call, view.time_ns(call.invoke), view.header.answer_bound_ms * MS):
            view.excuse("no-processor")
            continue
        case.judged += 1
        if call.outcome != "ok":
            ended = "was never answered" if call.outcome == "open" else f"ended {call.outcome}{_why(view, call)}"
            message = f"the create of {call.name!r} that was sent after the last fault {ended}{silence.around(call)}"
            cause, why = silence.cause(case.causes, directory, call, "refused")
            case.breach(message + why, call.span, directory.path, cause)


def _judge_answers(case: Inquiry, silence: Silence) -> None:
    """A breach for each request with no answer in time."""
    view = case.view
    bound_ns = view.header.answer_bound_ms * MS
    healthy_ns = view.healthy_ns
    events, arrived, touched = view.events, view.arrived, view.touched
    answered = 0
    for directory, call in view.calls():
        invoke, done, outcome, _, _, _, _, life_start = call
        if done != NEVER and outcome != "info":
            begun_ns = events[invoke].time_ns
            if events[done].time_ns - (begun_ns if begun_ns > healthy_ns else healthy_ns) <= bound_ns:
                answered += outcome == "ok"
                continue
        cut = not _HOLDING.issuperset(touched.get(invoke, ()))
        if cut or (arrived and invoke not in arrived):
            view.excuse("wire-fault" if cut else "never-arrived")
            continue
        life = view.lives.get(life_start)
        why = "no-server" if life is None else _unwell(view, call, life)
        if life is None or why:
            view.excuse(why)
            continue
        waited_ns = _end_ns(view, call) - max(view.time_ns(_arrived_last(view, call)), healthy_ns)
        late_deletion = waited_ns > bound_ns and call.operation == "delete"
        if late_deletion and view.keeps_deleting(call, directory.path, bound_ns) and view.excuse("still-deleting"):
            continue
        if waited_ns <= bound_ns:
            if view.timed_out(call):
                view.excuse("waited-too-short")
            else:
                answered += 1
            continue
        if _starved(view, call, _end_ns(view, call) - waited_ns, bound_ns) and view.excuse("no-processor"):
            continue
        silent = view.timed_out(call)
        if not silent and _in_line(view, call, _end_ns(view, call) - waited_ns, bound_ns) and view.excuse("in-line"):
            continue
        how = "not answered" if silent else f"answered ({call.value!r})" if isinstance(call.value, str) else "answered"
        late = "" if silent else f", so it came {(waited_ns - bound_ns) / 1e9:.3f} s late"
        message = (
            f"{_asked(directory, call)} that reached {life.process} was {how} {waited_ns / 1e9:.1f} s after it was sent"
            f" and all faults were over; the bound is {view.header.answer_bound_ms / 1e3:.1f} s{late}"
            f"{silence.around(call)}"
        )
        cause, why = silence.cause(case.causes, directory, call, "late")
        case.breach(message + why, (invoke, done), directory.path, cause)
    case.judged += answered


def _arrived_last(view: HistoryIndex, call: RecordedCall) -> int:
    """The last arrival of a request that the wire delayed or copied; of any other, its sending."""
    if call.invoke not in view.touched:
        return call.invoke
    events = view.events[call.invoke : view.awaited_until(call)]
    return max(
        (e.index for e in events if e.operation == "arrived" and e.caused_by == call.invoke), default=call.invoke
    )


def _unwell(view: HistoryIndex, call: RecordedCall, life: ServerLife) -> str:
    """The side of a call that ended or stayed paused before the call was over, "" for none.

    A pause that is over is no excuse: the wait is counted from the end of the last fault.
    """
    until = view.awaited_until(call)
    client = view.events[call.invoke].process
    gone = any(
        fault.cls == "client"
        and fault.process == client
        and fault.begin <= until
        and fault.end >= (until if fault.kind == "pause" else call.invoke)
        for fault in view.faults
    )
    if gone or call.invoke < view.exits.get(client, -1) <= until:
        return "client-died"
    return "" if life.start <= call.invoke and life.well(until, until) else "server-unwell"


def _end_ns(view: HistoryIndex, call: RecordedCall) -> int:
    return view.time_ns(view.awaited_until(call))


def _asked(directory: Directory, call: RecordedCall, whole: bool = False) -> str:
    """A request as the subject of a sentence; whole: with its directory in any case."""
    place = f" in {directory.path}" if whole else ""
    return f"the create of {call.name!r}{place}" if call.name else f"the {call.operation} of {directory.path}"


def _why(view: HistoryIndex, call: RecordedCall) -> str:
    return f" ({error})" if (error := view.error_of(call)) else ""


def _ended(view: HistoryIndex, call: RecordedCall) -> str:
    own = view.error_of(call).startswith(CallError.RAISED)
    return f"{'failed with an error of its own' if own else f'ended {call.outcome}'}{_why(view, call)}"


@judge_of("G7")
def isolation(case: Inquiry) -> None:
    """G7: a storage fault inside one marker directory does not affect requests for the others.

    Judged is each request for another directory that overlaps the fault, or the storage time-out and late effects
    after it, and that no other fault, and no other deletion of its directory, touched: it ends ok or is refused, within
    the storage time-out plus the bound. A directory that nobody named is the server's own, perhaps what it moved a
    deleted one to. A full disk is no fault of one directory, and a failed listing is judged by
    readable-while-written. An event after a request was late already is no reason for its lateness. Not applicable
    where nothing is stored below marker directories: then none fails alone.
    """
    view = case.view
    confined = [(each.home, each, *_window(view, each)) for each in view.faults if each.home and _is_confined(each)]
    case.applicable = bool(confined) or not stores_elsewhere(view.header, view.events)
    if not confined or len(view.directories) < 2:
        return
    # Not the time-out alone: a pause or an earlier fault of the call's own directory may still delay it.
    limit_ns = (view.header.storage_timeout_ms + view.header.answer_bound_ms) * MS
    for directory, call in view.calls():
        begin_ns, end_ns = view.time_ns(call.invoke), _end_ns(view, call)
        others = (
            f for home, f, since, over in confined if home != directory.path and since <= end_ns and begin_ns <= over
        )
        fault = next(others, None)
        if fault is None:
            continue
        late = _is_late(view, directory, call, limit_ns)
        if call.outcome == "ok" and not late:
            case.judged += 1
            continue
        if not late and call.outcome == "fail":
            continue  # A refusal is an answer about the request itself.
        until = min(view.awaited_until(call), view.index_at(begin_ns + limit_ns) - 1)
        why = _touched_otherwise(view, directory, call, until)
        if not why and not late:
            why = _ended_otherwise(view, directory, call, [(since, over) for _, _, since, over in confined])
        if why:
            view.excuse(why)
            continue
        case.judged += 1
        took = "was not answered in" if view.timed_out(call) else "took"
        took += f" {(end_ns - begin_ns) / 1e9:.1f} s (its bound is {limit_ns / 1e9:.1f} s)"
        what = f"{_asked(directory, call, True)} {took if late else _ended(view, call)}"
        message = f"{what} while storage failed only in another directory ({fault.path})"
        cause = "never-answered" if view.timed_out(call) else "held-up" if late else "failed-along"
        case.breach(message, (fault.begin, *call.span), cause=cause)


def _is_late(view: HistoryIndex, directory: Directory, call: RecordedCall, limit_ns: int) -> bool:
    """Whether a call took longer than its limit, and neither a long deletion nor a starved server is the reason."""
    begin_ns = view.time_ns(call.invoke)
    if _end_ns(view, call) - begin_ns <= limit_ns:
        return False
    if call.operation == "delete" and view.keeps_deleting(call, directory.path, limit_ns):
        return not view.excuse("still-deleting")
    return not (_starved(view, call, begin_ns, limit_ns) and view.excuse("no-processor"))


def _ended_otherwise(view: HistoryIndex, directory: Directory, call: RecordedCall, windows: _Windows) -> str:
    """The reason why a call that no event touched may have ended unknown in time, "" for none."""
    reasons = (
        ("waited-too-short", view.timed_out(call)),
        ("listing-failed", call.operation in LISTINGS),
        ("busy-anyway", view.answered_busy(call) and _is_busy_anyway(view, windows)),
        ("outrun-by-another", _outrun(view, directory, call)),
    )
    return next((reason for reason, holds in reasons if holds), "")


def _outrun(view: HistoryIndex, directory: Directory, call: RecordedCall) -> bool:
    """Whether another request changed the directory during a call that ended unknown.

    A store that replaces whole objects may refuse a request that came second; a Python class can only raise an error,
    while a server can answer 409. So only the simulated world is considered, whose effects have an order.
    """
    if view.header.world != "simulated":
        return False
    others = [other for other in directory.creates if other.invoke < call.done and call.invoke < other.done]
    inside = (event for event in view.events[call.invoke : call.done] if event.kind == "effect")
    return len(others) > 1 and any((event.path or "").startswith(f"{directory.path}/") for event in inside)


def _is_busy_anyway(view: HistoryIndex, windows: _Windows) -> bool:
    """Whether a call was also answered 503 outside these windows, so that the fault is not the reason."""
    refused_ns = (view.time_ns(call.done) for _, call in view.calls() if view.answered_busy(call))
    return any(not any(since <= at_ns <= over for since, over in windows) for at_ns in refused_ns)


def _starved(view: HistoryIndex, call: RecordedCall, since_ns: int, limit_ns: int) -> bool:
    """Whether a call was late only because its server waited for a processor or for the kit's storage."""
    until_ns = _end_ns(view, call)
    return until_ns - since_ns - view.starved_ns(since_ns, until_ns) <= limit_ns


def _in_line(view: HistoryIndex, call: RecordedCall, since_ns: int, bound_ns: int) -> bool:
    """Whether a late answer came in its turn: after answers to others, at least one each tenth of the bound.

    None of these was sent more than half the bound later: a request that is overtaken for so long is not in a queue.
    Readings are in no line of changes, so they neither count for one nor overtake it.
    """
    until_ns, sent_ns = _end_ns(view, call), view.time_ns(call.invoke)
    times = [since_ns, until_ns]
    for _, other in view.calls():
        done_ns = view.time_ns(other.done)
        if call.operation in _CHANGES and other.operation not in _CHANGES:
            continue
        if other.life == call.life and since_ns <= done_ns < until_ns and not view.timed_out(other):
            if view.time_ns(other.invoke) - sent_ns > bound_ns // 2:
                return False
            times.append(done_ns)
    return max(later - earlier for earlier, later in pairwise(sorted(times))) <= bound_ns // 10


def _is_confined(fault: FaultSpan) -> bool:
    return fault.storage and bool(fault.path) and fault.kind not in SPREADING


def _is_below(fault: FaultSpan, directory: Directory) -> bool:
    """Whether it is, or may be, of a directory: one that nobody named may belong to any."""
    return fault.home == directory.path or (fault.home is None and directory_of(f"{fault.path}/") is not None)


def _window(view: HistoryIndex, fault: FaultSpan) -> tuple[int, int]:
    return view.time_ns(fault.begin), view.time_ns(fault.end) + view.rest_ns


def _touched_otherwise(view: HistoryIndex, directory: Directory, call: RecordedCall, until: int) -> str:
    """The reason why a call may have failed by an event, without storage faults of other directories, "" for none.

    If the kit itself was delayed, the time that a server took is not known.
    """
    if any(call.invoke < late <= view.awaited_until(call) for late in view.late_echoes):
        return "echo-late"
    if call.invoke in view.touched:
        return "wire-fault"
    if view.overlapping_servers(call.invoke, until):
        return "second-server"
    if not view.served_well(directory.path, call, until):
        return "server-unwell"
    # A server may report that the file it just wrote was deleted.
    if any(d.invoke != call.invoke and d.invoke < until and d.settled > call.invoke for d in directory.deletions):
        return "deletion-open"
    begin_ns, end_ns = view.time_ns(call.invoke), view.time_ns(until)
    client = view.events[call.invoke].process
    if call.invoke < view.exits.get(client, -1) <= until:
        return "client-died"
    for fault in view.faults:
        if fault.cls in _STOPS:
            if fault.begin <= until and call.invoke <= fault.end and (fault.cls != "client" or fault.process == client):
                return _STOPS[fault.cls]
        elif fault.storage and (not _is_confined(fault) or _is_below(fault, directory)):
            since, over = _window(view, fault)
            if since <= end_ns and begin_ns <= over:
                return "storage-fault"
    return ""
