"""Injects the faults of a plan into the processes of a Spark application, and counts what happened.

A task fault happens when an attempt reports where it is; a driver dies at a storage effect (the interceptor calls
`inject`) or between two of its steps; a server at an effect of its own. The death of a process is recorded under the
recorder's lock at the moment of the signal, so none of its consequences comes before it in the history.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from typing import Protocol

import psutil

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.processes.faults import CallerIsDead
from marker_sim.worlds.processes.fork_server import ManagedProcess
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.plans import DRIVER, EXECUTOR, MOMENTS, PHASES, armed, phase_of
from marker_sim.worlds.spark.standalone import Standalone

HELD_S = 6.0  # An attempt that waits for something, or makes Spark start a copy of it.
OTHERS_S = 8.0
MARKERS_GONE_S = 0.4


class StrikableRun(Protocol):
    """The run of a Spark application as far as its faults need it (run.py)."""

    plan: Plan
    cluster: Standalone
    recorder: Recorder
    interceptor: Interceptor
    lives: dict[str, ManagedProcess]
    server: ManagedProcess | None
    over: threading.Event

    def driver_life(self) -> ManagedProcess | None: ...
    def kill_application(self) -> None: ...


class SparkFaultInjector:
    """The faults of one run.

    struck: those of the plan that had their effect, by number.
    healed: nothing strikes any more.
    """

    def __init__(self, jobs: StrikableRun) -> None:
        self.healed = False
        self.struck: Counter[int] = Counter()
        self._jobs = jobs
        self._armed: dict[ArmedFault, int] = {}
        self._taken: set[int] = set()
        self._met: dict[tuple[int, int], set[int]] = {}
        self._ended: dict[int, set[int]] = {}
        self._committed: set[int] = set()
        self._turn = threading.Condition()

    def arm(self, write: int) -> None:
        """A write (from 1) is about to begin: aim what belongs to it, but for the driver's death."""
        for number, fault in self._of(write):
            if not phase_of(fault) and isinstance(fault.trigger, Call):
                self._arm(number, fault)

    def _of(self, write: int) -> list[tuple[int, Fault]]:
        """The faults of a write, with their numbers."""
        plan = self._jobs.plan
        return [(number, plan.faults[number]) for number in plan.writes[write - 1].faults]

    def _arm(self, number: int, fault: Fault) -> None:
        aimed = armed(fault)
        self._armed[aimed] = number
        self._jobs.interceptor.arm(aimed)

    def disarm(self) -> None:
        """The write is over; what did not strike by now never will."""
        for each in self._jobs.interceptor.disarm():
            if each.fired and each.kind is not FaultKind.KILL:
                self.struck[self._armed[each]] += each.fired

    def inject(self, due: ArmedFault, call: StorageCall) -> None:
        """A fault at the interceptor strikes; its lock is held."""
        number = self._armed[due]
        if phase := phase_of(due.fault):
            self.struck[number] += self.kill_driver(phase, call.path)
        else:
            self.struck[number] += self._kill(self._jobs.lives[call.process], call.path)

    def step(self, _: str, name: str, write: int) -> None:
        """The driver stands between two steps of a write; does not return to one that dies here."""
        if name == "commit-ended":
            with self._turn:
                self._committed.add(write)
                self._turn.notify_all()
        for number, fault in self._of(write):
            phase = PHASES.get(phase_of(fault))
            if self.healed or self.struck[number] or phase is None or phase.step != name:
                continue
            if phase.site:
                self.struck[number] += self.kill_driver(name, None)
                raise CallerIsDead
            if number not in self._armed.values():
                self._arm(number, fault)

    def kill_driver(self, phase: str, path: str | None) -> bool:
        """SIGKILL for the driver's session, of which the timeline server is a part; False when it was dead already."""
        jobs = self._jobs
        with jobs.recorder.lock:
            driver, server = jobs.driver_life(), jobs.server
            if driver is None or driver.kill_sent:
                return False
            driver.kill_sent = True
            jobs.recorder.record(driver.name, DRIVER, "fault", "kill", path=path, error=phase)
            if server is not None and not server.kill_sent:
                server.kill_sent = True
                jobs.recorder.record(server.name, server.role, "fault", "kill", value="with-its-driver")
            jobs.kill_application()
            return True

    def moment(self, name: str, moment: str, write: int, task: int, attempt: int) -> str | None:
        """An attempt is at a moment; what it shall do. Returns when it may go on; a killed one gets no answer."""
        if moment == "closed":
            with self._turn:
                self._ended.setdefault(write, set()).add(task)
                self._turn.notify_all()
        for number, fault in self._of(write):
            if (fault.target, fault.site) != (f"task-{task}", MOMENTS[moment]) or self.healed:
                continue
            if fault.kind is FaultKind.SPECULATIVE:
                self._meet(number, (write, task), name, attempt)
                continue
            with self._turn:
                first = number not in self._taken
                self._taken.add(number)
            if first:
                return self._task(number, fault.kind, write, self._jobs.lives[name])
        return None

    def _task(self, number: int, kind: FaultKind, write: int, life: ManagedProcess) -> str | None:
        answer = None
        self._jobs.recorder.record(life.name, "nemesis", "fault", kind.value)
        match kind:
            case FaultKind.TASK_FAILED:
                self.struck[number] += 1
                answer = "fail"
            case FaultKind.WORKER_KILLED:
                self.struck[number] += self._kill(life, None)
                raise CallerIsDead
            case FaultKind.EXECUTOR_KILLED:
                self.struck[number] += self._kill_executors(life.actor)
                raise CallerIsDead
            case FaultKind.SHUFFLE_LOST:
                self._await_others(write)
                for host in self._jobs.cluster.executors():
                    if host != life.actor:
                        self.struck[number] += self._kill_executors(host)
            case FaultKind.LATE_ATTEMPT | FaultKind.LATE_FAILURE:
                with self._turn:
                    over = self._turn.wait_for(lambda: write in self._committed, HELD_S)
                self.struck[number] += over
                self._jobs.over.wait(MARKERS_GONE_S)
                answer = "fail" if kind is FaultKind.LATE_FAILURE else None
            case _:
                self.struck[number] += 1
                self._jobs.over.wait(HELD_S)
        return answer

    def _meet(self, number: int, task: tuple[int, int], name: str, attempt: int) -> None:
        """Hold an attempt of a write's task until its copy, or the original, is here too."""
        with self._turn:
            met = self._met.setdefault(task, set())
            met.add(attempt)
            self._turn.notify_all()
            if self._turn.wait_for(lambda: len(met) > 1, HELD_S) and not self.struck[number]:
                self.struck[number] += 1
                self._jobs.recorder.record(name, "nemesis", "fault", FaultKind.SPECULATIVE.value)

    def _await_others(self, write: int) -> None:
        """Until every other task of the write has written its file, and a little for its result to be told."""
        tasks = len(self._jobs.plan.writes[write - 1].tasks)
        with self._turn:
            self._turn.wait_for(lambda: len(self._ended.get(write, ())) >= tasks, OTHERS_S)
        self._jobs.over.wait(1.0)

    def _kill_executors(self, host: str) -> int:
        """SIGKILL for the executors of a host, each with its Python workers; how many there were."""
        jobs, killed = self._jobs, 0
        with jobs.recorder.lock:
            for jvm in jobs.cluster.executors()[host]:
                try:
                    below = jvm.children(recursive=True)
                    jvm.kill()
                except psutil.NoSuchProcess:
                    continue
                killed += 1
                pids = {process.pid for process in below}
                for life in list(jobs.lives.values()):
                    if life.role == EXECUTOR and life.pid in pids:
                        self._kill(life, None)
                for process in below:
                    if process.is_running():
                        process.kill()
        return killed

    def _kill(self, life: ManagedProcess, path: str | None) -> bool:
        """SIGKILL for one process; False when it was dead already."""
        with self._jobs.recorder.lock:
            if life.kill_sent:
                return False
            life.kill_sent = True
            self._jobs.recorder.record(life.name, life.role, "fault", FaultKind.KILL.value, path=path)
            life.signal(signal.SIGKILL)
            return True

    def missed(self) -> tuple[Fault, ...]:
        """The faults of the plan that never struck."""
        return tuple(fault for number, fault in enumerate(self._jobs.plan.faults) if not self.struck[number])
