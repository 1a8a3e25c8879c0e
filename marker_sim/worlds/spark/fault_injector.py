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
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import psutil

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.surroundings.supervisor import end_process
from marker_sim.worlds.interceptor import ArmedFault, StorageCall
from marker_sim.worlds.processes.cluster import ProcessCluster
from marker_sim.worlds.processes.faults import CallerIsDead
from marker_sim.worlds.processes.fork_server import ManagedProcess
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.application import Driver
from marker_sim.worlds.spark.hudi.steps import TableStep, aimed_at
from marker_sim.worlds.spark.hudi.table_storage import TableStorage
from marker_sim.worlds.spark.plans import DRIVER, EXECUTOR, MOMENTS, PHASES, armed, phase_of
from marker_sim.worlds.spark.standalone import Standalone, host_of

SLOW_S = 6.0  # Makes Spark start a copy of an attempt.
HELD_S = 30.0  # At most, for an attempt that waits for something.


class SparkFaultInjector(ABC):
    """Injects faults at storage calls: deaths and pauses itself; calls fail by whoever holds them, as everywhere.

    struck: how often each fault had its effect, by number; those that fail calls are counted by `times` alone.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.struck: Counter[int] = Counter()
        self.recorder = recorder
        self._armed: dict[ArmedFault, int] = {}

    @abstractmethod
    def strike(self, number: int, fault: Fault, call: StorageCall) -> bool:
        """Kill or pause a process at a call, with the recorder's lock held; returns whether one was affected."""

    def inject(self, due: ArmedFault, call: StorageCall) -> None:
        """Inject a fault that is due at a call: kill or pause. Lock held."""
        number = self._armed.get(due)
        if number is not None:
            self.struck[number] += self.strike(number, due.fault, call)

    def times(self, number: int) -> int:
        """How often a fault had its effect: for failing calls, each time it was due; for processes, if it hit one."""
        met = sum(aimed.fired for aimed, n in self._armed.items() if n == number and not _is_of_processes(aimed.fault))
        return self.struck[number] + met


def _is_of_processes(fault: Fault) -> bool:
    return fault.kind is FaultKind.PAUSE or fault.kind.row.kills


class JobFaultInjector(SparkFaultInjector):
    """Injects the faults of one run of the reference's jobs, until its cluster is healed.

    over: the run is; attempts that stand still go on.
    """

    def __init__(self, cluster: ProcessCluster, plan: Plan, spark: Standalone) -> None:
        super().__init__(cluster.recorder)
        self.over = threading.Event()
        self._cluster = cluster
        self._plan = plan
        self._spark = spark
        self._taken: set[int] = set()
        self._met: dict[tuple[int, int], set[int]] = {}
        self._ended: dict[int, set[int]] = {}
        self._begun = 0
        self._turn = threading.Condition()

    def arm(self, write: int) -> None:
        """Begin a write (from 1), with its faults armed except the driver's death, which `step` arms."""
        for number, fault in self._of(write):
            if not phase_of(fault) and isinstance(fault.trigger, Call):
                self._arm(number, fault)
        self.begin(write)

    def begin(self, write: int) -> None:
        """A write (from 1) begins: the late attempts of the one before go on."""
        with self._turn:
            self._begun = write
            self._turn.notify_all()

    def _of(self, write: int) -> list[tuple[int, Fault]]:
        """The faults of a write, with their numbers; none of the one that the kit adds."""
        plan = self._plan
        return [(number, plan.faults[number]) for each in plan.writes[write - 1 : write] for number in each.faults]

    def _arm(self, number: int, fault: Fault) -> None:
        aimed = armed(fault)
        self._armed[aimed] = number
        self._cluster.interceptor.arm(aimed)

    def strike(self, number: int, fault: Fault, call: StorageCall) -> bool:
        """Kill the driver, whichever process made the call, or else the caller; returns whether it was still alive."""
        if phase := phase_of(fault):
            return self.kill_driver(fault, phase, call.path)
        return self._kill(self._lives[call.process], fault, call.path)

    def step(self, _: str, name: str, write: int) -> None:
        """Take the report of a driver that is between two steps of a write; CallerIsDead when it is killed there."""
        for number, fault in self._of(write):
            phase = PHASES.get(phase_of(fault))
            if self._cluster.faults.healed or self.struck[number] or phase is None or phase.step != name:
                continue
            if phase.site:
                self.struck[number] += self.kill_driver(fault, name, None)
                raise CallerIsDead
            if number not in self._armed.values():
                self._arm(number, fault)

    def kill_driver(self, fault: Fault, phase: str, path: str | None) -> bool:
        """Kill the driver's session with its timeline server; returns False when no driver is left to kill."""
        drivers = (life for life in list(self._lives.values()) if life.role == DRIVER and life.ready.is_set())
        return any(self._kill(driver, fault, path, phase) for driver in drivers)

    def moment(self, name: str, moment: str, write: int, task: int, attempt: int) -> str | None:
        """The order for an attempt at a moment: "fail", or None to go on, perhaps late; CallerIsDead if killed."""
        if moment == "closed":
            with self._turn:
                self._ended.setdefault(write, set()).add(task)
                self._turn.notify_all()
        for number, fault in self._of(write):
            if (fault.target, fault.site) != (f"task-{task}", MOMENTS[moment]) or self._cluster.faults.healed:
                continue
            if fault.kind is FaultKind.SPECULATIVE:
                self._meet(number, (write, task), name, attempt)
                continue
            with self._turn:
                first = number not in self._taken
                self._taken.add(number)
            if first:
                return self._task(number, fault, write, self._lives[name])
        return None

    def _task(self, number: int, fault: Fault, write: int, life: ManagedProcess) -> str | None:
        self.recorder.record(life.name, "nemesis", "fault", fault.kind.value)
        effect = TASK_EFFECTS[fault.kind]
        self.struck[number] += effect.act(self, fault, write, life)
        self.over.wait(effect.held_s)
        if effect.dies:
            raise CallerIsDead
        return effect.order

    def hit(self, fault: Fault, write: int, life: ManagedProcess) -> int:
        """Nothing but the order to the attempt."""
        return 1

    def await_next(self, fault: Fault, write: int, life: ManagedProcess) -> int:
        """Hold the attempt until the next write has begun, `HELD_S` at most."""
        with self._turn:
            return self._turn.wait_for(lambda: self._begun > write, HELD_S)

    def kill_worker(self, fault: Fault, write: int, life: ManagedProcess) -> int:
        """Kill the Python worker of the attempt."""
        return self._kill(life, fault)

    def kill_executor(self, fault: Fault, write: int, life: ManagedProcess) -> int:
        """Kill the executors of the attempt's host."""
        return self._kill_executors(life.actor, fault)

    def lose_shuffle(self, fault: Fault, write: int, life: ManagedProcess) -> int:
        """Kill the executors of the other hosts when all tasks of the write have results."""
        self._await_others(write)
        return sum(self._kill_executors(host, fault) for host in self._spark.executors() if host != life.actor)

    def _meet(self, number: int, task: tuple[int, int], name: str, attempt: int) -> None:
        """Hold an attempt at a moment until another attempt of its task is there too, `HELD_S` at most."""
        with self._turn:
            met = self._met.setdefault(task, set())
            met.add(attempt)
            self._turn.notify_all()
            if self._turn.wait_for(lambda: len(met) > 1, HELD_S) and not self.struck[number]:
                self.struck[number] += 1
                self.recorder.record(name, "nemesis", "fault", FaultKind.SPECULATIVE.value)

    def _await_others(self, write: int) -> None:
        """Wait until all tasks of a write have written their files, `HELD_S` at most, and 1 s for their results."""
        tasks = len(self._plan.writes[write - 1].tasks)
        with self._turn:
            self._turn.wait_for(lambda: len(self._ended.get(write, ())) >= tasks, HELD_S)
        self.over.wait(1.0)

    def _kill_executors(self, host: str, fault: Fault) -> int:
        """Kill the executors of a host, each with its Python workers; returns how many were killed."""
        killed = 0
        with self.recorder.lock:
            for jvm in self._spark.executors()[host]:
                try:
                    below = jvm.children(recursive=True)
                    jvm.kill()
                except psutil.NoSuchProcess:
                    continue
                killed += 1
                pids = {process.pid for process in below}
                for life in list(self._lives.values()):
                    if life.role == EXECUTOR and life.pid in pids:
                        self._kill(life, fault)
                for process in below:
                    with suppress(psutil.NoSuchProcess):  # It may end with its JVM.
                        process.kill()
        return killed

    def _kill(self, life: ManagedProcess, fault: Fault, path: str | None = None, phase: str | None = None) -> bool:
        """Kill one process; returns False when it was dead before."""
        cluster = self._cluster
        with self.recorder.lock:
            alive = life.alive
            cluster.host.kill(life, None, partial(cluster.faults.died, life, fault), path, phase)
            return alive

    @property
    def _lives(self) -> dict[str, ManagedProcess]:
        return self._cluster.host.fork_server.lives

    def missed(self) -> tuple[Fault, ...]:
        """The faults that never struck, of the writes that began."""
        ordinals = range(1, len(self._cluster.plan.writes) + 1)
        return tuple(fault for each in ordinals for number, fault in self._of(each) if not self.times(number))


class TaskEffect(NamedTuple):
    """What a fault of a task does when the attempt is at its moment.

    act: returns how many it hit. order: for the attempt, None to go on. dies: whether the attempt is gone.
    held_s: how long the attempt stands still after it.
    """

    act: Callable[[JobFaultInjector, Fault, int, ManagedProcess], int]
    order: str | None = None
    dies: bool = False
    held_s: float = 0.0


TASK_EFFECTS = {
    FaultKind.TASK_FAILED: TaskEffect(JobFaultInjector.hit, "fail"),
    FaultKind.SLOW_TASK: TaskEffect(JobFaultInjector.hit, held_s=SLOW_S),
    FaultKind.LATE_ATTEMPT: TaskEffect(JobFaultInjector.await_next),
    FaultKind.LATE_FAILURE: TaskEffect(JobFaultInjector.await_next, "fail"),
    FaultKind.WORKER_KILLED: TaskEffect(JobFaultInjector.kill_worker, dies=True),
    FaultKind.EXECUTOR_KILLED: TaskEffect(JobFaultInjector.kill_executor, dies=True),
    FaultKind.SHUFFLE_LOST: TaskEffect(JobFaultInjector.lose_shuffle),
}


class TableFaultInjector(SparkFaultInjector):
    """Injects the faults of a run's steps into the drivers and executors of a table, or into storage.

    driver: the present one.
    cluster: of the executors; None where they run in the driver's process.
    """

    def __init__(self, recorder: Recorder, table: str) -> None:
        super().__init__(recorder)
        self.driver: Driver | None = None
        self.calls: list[StorageCall] = []  # Of the last write, where the driver or the storage tells them.
        self.cluster: Standalone | None = None
        self._table = table
        self._faults: tuple[Fault, ...] = ()
        self._word = ""
        self._place: TableStorage | None = None
        self._stopped: dict[psutil.Process, tuple[str, threading.Timer]] = {}
        self._guard = threading.Lock()

    @property
    def process(self) -> str:
        """The name of the driver, "" before the first."""
        return "" if self.driver is None else self.driver.name

    def arm(self, step: TableStep | None, place: TableStorage) -> None:
        """Arm the faults of a step, None for none, for the write that begins; they stay armed until `end`."""
        self.struck.clear()
        self._armed, self.calls = {}, []
        self._faults, self._word = ((), "") if step is None else (step.faults, step.word)
        self._place = place
        for number, fault in enumerate(self._faults):
            aimed = aimed_at(fault, self._table, place.caller(fault.target, self.process))
            self._armed[aimed] = number
        place.interceptor.arm(*(aimed for aimed in self._armed if self.at_storage(aimed.fault)))

    def at_storage(self, fault: Fault) -> bool:
        """Whether whoever holds the storage calls does a fault; else the driver does it to itself."""
        return True

    def end(self) -> None:
        """Disarm all faults at the end of a write, and let each stopped executor continue."""
        assert self._place is not None
        self._place.disarm()
        self.calls = self.calls or self._place.calls
        for executor, (_, timer) in list(self._stopped.items()):
            timer.cancel()
            self._go_on(executor)

    @property
    def fired(self) -> int:
        """The number of effects that the step's faults had."""
        return sum(self.times(number) for number in range(len(self._faults)))

    @property
    def met(self) -> bool:
        """Whether the step's last fault had its effect."""
        return bool(self._faults) and self.times(len(self._faults) - 1) > 0

    @property
    def deadly(self) -> bool:
        """Whether a fault of the step killed the driver."""
        return any(fault.target == DRIVER and self.struck[number] for number, fault in enumerate(self._faults))

    def strike(self, number: int, fault: Fault, call: StorageCall) -> bool:
        """Kill the driver, or kill or stop the executor that made the call; on S3, where all executors sign as their
        driver, one that is drawn by the path.
        """
        if fault.target == DRIVER:
            assert self.driver is not None
            self.recorder.fault(self.process, "kill", path=call.path, act=self.driver.kill_now, error=self._word)
            return True
        there = {} if self.cluster is None else self.cluster.executors()
        executors = there.get(host_of(call.process)) or [process for found in there.values() for process in found]
        if not executors:
            return False
        executor = random.Random(call.path).choice(executors)
        name = call.process if call.role == EXECUTOR else f"executor-of-{self.process}"
        try:
            executor.suspend()
        except psutil.NoSuchProcess:
            return False
        if fault.kind is FaultKind.KILL:
            act = partial(end_process, executor.pid)  # Its call is not done before it is gone.
            self.recorder.fault(name, "kill-executor", path=call.path, act=act, error=self._word)
            return True
        self.recorder.fault(name, "pause", "begin", path=call.path, error=self._word)
        timer = threading.Timer(fault.settings.for_ms / 1000, self._go_on, (executor,))
        timer.daemon = True
        self._stopped[executor] = name, timer
        timer.start()
        return True

    def _go_on(self, executor: psutil.Process) -> None:
        with self._guard:
            name, _ = self._stopped.pop(executor, ("", None))
        if name:
            self.recorder.fault(name, "pause", "end", act=partial(_resume, executor))


def _resume(executor: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        executor.resume()
