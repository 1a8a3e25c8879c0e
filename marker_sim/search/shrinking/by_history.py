"""Smaller plans from the events of a failing run: its calls one after the other, or those that overlapped.

What the evidence names comes first, alone. Most defects need an order of calls and no race. One client that performs a
part of the calls in the order in which they were made, with the faults where they struck between them, fails each time
it is run, and is made smaller call by call. Races need calls that overlapped with the evidence: these are made again at
once. If neither fails, all operations of the plan in the directories of the evidence are kept.

The last candidates are operations of the plan: what the evidence mentions (a marker directory, names, clients) is kept,
everything else goes first, then the faults. They are few, because a run costs a second.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

from marker_sim.faults import Call, Fault, FaultKind, Site, Step
from marker_sim.faults.sites import REPLY, REQUEST_QUEUED
from marker_sim.history import Event, History
from marker_sim.history.index.presence import NEVER
from marker_sim.names import TEMP
from marker_sim.plan import COPY, OF_CROWD, Op, Plan
from marker_sim.unusual_names import folded

CROWDS = ((8, 0), (40, 2))


CLIENT, READER = "executor-0", "executor-1"
LASTS_MS_MAX = 4_000  # Limit for a plan whose creates each wait for a batch.
MANY = 8  # Number of creates that may have been in as many batches.
APART_MS = 10  # Longer than the interval between batches.
SERVERS = ("server", "second")


class _Made(NamedTuple):
    """A call that was made: operation, process, first and last event, time, and whether it was refused."""

    op: Op
    process: str
    invoke: int
    done: int
    at_ms: int
    refused: bool


_Struck = tuple[Fault, Event]
_Arranged = Callable[[Plan, list[_Made], list[_Struck]], Iterator[Plan]]


def candidates(plan: Plan, history: History, evidence: tuple[int, ...], under: str) -> Iterator[Plan]:
    """Plans with a part of the calls that were made before the last event of the evidence, the smallest first; then
    with a part of the plan's operations. Some come more than once.

    under: the class of faults that the breach came under; those of that class are tried first.
    """
    yield from of_calls(plan, history, evidence, under)
    yield from _of_operations(plan, [history.events[index] for index in evidence], under)


def of_calls(plan: Plan, history: History, evidence: tuple[int, ...], under: str) -> Iterator[Plan]:
    """Calls in the order in which they were made, by one client, then those that overlapped by several clients."""
    events = [history.events[index] for index in evidence]
    made = [call for call in _made(plan, history) if call.invoke < max(evidence)]
    own = _directories(plan, events)
    names = {event.path for event in events if event.operation == "create"}
    namesakes = [call for call in made if call.op.kind == "create" and call.op.name in names]
    here = [call for call in made if call.op.directory in own]
    about = [call for call in here if call.invoke in evidence or call.done in evidence or call in namesakes]
    alone = [call for call in here if OF_CROWD not in call.op.actor or call in about]
    heeded = [call for call in alone if call in about or not call.refused]
    deleted = _deletions(made)
    met = [call for call in made if any(_met(call, other, plan) for other in about)]
    near = [call for call in met if call.op.directory in own]
    struck = _struck(plan, history)
    likely = [each for each in struck if each[0].kind.row.cls == under]
    parts = (about, _merged(about, deleted, namesakes), heeded, alone, _merged(alone, deleted))
    in_own: _Arranged = partial(_in_own_directories, own)
    if not about:  # The evidence is a probe, and its directories may depend on each other.
        yield replace(plan, ops=(), faults=())
    yield from _batch_after_batch(plan, heeded, likely)
    for arrangements, selections, faults in (
        ((_one_after_another, _beside_each_other), (about,), ([], likely)),  # This is enough in most cases.
        ((_one_after_another,), parts, ([], likely, struck)),
        ((_beside_each_other,), (_merged(about, near),), ([], likely, struck)),
        ((in_own,), (made,), ([],)),
        ((_beside_each_other,), (_merged(about, met),), ([], likely, struck)),
    ):
        for calls, some, arranged in product(selections, faults, arrangements):
            yield from arranged(plan, calls, some) if calls else ()


def _of_operations(plan: Plan, events: list[Event], under: str) -> Iterator[Plan]:
    """Operations around the evidence, without faults, with those of the class one by one and together, with others."""
    own = _directories(plan, events)
    names = {event.path for event in events if event.operation == "create"}
    actors = {event.process.partition(".")[0] for event in events}
    here = [op for op in plan.ops if op.directory in own]
    about = [op for op in here if _is_about(op, names, actors)]
    around = [op for op in here if op in about or op.kind != "create"]
    like = {folded(name) for name in names if name}
    alike = [op for op in here if op in about or (op.kind == "create" and folded(op.name) in like)]
    theirs = [op for op in plan.ops if not actors.isdisjoint(op.actors)]
    few, many = _crowded(about, names)
    likely = [(fault,) for fault in plan.faults if fault.kind.row.cls == under]
    some = [*likely, tuple(fault for each in likely for fault in each), plan.faults]
    rest = [(fault,) for fault in plan.faults]
    for choices, workloads in (
        ([()], (about, alike, theirs, few)),
        (some, (about, alike)),
        ([()], (around, here)),
        (some, (here, around, theirs, few)),
        ([(), *likely, *rest], (many, about, around, here)),
    ):
        for faults, ops in product(choices, workloads):
            yield from _variants(plan, tuple(ops), faults) if ops else ()


def _directories(plan: Plan, events: list[Event]) -> list[int]:
    """The directories of a plan that events are about."""
    return [number for number, path in enumerate(plan.directories) if any(is_directory(path, each) for each in events)]


def _in_own_directories(own: list[int], plan: Plan, _: list[_Made], __: list[_Struck]) -> Iterator[Plan]:
    """All operations in these directories, without faults, then with those not confined to another one."""
    ops = tuple(op for op in plan.ops if op.directory in own)
    others = [f"{re.escape(path)}/" for number, path in enumerate(plan.directories) if number not in own]
    faults = tuple(
        fault
        for fault in plan.faults
        if not (isinstance(fault.trigger, Call) and any(path in fault.trigger.pattern for path in others))
    )
    for some in ((), faults) if ops else ():
        yield in_used_directories(replace(plan, ops=ops, faults=some).earlier_by(plan))


def in_used_directories(plan: Plan) -> Plan:
    """The plan without marker directories that no operation uses, except for the first."""
    used = sorted({op.directory for op in plan.ops}) or [0]
    ops = tuple(replace(op, directory=used.index(op.directory)) for op in plan.ops)
    return replace(plan, directories=tuple(plan.directories[number] for number in used), ops=ops)


def _variants(plan: Plan, ops: tuple[Op, ...], faults: tuple[Fault, ...]) -> Iterator[Plan]:
    """Plans of these operations, without delays or with theirs, and faults as they are or earlier in proportion."""
    quick = tuple(replace(op, after_ms=0) for op in ops)
    for each in (quick, ops):
        smaller = replace(plan, ops=each, faults=faults)
        yield in_used_directories(smaller)
        yield in_used_directories(smaller.earlier_by(plan))


def _crowded(about: list[Op], names: set[str | None]) -> list[list[Op]]:
    """Many clients in place of the one that requested a name, so that one of them loses the race."""
    first = next((op for op in about if op.name in names), None)
    if first is None:
        return [[], []]
    others = [each for each in about if each.kind != "create"]
    hot = [replace(first, copies=copies, apart_ms=apart, after_ms=0, request="", server=0) for copies, apart in CROWDS]
    return [[op, *others] for op in hot]


def _is_about(op: Op, names: set[str | None], actors: set[str]) -> bool:
    """Whether an operation is a create of one of the names, or anything else that one of these clients does."""
    if op.kind == "create":
        return any(each.name in names for each in op.single())
    return not actors.isdisjoint(op.actors)


def is_directory(path: str, event: Event) -> bool:
    """Whether a marker directory of a plan is that of an event; its tables lie below a folder of the run."""
    table, _, instant = path.partition(TEMP)
    return instant == event.instant and event.table is not None and event.table.partition("/")[2] == table


def _deletions(made: list[_Made]) -> list[_Made]:
    """Each deletion, with the first create in its directory, so that it has something to delete."""
    deletes = [call for call in made if call.op.kind == "delete"]
    filled = {call.op.directory: call for call in reversed(made) if call.op.kind == "create"}
    return [*deletes, *(filled[number] for number in {call.op.directory for call in deletes} & filled.keys())]


def _made(plan: Plan, history: History) -> list[_Made]:
    """The calls of a run in the order in which they took effect; operations never invoked are left out."""
    waiting: dict[str, list[Op]] = defaultdict(list)
    for op in reversed(plan.single_ops):
        waiting[op.actor].append(op)
    ends = {event.caused_by: event for event in history.events if event.kind in ("ok", "fail")}
    made = []
    for event in history.events:
        left = waiting.get(event.process.partition(".")[0]) if event.kind == "invoke" else None
        while left:
            op = left.pop()
            if op.kind == event.operation and is_directory(plan.directories[op.directory], event):
                end = ends.get(event.index)
                done, refused = (NEVER, False) if end is None else (end.index, end.kind == "fail")
                made.append(_Made(op, event.process, event.index, done, event.time_ns // 1_000_000, refused))
                break
    return sorted(made, key=_took_effect)


def _struck(plan: Plan, history: History) -> list[_Struck]:
    """The faults of the plan that struck, in order, each with its event."""
    left = list(plan.faults)
    struck = []
    for event in history.events:
        if event.kind == "fault" and event.value in (None, "begin"):
            fault = next((each for each in left if each.kind.value == event.operation), None)
            if fault is not None:
                left.remove(fault)
                struck.append((fault, event))
    return struck


def _one_after_another(plan: Plan, calls: list[_Made], struck: list[_Struck]) -> Iterator[Plan]:
    """All calls by one client, unless they take long; each fault keeps its place among them."""
    if len(calls) * plan.interval_ms <= LASTS_MS_MAX:
        ops = (replace(call.op, actor=CLIENT, request="", after_ms=0) for call in calls)
        yield _with(plan, [call._replace(op=op) for call, op in zip(calls, ops, strict=True)], struck)


def _batch_after_batch(plan: Plan, calls: list[_Made], struck: list[_Struck]) -> Iterator[Plan]:
    """Many creates that met a fault of a server as that many clients, one batch after the other: files may matter.

    Then another client lists the names.
    """
    creates = [call for call in calls if call.op.kind == "create"]
    met = [(fault, event) for fault, event in struck if fault.target in SERVERS]
    if met and len(creates) >= MANY and len(creates) * plan.interval_ms <= LASTS_MS_MAX:
        directory, copies, apart_ms = creates[0].op.directory, len(creates), plan.interval_ms + APART_MS
        name = f"p/a{COPY}.marker.CREATE"
        ops = (
            Op(actor=CLIENT, kind="create", directory=directory, name=name, copies=copies, apart_ms=apart_ms),
            Op(actor=READER, kind="list", directory=directory, after_ms=(copies + 1) * apart_ms),
        )
        yield in_used_directories(replace(plan, ops=ops, faults=_placed(met, creates, plan)))


def _beside_each_other(plan: Plan, calls: list[_Made], struck: list[_Struck]) -> Iterator[Plan]:
    """Each client with its calls: its first call at the time of the run, the others without delays; or all without."""
    in_order = sorted(calls, key=lambda call: call.invoke)
    first = {call.op.actor: call.invoke for call in reversed(in_order)}
    for timed in (True, False):
        timely = []
        for call in in_order:
            late_ms = call.at_ms - in_order[0].at_ms if timed and first[call.op.actor] == call.invoke else 0
            timely.append(call._replace(op=replace(call.op, after_ms=late_ms)))
        yield _with(plan, timely, struck)


def _with(plan: Plan, calls: list[_Made], struck: list[_Struck]) -> Plan:
    """The plan with these calls, and with those faults that have something to strike."""
    ops = tuple(call.op for call in calls)
    return in_used_directories(replace(plan, ops=ops, faults=_placed(struck, calls, plan)))


def _placed(struck: list[_Struck], calls: list[_Made], plan: Plan) -> tuple[Fault, ...]:
    """The faults at their places among the calls, without those with nothing to strike."""
    placed = (_among(fault, event, calls, plan) for fault, event in struck)
    return tuple(fault for fault in placed if fault is not None)


def _among(fault: Fault, event: Event, calls: list[_Made], plan: Plan) -> Fault | None:
    """The fault at its place among the calls, None when it has nothing to strike."""
    if fault.target in SERVERS:
        if isinstance(fault.trigger, Call):
            return fault
        if fault.site not in ("", REPLY, REQUEST_QUEUED):  # A site at storage: reached sooner with fewer calls.
            return fault.at(max(1, fault.n * len(calls) // max(1, plan.asked)))
        answered = sum(call.done < event.index for call in calls)
        return replace(fault, trigger=Site(REPLY, answered) if answered else Site(REQUEST_QUEUED, 1))
    if fault.kind is FaultKind.DIRECTORY_REMOVED:
        hit = next((call for call in calls if call.invoke > event.index), None)
    elif event.caused_by is not None:
        hit = next((call for call in calls if call.invoke == event.caused_by), None)
    else:
        own = [call for call in calls if call.process == event.process and fault.kind.row.kills]
        hit = next((call for call in own if call.invoke < event.index < call.done), None)
    if hit is None:
        return None
    theirs = [call.invoke for call in calls if call.op.actor == hit.op.actor]
    return replace(fault, target=hit.op.actor, trigger=Step(1 + theirs.index(hit.invoke)))


def _met(call: _Made, other: _Made, plan: Plan) -> bool:
    """Whether two calls were open at the same time, or may have been in one batch."""
    answered = call.done != NEVER and other.done != NEVER
    overlapped = answered and call.invoke < other.done and other.invoke < call.done
    return overlapped or abs(call.at_ms - other.at_ms) <= 2 * plan.interval_ms


def _took_effect(call: _Made) -> int:
    """The event by which calls are ordered: the completion of an answered call, the invocation of any other."""
    return call.invoke if call.done == NEVER else call.done


def _merged(*parts: list[_Made]) -> list[_Made]:
    return sorted({call.invoke: call for part in parts for call in part}.values(), key=_took_effect)
