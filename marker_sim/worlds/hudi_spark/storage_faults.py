"""What else a write meets: executors that die or stand still, and an object store that fails.

    executors   one is killed, or stopped for a while, at a data file: its tasks run again, or a speculative copy of
                them beside it, and what is not accepted must be gone when the write is committed
    storage     503, 500, slow puts, puts that are done and not answered: some are repeated by S3A, others fail a task
                attempt, whose file is then there and not accepted

Executors are there on a standalone cluster alone (worlds/spark/standalone.py); storage fails on the kit's S3 alone.
"""

from __future__ import annotations

import random

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.worlds.hudi_spark.phases import DATA, RECONCILE
from marker_sim.worlds.hudi_spark.steps import EXECUTOR, STORAGE, Stage, TableStep

PAUSE_MS = (2_000, 6_000)
REPEATED = 8  # Requests that S3A makes for a put before it gives up, with the settings of settings.py.
_FIRST_TASK = r"(?!\.hoodie/)(.*/)?([^/.][^/]*_0-\d+-\d+_\d+\.parquet|\.[^/]*\.log\.\d+_0-\d+-\d+)$"
_READS = ("get", "list")


def executor_troubles(rng: random.Random, files: int, storage: str) -> tuple[TableStep, ...]:
    """A killed executor, a paused one, a driver that dies while it deletes what was left. files: of a write."""
    call = Call(DATA, ("put",), min(rng.choice((1, 2, 3)), files), rng.choice(("before", "after")))
    killed = Fault.of(FaultKind.KILL, EXECUTOR, call)
    paused = Fault.of(FaultKind.PAUSE, EXECUTOR, call, for_ms=rng.randint(*PAUSE_MS))
    return (
        _step("executor killed", killed),
        _step("executor paused", paused),
        _step(RECONCILE.name, killed.at(1), RECONCILE.fault(rng, 1, storage)),
    )


def storage_troubles(rng: random.Random) -> tuple[TableStep, ...]:
    """Each way in which the object store fails, during one write each."""
    lost = _failing(FaultKind.TIMEOUT_APPLIED, Call(_FIRST_TASK, ("put",)), calls=REPEATED, for_ms=200)
    times = rng.choice((1, 3, REPEATED))
    every = Call("", ("put", "delete", *_READS), rng.randint(1, 20))
    throttled = _failing(FaultKind.THROTTLED, every, calls=rng.randint(2, 10))
    unread = _failing(
        FaultKind.SERVER_ERROR, Call("", _READS, rng.randint(1, 30)), calls=rng.choice((1, 3))
    )  # fmt: skip
    first = rng.randint(1, 12)
    return (
        _step(RECONCILE.name, lost, RECONCILE.fault(rng)),
        _step("attempt failed after its file was put", lost),
        _step("puts refused", _failing(FaultKind.SERVER_ERROR, Call("", ("put",), first), calls=times)),
        _step("puts slow", _failing(FaultKind.SLOW_STORAGE, Call("", ("put",)), calls=12, late_ms=400)),
        _step("requests throttled", throttled),
        _step("reads refused", unread),
        _step(
            "storage failed in a rollback",
            _failing(FaultKind.SERVER_ERROR, Call(r"\.hoodie/", ("put",), 2), calls=times),
            stage="rollback",
        ),
    )


def _failing(kind: FaultKind, call: Call, **how: int) -> Fault:
    return Fault.of(kind, STORAGE, call, **how)


def _step(name: str, *faults: Fault, stage: Stage = "write") -> TableStep:
    return TableStep(name=name, stage=stage, faults=faults)
