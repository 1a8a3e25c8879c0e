"""Smaller plans of writes: which candidates the shrinker tries, in which order. Pure functions.

A fault is keyed by its actor's step, and fewer tasks make fewer steps; so whatever is removed, the candidate is
offered again with its faults earlier, by about what was removed and by a little more or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from marker_sim.faults import Fault, FaultKind
from marker_sim.plan import EarlierLife, Plan, Task, Write

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


def miniatures(plan: Plan) -> Iterator[Plan]:
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
    return tuple(dict.fromkeys(replace(fault.at(1), target=_one_executor(fault.target)) for fault in plan.faults))


def _one_executor(actor: str) -> str:
    return "executor-0" if actor.startswith("executor") else actor


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
        alive = tuple(fault for fault in plan.faults if fault.kind is not FaultKind.KILL or fault.target != "driver")
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


def _simpler_lives(life: EarlierLife) -> Iterator[EarlierLife]:
    yield EarlierLife()
    for commits, archived in ((0, 0), (0, life.archived), (life.commits, 0), (1, life.archived), (life.commits, 1)):
        if commits <= life.commits and archived <= life.archived:
            yield replace(life, commits=commits, archived=archived)
    yield replace(life, instants="millis")
    yield replace(life, logs=False)
    yield replace(life, version8=False)
    yield replace(life, left="")


def _simpler_tasks(task: Task) -> Iterator[Task]:
    yield replace(task, partition="")
    yield replace(task, copies=1)
    yield replace(task, slow_ms=0)
    yield from (replace(task, strays=tuple(one for one in task.strays if one != stray)) for stray in task.strays)
    yield replace(task, kind="CREATE")
    yield replace(task, group="f0")
