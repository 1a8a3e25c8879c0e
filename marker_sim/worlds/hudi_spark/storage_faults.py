"""What else a write meets: executors that die or stand still, and an object store that fails.

    executors   one is killed, or stopped for a while, at a data file: its tasks run again, or a speculative copy of
                them beside it, and what is not accepted must be gone when the write is committed
    storage     503, 500, slow puts, puts that are done and not answered: some are repeated by S3A, others fail a task
                attempt, whose file is then there and not accepted

Executors are there on a standalone cluster alone (worlds/spark/standalone.py); storage fails on the kit's S3 alone.
"""

from __future__ import annotations

import random
from dataclasses import replace

from marker_sim.faults import FaultKind
from marker_sim.worlds.hudi_spark.phases import DATA, RECONCILE
from marker_sim.worlds.hudi_spark.round_steps import RoundStep, WriteFault

PAUSE_MS = (2_000, 6_000)
REPEATED = 8  # Requests that S3A makes for a put before it gives up, with the settings of settings.py.
_FIRST_TASK = r"(?!\.hoodie/)(.*/)?([^/.][^/]*_0-\d+-\d+_\d+\.parquet|\.[^/]*\.log\.\d+_0-\d+-\d+)$"
_READS = ("get", "list")


def executor_troubles(rng: random.Random, files: int) -> tuple[RoundStep, ...]:
    """A killed executor, a paused one, a driver that dies while it deletes what was left. files: of a write."""
    killed = WriteFault(
        who="executor",
        word="data-file",
        kind=FaultKind.KILL,
        pattern=DATA,
        operations=("put",),
        nth=min(rng.choice((1, 2, 3)), files),
        when=rng.choice(("before", "after")),
        at=rng.choice(("made", "whole")),
    )
    paused = replace(killed, kind=FaultKind.PAUSE, duration_ms=rng.randint(*PAUSE_MS))
    return (
        RoundStep(name="executor killed", stage="write", blows=(killed,)),
        RoundStep(name="executor paused", stage="write", blows=(paused,)),
        RoundStep(name=RECONCILE.name, stage="write", blows=(replace(killed, at="whole", nth=1), RECONCILE.blow(rng))),
    )


def storage_troubles(rng: random.Random) -> tuple[RoundStep, ...]:
    """Each way in which the object store fails, during one write each."""
    lost = WriteFault(
        who="storage",
        word="data-file",
        kind=FaultKind.TIMEOUT_APPLIED,
        pattern=_FIRST_TASK,
        operations=("put",),
        times=REPEATED,
        duration_ms=200,
    )
    refused = replace(lost, kind=FaultKind.SERVER_ERROR, pattern="", times=rng.choice((1, 3, REPEATED)))
    slow = replace(refused, kind=FaultKind.SLOW_STORAGE, times=12, duration_ms=400)
    throttled = replace(
        refused,
        kind=FaultKind.THROTTLED,
        operations=("put", "delete", *_READS),
        nth=rng.randint(1, 20),
        times=1,
        value=rng.randint(2, 10),
    )
    unread = replace(refused, operations=_READS, nth=rng.randint(1, 30), times=rng.choice((1, 3)))
    return (
        RoundStep(name=RECONCILE.name, stage="write", blows=(lost, RECONCILE.blow(rng))),
        RoundStep(name="attempt failed after its file was put", stage="write", blows=(lost,)),
        RoundStep(name="puts refused", stage="write", blows=(replace(refused, nth=rng.randint(1, 12)),)),
        RoundStep(name="puts slow", stage="write", blows=(slow,)),
        RoundStep(name="requests throttled", stage="write", blows=(throttled,)),
        RoundStep(name="reads refused", stage="write", blows=(unread,)),
        RoundStep(
            name="storage failed in a rollback",
            stage="rollback",
            blows=(replace(refused, pattern=r"\.hoodie/", nth=2),),
        ),
    )
