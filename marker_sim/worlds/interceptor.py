"""The one door to a storage: calls pass it one after another, each effect is recorded before anybody sees it, and
faults are aimed at the n-th call that fits.

    S3      the front (real/front) passes every request through the gate
    local   processes of the kit's own write path ask the gate before they touch a file and tell it afterwards

An aim counts the calls that fit it and strikes from the `nth` on, `times` times. What "strike" means for a storage
fault is done by whoever holds the call; killing and pausing is done by `hurt`, before the call is applied or after it
and before the reply, so that a crash point is an exact place in the history and not a moment on a clock.
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
    """A call that wants to pass.

    path: a storage path or a prefix.

    operation: put, overwrite, get, list or delete; of files that are watched also open and cut (watch.py).
    """

    process: str
    role: str
    operation: str
    path: str


@dataclass(slots=True, kw_only=True, eq=False)
class Trigger:
    """A fault and where it strikes: at the `nth` call (from 1) that fits, and `times` calls from there on.

    pattern: a regular expression searched for in the path.
    process: a prefix of the caller's name, "" for all.
    when: for KILL and PAUSE, before or after the call is applied.
    duration_ms: of a pause, a delay, a silence.
    value: what the kind needs besides, as in `plan.Fault`. spares: roles whose calls go on, because whoever hurts
        something when they make them hurts somebody else.
    seen, fired: how often it fitted and struck so far.
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
        """Whether it is the caller that suffers."""
        return call.role not in self.exempt_roles


class Interceptor:
    """Where calls of all processes pass. `lock` is the recorder's: hold it from `strike` until the effect is recorded.

    hurt: kills or pauses the process of a call, and records that as a fault; called with the lock held.
    aimed: told which aims are armed whenever that changed.
    """

    def __init__(self, recorder: Recorder, hurt: Callable[[Trigger, StorageCall], None]) -> None:
        self.recorder = recorder
        self.lock = recorder.lock
        self.passed = 0
        self._hurt = hurt
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
        """The aim that strikes at this call, None for none; the others that fit count it. The lock is held.

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
                self._hurt(due, call)
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
            self._hurt(trigger, call)
