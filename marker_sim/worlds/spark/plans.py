"""Plans for Spark: the writes of an application, and faults at certain moments of its jobs.

TaskFault     at a moment of an attempt: "marker" its marker is made; "file" in the middle of its data file;
              "closed" its data file is whole
DriverKill    the driver's session dies at the n-th effect of a phase, before or after it, or between two steps
ServerKill    the timeline server dies at its n-th flush, and the driver starts it again
StorageFault  calls of a kind of path fail as a store fails
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, NamedTuple

from marker_sim.faults import FaultKind
from marker_sim.plan import Plan
from marker_sim.worlds.interceptor import WRITES, Trigger, When

EXECUTOR, DRIVER, SERVER = "executor", "driver", "timeline-server"
_DATA = r"^[^/]+/(?!\.hoodie/).*(\.parquet|\.log\.\d+)"
_TEMP = r"/\.hoodie/\.temp/"


class TaskKind(Enum):
    """Faults of an attempt; the value is the word in `fault` events."""

    FAILED = "task-failed"  # it raises
    WORKER = "kill-worker"  # SIGKILL for its Python worker
    EXECUTOR = "kill-executor"  # SIGKILL for its executor, JVM and Python
    LOST = "lost-shuffle"  # the same for the other executor, as soon as the results of all other tasks are there
    SLOW = "slow-task"  # it stands still for duration_ms, so that Spark starts a copy of it
    MEET = "speculative"  # the same until the copy is as far, and then both go on and succeed
    LATE = "late-attempt"  # the same until its instant is over, so that it writes what nobody asks for any more
    LATE_FAILED = "late-failure"  # the same, and then it fails in the middle of that


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFault:
    """Strikes once, at the first attempt of a task (its index) of a write (from 1) that comes to the moment."""

    kind: TaskKind
    write: int
    task: int = 0
    moment: str = "marker"
    duration_ms: int = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverKill:
    """The driver dies in a write (from 1) at the `nth` time of a phase.

    phase: one of PHASES or STEPS.
    """

    write: int
    phase: str
    nth: int = 1
    when: When = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKill:
    """The timeline server dies at its `nth` effect in marker directories from a write (from 1) on."""

    write: int
    nth: int = 1
    when: When = "before"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFault:
    """Calls below marker directories ("markers") or of data files ("data") fail, `times` of them from the `nth` on."""

    kind: FaultKind
    write: int
    where: str = "markers"
    nth: int = 1
    times: int = 1
    duration_ms: int = 0


class JobPhase(NamedTuple):
    """Where the driver is when it dies: from which step of its write on, whose effects, which operations and paths."""

    since: str
    pattern: str
    operations: tuple[str, ...]
    process: str


# Local marker files are written beside and renamed, so that a flush is one effect on every storage.
PHASES = {
    "flush": JobPhase("begin-ended", rf"{_TEMP}[^/]+/(MARKERS\d+$|.*\.marker\.)", ("put", "overwrite"), ""),
    "data": JobPhase("begin-ended", _DATA, ("put", "overwrite"), EXECUTOR),
    "reconcile": JobPhase("finalize-begins", _DATA, ("delete",), DRIVER),
    "commit": JobPhase("commit-begins", r"/\.hoodie/[^/]+\.(commit|deltacommit)$", ("put", "overwrite"), DRIVER),
    "marker-deletion": JobPhase("commit-ended", _TEMP, ("delete",), ""),
    "rollback": JobPhase("rollback-begins", r"", WRITES, DRIVER),
}
# Between the steps of the driver's write: STEP-begins comes before it touches anything, STEP-ended after it.
STEPS = tuple(f"{step}-{end}" for step in ("begin", "rollback", "finalize", "commit") for end in ("begins", "ended"))
PATHS = {"markers": _TEMP, "data": _DATA}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlan:
    """A run.

    plan: mode, storage, tables and writes, without faults of its own; faults: in any order.
    """

    plan: Plan
    faults: tuple[TaskFault | DriverKill | ServerKill | StorageFault, ...] = ()

    def of(self, write: int, kind: type) -> list[tuple[int, Any]]:
        """The faults of a kind that belong to a write, with their numbers."""
        return [(n, f) for n, f in enumerate(self.faults) if f.write == write and isinstance(f, kind)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        faults = []
        for fault in self.faults:
            words = {k: v.value if isinstance(v, Enum) else v for k, v in asdict(fault).items()}
            faults.append({"fault": type(fault).__name__, **words})
        return self.plan.to_dict() | {"spark_faults": faults}


def aim_of(fault: DriverKill | ServerKill | StorageFault) -> Trigger:
    """The trigger at the interceptor of a fault; a driver's death must be one of PHASES."""
    match fault:
        case DriverKill():
            _, pattern, operations, process = PHASES[fault.phase]
            return Trigger(
                kind=FaultKind.KILL,
                pattern=pattern,
                operations=operations,
                process=process,
                nth=fault.nth,
                when=fault.when,
                exempt_roles=(EXECUTOR,),
            )
        case ServerKill():
            return Trigger(kind=FaultKind.KILL, pattern=_TEMP, process="server", nth=fault.nth, when=fault.when)
        case StorageFault():
            return Trigger(
                kind=fault.kind,
                pattern=PATHS[fault.where],
                nth=fault.nth,
                times=fault.times,
                duration_ms=fault.duration_ms,
            )
