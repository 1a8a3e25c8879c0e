"""Smaller plans of operations and of writes: which candidates the shrinker tries, in which order. Pure functions.

A fault is keyed by its actor's step, and fewer tasks make fewer steps; so whatever is removed from writes, the
candidate is offered again with its faults earlier, by about what was removed and by a little more or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice, product
from typing import Any, TypeVar

from marker_sim.faults import Fault, FaultKind, FaultSettings, Site
from marker_sim.faults.sites import SITES
from marker_sim.plan import EarlierLife, Op, Plan, Task, Write
from marker_sim.search.scenarios import LASTING
from marker_sim.search.shrinking.by_history import SERVERS
from marker_sim.search.site_faults import kinds_at

T = TypeVar("T", Plan, Write, Task, EarlierLife)
STEPS_OF_A_WRITE = (6, 9, 11, 12, 13, 14, 15, 16, 18, 20, 24, 30, 40)
STEPS_OF_A_TASK = (1, 2, 3, 4, 5, 6, 8)
# Steps of an actor in a write of one task; the largest distance between two faults.
_STEPS_OF_A_MINIATURE = 24
_APART = (0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14)


def fewer_writes(plan: Plan) -> Iterator[tuple[Plan, tuple[int, ...]]]:
    """The plan without one of its writes, the last first, with the number of steps its faults may have to move."""
    for position in reversed(range(len(plan.writes))):
        writes = plan.writes[:position] + plan.writes[position + 1 :]
        yield replace(plan, writes=writes), STEPS_OF_A_WRITE


def fewer_tasks(plan: Plan) -> Iterator[tuple[Plan, tuple[int, ...]]]:
    """The plan with fewer tasks of a write: half of them removed, a quarter and so on, down to one."""
    for position, write in enumerate(plan.writes):
        size = max(1, len(write.tasks) // 2)
        while size:
            for start in range(0, len(write.tasks), size):
                tasks = write.tasks[:start] + write.tasks[start + size :]
                yield with_write(plan, position, replace(write, tasks=tasks)), STEPS_OF_A_TASK
            size //= 2


def miniatures_of_writes(plan: Plan) -> Iterator[Plan]:
    """Workloads of one to three tasks with none or one of the plan's faults, at each step where it may strike.

    A fault late in a long plan cannot follow its place while tasks are taken away one by one: the steps before it are
    too many. These plans are looked at from the smallest on.
    """
    for small in _workloads(plan):
        yield small
        for fault in _faults_of(plan):
            last = 4 if fault.site else _STEPS_OF_A_MINIATURE * len(small.writes)
            yield from (replace(small, faults=(fault.at(step),)) for step in range(1, last))


def miniatures_of_two(plan: Plan) -> Iterator[Plan]:
    """The miniatures with two of the plan's faults, or one of them twice, the second soon after the first."""
    for small in _workloads(plan):
        for first in _faults_of(plan):
            for second in _faults_of(plan):
                for step in range(1, _STEPS_OF_A_MINIATURE):
                    for apart in _APART:
                        pair = (first.at(step), second.at(step + apart))
                        yield replace(small, faults=pair)


def _workloads(plan: Plan) -> Iterator[Plan]:
    if not plan.writes:
        return
    rank = {"CREATE": 0, "MERGE": 1, "APPEND": 2}
    tasks = [task for write in plan.writes for task in write.tasks] or [Task()]
    task = Task(kind=max((task.kind for task in tasks), key=rank.__getitem__))
    one, left = Write(tasks=(task,)), Write(tasks=(task,), abandon=True)
    simple = replace(plan, tables=("t",), embedded=True, jitter=0, num_threads=1, interval_ms=50, executors=1)
    for writes in ((one,), (left,), (left, one), (one, one), (one, left, one)):
        yield replace(simple, writes=writes, faults=())


def _faults_of(plan: Plan) -> tuple[Fault, ...]:
    """The faults at their first place, those of executors at one executor; each once."""
    faults = ((f, "executor-0" if f.target.startswith("executor") else f.target) for f in plan.faults)
    return tuple(dict.fromkeys(replace(fault.at(1), target=target) for fault, target in faults))


def earlier(plan: Plan, by: tuple[int, ...]) -> Iterator[Plan]:
    """The plan with faults at earlier steps, all of them or those of one actor."""
    actors = sorted({fault.target for fault in plan.faults})
    groups = [frozenset(actors)] + ([frozenset({actor}) for actor in actors] if len(actors) > 1 else [])
    for less in by:
        for group in groups:
            faults = tuple(f.at(f.n - less) if f.target in group and f.n > less else f for f in plan.faults)
            if faults != plan.faults:
                yield replace(plan, faults=faults)


def simpler_writes(plan: Plan) -> Iterator[Plan]:
    """The plan with simpler writes: fewer special properties."""
    if plan.earlier is not None:
        yield replace(plan, earlier=None)
        yield from (replace(plan, earlier=life) for life in _simpler_lives(plan.earlier))
    yield from _plainer(plan, "embedded", "merge_on_read")
    for executors in (1, 2):
        if executors < plan.executors:
            yield replace(plan, executors=executors)
    if len(plan.tables) > 1 or plan.tables != ("t",):
        yield replace(plan, tables=("t",), writes=tuple(replace(write, table=0) for write in plan.writes))
    for position, write in enumerate(plan.writes):
        plain = tuple(Task(group=task.group) for task in write.tasks)
        if plain != write.tasks:
            yield with_write(plan, position, replace(write, tasks=plain))
        alive = tuple(fault for fault in plan.faults if fault.kind is not FaultKind.KILL or fault.target != "driver")
        if alive != plan.faults:
            yield replace(with_write(plan, position, replace(write, abandon=True)), faults=alive)
        changes = _plainer(write, "after_ms", "markers", "abandon", "table")
        yield from (with_write(plan, position, change) for change in changes if change != write)
        for number, task in enumerate(write.tasks):
            fewer = (replace(task, strays=tuple(one for one in task.strays if one != stray)) for stray in task.strays)
            simple = (*_plainer(task, "partition", "copies", "slow_ms"), *fewer, *_plainer(task, "kind", "group"))
            for change in dict.fromkeys((Task(group=task.group), *simple)):
                if change != task:
                    tasks = (*write.tasks[:number], change, *write.tasks[number + 1 :])
                    yield with_write(plan, position, replace(write, tasks=tasks))


def _plainer(value: T, *names: str) -> Iterator[T]:
    """The value with one of these fields as it is by default, for each of them."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(value)}
    return (replace(value, **{name: defaults[name]}) for name in names)


def with_write(plan: Plan, position: int, write: Write) -> Plan:
    """The plan with one of its writes replaced."""
    return replace(plan, writes=(*plan.writes[:position], write, *plan.writes[position + 1 :]))


def _simpler_lives(life: EarlierLife) -> Iterator[EarlierLife]:
    yield EarlierLife()
    for commits, archived in ((0, 0), (0, life.archived), (life.commits, 0), (1, life.archived), (life.commits, 1)):
        if commits <= life.commits and archived <= life.archived:
            yield replace(life, commits=commits, archived=archived)
    yield from _plainer(life, "instants", "logs", "version8", "left")


# Waits of the second operation: until a batch is flushed, a request timed out, or took late effect.
_PAUSES_MS = (0, 60, 150, 1_050)
_CALLS_LEAST = (1, 4, 8)  # An implementation may give up after four.
_FULL_MS = (1, 500, 2000)
_ARRIVALS = 12
_PLACES_MAX = 60  # For one fault, in total.
_CLIENT_STEPS = 6
_SERVER_STEPS = 24


def miniatures_of_operations(plan: Plan) -> Iterator[Plan]:
    """Plans of one or two operations of the kinds of a plan, with none or one of its faults at each possible place.

    One client or two, with one name and one directory, like the plan's last operations. The smallest are tried first.
    """
    if not plan.ops:
        return
    known = {op.kind: op for op in plan.ops}
    last = known.get("create", plan.ops[-1])
    names = {kind: last.name if kind == "create" else op.name for kind, op in known.items()}
    ops = [Op(actor="executor-0", kind=kind, directory=last.directory, name=name) for kind, name in names.items()]
    simple = replace(plan, jitter=0, num_threads=1, interval_ms=50, faults=())
    struck = ((fault, fault.target if fault.target in SERVERS else "executor-0") for fault in plan.faults)
    faults = dict.fromkeys(replace(fault.at(1), target=target) for fault, target in struck)
    workloads: list[tuple[Op, ...]] = [(op,) for op in ops]
    for first, second, pause_ms, actor in product(ops, ops, _PAUSES_MS, ("executor-0", "driver")):
        workloads.append((first, replace(second, actor=actor, after_ms=pause_ms)))
    for work in workloads:
        yield replace(simple, ops=work)
    for work, fault in product(workloads, faults):
        yield from (replace(simple, ops=work, faults=(hit,)) for hit in _everywhere(fault))


def _everywhere(fault: Fault) -> Iterator[Fault]:
    last = 3 if fault.site else _SERVER_STEPS if fault.target in SERVERS else _CLIENT_STEPS
    return (fault.at(step) for step in range(1, last + 1))


def without_faults(plan: Plan, start: int, size: int) -> Iterator[Plan]:
    """The plan without some faults; and with later faults at the same sites moved earlier accordingly."""
    gone, kept = plan.faults[start : start + size], plan.faults[:start] + plan.faults[start + size :]
    yield replace(plan, faults=kept)
    sites = {(fault.target, fault.site) for fault in gone if fault.site}
    yield replace(
        plan,
        faults=tuple(f.at(f.n - size) if (f.target, f.site) in sites and f.n > size else f for f in kept),
    )


def with_fault(plan: Plan, position: int, fault: Fault) -> Plan:
    """The plan with another fault in place of one."""
    return replace(plan, faults=(*plan.faults[:position], fault, *plan.faults[position + 1 :]))


def without_one(plan: Plan) -> Iterator[Plan]:
    """The plan without one of its entries, for each of them."""
    for n in range(len(plan.ops)):
        yield replace(plan, ops=plan.ops[:n] + plan.ops[n + 1 :])
    for n in range(len(plan.faults)):
        yield replace(plan, faults=plan.faults[:n] + plan.faults[n + 1 :])
    for n, write in enumerate(plan.writes):
        for t in range(len(write.tasks) if len(write.tasks) > 1 else 0):
            less = replace(write, tasks=write.tasks[:t] + write.tasks[t + 1 :])
            yield with_write(plan, n, less)
        if len(write.tasks) <= 1:
            yield replace(plan, writes=plan.writes[:n] + plan.writes[n + 1 :])


def without_two(plan: Plan) -> Iterator[Plan]:
    """The plan without any two of its operations and faults."""
    entries = [*plan.ops, *plan.faults]
    for one in range(len(entries)):
        for other in range(one + 1, len(entries)):
            kept = [position not in (one, other) for position in range(len(entries))]
            ops = tuple(op for op, keep in zip(plan.ops, kept, strict=False) if keep)
            faults = tuple(f for f, keep in zip(plan.faults, kept[len(plan.ops) :], strict=True) if keep)
            yield replace(plan, ops=ops, faults=faults)


def parts_of_a_crowd(plan: Plan) -> Iterator[Plan]:
    """Plans of very many operations: all, made simple or without delays; halves: the first, last, every other one."""
    now = tuple(replace(op, after_ms=0) for op in plan.ops)
    simple = replace(plan, jitter=0, num_threads=1, interval_ms=50, restart_threads=0)
    yield replace(simple, ops=now, faults=())
    yield replace(simple, faults=())
    yield replace(plan, ops=now)
    half = len(plan.ops) // 2
    for ops in (plan.ops[:half], plan.ops[half:], plan.ops[::2], plan.ops[1::2]):
        yield replace(plan, ops=ops)


def at_sites(faults: tuple[Fault, ...], fault: Fault) -> Iterator[tuple[Fault, ...]]:
    """The faults with one at a step moved to the first arrivals at each site where it can strike the same actor."""
    if fault.site:
        return
    actor = "server" if fault.target in SERVERS else "executor" if fault.target != "driver" else "driver"
    sites = [site.name for site in SITES.values() if site.actor == actor and kinds_at(site, (fault.kind,))]
    for step, site in islice(product(range(1, _ARRIVALS + 1), sites), _PLACES_MAX):
        yield tuple(replace(each, trigger=Site(site, step)) if each == fault else each for each in faults)


def lasting(plan: Plan) -> Iterator[Plan]:
    """The plan with one lasting fault in place of all that fail one actor's storage, by actor and site."""
    for actor, site in dict.fromkeys((fault.target, fault.site) for fault in plan.faults):
        several = [f for f in plan.faults if f.target == actor and f.site == site and f.kind.row.fails]
        if len(several) > 1:
            rest = tuple(fault for fault in plan.faults if fault not in several)
            first = min(several, key=lambda fault: fault.n)
            lasting: list[tuple[FaultKind, dict[str, Any]]] = [
                (kind, {"calls": max(n, len(several))}) for kind in LASTING for n in _CALLS_LEAST
            ]
            lasting += [(FaultKind.DISK_FULL, {"for_ms": for_ms}) for for_ms in _FULL_MS]
            for kind, settings in lasting:
                one = replace(first, kind=kind, settings=FaultSettings(**settings))
                yield replace(plan, faults=(*rest, one))


def renamed(plan: Plan, gone: str, stays: str) -> Plan:
    """The plan with one client's operations and faults given to another client."""
    ops = tuple(replace(op, actor=stays) if op.actor == gone else op for op in plan.ops)
    faults = tuple(replace(f, target=stays) if f.target == gone else f for f in plan.faults)
    return replace(plan, ops=ops, faults=faults)
