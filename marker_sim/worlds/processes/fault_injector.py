"""What the faults of a plan do to real processes: signals, aims at the gate, words to a driver.

kill, pause              SIGKILL; SIGSTOP and SIGCONT
torn-write               SIGKILL in the middle of the next write in place, or after the next put, which is whole (local)
orphaned-request         the request is applied and its sender killed before it hears of it (S3)
throttled ... slow       an aim at the calls of that process: at the S3 front, or at the gate for local files
attempt-killed, zombie,  the driver is told what a cluster would tell it; the attempt ends, stands still or goes on
speculative, stage-retried
damage                   the kit itself empties or removes type files
Only simulated are links that are slow or cut for a while (real/wires has them for servers), overload, clocks that jump,
placeholders, 409 and power loss: a plan with one of them runs here without it.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from marker_sim.faults import FaultKind
from marker_sim.names import TYPE_FILE
from marker_sim.plan import Fault
from marker_sim.worlds.interceptor import WRITES, StorageCall, Trigger
from marker_sim.worlds.processes.fork_server import ManagedProcess

if TYPE_CHECKING:
    from marker_sim.worlds.processes.cluster import ProcessCluster

_LASTING = (FaultKind.THROTTLED, FaultKind.TIMEOUT_LOST)
_SILENCE_MS = 1_500


class CallerIsDead(EOFError):
    """Whoever asked is dead and gets no answer."""


class ProcessFaultInjector:
    """Hurts the processes of one cluster until everything heals."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self._cluster = cluster
        self.healed = False
        self._struck: set[int] = set()
        self._planned: dict[Trigger, Fault] = {}  # The faults of the plan behind aims that kill.

    def strike(self, name: str, number: int, attempt: int | None) -> Any:
        """A fault of the plan is due at a step of a child; what the child shall do about it, None for nothing."""
        cluster = self._cluster
        fault, life = cluster.plan.faults[number], cluster.fork_server.lives[name]
        if self.healed or not life.alive or number in self._struck:
            return None  # Two lives of an actor may count at the same time: executors outlive their driver a little.
        self._struck.add(number)
        family = fault.kind.row.family
        if family == "storage":
            self._trigger(life, fault)
            return None
        if family == "wire":
            return None if fault.kind in (FaultKind.SLOW_LINK, FaultKind.CUT_LINK) else ("wire",)
        match fault.kind:
            case FaultKind.KILL:
                self.kill(life, fault)
                raise CallerIsDead
            case FaultKind.PAUSE:
                self.pause(life, fault.duration_ms)
            case FaultKind.SECOND_SERVER:
                cluster.servers.second(fault.duration_ms)
            case FaultKind.TYPE_DAMAGED:
                self._damage_type_files(fault.value)
            case _:
                return self._task(life, fault, attempt)
        return None

    def hurt(self, trigger: Trigger, call: StorageCall) -> None:
        """An aim at the gate kills or pauses whose call it is; the gate's lock is held."""
        life = self._cluster.fork_server.lives[call.process]
        if trigger.kind is FaultKind.KILL:
            planned = self._planned.get(trigger)
            self.kill(life, planned or Fault(kind=FaultKind.KILL, actor=life.actor, step=0, value=0))
        else:
            self.pause(life, trigger.duration_ms)

    def kill(self, life: ManagedProcess, fault: Fault, value: str | None = None) -> None:
        """SIGKILL, recorded in the same moment; nothing of the process is recorded or applied after it."""
        recorder = self._cluster.recorder
        with recorder.lock:
            if life.kill_sent or not life.alive:
                return
            life.kill_sent = True
            life.fault = fault
            if fault.kind is not FaultKind.KILL:
                recorder.record(life.name, "nemesis", "fault", fault.kind.value)
            recorder.record(life.name, life.role, "fault", "kill", value=value)
            life.signal(signal.SIGKILL)

    def pause(self, life: ManagedProcess, duration_ms: int) -> None:
        """SIGSTOP for a while."""
        recorder = self._cluster.recorder
        with recorder.lock:
            if life.paused or not life.alive:
                return
            life.paused = True
            recorder.record(life.name, life.role, "fault", "pause", value="begin")
            life.signal(signal.SIGSTOP)
        self._cluster.later(duration_ms, lambda: self.proceed(life))

    def proceed(self, life: ManagedProcess) -> None:
        """The end of a pause."""
        recorder = self._cluster.recorder
        with recorder.lock:
            if life.paused:
                life.paused = False
                if not life.kill_sent:
                    recorder.record(life.name, life.role, "fault", "pause", value="end")
                life.signal(signal.SIGCONT)

    def _trigger(self, life: ManagedProcess, fault: Fault) -> None:
        cluster = self._cluster
        if not cluster.world.fits(fault.kind):
            return
        operations = WRITES if fault.kind is FaultKind.IO_ERROR else fault.kind.row.operations
        if fault.kind in (FaultKind.ORPHANED, FaultKind.TORN_WRITE):
            # The first piece of a write in place empties the file; a put is whole, and then the process dies after it.
            trigger = Trigger(kind=FaultKind.KILL, operations=operations, process=life.name, when="after")
        else:
            trigger = Trigger(
                kind=fault.kind,
                operations=operations,
                process=life.name,
                times=max(1, fault.value) if fault.kind in _LASTING else 1,
                duration_ms=fault.duration_ms or (_SILENCE_MS if fault.kind.value.startswith("timeout") else 0),
                value=1,
            )
        self._planned[trigger] = fault
        cluster.interceptor.arm(trigger)

    def _task(self, life: ManagedProcess, fault: Fault, attempt: int | None) -> Any:
        """A fault of the attempt that makes this step, or of a driver that finalizes or commits."""
        cluster, kind = self._cluster, fault.kind
        if life.role == "driver" and kind is FaultKind.STAGE_RETRIED:
            self._record_task(life, kind, "")
            return ("run-again",)
        if attempt is None:
            return None
        driver, path = cluster.writes.attempts[attempt]
        match kind:
            case FaultKind.ATTEMPT_KILLED:
                self._record_task(life, kind, path)
                life.running.pop(attempt, None)
                cluster.later(max(1, fault.duration_ms), lambda: cluster.tell(driver, "lost", attempt))
                return ("end",)
            case FaultKind.ZOMBIE:
                self._record_task(life, kind, path)
                cluster.tell(driver, "lost", attempt)
                return ("sleep", fault.duration_ms)
            case FaultKind.SPECULATIVE:
                self._record_task(life, kind, path)
                cluster.tell(driver, "speculate", attempt, max(1, fault.value))
            case FaultKind.STAGE_RETRIED:
                self._record_task(life, kind, path)
                cluster.tell(driver, "stage-lost", attempt)
        return None

    def _record_task(self, life: ManagedProcess, kind: FaultKind, path: str) -> None:
        self._cluster.recorder.record(life.name, "nemesis", "fault", kind.value, path=path)

    def _damage_type_files(self, value: int) -> None:
        cluster = self._cluster
        for directory in cluster.marker_directories():
            path = f"{directory.path}/{TYPE_FILE}"
            with cluster.interceptor.lock:
                if cluster.world.stored(path) is None:
                    continue
                data = b"" if value == 1 else None
                cluster.recorder.record("kit", "nemesis", "fault", "damage", path=path)
                cluster.world.damage(path, data)
                cluster.recorder.record(
                    "kit", "kit", "effect", "delete" if data is None else "put", path=path, value=data
                )
