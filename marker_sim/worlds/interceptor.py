"""Where storage calls of real processes become events: one call at a time, each effect recorded before any process sees
it, and faults at the n-th matching call.

    S3      the front (worlds/s3_front) passes every request through the interceptor
    local   the door (worlds/door) passes every system call on a file through it

A fault with a `Call` trigger counts the calls that fit and strikes from the n-th on, at as many as its settings say.
The holder of the call carries out storage faults; `inject` kills and pauses processes, before the call is applied or
after it and before the reply. So a crash point is a place in the history and not a moment on a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.worlds.recorder import Recorder

SERVERS, DRIVERS = "server-", "driver-"  # What the names of their lives begin with.
HEAD = "head"  # What a get on S3 is as well that asks for no content.
_ELSEWHERE = ("process", "proxy")  # Families of faults that no holder of a call carries out.


class StorageCall(NamedTuple):
    """A storage call before it is applied.

    operation: put, overwrite, get, list or delete; on local files the system call (worlds/door/calls.py).
    path: a storage path or a prefix.
    also: what else it is: a put, as every local call that changes a file, or a cut of a file that had content; on S3 a
        head.
    needs_room: whether a full disk refuses it. starting: whether its server was started again and does not serve yet.
    """

    process: str
    role: str
    operation: str
    path: str
    also: tuple[str, ...] = ()
    needs_room: bool = True
    starting: bool = False


@dataclass(slots=True, eq=False)
class ArmedFault:
    """A fault with a `Call` trigger, armed at the interceptor, with its state.

    caller: how the names begin of those whose calls count, "" for everybody; the fault's target if None.
    exempt_roles: roles whose calls continue; their call triggers the fault, and another process is affected.
    outside: whatever its kind, `inject` does it, and not the holder of the call.
    seen, fired: how many calls have fitted, and at how many it has struck.
    """

    fault: Fault
    caller: str | None = None
    exempt_roles: tuple[str, ...] = ()
    outside: bool = False
    seen: int = 0
    fired: int = 0
    call: Call = field(init=False)
    _regex: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.fault.trigger, Call), f"{self.fault} is not due at a call"
        self.call = self.fault.trigger
        self._regex = re.compile(self.call.pattern)
        self.caller = self.fault.target if self.caller is None else self.caller

    @property
    def kind(self) -> FaultKind:
        """The kind of the fault."""
        return self.fault.kind

    @property
    def injected(self) -> bool:
        """Whether it affects a process or a period, and not only this call."""
        return self.outside or self.kind.row.kills or self.kind.row.family in _ELSEWHERE

    @property
    def passes(self) -> bool:
        """Whether the call itself is applied as usual."""
        return self.kind.row.family in _ELSEWHERE and not self.kind.row.kills

    def fits(self, call: StorageCall) -> bool:
        """Whether it counts this call; a target "executor-1" does not include "executor-10"."""
        caller = self.caller or ""
        longer = caller[-1:].isdigit() and call.process[len(caller) :][:1].isdigit()
        return (
            not {call.operation, *call.also}.isdisjoint(self.call.operations)
            and call.process.startswith(caller)
            and not longer
            and call.starting == self.call.starting
            and self._regex.search(call.path) is not None
        )

    def turn(self) -> bool:
        """Whether it strikes at the next call that fits."""
        return self.call.n <= self.seen + 1 < self.call.n + self.fault.settings.calls

    def spares(self, call: StorageCall) -> bool:
        """Whether a call that fits cannot feel it."""
        return self.kind is FaultKind.DISK_FULL and not self.outside and not call.needs_room

    def hits(self, role: str) -> bool:
        """Whether it affects a caller of this role itself."""
        return role not in self.exempt_roles


class Interceptor:
    """All storage calls pass here. `lock` is the recorder's: hold it from `strike` until the effect is recorded.

    inject: kills or pauses the process of a call and records the fault; called with the lock held.
    below: of paths that start otherwise no effect is recorded: many belong to an earlier run on the same storage.
    serves: whether a process is up; at the calls of any other no fault counts or strikes, but while it `restarts`: is
        started again after a death, those for calls that are `starting`.
    callers: how the names begin of those whose calls are kept: servers, or drivers.
    calls: theirs since faults were armed, in order.
    """

    def __init__(
        self,
        recorder: Recorder,
        inject: Callable[[ArmedFault, StorageCall], None] = lambda armed, call: None,
        below: str = "",
        serves: Callable[[str], bool] = lambda process: True,
        restarts: Callable[[str], bool] = lambda process: False,
        callers: str = SERVERS,
    ) -> None:
        self.recorder = recorder
        self.below = below
        self.serves = serves
        self._restarts = restarts
        self.lock = recorder.lock
        self._inject = inject
        self._callers = callers
        self.calls: list[StorageCall] = []
        self._armed: list[ArmedFault] = []

    def arm(self, *faults: ArmedFault) -> None:
        """Arm faults; they count calls from now on."""
        with self.lock:
            self.calls = []
            self._armed += faults

    def disarm(self) -> tuple[ArmedFault, ...]:
        """Disarm all faults, and return them with their state."""
        with self.lock:
            armed, self._armed = tuple(self._armed), []
        return armed

    def strike(self, call: StorageCall) -> ArmedFault | None:
        """The fault that strikes at this call, or None; the others that fit count it. The lock is held.

        A death or pause before the call is done when this returns: the caller does not apply the call of a killed
        process. Storage faults are recorded here and done by the caller.
        """
        if self._restarts(call.process):
            call = call._replace(starting=True)
        elif not self.serves(call.process):
            return None
        if call.process.startswith(self._callers):
            self.calls.append(call)
        due: ArmedFault | None = None
        for armed in self._armed:
            if not armed.fits(call):
                continue
            turn = armed.turn()
            if turn and (due is not None or armed.spares(call)):
                continue  # One fault strikes at a call; the other one's turn is the next call that fits.
            armed.seen += 1
            if turn:
                due = armed
        if due is None:
            return None
        due.fired += 1
        if due.injected:
            if due.call.when == "before":
                self._inject(due, call)
        else:
            self.recorder.record(call.process, "nemesis", "fault", due.kind.value, path=call.path, error=call.operation)
        return due

    def applied(
        self, armed: ArmedFault | None, call: StorageCall, operation: str, path: str, data: bytes | None
    ) -> None:
        """Record an effect of a call, then strike if a fault follows it. The lock is held."""
        if path.startswith(self.below):
            self.recorder.record(call.process, call.role, "effect", operation, path=path, value=data)
        self.passed_by(armed, call)

    def passed_by(self, armed: ArmedFault | None, call: StorageCall) -> None:
        """Strike after a call that had no effect to record. The lock is held."""
        if armed is not None and armed.injected and armed.call.when == "after":
            self._inject(armed, call)
