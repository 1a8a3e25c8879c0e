"""Where storage calls of real processes become events: one call at a time, each effect recorded before any process sees
it, and faults at the n-th matching call.

    S3      the front (worlds/s3_front) passes every request through the interceptor
    local   the kit's own processes ask it before they touch a file and report the effect afterwards

A trigger counts the calls that match it and fires from the `nth` on, `times` times. The holder of the call carries out
storage faults; `inject` kills and pauses processes, before the call is applied or after it and before the reply. So a
crash point is a place in the history and not a moment on a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from marker_sim.faults import FaultKind
from marker_sim.worlds.recorder import Recorder

WRITES = ("put", "delete", "overwrite")
When = Literal["before", "after"]


class StorageCall(NamedTuple):
    """A call before it is applied.

    operation: put, overwrite, get, list or delete; for watched files also open and cut (file_watch.py).
    path: a storage path or a prefix.
    """

    process: str
    role: str
    operation: str
    path: str


@dataclass(slots=True, kw_only=True, eq=False)
class Trigger:
    """A fault and where it fires: at the `nth` matching call (from 1), and `times` calls from there on.

    pattern: a regular expression searched for in the path.
    process: a prefix of the caller's name, "" for all.
    when: for KILL and PAUSE, before or after the call is applied.
    duration_ms: of a pause, a delay, a silence.
    value: as in `plan.Fault`.
    exempt_roles: roles whose calls continue; their call triggers the fault, and another process is affected.
    seen, fired: how often it matched and fired so far.
    """

    kind: FaultKind
    pattern: str = ""
    operations: tuple[str, ...] = WRITES
    process: str = ""
    nth: int = 1
    times: int = 1
    when: When = "before"
    duration_ms: int = 0
    value: int = 1
    exempt_roles: tuple[str, ...] = ()
    seen: int = 0
    fired: int = 0
    _regex: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        self._regex = re.compile(self.pattern)

    def fits(self, call: StorageCall) -> bool:
        """Whether it counts this call."""
        return (
            call.operation in self.operations
            and call.process.startswith(self.process)
            and self._regex.search(call.path) is not None
        )

    def hits(self, call: StorageCall) -> bool:
        """Whether the caller itself is affected."""
        return call.role not in self.exempt_roles


class Interceptor:
    """Calls of all processes pass here. `lock` is the recorder's: hold it from `strike` until the effect is recorded.

    inject: kills or pauses the process of a call and records the fault; called with the lock held.
    aimed: gets the armed triggers whenever they change.
    """

    def __init__(self, recorder: Recorder, inject: Callable[[Trigger, StorageCall], None]) -> None:
        self.recorder = recorder
        self.lock = recorder.lock
        self.passed = 0
        self._inject = inject
        self._triggers: list[Trigger] = []
        self.aimed: Callable[[tuple[Trigger, ...]], object] = lambda triggers: None

    def arm(self, *triggers: Trigger) -> None:
        """Aim faults; they count from now on."""
        with self.lock:
            self._triggers += triggers
        self.aimed(tuple(self._triggers))

    def disarm(self) -> tuple[Trigger, ...]:
        """No aim strikes any more; those that were armed, with what they came to."""
        with self.lock:
            triggers, self._triggers = tuple(self._triggers), []
        self.aimed(())
        return triggers

    def strike(self, call: StorageCall) -> Trigger | None:
        """The trigger that strikes at this call, None for none; the others that fit count it. The lock is held.

        A KILL or PAUSE before the call is done when this returns: the caller does not apply the call of a killed
        process. Storage faults are recorded here and done by the caller.
        """
        self.passed += 1
        due: Trigger | None = None
        for trigger in self._triggers:
            if not trigger.fits(call):
                continue
            turn = trigger.nth <= trigger.seen + 1 < trigger.nth + trigger.times
            if turn and due is not None:
                continue  # One aim strikes at a call; the other one's turn is the next call that fits.
            trigger.seen += 1
            if turn:
                due = trigger
        if due is None:
            return None
        due.fired += 1
        if due.kind in (FaultKind.KILL, FaultKind.PAUSE):
            if due.when == "before":
                self._inject(due, call)
        else:
            self.recorder.record(call.process, "nemesis", "fault", due.kind.value, path=call.path)
        return due

    def applied(
        self, trigger: Trigger | None, call: StorageCall, operation: str, path: str, data: bytes | None
    ) -> None:
        """Record an effect of a call and strike after it where that is what was aimed. The lock is held."""
        self.recorder.record(call.process, call.role, "effect", operation, path=path, value=data)
        self.passed_by(trigger, call)

    def passed_by(self, trigger: Trigger | None, call: StorageCall) -> None:
        """Strike after a call that had no effect of its own to record. The lock is held."""
        if trigger is not None and trigger.when == "after" and trigger.kind in (FaultKind.KILL, FaultKind.PAUSE):
            self._inject(trigger, call)
