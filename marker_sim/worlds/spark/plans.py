"""Plans of the reference's jobs on Spark: their faults, each of which belongs to one write (`Write.faults`).

of a task       at a moment of its first attempt that comes there: "marker" its marker is made; "file" in the middle of
                its data file; "closed" its data file is whole
of the driver   its session dies at the n-th effect of a phase, before or after it, or between two steps
of the server   it dies at its n-th effect in marker directories, and the driver starts it again
of the storage  calls below marker directories ("markers") or of data files ("data") fail as a store fails, or the
                deletion by which a late attempt takes its own file back

Two kinds are drawn from a seed, with each fault where it can strike, and what it needs to strike at:

task_plan     one application in which nearly every write has a different fault of its tasks, server or storage
driver_plan   a driver dies in each write, and the next write begins with what it left behind; some writes have a failed
              attempt first, for without one finalize has nothing to delete, and some leave an instant behind
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from marker_sim.faults import Call, Fault, FaultKind, Site, When
from marker_sim.faults.row import CHANGES
from marker_sim.plan import Plan, Task, Write
from marker_sim.worlds.interceptor import ArmedFault

EXECUTOR, DRIVER, SERVER = "executor", "driver", "timeline-server"
STORAGE = "storage"
PUTS = ("put", "overwrite")
_DATA = r"^[^/]+/(?!\.hoodie/).*(\.parquet|\.log\.\d+)"
_TEMP = r"/\.hoodie/\.temp/"
_ENTRY = r"/\.hoodie/[^/.]+"
MOMENTS = {
    "marker": "executor: marker told",
    "file": "executor: data file put",
    "closed": "executor: data file written",
}


class JobPhase(NamedTuple):
    """A place in a write at which the driver dies.

    step: from which step of its write on the effects count; or at which it dies, at `site`, between two effects.
    pattern, operations: of the effects, by processes whose names begin with `caller`.
    """

    step: str
    pattern: str = ""
    operations: tuple[str, ...] = CHANGES
    caller: str = ""
    site: str = ""


# Local marker files are written beside and renamed, so that a flush is one effect on every storage.
PHASES = {
    "begin-begins": JobPhase("begin-begins", site="driver: timeline listed"),
    "rollback-begins": JobPhase("rollback-begins", site="driver: rollback requested"),
    "rollback": JobPhase("rollback-begins", caller=DRIVER),
    "rollback-ended": JobPhase("rollback-ended", site="driver: rollback ends"),
    "inflight": JobPhase("begin-begins", _ENTRY + r"(\.deltacommit)?\.inflight$", PUTS, DRIVER),
    "flush": JobPhase("begin-ended", rf"{_TEMP}[^/]+/(MARKERS\d+$|.*\.marker\.)", PUTS),
    "data": JobPhase("begin-ended", _DATA, PUTS, EXECUTOR),
    "finalize-begins": JobPhase("finalize-begins", site="driver: markers asked for by finalize"),
    "reconcile": JobPhase("finalize-begins", _DATA, ("delete",), DRIVER),
    "commit-begins": JobPhase("commit-begins", site="driver: completed instant put"),
    "commit": JobPhase("commit-begins", _ENTRY + r"\.(commit|deltacommit)$", PUTS, DRIVER),
    "commit-ended": JobPhase("commit-ended", site="driver: completed instant written"),
    "marker-deletion": JobPhase("commit-ended", _TEMP, ("delete",)),
}
STEPS = tuple(word for word, phase in PHASES.items() if phase.site)
PATHS = {"markers": _TEMP, "data": _DATA}
TASKS = 4
PARTITIONS = ("", "dt=2020-01-01", "ä b/01")


def task_fault(kind: FaultKind, task: int, moment: str) -> Fault:
    """A fault of the task with an index, at a moment of its attempt."""
    return Fault.of(kind, f"task-{task}", Site(MOMENTS[moment], 1))


def driver_kill(phase: str, n: int = 1, when: When = "after") -> Fault:
    """A driver's death at the n-th effect of a phase; `n` and `when` do not count for one between two steps."""
    there = PHASES[phase]
    trigger = Site(there.site, 1) if there.site else Call(there.pattern, there.operations, n, when)
    return Fault.of(FaultKind.KILL, DRIVER, trigger)


def phase_of(fault: Fault) -> str:
    """The phase of a driver's death, "" for every other fault."""
    if (fault.kind, fault.target) != (FaultKind.KILL, DRIVER):
        return ""
    calls = (fault.trigger.pattern, fault.trigger.operations) if isinstance(fault.trigger, Call) else ("", ())
    for word, phase in PHASES.items():
        if fault.site == phase.site and (phase.site or calls == (phase.pattern, phase.operations)):
            return word
    return "rollback" if isinstance(fault.trigger, Call) else ""  # A place of a plan written by hand.


def server_kill(when: When) -> Fault:
    """A server's death at its first effect in marker directories."""
    return Fault.of(FaultKind.KILL, "server", Call(_TEMP, when=when))


def storage_fault(kind: FaultKind, where: str, **settings: int) -> Fault:
    """A fault of the first storage calls on "markers" or "data"."""
    return Fault.of(kind, STORAGE, Call(PATHS[where]), **settings)


def taking_back_fails(kind: FaultKind, **settings: int) -> Fault:
    """A fault by which the first deletions of data files by executors fail: late attempts delete their own files."""
    return Fault.of(kind, EXECUTOR, Call(_DATA, ("delete",)), **settings)


def armed(fault: Fault) -> ArmedFault:
    """The fault as the interceptor takes it; an executor whose call triggers a driver's death continues."""
    if phase := phase_of(fault):
        return ArmedFault(fault, PHASES[phase].caller, (EXECUTOR,))
    return ArmedFault(fault, "" if fault.target == STORAGE else None)


def with_faults(plan: Plan, faults: Iterable[tuple[int, Fault]]) -> Plan:
    """The plan with these faults, each in a write (from 1)."""
    placed = tuple(faults)
    writes = tuple(
        replace(write, faults=tuple(index for index, (number, _) in enumerate(placed) if number == ordinal))
        for ordinal, write in enumerate(plan.writes, 1)
    )
    return replace(plan, writes=writes, faults=tuple(fault for _, fault in placed))


def first_writes(plan: Plan, count: int) -> Plan:
    """The plan without its later writes and their faults."""
    numbers = ((ordinal, index) for ordinal, write in enumerate(plan.writes[:count], 1) for index in write.faults)
    kept = [(ordinal, plan.faults[index]) for ordinal, index in numbers]
    return with_faults(replace(plan, writes=plan.writes[:count]), kept)


def task_plan(seed: int, mode: str, storage: str) -> Plan:
    """A plan with every fault but the driver's, each in a separate write, in an order drawn from the seed."""
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
    """A plan of `kills` driver deaths, each in a write of its own and at a phase, in an order drawn from the seed."""
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
    """Whether the previous write certainly left an unfinished instant: its driver died before the commit."""
    before = [phase for number, fault in faults if number == write - 1 and (phase := phase_of(fault))]
    return bool(before) and before[0] in ("inflight", "flush", "data", "finalize-begins", "reconcile", "commit-begins")


def _others(rng: random.Random, mode: str, storage: str) -> list[Fault]:
    """The faults of server and storage that are possible in a mode and storage, shuffled, without their writes."""
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
