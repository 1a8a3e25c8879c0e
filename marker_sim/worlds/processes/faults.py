"""How the faults of a plan are done to real processes.

kill, pause              SIGKILL; SIGSTOP and SIGCONT
torn-write               SIGKILL in the middle of the next write in place, or after the next put, which is whole (local)
orphaned-request         the request is applied and its sender killed before it hears of it (S3)
throttled ... slow       at the next calls of that process that fit: in the S3 front or at the door
attempt-killed, zombie,  the driver is told what a cluster would tell it; the attempt ends, stands still or goes on
speculative, stage-retried
damage                   the kit itself empties or removes type files
A plan with a fault that `why_not` names runs here without it.
"""

from __future__ import annotations

from dataclasses import replace

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.faults.row import CHANGES
from marker_sim.worlds.interceptor import ArmedFault
from marker_sim.worlds.simulated.cluster import FOREIGN

# Links that are slow or cut for a while are done by worlds/proxies, for servers.
SIMULATED_ALONE = frozenset(
    {
        FaultKind.SLOW_LINK,
        FaultKind.CUT_LINK,
        FaultKind.OVERLOADED,
        FaultKind.CLOCK_JUMPED,
        FaultKind.PLACEHOLDER,
        FaultKind.CONFLICT,
        FaultKind.POWER_LOST,
    }
)
_SILENCE_MS = 1_500


class CallerIsDead(EOFError):
    """The caller is dead, so its call gets no answer."""


def why_not(fault: Fault, storage: str) -> str:
    """Why real processes on a storage cannot have a fault, "" when they can."""
    row = fault.kind.row
    if fault.kind in SIMULATED_ALONE:
        return "only simulated processes have it"
    if row.family in FOREIGN:
        return FOREIGN[row.family]
    return "" if storage in row.storages else f"storage {storage} never fails like this"


def at_next_calls(fault: Fault, process: str) -> ArmedFault:
    """A storage fault of a plan that is due at a step of a process, for its calls from now on."""
    operations = fault.kind.row.operations
    if fault.kind is FaultKind.IO_ERROR:  # A write in place has three effects, so that one of them alone is not it.
        operations = ("put", "delete") if fault.settings.applied else CHANGES
    # The first piece of a write in place empties the file; a put is whole, and then the process dies after it.
    call = Call(operations=operations, when="after" if fault.kind.row.kills else "before")
    aimed = replace(fault, trigger=call)
    silent = fault.kind in (FaultKind.TIMEOUT_APPLIED, FaultKind.TIMEOUT_LOST)
    return ArmedFault(aimed.but(for_ms=_SILENCE_MS) if silent else aimed, process)
