"""Does the faults of a plan to the processes of Spark applications, and counts what had its effect.

    SparkFaultInjector   faults at storage calls, of every run on Spark: armed for a write, done when they are due
    JobFaultInjector     of the reference's own jobs, all of whose processes talk to the kit: faults of tasks as well,
                         when an attempt reports where it is, and deaths of the driver between two of its steps
    TableFaultInjector   of a table that Hudi writes, of whose processes the driver and the executors' JVMs are known

A death is recorded under the recorder's lock at the moment of the signal, so none of its consequences comes before it
in the history.
"""

from __future__ import annotations

import random
import signal
import threading
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Protocol

import psutil

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.processes.faults import CallerIsDead
from marker_sim.worlds.processes.fork_server import ManagedProcess
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.application import Application
from marker_sim.worlds.spark.hudi.steps import TableStep, aimed_at, moment_of
from marker_sim.worlds.spark.hudi.table_storage import TableStorage
from marker_sim.worlds.spark.plans import DRIVER, EXECUTOR, MOMENTS, PHASES, armed, phase_of
from marker_sim.worlds.spark.standalone import Standalone

HELD_S = 6.0  # An attempt that waits for something, or makes Spark start a copy of it.
OTHERS_S = 8.0
MARKERS_GONE_S = 0.4


class SparkFaultInjector(ABC):
    """Faults at storage calls. A death or a pause is done here; what fails a call, its holder does, as everywhere.

    struck: how often each fault had its effect, by its number; what calls met is in `times` alone.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.struck: Counter[int] = Counter()
        self.recorder = recorder
        self._armed: dict[ArmedFault, int] = {}

    @abstractmethod
    def strike(self, number: int, fault: Fault, call: StorageCall) -> bool:
        """Kill or pause at a call, with the recorder's lock held; whether that affected anybody."""

    def inject(self, due: ArmedFault, call: StorageCall) -> None:
        """What an interceptor asks for when a fault is due at a call; its lock is held."""
        number = self._armed.get(due)
        if number is None:
            return
        if _is_of_processes(due.fault):
            self.struck[number] += self.strike(number, due.fault, call)
        else:
            self.recorder.record(call.process, "nemesis", "fault", due.kind.value, path=call.path)

    def times(self, number: int) -> int:
        """How often a fault had its effect: at calls each time it was due, on processes those that affected one."""
        met = sum(aimed.fired for aimed, n in self._armed.items() if n == number and not _is_of_processes(aimed.fault))
        return self.struck[number] + met


def _is_of_processes(fault: Fault) -> bool:
    return fault.kind in (FaultKind.KILL, FaultKind.PAUSE)


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


class JobFaultInjector(SparkFaultInjector):
    """The faults of one run. healed: nothing strikes any more."""

    def __init__(self, jobs: StrikableRun) -> None:
        super().__init__(jobs.recorder)
        self.healed = False
        self._jobs = jobs
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

    def strike(self, number: int, fault: Fault, call: StorageCall) -> bool:
        """The driver dies at a call of whichever process, or a process at one of its own."""
        if phase := phase_of(fault):
            return self.kill_driver(phase, call.path)
        return self._kill(self._jobs.lives[call.process], call.path)

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
        with self.recorder.lock:
            driver, server = jobs.driver_life(), jobs.server
            if driver is None or driver.kill_sent:
                return False
            driver.kill_sent = True
            self.recorder.record(driver.name, DRIVER, "fault", "kill", path=path, error=phase)
            if server is not None and not server.kill_sent:
                server.kill_sent = True
                self.recorder.record(server.name, server.role, "fault", "kill", value="with-its-driver")
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
        self.recorder.record(life.name, "nemesis", "fault", kind.value)
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
                self.recorder.record(name, "nemesis", "fault", FaultKind.SPECULATIVE.value)

    def _await_others(self, write: int) -> None:
        """Until every other task of the write has written its file, and a little for its result to be told."""
        tasks = len(self._jobs.plan.writes[write - 1].tasks)
        with self._turn:
            self._turn.wait_for(lambda: len(self._ended.get(write, ())) >= tasks, OTHERS_S)
        self._jobs.over.wait(1.0)

    def _kill_executors(self, host: str) -> int:
        """SIGKILL for the executors of a host, each with its Python workers; how many there were."""
        jobs, killed = self._jobs, 0
        with self.recorder.lock:
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
        with self.recorder.lock:
            if life.kill_sent:
                return False
            life.kill_sent = True
            self.recorder.record(life.name, life.role, "fault", FaultKind.KILL.value, path=path)
            life.signal(signal.SIGKILL)
            return True

    def missed(self) -> tuple[Fault, ...]:
        """The faults of the plan that never struck."""
        return tuple(fault for number, fault in enumerate(self._jobs.plan.faults) if not self.times(number))


class TableFaultInjector(SparkFaultInjector):
    """What the steps of a run do to the drivers and executors of a table.

    driver: the one whose calls storage sees now.
    cluster: of executors that are processes, None where they are none.
    """

    def __init__(self, recorder: Recorder, table: str) -> None:
        super().__init__(recorder)
        self.driver: Application | None = None
        self.cluster: Standalone | None = None
        self._table = table
        self._faults: tuple[Fault, ...] = ()
        self._word = ""
        self._place: TableStorage | None = None
        self._path = ""
        self._stopped: dict[psutil.Process, threading.Timer] = {}
        self._guard = threading.Lock()

    @property
    def process(self) -> str:
        """Whose calls they are, in the history."""
        return "" if self.driver is None else self.driver.name

    def arm(self, step: TableStep | None, place: TableStorage) -> None:
        """A write begins, with the faults of a step, None for none; they are armed until `end`."""
        self.struck.clear()
        self._armed = {}
        self._faults, self._word = ((), "") if step is None else (step.faults, step.word)
        self._place = place
        for number, fault in enumerate(self._faults):
            aimed = aimed_at(fault, self._table, self.process)
            self._armed[aimed] = number
            place.arm(aimed, moment_of(fault))

    def end(self) -> None:
        """The write is over: nothing is armed any more, and each executor that was stopped goes on."""
        assert self._place is not None
        self._place.disarm()
        for executor, timer in list(self._stopped.items()):
            timer.cancel()
            self._go_on(executor)

    @property
    def fired(self) -> int:
        """How often faults affected something."""
        return sum(self.times(number) for number in range(len(self._faults)))

    @property
    def met(self) -> bool:
        """Whether the last fault affected something, and not when a file that was cut was whole again."""
        if not self._faults or not self.times(len(self._faults) - 1):
            return False
        return moment_of(self._faults[-1]) != "cut" or (
            self._place is not None and self._place.stayed_short(self._path)
        )

    @property
    def deadly(self) -> bool:
        """Whether the driver was killed."""
        return any(fault.target == DRIVER and self.struck[number] for number, fault in enumerate(self._faults))

    def strike(self, number: int, fault: Fault, call: StorageCall) -> bool:
        """Kill the driver, or kill or stop an executor; which one made the call is not known, so the path draws one."""
        if fault.target == DRIVER:
            assert self.driver is not None
            self.recorder.fault(self.process, "kill", path=call.path, act=self.driver.kill_now, error=self._word)
            self._path = call.path
            return True
        there = () if self.cluster is None else self.cluster.executors().values()
        if not (executors := [process for found in there for process in found]):
            return False
        executor, name = random.Random(call.path).choice(executors), f"executor-of-{self.process}"
        try:
            executor.suspend()
        except psutil.NoSuchProcess:
            return False
        if fault.kind is FaultKind.KILL:
            self.recorder.fault(name, "kill-executor", path=call.path, act=executor.kill, error=self._word)
            return True
        self.recorder.fault(name, "pause", "begin", path=call.path, error=self._word)
        timer = threading.Timer(fault.settings.for_ms / 1000, self._go_on, (executor,))
        timer.daemon = True
        self._stopped[executor] = timer
        timer.start()
        return True

    def _go_on(self, executor: psutil.Process) -> None:
        with self._guard:
            if self._stopped.pop(executor, None) is None:
                return
        self.recorder.fault(f"executor-of-{self.process}", "pause", "end", act=partial(_resume, executor))


def _resume(executor: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        executor.resume()
