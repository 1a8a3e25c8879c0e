"""How the faults of a plan are done to real processes.

kill, pause              SIGKILL; SIGSTOP and SIGCONT
torn-write               SIGKILL in the middle of the next write in place, or after the next put, which is whole (local)
orphaned-request         the request is applied and its sender killed before it hears of it (S3)
throttled ... slow       a trigger at the calls of that process: at the S3 front, or at the interceptor for local files
attempt-killed, zombie,  the driver is told what a cluster would tell it; the attempt ends, stands still or goes on
speculative, stage-retried
damage                   the kit itself empties or removes type files
Only simulated are links that are slow or cut for a while (worlds/proxies has them for servers), overload, clocks that
jump, placeholders, 409 and power loss: a plan with one of them runs here without it.
"""

from __future__ import annotations

from marker_sim.faults import Fault, FaultKind
from marker_sim.worlds.interceptor import WRITES, Trigger

_SILENCE_MS = 1_500


class CallerIsDead(EOFError):
    """Whoever asked is dead and gets no answer."""


def trigger_of(fault: Fault, process: str) -> Trigger:
    """What a storage fault of a plan is at the interceptor, for the calls of a process from now on."""
    operations = WRITES if fault.kind is FaultKind.IO_ERROR else fault.kind.row.operations
    if fault.kind in (FaultKind.ORPHANED, FaultKind.TORN_WRITE):
        # The first piece of a write in place empties the file; a put is whole, and then the process dies after it.
        return Trigger(kind=FaultKind.KILL, operations=operations, process=process, when="after")
    return Trigger(
        kind=fault.kind,
        operations=operations,
        process=process,
        times=max(1, fault.settings.calls),
        duration_ms=fault.settings.late_ms or (_SILENCE_MS if fault.kind.value.startswith("timeout") else 0),
        value=1,
    )
