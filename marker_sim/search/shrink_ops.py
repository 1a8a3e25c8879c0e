"""Smaller plans of operations: which candidates the shrinker tries, in which order. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from marker_sim.plan import Fault, Op, Plan

# How long the second operation waits: until a batch is flushed, a request timed out, its late effect came.
_PAUSES_MS = (0, 60, 150, 1_050)
_CLIENT_STEPS = 6
_SERVER_STEPS = 24


def miniatures(plan: Plan) -> Iterator[Plan]:
    """One or two operations of the kinds of a plan, with none or one of its faults, wherever that may strike.

    One client or two, which ask for one name and one directory as the plan's last operations do. They are looked at
    from the smallest on.
    """
    if not plan.ops:
        return
    known = {op.kind: op for op in plan.ops}
    last = known.get("create", plan.ops[-1])
    ops = [
        Op(actor="executor-0", kind=op.kind, directory=last.directory, name=_name(op, last)) for op in known.values()
    ]
    simple = replace(plan, jitter=0, num_threads=1, interval_ms=50, faults=())
    faults = dict.fromkeys(replace(fault, step=1, actor=_whose(fault.actor)) for fault in plan.faults)
    workloads: list[tuple[Op, ...]] = [(op,) for op in ops]
    for first, second, pause_ms, actor in product(ops, ops, _PAUSES_MS, ("executor-0", "driver")):
        workloads.append((first, replace(second, actor=actor, after_ms=pause_ms)))
    for work in workloads:
        yield replace(simple, ops=work)
    for work, fault in product(workloads, faults):
        yield from (replace(simple, ops=work, faults=(hit,)) for hit in _everywhere(fault))


def _name(op: Op, last: Op) -> str:
    return last.name if op.kind == "create" else op.name


def _whose(actor: str) -> str:
    return actor if actor in ("server", "second") else "executor-0"


def _everywhere(fault: Fault) -> Iterator[Fault]:
    last = 3 if fault.site else _SERVER_STEPS if fault.actor in ("server", "second") else _CLIENT_STEPS
    return (replace(fault, step=step) for step in range(1, last + 1))


def without_two(plan: Plan) -> Iterator[Plan]:
    """The plan without any two of its operations and faults."""
    entries = [*plan.ops, *plan.faults]
    for one in range(len(entries)):
        for other in range(one + 1, len(entries)):
            kept = [position not in (one, other) for position in range(len(entries))]
            ops = tuple(op for op, keep in zip(plan.ops, kept, strict=False) if keep)
            faults = tuple(f for f, keep in zip(plan.faults, kept[len(plan.ops) :], strict=True) if keep)
            yield replace(plan, ops=ops, faults=faults)


def renamed(plan: Plan, gone: str, stays: str) -> Plan:
    """The plan with the operations and faults of one client given to another."""
    ops = tuple(replace(op, actor=stays) if op.actor == gone else op for op in plan.ops)
    faults = tuple(replace(f, actor=stays) if f.actor == gone else f for f in plan.faults)
    return replace(plan, ops=ops, faults=faults)
