"""Smaller plans of writes: which candidates the shrinker tries, in which order. Pure functions.

A fault is keyed by its actor's step, and fewer tasks make fewer steps; so whatever is removed, the candidate is
offered again with its faults earlier, by about what was removed and by a little more or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from marker_sim.faults import FaultKind
from marker_sim.plan import Plan, Task, Write

STEPS_OF_A_WRITE = (6, 9, 11, 12, 13, 14, 15, 16, 18, 20, 24, 30, 40)
STEPS_OF_A_TASK = (1, 2, 3, 4, 5, 6, 8)


def fewer_writes(plan: Plan) -> Iterator[tuple[Plan, tuple[int, ...]]]:
    """The plan without one of its writes, the last first, and by how many steps its faults may have to move."""
    for position in reversed(range(len(plan.writes))):
        writes = plan.writes[:position] + plan.writes[position + 1 :]
        yield replace(plan, writes=writes), STEPS_OF_A_WRITE


def fewer_tasks(plan: Plan) -> Iterator[tuple[Plan, tuple[int, ...]]]:
    """The plan without half, a quarter ... one of the tasks of a write."""
    for position, write in enumerate(plan.writes):
        size = max(1, len(write.tasks) // 2)
        while size:
            for start in range(0, len(write.tasks), size):
                tasks = write.tasks[:start] + write.tasks[start + size :]
                yield with_write(plan, position, replace(write, tasks=tasks)), STEPS_OF_A_TASK
            size //= 2


def earlier(plan: Plan, by: tuple[int, ...]) -> Iterator[Plan]:
    """The plan with its faults earlier, all of them or those of one actor."""
    actors = sorted({fault.actor for fault in plan.faults})
    groups = [frozenset(actors)] + ([frozenset({actor}) for actor in actors] if len(actors) > 1 else [])
    for less in by:
        for group in groups:
            faults = tuple(
                replace(f, step=f.step - less) if f.actor in group and f.step > less else f for f in plan.faults
            )
            if faults != plan.faults:
                yield replace(plan, faults=faults)


def simpler_writes(plan: Plan) -> Iterator[Plan]:
    """The same writes with fewer peculiarities."""
    yield replace(plan, embedded=True)
    yield replace(plan, merge_on_read=False)
    for executors in (1, 2):
        if executors < plan.executors:
            yield replace(plan, executors=executors)
    if len(plan.tables) > 1 or plan.tables != ("t",):
        yield replace(plan, tables=("t",), writes=tuple(replace(write, table=0) for write in plan.writes))
    for position, write in enumerate(plan.writes):
        plain = tuple(Task(group=task.group) for task in write.tasks)
        if plain != write.tasks:
            yield with_write(plan, position, replace(write, tasks=plain))
        alive = tuple(fault for fault in plan.faults if fault.kind is not FaultKind.KILL or fault.actor != "driver")
        if alive != plan.faults:
            yield replace(with_write(plan, position, replace(write, abandon=True)), faults=alive)
        changes = (
            replace(write, after_ms=0),
            replace(write, markers=""),
            replace(write, abandon=False),
            replace(write, table=0),
        )
        yield from (with_write(plan, position, change) for change in changes if change != write)
        for number, task in enumerate(write.tasks):
            simple = (Task(group=task.group), *_simpler_tasks(task))
            for change in dict.fromkeys(simple):
                if change != task:
                    tasks = (*write.tasks[:number], change, *write.tasks[number + 1 :])
                    yield with_write(plan, position, replace(write, tasks=tasks))


def with_write(plan: Plan, position: int, write: Write) -> Plan:
    """The plan with one of its writes replaced."""
    return replace(plan, writes=(*plan.writes[:position], write, *plan.writes[position + 1 :]))


def _simpler_tasks(task: Task) -> Iterator[Task]:
    yield replace(task, partition="")
    yield replace(task, copies=1)
    yield replace(task, slow_ms=0)
    yield replace(task, kind="CREATE")
    yield replace(task, group="f0")
