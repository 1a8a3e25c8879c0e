"""Smaller plans that keep what the evidence of a breach mentions: a few candidates that save most of the tries.

If a try costs a second, five hundred operations cannot be removed one by one. The evidence of a breach names a marker
directory, names and clients. So everything else is removed first, then the faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from marker_sim.faults import Fault
from marker_sim.history import Event
from marker_sim.names import TEMP
from marker_sim.plan import Op, Plan
from marker_sim.unusual_names import folded

CROWDS = ((8, 0), (40, 2))


def candidates(plan: Plan, evidence: Iterable[Event], under: str) -> Iterator[Plan]:
    """Plans with a part of the operations, the smallest first, and with a part of the faults.

    under: the class of faults that the breach came under; those of that class are tried after none at all, one by one
        and together.
    """
    events = tuple(evidence)
    own = [number for number, path in enumerate(plan.directories) if any(is_directory(path, event) for event in events)]
    names = {event.path for event in events if event.operation == "create"}
    actors = {event.process.partition(".")[0] for event in events}
    here = [op for op in plan.ops if op.directory in own]
    about = [op for op in here if _is_about(op, names, actors)]
    around = [op for op in here if op in about or op.kind != "create"]
    like = {folded(name) for name in names if name}
    alike = [op for op in here if op in about or (op.kind == "create" and folded(op.name) in like)]
    theirs = [op for op in plan.ops if not actors.isdisjoint(op.actors)]
    few, many = _crowded(about, names)
    likely = tuple((fault,) for fault in plan.faults if fault.kind.row.cls == under)
    together = tuple(fault for each in likely for fault in each)
    rest = tuple((fault,) for fault in plan.faults if (fault,) not in likely)
    none: tuple[tuple[Fault, ...], ...] = ((),)
    for choices, workloads in (
        (none, (about, alike, theirs, few)),
        ((*likely, together, plan.faults), (about, alike)),
        (none, (around, here)),
        ((*likely, together, plan.faults), (here, around, theirs, few)),
        ((*none, *likely, *rest), (many, about, around, here)),
    ):
        for faults, ops in product(dict.fromkeys(choices), dict.fromkeys(map(tuple, workloads))):
            yield from _variants(plan, ops, faults) if ops else ()


def in_used_directories(plan: Plan) -> Plan:
    """The plan without marker directories that no operation uses, except for the first."""
    used = sorted({op.directory for op in plan.ops}) or [0]
    ops = tuple(replace(op, directory=used.index(op.directory)) for op in plan.ops)
    return replace(plan, directories=tuple(plan.directories[number] for number in used), ops=ops)


def _variants(plan: Plan, ops: tuple[Op, ...], faults: tuple[Fault, ...]) -> Iterator[Plan]:
    """Plans of these operations, without delays or with theirs, and faults as they are or earlier in proportion."""
    quick = tuple(replace(op, after_ms=0) for op in ops)
    for each in dict.fromkeys((quick, ops)):
        smaller = replace(plan, ops=each, faults=faults)
        for small in dict.fromkeys((smaller, smaller.earlier_by(plan))):
            yield in_used_directories(small)


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
