"""Faults of a Spark application: each belongs to one write of the plan (`Write.faults`).

of a task       at a moment of its first attempt that comes there: "marker" its marker is made; "file" in the middle of
                its data file; "closed" its data file is whole
of the driver   its session dies at the n-th effect of a phase, before or after it, or between two steps
of the server   it dies at its n-th effect in marker directories, and the driver starts it again
of the storage  calls below marker directories ("markers") or of data files ("data") fail as a store fails, or the
                deletion by which a late attempt takes its own file back
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from marker_sim.faults import Call, Fault, FaultKind, Site, When
from marker_sim.faults.row import CHANGES
from marker_sim.plan import Plan
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
    """Where the driver is when it dies.

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
# Moments that plans of older versions name otherwise.
_OLDER = {"begin-ended": "inflight", "finalize-ended": "commit-begins"}


def task_fault(kind: FaultKind, task: int, moment: str) -> Fault:
    """Of a task by its index."""
    return Fault.of(kind, f"task-{task}", Site(MOMENTS[moment], 1))


def driver_kill(phase: str, n: int = 1, when: When = "after") -> Fault:
    """A driver's death at the n-th time of a phase."""
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
    """Of the first calls in a place."""
    return Fault.of(kind, STORAGE, Call(PATHS[where]), **settings)


def taking_back_fails(kind: FaultKind, **settings: int) -> Fault:
    """The first deletions of data files by executors fail, which are those of their own files."""
    return Fault.of(kind, EXECUTOR, Call(_DATA, ("delete",)), **settings)


def armed(fault: Fault) -> ArmedFault:
    """A fault at the interceptor; the executor that makes the call at which a driver dies continues."""
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


def upgraded(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A plan in its JSON-ready form, whose faults of Spark may stand beside it, as older versions stored them."""
    plan = dict(raw)
    older = plan.pop("spark_faults", ())
    if not older:
        return plan
    placed = []
    for each in older:
        fault = {key: value for key, value in each.items() if key not in ("write", "phase")}
        word = _OLDER.get(each["phase"], each["phase"])
        site = word in PHASES and PHASES[word].site
        placed.append((each["write"], driver_kill(word) if site or word != each["phase"] else Fault.from_dict(fault)))
    return with_faults(Plan.from_dict(plan), placed).to_dict()
