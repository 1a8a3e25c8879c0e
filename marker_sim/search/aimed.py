"""Scenes: what independent draws put together too seldom, each made on purpose in a small share of the plans.

A scene is a function from a plan that was drawn already to a plan. It sets what has to come together (workload, faults,
their sites) and draws the rest: how many, how long, which of several kinds, and whether the plan's other faults stay.
A scene is a situation and not a defect: it says what happens, and judges say what that breaks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from marker_sim.faults import FaultKind
from marker_sim.plan import Fault, Op, Plan, Task, Write

_ALSO_SHARE = 0.3  # Of the scenes, in which the plan's own faults happen as well.
_ANOTHER = "another/.hoodie/.temp/001"
_TRIES = 4  # So often a call is refused until whoever makes it gives up.
_LASTING = (FaultKind.THROTTLED, FaultKind.TIMEOUT_LOST)  # For as many calls as their value says.
_REFUSALS = {
    "s3": (*_LASTING, FaultKind.SERVER_ERROR),
    "s3-unconditional": (*_LASTING, FaultKind.SERVER_ERROR),
    "hdfs": (FaultKind.TIMEOUT_LOST, FaultKind.IO_ERROR),
    "local": (FaultKind.IO_ERROR,),
}


class Scene(NamedTuple):
    """share: of the plans that it fits, which it is made of. places: (mode, storage) that it fits, "" for any."""

    make: Callable[[random.Random, Plan], Plan]
    share: float
    mode: str = ""
    storages: tuple[str, ...] = ()


def aimed(rng: random.Random, plan: Plan, scenes: tuple[Scene, ...]) -> Plan:
    """The plan, or what the first scene that is drawn makes of it."""
    for scene in scenes:
        fits = scene.mode in ("", plan.mode) and (not scene.storages or plan.storage in scene.storages)
        if fits and rng.random() < scene.share:
            made = scene.make(rng, plan)
            also = plan.faults if rng.random() < _ALSO_SHARE else ()
            return replace(made, faults=tuple(sorted((*made.faults, *also), key=lambda f: (f.actor, f.step))))
    return plan


def two_hands(rng: random.Random, plan: Plan) -> Plan:
    """A second server, and one of the two stands still between its look at a file and its put, which a lock spans."""
    held = Fault(
        kind=FaultKind.PAUSE,
        actor=rng.choice(("server", "second")),
        step=rng.randint(1, 1 + len(plan.ops) // 8),
        site="server: batch file put",
        duration_ms=rng.choice((200, 1500)),
    )
    second = Fault(kind=FaultKind.SECOND_SERVER, actor="server", step=rng.randint(1, 8), duration_ms=5000)
    return replace(plan, faults=(second, held))


def deleted_by_the_other(rng: random.Random, plan: Plan) -> Plan:
    """A server stands still inside its lock, at the rewrite of a file; another one deletes the directory meanwhile."""
    held_ms = rng.choice((400, 1500, 4000))
    gap_ms = rng.choice((30, 80, 150))
    creates = [_create(n, rng.randint(gap_ms // 2, gap_ms)) for n in range(rng.randint(2, 8))]
    ops = [replace(op, actor=f"executor-{n % 2}") for n, op in enumerate(creates)]
    last_ms = gap_ms * len(ops) // 2 + held_ms
    ops.append(Op(actor="driver", kind="delete", after_ms=rng.randint(50, last_ms), server=1))
    faults = (
        Fault(kind=FaultKind.SECOND_SERVER, actor="server", step=1, duration_ms=rng.choice((1500, 5000))),
        Fault(
            kind=FaultKind.PAUSE,
            actor="server",
            step=rng.choice((2, 2, 3, 4)),
            site="server: batch file put",
            duration_ms=held_ms,
        ),
    )
    return replace(plan, num_threads=rng.choice((1, 1, 2)), ops=tuple(ops), faults=faults)


def asked_again_after_a_deletion(rng: random.Random, plan: Plan) -> Plan:
    """A directory is deleted, often through another server; then clients ask for the same again, and whether it is."""
    deleted_ms = rng.choice((300, 800))
    first = [_create(n, rng.randint(0, 100)) for n in range(rng.randint(1, 4))]
    ops = [*first, Op(actor="driver", kind="delete", after_ms=deleted_ms, server=rng.choice((1, 1, 0)))]
    for number in range(len(ops), len(ops) + rng.randint(1, 5)):
        after_ms = deleted_ms + rng.randint(50, 1500)
        ops.append(replace(rng.choice(first), actor=f"executor-{number}", after_ms=after_ms))
    ops.append(Op(actor="executor-looks", kind="exists", after_ms=deleted_ms + rng.randint(50, 300)))
    second = Fault(kind=FaultKind.SECOND_SERVER, actor="server", step=1, duration_ms=5000)
    return replace(plan, ops=tuple(ops), faults=(second,))


def silent_directory(rng: random.Random, plan: Plan) -> Plan:
    """The storage of one of several directories stays silent for longer than the others may be held up."""
    silent = Fault(
        kind=FaultKind.TIMEOUT_LOST, actor="server", step=rng.randint(1, 3), site="server: batch file put", value=40
    )
    if len(plan.directories) > 1:
        return replace(plan, faults=(silent,))
    where: dict[str, int] = {}  # A name stays in one directory, and a resend with it.
    ops = tuple(replace(op, directory=where.setdefault(op.name, rng.randrange(2))) for op in plan.ops)
    return replace(plan, directories=(*plan.directories, _ANOTHER), ops=ops, faults=(silent,))


def reading_again_refused(rng: random.Random, plan: Plan) -> Plan:
    """A flush is given up, so its server reads the directory again, and that is refused as well; names come back."""
    kind = rng.choice(_REFUSALS[plan.storage])
    gap_ms = 4_000 if kind is FaultKind.TIMEOUT_LOST else rng.choice((200, 500, 1000))
    ops: list[Op] = []
    for number in range(rng.randint(4, 10)):
        fresh = _create(number, number * gap_ms + rng.randint(0, gap_ms // 3))
        ops.append(replace(fresh, name=rng.choice(ops).name) if number > 1 and rng.random() < 0.7 else fresh)
    faults = (
        *_calls_refused(kind, "server", "server: batch file put", rng.choice((2, 2, 3)), _TRIES),
        *_calls_refused(kind, "server", "server: directory listed", 2, _TRIES * rng.choice((1, 1, 2))),
    )
    return replace(plan, num_threads=rng.choice((2, 4, 20)), ops=tuple(ops), faults=faults)


def crowd(rng: random.Random, plan: Plan) -> Plan:
    """So many clients at once, on one directory and few threads, that batches and marker files have very many names."""
    clients = rng.choice((64, 160, 200))
    at_once = rng.random() < 0.5  # All in the first batches, or over a second in many of them.
    ops = [_create(n, 0 if at_once else rng.randint(0, 1000)) for n in range(clients)]
    ops += [Op(actor="driver", kind=kind, after_ms=2000) for kind in ("list", "list-data")]
    return replace(
        plan, num_threads=rng.choice((1, 1, 1, 2)), directories=plan.directories[:1], ops=tuple(ops), faults=()
    )


def deleted_by_the_dead(rng: random.Random, plan: Plan) -> Plan:
    """A server dies with the end of a deletion under way; its successor is asked for markers before that is applied."""
    deleted_ms = rng.randint(40, 300)
    ops = [_create(n, 0) for n in range(rng.randint(1, 4))]
    ops.append(Op(actor="driver", kind="delete", after_ms=deleted_ms))
    ops += [_create(n, deleted_ms + rng.randint(0, 600)) for n in range(len(ops), len(ops) + rng.randint(1, 5))]
    ops.append(_create(len(ops), rng.choice((4000, 10_000))))  # What is left when all that was sent has arrived.
    dies = Fault(
        kind=FaultKind.ORPHANED,
        actor="server",
        step=1,
        site=rng.choice(("server: type file deleted", "server: type file deleted", "server: batch file deleted")),
        duration_ms=rng.choice((0, 20, 100)),
        value=rng.choice((300, 900, 2500)),
    )
    return replace(plan, ops=tuple(ops), faults=(dies,))


def _create(number: int, after_ms: int) -> Op:
    """A create of a name of its own, by a client of its own."""
    name = f"f{number}_{number}-0-0_001.parquet.marker.CREATE"
    return Op(actor=f"executor-{number}", kind="create", name=name, request=f"r{number}", after_ms=after_ms)


def refused_deletions(rng: random.Random, plan: Plan) -> Plan:
    """Several files to delete at a time, and storage refuses some of them for as long as anybody tries."""
    part = rng.choice(("reconcile", "reconcile", "rollback", "rollback", "sweep"))
    groups = rng.randint(1, 4)
    copies = rng.choice((1, 2, 2, 3)) if part == "rollback" else rng.choice((2, 2, 3))
    tasks = [Task(group=f"f{n}", kind=rng.choice(("CREATE", "APPEND")), copies=copies) for n in range(groups)]
    if copies > 1:
        # What it waits for gives the attempts that lose the time to write their files.
        tasks.append(Task(group="slow", slow_ms=rng.choice((60, 900))))
    faults = _refused(rng, plan.storage, f"driver: {part} delete", len(tasks) * copies)
    if part == "sweep":
        site, value = "driver: completed instant written", rng.choice((0, 30, 2000))
        faults.append(Fault(kind=FaultKind.KILL, actor="driver", step=1, site=site, value=value))
    write = Write(tasks=tuple(tasks))
    writes = (replace(write, abandon=part == "rollback"), *(replace(write, after_ms=40),) * rng.choice((1, 1, 2)))
    return replace(plan, writes=writes, executors=max(plan.executors, rng.randint(2, 4)), faults=tuple(faults))


def _refused(rng: random.Random, storage: str, site: str, files: int) -> list[Fault]:
    """A driver's calls at a site fail, from one of the first on, until it has given up some of the files, or all."""
    first, calls = rng.choice((1, 1, 1, 2)), _TRIES * rng.choice((1, files, files, files + 1))
    return _calls_refused(rng.choice(_REFUSALS[storage]), "driver", site, first, calls)


def _calls_refused(kind: FaultKind, actor: str, site: str, first: int, calls: int) -> list[Fault]:
    if kind in _LASTING:
        return [Fault(kind=kind, actor=actor, step=first, site=site, value=calls)]
    return [Fault(kind=kind, actor=actor, step=step, site=site) for step in range(first, first + calls)]


def written_by_the_dead(rng: random.Random, plan: Plan) -> Plan:
    """An attempt of an application that died writes its file when the next one has written to the same group."""
    tasks = tuple(Task(group=f"f{n}", kind="APPEND") for n in range(rng.choice((1, 1, 2))))
    late_ms = rng.choice((3500, 4500, 6000, 9000))
    begun = len(tasks) if rng.random() < 0.9 else 0  # The dying application is the second one, or the first.
    faults = (
        Fault(
            kind=FaultKind.ZOMBIE,
            actor="executor-0",
            step=1 + begun,
            site="executor: data file put",
            duration_ms=late_ms,
        ),
        Fault(
            kind=FaultKind.KILL,
            actor="driver",
            step=begun + rng.choice((1, 1, 2)),
            site="driver: task heard of",
            value=rng.choice((late_ms, 30_000)),
        ),
    )
    pauses_ms = (0, 0, 0, rng.choice((0, 2000, 6000)), rng.choice((0, 8000)))
    writes = tuple(Write(tasks=tasks, after_ms=after_ms) for after_ms in pauses_ms[: rng.choice((3, 4, 5))])
    return replace(plan, writes=writes, merge_on_read=rng.random() < 0.9, faults=faults)


def many_versions(rng: random.Random, plan: Plan) -> Plan:
    """File groups go through many slices: log files, base files made of them, and writes that leave them alone."""
    writes = []
    for _ in range(rng.randint(6, 9)):
        groups = [group for group in ("f0", "f1", "f2", "f3") if rng.random() < 0.5] or ["f0"]
        kinds = ("MERGE", "MERGE", "APPEND")
        writes.append(Write(tasks=tuple(Task(group=group, kind=rng.choice(kinds)) for group in groups)))
    return replace(plan, writes=tuple(writes), merge_on_read=True, faults=())


_S3, _LOCAL = ("s3",), ("local",)
OF_OPERATIONS = (
    Scene(two_hands, 0.15, "timeline", _LOCAL),
    Scene(deleted_by_the_other, 0.04, "timeline", _LOCAL),
    Scene(silent_directory, 0.04, "timeline", _S3),
    Scene(deleted_by_the_dead, 0.03, "timeline", _S3),
    Scene(asked_again_after_a_deletion, 0.03, "timeline", (*_S3, *_LOCAL)),
    Scene(reading_again_refused, 0.03, "timeline", (*_S3, *_LOCAL)),
    Scene(crowd, 0.01, "timeline", (*_S3, *_LOCAL)),
)
OF_WRITES = (Scene(refused_deletions, 0.03), Scene(written_by_the_dead, 0.02), Scene(many_versions, 0.02))
