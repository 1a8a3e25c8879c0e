"""Plans for Spark: the writes of an application, and faults at certain moments of its jobs.

of a task       at a moment of its first attempt that comes there: "marker" its marker is made; "file" in the middle of
                its data file; "closed" its data file is whole
of the driver   its session dies at the n-th effect of a phase, before or after it, or between two steps
of the server   it dies at its n-th effect in marker directories, and the driver starts it again
of the storage  calls below marker directories ("markers") or of data files ("data") fail as a store fails, or the
                deletion by which a late attempt takes its own file back
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from marker_sim.faults import Call, Fault, FaultKind, Site, When
from marker_sim.faults.row import CHANGES
from marker_sim.plan import Plan
from marker_sim.worlds.interceptor import ArmedFault

EXECUTOR, DRIVER, SERVER = "executor", "driver", "timeline-server"
STORAGE = "storage"
_DATA = r"^[^/]+/(?!\.hoodie/).*(\.parquet|\.log\.\d+)"
_TEMP = r"/\.hoodie/\.temp/"
MOMENTS = {
    "marker": "executor: marker told",
    "file": "executor: data file put",
    "closed": "executor: data file written",
}


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
    "rollback": JobPhase("rollback-begins", r"", CHANGES, DRIVER),
}
# Between the steps of the driver's write: STEP-begins comes before it touches anything, STEP-ended after it.
STEPS = tuple(f"{step}-{end}" for step in ("begin", "rollback", "finalize", "commit") for end in ("begins", "ended"))
PATHS = {"markers": _TEMP, "data": _DATA}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFault:
    """A fault of one write (from 1) of an application.

    fault: of "task-N", "driver", "server" or "storage".
    phase: where the driver dies, one of PHASES or of STEPS, which is the site then.
    """

    write: int
    fault: Fault
    phase: str = ""

    def armed(self) -> ArmedFault:
        """It at the interceptor; whoever makes the call at which a driver dies continues."""
        if self.phase:
            return ArmedFault(self.fault, PHASES[self.phase].process, (EXECUTOR,))
        return ArmedFault(self.fault, "" if self.fault.target == STORAGE else None)


def task_fault(kind: FaultKind, task: int, moment: str, write: int = 0) -> JobFault:
    """Of a task by its index."""
    return JobFault(write=write, fault=Fault.of(kind, f"task-{task}", Site(MOMENTS[moment], 1)))


def driver_kill(write: int, phase: str, n: int = 1, when: When = "after") -> JobFault:
    """A driver's death at the n-th time of a phase."""
    if phase in STEPS:
        return JobFault(write=write, fault=Fault.of(FaultKind.KILL, DRIVER, Site(phase, 1)), phase=phase)
    _, pattern, operations, _ = PHASES[phase]
    return JobFault(
        write=write, fault=Fault.of(FaultKind.KILL, DRIVER, Call(pattern, operations, n, when)), phase=phase
    )


def server_kill(when: When) -> JobFault:
    """A server's death at its first effect in marker directories."""
    return JobFault(write=0, fault=Fault.of(FaultKind.KILL, "server", Call(_TEMP, when=when)))


def storage_fault(kind: FaultKind, where: str, **settings: int) -> JobFault:
    """Of the first calls in a place."""
    return JobFault(write=0, fault=Fault.of(kind, STORAGE, Call(PATHS[where]), **settings))


def taking_back_fails(kind: FaultKind, write: int, **settings: int) -> JobFault:
    """The first deletions of data files by executors fail, which are those of their own files."""
    return JobFault(write=write, fault=Fault.of(kind, EXECUTOR, Call(_DATA, ("delete",)), **settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlan:
    """A run.

    plan: mode, storage, tables and writes, without faults of its own; faults: in any order.
    """

    plan: Plan
    faults: tuple[JobFault, ...] = ()

    def of(self, write: int) -> list[tuple[int, JobFault]]:
        """The faults that belong to a write, with their numbers."""
        return [(n, fault) for n, fault in enumerate(self.faults) if fault.write == write]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        faults = [{"write": each.write, "phase": each.phase} | each.fault.to_dict() for each in self.faults]
        return self.plan.to_dict() | {"spark_faults": faults}
