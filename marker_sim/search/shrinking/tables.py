"""Smaller plans of a table that a released Hudi writes, where a try costs a quarter of a minute: few, the best first.

What breaks is mostly seen by the first audit after what caused it. So one step alone is tried first, those beside the
evidence before the others; then whatever is left goes one by one; then the table becomes as plain as it can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from marker_sim.history import History
from marker_sim.plan import Plan, TableShape
from marker_sim.worlds.hudi_spark.steps import EXECUTOR, steps_of, with_steps


def candidates(plan: Plan, history: History, evidence: tuple[int, ...]) -> Iterator[Plan]:
    """The plan with one of its steps alone, those whose faults were the last before the evidence first."""
    steps = steps_of(plan)
    last = max(evidence, default=len(history.events))
    struck = sum(event.kind == "fault" and event.value != "end" for event in history.events[:last])
    through, reached = list[int](), 0
    for step in steps:
        reached += len(step.faults) + (step.stage == "rollback")  # The death that it has to roll back.
        through.append(reached)
    near = next((number for number, count in enumerate(through) if count >= struck), len(steps) - 1)
    for number in sorted(range(len(steps)), key=lambda number: (abs(number - near), number)) if len(steps) > 1 else ():
        yield with_steps(plan, (steps[number],))


def smaller(plan: Plan) -> Iterator[Plan]:
    """The plan without a step, the first of them first; then simpler tables, and faults at the first call that fits."""
    steps = steps_of(plan)
    for position in range(len(steps)) if len(steps) > 1 else ():
        yield with_steps(plan, (*steps[:position], *steps[position + 1 :]))
    plain = TableShape(cluster=any(fault.target == EXECUTOR for fault in plan.faults))
    shape = plan.shape or plain
    one = replace(plan, num_threads=1)  # With few partitions it writes its files again as one of many with many does.
    yield replace(one, merge_on_read=False, shape=plain)
    yield replace(one, shape=plain)
    for name in ("cluster", "metadata", "version6", "partitions", "small_files", "index"):
        yield replace(plan, shape=replace(shape, **{name: getattr(plain, name)}))
    yield replace(plan, merge_on_read=False)
    yield one
    for position, fault in enumerate(plan.faults):
        if fault.n > 1:
            yield replace(plan, faults=(*plan.faults[:position], fault.at(1), *plan.faults[position + 1 :]))
