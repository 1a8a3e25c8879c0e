"""Plans for Spark, drawn from a seed: each fault where it can strike, and what it needs to strike at.

task_plan     one application in which nearly every write has a different fault of its tasks, server or storage
driver_plan   a driver dies in each write, and the next write begins with what it left behind; some writes have a failed
              attempt first, for without one finalize has nothing to delete, and some leave an instant behind
"""

from __future__ import annotations

import random

from marker_sim.faults import Fault, FaultKind
from marker_sim.plan import Plan, Task, Write
from marker_sim.worlds.spark.plans import (
    MOMENTS,
    PATHS,
    STEPS,
    driver_kill,
    phase_of,
    server_kill,
    storage_fault,
    taking_back_fails,
    task_fault,
    with_faults,
)

TASKS = 4
PARTITIONS = ("", "dt=2020-01-01", "ä b/01")


def task_plan(seed: int, mode: str, storage: str) -> Plan:
    """Every fault but the driver's, each in a write of its own, in an order drawn from the seed."""
    rng = random.Random(seed)
    kinds = [(FaultKind.TASK_FAILED, moment) for moment in MOMENTS]
    kinds += [(FaultKind.WORKER_KILLED, rng.choice(tuple(MOMENTS)))]
    kinds += [(FaultKind.EXECUTOR_KILLED, rng.choice(tuple(MOMENTS)))]
    kinds += [(FaultKind.SLOW_TASK, rng.choice(("marker", "file"))), (FaultKind.SHUFFLE_LOST, "closed")]
    kinds += [(FaultKind.SPECULATIVE, "marker"), (FaultKind.SPECULATIVE, "file")]
    kinds += [(FaultKind.LATE_ATTEMPT, "file"), (FaultKind.LATE_FAILURE, "file")]
    drawn = [task_fault(kind, rng.randrange(TASKS), moment) for kind, moment in kinds]
    drawn += _others(rng, mode, storage)
    rng.shuffle(drawn)
    faults: list[tuple[int, Fault]] = []
    write = 0
    for fault in drawn:
        write += 1
        faults.append((write, fault))
        # An attempt that outlives this write has the next one for itself.
        write += fault.kind in (FaultKind.LATE_ATTEMPT, FaultKind.LATE_FAILURE)
        if storage == "s3" and fault.kind is FaultKind.LATE_ATTEMPT:
            kind = rng.choice((FaultKind.THROTTLED, FaultKind.SERVER_ERROR))
            faults.append((write, taking_back_fails(kind, calls=2)))
    return with_faults(_plan(rng, seed, mode, storage, write), faults)


def driver_plan(seed: int, mode: str, storage: str, kills: int = 8) -> Plan:
    """`kills` writes, in each of which the driver dies somewhere else; phases in an order drawn from the seed."""
    rng = random.Random(seed)
    phases = ["flush", "data", "reconcile", "commit", "commit", "marker-deletion", "rollback", "rollback"]
    phases += ["rollback-begins", "finalize-begins", "commit-begins", *rng.sample(STEPS, 2)]
    rng.shuffle(phases)
    faults: list[tuple[int, Fault]] = []
    abandoned: set[int] = set()
    write = 0
    for phase in phases[:kills]:
        write += 1
        if phase.startswith("rollback") and not _died_before(faults, write):
            abandoned.add(write)
            write += 1
        faults.append((write, _kill(rng, phase, mode)))
        if phase == "reconcile":
            faults.append((write, task_fault(FaultKind.TASK_FAILED, rng.randrange(TASKS), "closed")))
    return with_faults(_plan(rng, seed, mode, storage, write, frozenset(abandoned)), faults)


def _kill(rng: random.Random, phase: str, mode: str) -> Fault:
    # One batch may hold all markers of a write, so only the first flush is sure to come.
    n = {
        "flush": rng.randint(1, 2 if mode == "direct" else 1),
        "data": rng.randint(1, TASKS),
        "rollback": rng.randint(1, 3),
    }.get(phase, 1)
    return driver_kill(phase, n, rng.choice(("before", "after")))


def _died_before(faults: list[tuple[int, Fault]], write: int) -> bool:
    """Whether the write before left an instant for sure: its driver died before the commit."""
    before = [phase for number, fault in faults if number == write - 1 and (phase := phase_of(fault))]
    return bool(before) and before[0] in ("inflight", "flush", "data", "finalize-begins", "reconcile", "commit-begins")


def _others(rng: random.Random, mode: str, storage: str) -> list[Fault]:
    """Faults of the server and the storage that can happen there; which write they belong to is not said yet."""
    faults: list[Fault] = []
    if mode == "timeline":
        faults += [server_kill("before"), server_kill("after")]
    here: dict[FaultKind, dict[str, int]] = {FaultKind.DISK_FULL: {}}
    if storage == "s3":
        here = {FaultKind.THROTTLED: {"calls": 3}, FaultKind.SERVER_ERROR: {}}
    for kind, settings in {**here, FaultKind.SLOW_STORAGE: {"late_ms": 400}}.items():
        faults += [storage_fault(kind, where, **settings) for where in PATHS]
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
