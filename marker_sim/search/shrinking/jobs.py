"""Smaller plans of Spark jobs, where a try costs seconds to a minute: few candidates, the best first.

A part of such a plan is a write with the faults that meet it alone, and the abandoned ones before it. A breach mostly
follows soon after its cause. So single parts are tried first, beginning with those near the evidence; then the
remaining parts are removed one by one; then the table is simplified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from marker_sim.history import History
from marker_sim.plan import Plan, TableShape, Write
from marker_sim.search.shrinking.candidates import with_part

Part = tuple[Write, ...]


def are_jobs(plan: Plan) -> bool:
    """Whether the plan is of Spark jobs: of a released Hudi, or with separate faults for each write."""
    return plan.shape is not None or any(write.faults for write in plan.writes)


def candidates(plan: Plan, history: History, evidence: tuple[int, ...]) -> Iterator[Plan]:
    """The plan with one of its parts alone, those whose faults were the last before the evidence first.

    For the kit's own jobs then two in a row, because the next driver handles the remains of the one before.
    """
    parts = _parts(plan)
    last = max(evidence, default=len(history.events))
    if plan.shape is not None and plan.shape.future:
        # Steps after the harm, and one of those before it; what was found without them keeps all, as its horizon.
        taken = sum(event.operation == "future" for event in history.events[:last]) - 1
        steps = plan.shape.future[: max(0, taken)]
        shorter = [steps, *(steps[:n] + steps[n + 1 :] for n in range(len(steps) - 1))]
        yield from (replace(plan, shape=replace(plan.shape, future=each)) for each in shorter if each)
    struck = sum(event.kind == "fault" and event.value != "end" for event in history.events[:last])
    through, reached = list[int](), 0
    for part in parts:
        killed = plan.shape is not None and part[0].abandon  # The killed write that has to be rolled back.
        reached += sum(len(write.faults) for write in part) + killed
        through.append(reached)
    near = next((number for number, count in enumerate(through) if count >= struck), len(parts) - 1)
    order = sorted(range(len(parts)), key=lambda number: (abs(number - near), number))
    for many in (1, 2) if plan.shape is None else (1,):
        yield from (_with(plan, parts[max(0, n + 1 - many) : n + 1]) for n in order if len(parts) > many)


def smaller(plan: Plan) -> Iterator[Plan]:
    """The plan without one part, in their order; then simpler parts, and faults at the first fitting call."""
    parts = _parts(plan)
    for position in range(len(parts)) if len(parts) > 1 else ():
        yield _with(plan, (*parts[:position], *parts[position + 1 :]))
    if plan.shape is not None:
        executors = any(fault.target == "executor" for fault in plan.faults)
        plain = TableShape(cluster=executors, future=plan.shape.future, harmless=plan.shape.harmless)
        one = replace(plan, num_threads=1)  # With one thread, few partitions are enough for a file to be rewritten.
        yield replace(one, merge_on_read=False, shape=plain)
        yield replace(one, shape=plain)
        yield from (with_part(plan, ("shape", each.name), getattr(plain, each.name)) for each in fields(plain))
    else:
        yield from _simpler_writes(plan)
    yield replace(plan, merge_on_read=False)
    yield replace(plan, num_threads=1)
    for position, fault in enumerate(plan.faults):
        yield with_part(plan, ("faults", position), fault.at(1))


def _simpler_writes(plan: Plan) -> Iterator[Plan]:
    """The plan without one fault, with the first tasks of writes only (numbers stay), without abandoned writes."""
    for number in range(len(plan.faults)):
        writes = (replace(w, faults=tuple(n for n in w.faults if n != number)) for w in plan.writes)
        yield _with(plan, (tuple(writes),))
    most = max(len(write.tasks) for write in plan.writes)
    for tasks in range(1, most):
        yield replace(plan, writes=tuple(replace(write, tasks=write.tasks[:tasks]) for write in plan.writes))
    if any(write.abandon for write in plan.writes):
        yield _with(plan, (tuple(write for write in plan.writes if not write.abandon),))


def _parts(plan: Plan) -> tuple[Part, ...]:
    parts, part = list[Part](), list[Write]()
    for write in plan.writes:
        part.append(write)
        if not write.abandon:
            parts.append(tuple(part))
            part = []
    return (*parts, tuple(part)) if part else tuple(parts)


def _with(plan: Plan, parts: Iterable[Part]) -> Plan:
    """The plan with only these parts and their faults."""
    writes = tuple(write for part in parts for write in part)
    kept = [number for write in writes for number in write.faults]
    moved = {number: index for index, number in enumerate(kept)}
    renumbered = tuple(replace(write, faults=tuple(moved[number] for number in write.faults)) for write in writes)
    return replace(plan, writes=renumbered, faults=tuple(plan.faults[number] for number in kept))
