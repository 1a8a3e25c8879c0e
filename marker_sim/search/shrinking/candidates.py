"""Smaller plans: which candidates the shrinker tries, in which order. Pure functions.

A part of a plan is named by its path: ("writes", 1, "tasks", 0, "kind"). `without` removes some entries of a part,
`simpler` lists plainer values of all fields, by their defaults. The other functions make what neither reaches.

A fault is keyed by its actor's step, and fewer tasks make fewer steps; so whatever is removed from writes, the
candidate is offered again with its faults earlier, by about what was removed and by a little more or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import reduce
from itertools import combinations, islice, product
from typing import Any

from marker_sim.faults import Fault, FaultKind, FaultSettings, Site
from marker_sim.faults.sites import SITES
from marker_sim.plan import TASK_KINDS, Op, Plan, Task, Write
from marker_sim.search.scenarios import LASTING
from marker_sim.search.shrinking.by_history import SERVERS, in_used_directories
from marker_sim.search.site_faults import kinds_at

Path = tuple[str | int, ...]
Variants = Iterator[tuple[Path, tuple[Any, ...]]]  # Paths of parts with the values to try, the best first.
# Fields that say what a plan is about; and numbers that can be less than the default.
_KEPT = ("mode", "storage", "directories", "tables", "seed", "shape", "directory")
_LEAST = {"num_threads": 1, "executors": 1, "commits": 0}
_SHORT_NAMES = ("a{}.marker.CREATE", "p/a{}.marker.CREATE")
# Steps of an actor in a write of one task, of a server or a client in two operations; the largest distance between two
# faults; arrivals at a site.
_STEPS, _CLIENT_STEPS, _ARRIVALS = 24, 6, 3
_APART = (0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14)
# Waits of the second operation: until a batch is flushed, a request timed out, or took late effect.
_PAUSES_MS = (0, 60, 150, 1_050)
_CALLS_LEAST = (1, 4, 8)  # An implementation may give up after four.
_FULL_MS = (1, 500, 2000)
_PLACES = range(1, 13)  # Arrivals at each site.
_PLACES_MAX = 60  # For one fault, in total.


def part_at(plan: Any, path: Path) -> Any:
    """The part of a plan at a path."""
    return reduce(lambda part, step: part[step] if isinstance(step, int) else getattr(part, step), path, plan)


def with_part(whole: Any, path: Path, part: Any) -> Any:
    """The value with another part at a path; what is none has no parts, and stays none."""
    if not path:
        return part
    if whole is None:
        return None
    step, below = path[0], path[1:]
    if isinstance(step, int):
        return (*whole[:step], with_part(whole[step], below, part), *whole[step + 1 :])
    return replace(whole, **{step: with_part(getattr(whole, step), below, part)})


def without(plan: Plan, path: Path, start: int, size: int = 1) -> Plan:
    """The plan without some entries of one part."""
    entries = part_at(plan, path)
    smaller: Plan = with_part(plan, path, entries[:start] + entries[start + size :])
    return smaller


def simpler(part: Any, path: Path = ()) -> Variants:
    """Each field below a part that is not as plain as it can be, with plainer values."""
    for field in fields(part):
        value, here, least = getattr(part, field.name), (*path, field.name), _LEAST.get(field.name, field.default)
        if field.name in _KEPT or least is MISSING or value in (least, ()):
            continue
        if is_dataclass(value):
            plain: Any = type(value)
            yield here, (least, plain())
            yield from simpler(value, here)
        elif isinstance(value, tuple) and is_dataclass(value[0]):
            for number, each in enumerate(value):
                yield from simpler(each, (*here, number))
        elif field.name != "name":
            # Written as usual, a directory of a hostile request need not be refused.
            hostile = field.name == "spelled" and part.kind == "hostile"
            yield here, () if hostile else tuple(_plainer(value, least))
        elif part.kind == "create" and len(value) > len(_SHORT_NAMES[-1]):
            yield here, tuple(name.format(path[-1]) for name in _SHORT_NAMES)


def _plainer(value: Any, least: Any) -> Iterator[Any]:
    """The least value; then one of fewer entries, or a smaller number."""
    if isinstance(value, tuple):
        yield least
        yield from (value[:n] + value[n + 1 :] for n in range(len(value)))
    elif isinstance(value, bool | str):
        yield least
    else:
        yield from (number for number in (least, least + 1, value // 4, value // 2) if least <= number < value)


def of_plainer_kinds(plan: Plan) -> Variants:
    """Each fault, as one of the kinds that its row calls simpler."""
    return ((("faults", n), tuple(map(fault.of_kind, fault.kind.simpler))) for n, fault in enumerate(plan.faults))


def at_earlier_steps(plan: Plan) -> Variants:
    """Each fault at some earlier steps, the first one first."""
    for position, fault in enumerate(plan.faults):
        steps = sorted({1, fault.n // 4, fault.n // 2, fault.n - 8, fault.n - 3, fault.n - 1})
        yield ("faults", position), tuple(fault.at(step) for step in steps if 0 < step < fault.n)


def simpler_at_once(plan: Plan) -> Iterator[Plan]:
    """The plan with many parts simpler at once, and with a write abandoned instead of a killed driver."""
    yield _simple(plan)
    yield replace(plan, jitter=0)
    for changed in ({"after_ms": 0}, {"server": 0}, {"form": ""}):
        yield replace(plan, ops=tuple(replace(op, **changed) for op in plan.ops))
    if plan.ops:
        yield in_used_directories(plan)
    if plan.writes:
        yield replace(plan, tables=("t",), writes=tuple(replace(write, table=0) for write in plan.writes))
    alive = tuple(fault for fault in plan.faults if fault.kind is not FaultKind.KILL or fault.target != "driver")
    for position in range(len(plan.writes) if alive != plan.faults else 0):
        yield replace(with_part(plan, ("writes", position, "abandon"), True), faults=alive)


def _simple(plan: Plan) -> Plan:
    return replace(plan, jitter=0, num_threads=1, interval_ms=50, restart_threads=0)


def earlier(plan: Plan, by: tuple[int, ...]) -> Iterator[Plan]:
    """The plan with faults at earlier steps, all of them or those of one actor."""
    actors = sorted({fault.target for fault in plan.faults})
    for less, group in product(by, dict.fromkeys(((*actors,), *((actor,) for actor in actors)))):
        faults = tuple(f.at(f.n - less) if f.target in group and f.n > less else f for f in plan.faults)
        if faults != plan.faults:
            yield replace(plan, faults=faults)


def miniatures(plan: Plan) -> Iterator[Plan]:
    """Workloads of one to three tasks, or of one or two operations, with none or one of the faults at each place.

    A fault late in a long plan cannot follow its place while entries are removed one by one: the steps before it are
    too many. These plans are tried from the smallest on.
    """
    yield from _workloads(plan)
    for small, fault in product(_workloads(plan), _faults_of(plan)):
        steps = _STEPS * max(1, len(small.writes))
        last = _ARRIVALS if fault.site else steps if plan.writes or fault.target in SERVERS else _CLIENT_STEPS
        yield from (replace(small, faults=(fault.at(step),)) for step in range(1, last + 1))


def miniatures_of_two(plan: Plan) -> Iterator[Plan]:
    """Those of writes with two of the plan's faults, or one of them twice, the second soon after the first."""
    faults = _faults_of(plan) if plan.writes else ()
    for small, first, second in product(_workloads(plan), faults, faults):
        for step, apart in product(range(1, _STEPS), _APART):
            yield replace(small, faults=(first.at(step), second.at(step + apart)))


def _workloads(plan: Plan) -> Iterator[Plan]:
    """Short workloads of tasks like the plan's, or of its kinds of operations by one client or two, with one name."""
    simple = replace(_simple(plan), faults=())
    if plan.writes:
        kinds = [task.kind for write in plan.writes for task in write.tasks]
        one = Write(tasks=(Task(kind=max(kinds, key=TASK_KINDS.index, default="CREATE")),))
        left = replace(one, abandon=True)
        simple = replace(simple, tables=("t",), embedded=True, executors=1)
        for writes in ((one,), (left,), (left, one), (one, one), (one, left, one)):
            yield replace(simple, writes=writes)
    elif plan.ops:
        known = {op.kind: op for op in plan.ops}
        last = known.get("create", plan.ops[-1])
        names = {kind: last.name if kind == "create" else op.name for kind, op in known.items()}
        ops = [Op(actor="executor-0", kind=kind, directory=last.directory, name=name) for kind, name in names.items()]
        yield from (replace(simple, ops=(op,)) for op in ops)
        for first, second, pause_ms, actor in product(ops, ops, _PAUSES_MS, ("executor-0", "driver")):
            yield replace(simple, ops=(first, replace(second, actor=actor, after_ms=pause_ms)))


def _faults_of(plan: Plan) -> tuple[Fault, ...]:
    """The faults at their first place, those of executors and clients at one of them; each once."""
    kept = (*SERVERS, "driver") if plan.writes else SERVERS
    faults = ((fault.at(1), fault.target if fault.target in kept else "executor-0") for fault in plan.faults)
    return tuple(dict.fromkeys(replace(fault, target=target) for fault, target in faults))


def without_faults(plan: Plan, start: int, size: int) -> Iterator[Plan]:
    """The plan without some faults; and with later faults at the same sites moved earlier accordingly."""
    fewer = without(plan, ("faults",), start, size)
    yield fewer
    sites = {(fault.target, fault.site) for fault in plan.faults[start : start + size] if fault.site}
    moved = (f.at(f.n - size) if (f.target, f.site) in sites and f.n > size else f for f in fewer.faults)
    yield replace(fewer, faults=tuple(moved))


def without_one(plan: Plan) -> Iterator[Plan]:
    """The plan without one of its entries, for each of them; a write goes with its last task."""
    yield from (without(plan, *entry) for entry in _entries(plan))
    for number, write in enumerate(plan.writes):
        if len(write.tasks) <= 1:
            yield without(plan, ("writes",), number)
        else:
            yield from (without(plan, ("writes", number, "tasks"), n) for n in range(len(write.tasks)))


def without_two(plan: Plan) -> Iterator[Plan]:
    """The plan without any two of its operations and faults."""
    return (without(without(plan, *other), *one) for one, other in combinations(_entries(plan), 2))


def _entries(plan: Plan) -> list[tuple[Path, int]]:
    """The operations and faults of a plan, each by its part and number."""
    return [(path, n) for path in (("ops",), ("faults",)) for n in range(len(part_at(plan, path)))]


def parts_of_a_crowd(plan: Plan) -> Iterator[Plan]:
    """Plans of very many operations: all, made simple or without delays; halves: the first, last, every other one."""
    now = tuple(replace(op, after_ms=0) for op in plan.ops)
    simple = _simple(plan)
    yield replace(simple, ops=now, faults=())
    yield replace(simple, faults=())
    yield replace(plan, ops=now)
    half = len(plan.ops) // 2
    for ops in (plan.ops[:half], plan.ops[half:], plan.ops[::2], plan.ops[1::2]):
        yield replace(plan, ops=ops)


def at_sites(plan: Plan) -> Variants:
    """Each fault at a step, at the first arrivals at each site where it can strike the same actor."""
    for position, fault in enumerate(plan.faults):
        actor = "server" if fault.target in SERVERS else fault.target.partition("-")[0]
        sites = [site.name for site in SITES.values() if site.actor == actor and kinds_at(site, (fault.kind,))]
        places = [] if fault.site else [Site(site, n) for n, site in islice(product(_PLACES, sites), _PLACES_MAX)]
        yield ("faults", position), tuple(replace(fault, trigger=place) for place in places)


def lasting(plan: Plan) -> Iterator[Plan]:
    """The plan with one lasting fault in place of all that fail one actor's storage, by actor and site."""
    for actor, site in dict.fromkeys((fault.target, fault.site) for fault in plan.faults):
        several = [f for f in plan.faults if f.target == actor and f.site == site and f.kind.row.fails]
        if len(several) > 1:
            rest = tuple(fault for fault in plan.faults if fault not in several)
            first = min(several, key=lambda fault: fault.n)
            settings: list[tuple[FaultKind, dict[str, Any]]] = [
                (kind, {"calls": max(n, len(several))}) for kind in LASTING for n in _CALLS_LEAST
            ]
            settings += [(FaultKind.DISK_FULL, {"for_ms": for_ms}) for for_ms in _FULL_MS]
            for kind, own in settings:
                yield replace(plan, faults=(*rest, replace(first, kind=kind, settings=FaultSettings(**own))))


def renamed(plan: Plan, gone: str, stays: str) -> Plan:
    """The plan with one client's operations and faults given to another client."""
    ops = tuple(replace(op, actor=stays) if op.actor == gone else op for op in plan.ops)
    faults = tuple(replace(f, target=stays) if f.target == gone else f for f in plan.faults)
    return replace(plan, ops=ops, faults=faults)
