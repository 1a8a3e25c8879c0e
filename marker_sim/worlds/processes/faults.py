"""How each fault of a plan is injected into real processes.

kill, pause              SIGKILL; SIGSTOP and SIGCONT
torn-write               SIGKILL in the middle of the next write in place, or after the next put, which is whole (local)
orphaned-request         the request is applied and its sender killed before the answer (S3)
throttled ... slow       at the next matching calls of that process: in the S3 front or at the door
attempt-killed, zombie,  the driver gets the message that a cluster would send; the attempt ends, stops or goes on
speculative, stage-retried
damage                   the kit itself empties or removes type files
Faults that `why_not` names are left out of a plan here.
"""

from __future__ import annotations

from dataclasses import replace

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.faults.row import CHANGES
from marker_sim.worlds.interceptor import ArmedFault
from marker_sim.worlds.simulated.cluster import FOREIGN

# worlds/proxies simulates slow and cut links, but only before foreign servers.
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
    """Raised for a caller that is dead, whose call gets no answer."""


def why_not(fault: Fault, storage: str) -> str:
    """The reason why real processes on a storage cannot have a fault, "" when they can."""
    row = fault.kind.row
    if fault.kind in SIMULATED_ALONE:
        return "only simulated processes have it"
    if row.family in FOREIGN:
        return FOREIGN[row.family]
    return "" if storage in row.storages else f"storage {storage} never fails like this"


def at_next_calls(fault: Fault, process: str) -> ArmedFault:
    """Arm a storage fault, due at a step of a process, for the following calls of that process."""
    operations = fault.kind.row.operations
    # A write in place consists of three calls, so the fault must last for all of them.
    if fault.kind is FaultKind.IO_ERROR:
        operations = ("put", "delete") if fault.settings.applied else CHANGES
    # The first piece of a write in place empties the file; a put is complete, and the process dies after it.
    call = Call(operations=operations, when="after" if fault.kind.row.kills else "before")
    aimed = replace(fault, trigger=call)
    silent = fault.kind in (FaultKind.TIMEOUT_APPLIED, FaultKind.TIMEOUT_LOST)
    return ArmedFault(aimed.but(for_ms=_SILENCE_MS) if silent else aimed, process)
