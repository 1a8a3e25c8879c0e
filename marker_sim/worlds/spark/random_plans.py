"""Plans for Spark, drawn from a seed: each fault where it can strike, and what it needs to strike at.

task_plan     one application in which nearly every write has a different fault of its tasks, server or storage
driver_plan   a driver dies in each write, and the next write begins with what it left behind; some writes have a failed
              attempt first, for without one finalize has nothing to delete, and some leave an instant behind
"""

from __future__ import annotations

import random
from dataclasses import replace

from marker_sim.faults import FaultKind
from marker_sim.plan import Plan, Task, Write
from marker_sim.worlds.spark.plans import (
    STEPS,
    DriverKill,
    ServerKill,
    SparkPlan,
    StorageFault,
    TaskFault,
    TaskKind,
)

TASKS = 4
PARTITIONS = ("", "dt=2020-01-01", "ä b/01")
_Fault = TaskFault | DriverKill | ServerKill | StorageFault


def task_plan(seed: int, mode: str, storage: str) -> SparkPlan:
    """Every fault but the driver's, each in a write of its own, in an order drawn from the seed."""
    rng = random.Random(seed)
    kinds: list[tuple[TaskKind, str]] = [(TaskKind.FAILED, moment) for moment in ("marker", "file", "closed")]
    kinds += [(TaskKind.WORKER, rng.choice(("marker", "file", "closed")))]
    kinds += [(TaskKind.EXECUTOR, rng.choice(("marker", "file", "closed")))]
    kinds += [(TaskKind.SLOW, rng.choice(("marker", "file"))), (TaskKind.LOST, "closed")]
    kinds += [(TaskKind.MEET, "marker"), (TaskKind.MEET, "file")]
    kinds += [(TaskKind.LATE, "file"), (TaskKind.LATE_FAILED, "file")]
    drawn: list[_Fault] = [
        TaskFault(kind=kind, write=0, task=rng.randrange(TASKS), moment=moment) for kind, moment in kinds
    ]
    drawn += _others(rng, mode, storage)
    rng.shuffle(drawn)
    faults: list[_Fault] = []
    write = 0
    for fault in drawn:
        write += 1
        faults.append(replace(fault, write=write))
        # What is aimed at the next write must not meet the attempt that outlives this one.
        write += isinstance(fault, TaskFault) and fault.kind in (TaskKind.LATE, TaskKind.LATE_FAILED)
    return SparkPlan(plan=_plan(rng, seed, mode, storage, write), faults=tuple(faults))


def driver_plan(seed: int, mode: str, storage: str, kills: int = 8) -> SparkPlan:
    """`kills` writes, in each of which the driver dies somewhere else; phases in an order drawn from the seed."""
    rng = random.Random(seed)
    phases = ["flush", "data", "reconcile", "commit", "commit", "marker-deletion", "rollback", "rollback"]
    phases += ["rollback-begins", "finalize-begins", "finalize-ended", *rng.sample(STEPS, 2)]
    rng.shuffle(phases)
    faults: list[_Fault] = []
    abandoned: set[int] = set()
    write = 0
    for phase in phases[:kills]:
        write += 1
        if phase.startswith("rollback") and not _died_before(faults, write):
            abandoned.add(write)
            write += 1
        faults.append(_kill(rng, phase, write, mode))
        if phase == "reconcile":
            faults.append(TaskFault(kind=TaskKind.FAILED, write=write, task=rng.randrange(TASKS), moment="closed"))
    return SparkPlan(plan=_plan(rng, seed, mode, storage, write, frozenset(abandoned)), faults=tuple(faults))


def _kill(rng: random.Random, phase: str, write: int, mode: str) -> DriverKill:
    # One batch may hold all markers of a write, so only the first flush is sure to come.
    nth = {
        "flush": rng.randint(1, 2 if mode == "direct" else 1),
        "data": rng.randint(1, TASKS),
        "rollback": rng.randint(1, 3),
    }.get(phase, 1)
    return DriverKill(write=write, phase=phase, nth=nth, when=rng.choice(("before", "after")))


def _died_before(faults: list[_Fault], write: int) -> bool:
    """Whether the write before left an instant for sure: its driver died before the commit."""
    before = [f.phase for f in faults if isinstance(f, DriverKill) and f.write == write - 1]
    return bool(before) and before[0] in ("flush", "data", "reconcile", "finalize-begins", "finalize-ended")


def _others(rng: random.Random, mode: str, storage: str) -> list[ServerKill | StorageFault]:
    """Faults of the server and the storage that can happen there; which write they belong to is not said yet."""
    faults: list[ServerKill | StorageFault] = []
    if mode == "timeline":
        faults += [ServerKill(write=0, when="before"), ServerKill(write=0, when="after")]
    kinds = (FaultKind.THROTTLED, FaultKind.SERVER_ERROR) if storage == "s3" else (FaultKind.DISK_FULL,)
    for kind in (*kinds, FaultKind.SLOW_STORAGE):
        times = 3 if kind is FaultKind.THROTTLED else 1
        faults += [
            StorageFault(kind=kind, write=0, where=where, times=times, duration_ms=400) for where in ("markers", "data")
        ]
    rng.shuffle(faults)
    return faults


def _plan(
    rng: random.Random, seed: int, mode: str, storage: str, writes: int, abandoned: frozenset[int] = frozenset()
) -> Plan:
    partitions = PARTITIONS[: rng.randint(1, len(PARTITIONS))]
    tasks = tuple(
        Task(partition=partitions[n % len(partitions)], group=f"g{n}", kind=rng.choice(("MERGE", "APPEND")))
        for n in range(TASKS)
    )
    return Plan(
        mode=mode,
        storage=storage,
        directories=(),
        tables=("t",),
        writes=tuple(Write(tasks=tasks, abandon=number in abandoned) for number in range(1, writes + 1)),
        merge_on_read=rng.random() < 0.5,
        num_threads=rng.choice((1, 2, 20)),
        interval_ms=rng.choice((10, 50)),
        seed=seed,
    )
