"""One stage of a write: its tasks on the executors that are idle, until one attempt of each has succeeded.

An attempt's write token is (task, stage, attempt). The first attempt of a task to succeed counts; copies that are
still running go on and are not waited for. Stage numbers come from the instant: two applications number their stages
alike, and the name of a log file has nothing else that would keep their attempts apart.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from marker_sim.plan import Task, Write
from marker_sim.sim.scheduler import MS, Process
from marker_sim.timeline import WriteStat, WriteToken
from marker_sim.writer.attempt import Assignment, path_of
from marker_sim.writer.slices import Group, Slice

if TYPE_CHECKING:
    from marker_sim.sim.jobs import Jobs

ATTEMPTS_MAX = 6
STAGES_MAX = 4
PATIENCE_NS = 120_000 * MS
MESSAGE_NS = MS // 2


class JobFailed(Exception):
    """A task failed too often, or nobody is left to run it; the driver lives and the instant stays behind."""


class Attempt:
    """One execution of a task on an executor. counted: the driver still expects to hear of it."""

    __slots__ = ("counted", "executor", "slow_ms", "stage", "task", "work")

    def __init__(self, task: int, stage: int, work: Assignment, executor: Process, slow_ms: int) -> None:
        self.task = task
        self.stage = stage
        self.work = work
        self.executor = executor
        self.slow_ms = slow_ms
        self.counted = True


class Message(NamedTuple):
    """What a driver hears. result: a write stat, an error, a number.

    kind: ended, lost, speculate, stage-lost, executor (a new one is there), patience (nothing may have been heard).
    """

    kind: str
    attempt: Attempt | None = None
    result: Any = None


class Stage:
    """The driver's side; lives in the driver's actor."""

    def __init__(
        self, jobs: Jobs, driver: Process, write: Write, ordinal: int, instant: str, slices: dict[Group, Slice]
    ) -> None:
        self._jobs = jobs
        self._driver = driver
        self._table = jobs.cluster.plan.tables[write.table]
        self._tasks = tuple({(task.partition, task.group): task for task in write.tasks}.values())
        self._ordinal = ordinal
        self._instant = instant
        self._slices = slices
        self._mode = jobs.mode_of(write).mode
        self._stage = 0
        self._todo: deque[int] = deque()
        self._done: dict[int, WriteStat] = {}
        self._started = [0] * len(self._tasks)
        self._running: list[Attempt] = []

    def run(self) -> tuple[WriteStat, ...]:
        """Run every task; one write stat for each. JobFailed when that cannot be had."""
        for task, spec in enumerate(self._tasks):
            self._todo.extend([task] * max(1, spec.copies))
            if spec.copies > 1:
                self._jobs.record_fault(self._driver, "speculative", f"{spec.partition}/{spec.group}")
        mailbox = self._driver.state["mailbox"]
        heard = heard_before = 0
        self._jobs.tell(self._driver, Message("patience", None, self._instant), PATIENCE_NS)
        while len(self._done) < len(self._tasks):
            self._start_some()
            message: Message = mailbox.get()
            if message.kind != "patience":
                heard += 1
                self._hear(message)
            elif message.result == self._instant:
                if heard == heard_before:
                    raise JobFailed(f"nothing was heard of {len(self._tasks) - len(self._done)} tasks")
                heard_before = heard
                self._jobs.tell(self._driver, message, PATIENCE_NS)
        return tuple(self._done[task] for task in sorted(self._done))

    def run_again(self) -> None:
        """Every task once more, though all are done: the results are computed anew and nobody counts them (I 19593)."""
        self._stage += 1
        for task in range(len(self._tasks)):
            executor = self._jobs.executors[task % len(self._jobs.executors)]
            self._started[task] = 0
            self._start(task, executor)
            self._running[-1].counted = False

    def _start_some(self) -> None:
        for executor in self._jobs.executors:
            busy: Attempt | None = executor.state["busy"]
            if executor.alive and (busy is None or not busy.counted):
                while self._todo and self._todo[0] in self._done:
                    self._todo.popleft()
                if not self._todo:
                    return
                self._start(self._todo.popleft(), executor)

    def _start(self, task: int, executor: Process) -> None:
        if self._started[task] >= ATTEMPTS_MAX:
            raise JobFailed(f"task {task} failed {ATTEMPTS_MAX} times")
        number = self._started[task]
        self._started[task] += 1
        spec = self._tasks[task]
        work = self._assignment(spec, WriteToken(task, int(self._instant[8:]) * 100 + self._stage, number))
        attempt = Attempt(task, self._stage, work, executor, spec.slow_ms)
        executor.state["busy"] = attempt
        self._running.append(attempt)
        self._jobs.launch(self._driver, attempt, self._mode)

    def _assignment(self, spec: Task, token: WriteToken) -> Assignment:
        file_id = f"{spec.group}-0"
        there = self._slices.get((spec.partition, file_id))
        if there is None:
            kind = "CREATE"
        elif spec.kind == "APPEND" and self._jobs.cluster.plan.merge_on_read:
            kind = "APPEND"
        else:
            kind = "MERGE"
        key, value = f"{spec.partition}/{spec.group}", str(self._ordinal)
        path = path_of(self._instant, spec.partition, file_id, kind, token, there)
        rows = ((f"{key}/all", value), (f"{key}/{self._ordinal}", value))
        return Assignment(self._table, self._instant, spec.partition, file_id, kind, token, path, rows, there)

    def _hear(self, message: Message) -> None:
        attempt = message.attempt
        if attempt is None or attempt.work.instant != self._instant:
            return  # An executor is back, or a straggler of an earlier write.
        match message.kind:
            case "ended":
                if attempt.executor.state["busy"] is attempt:
                    attempt.executor.state["busy"] = None
                if not attempt.counted:
                    return
                attempt.counted = False
                if isinstance(message.result, Exception):
                    self._again(attempt.task)
                else:
                    self._done.setdefault(attempt.task, message.result)
            case "lost":
                self._again(attempt.task)
            case "speculate":
                self._todo.extend([attempt.task] * message.result)
            case "stage-lost" if attempt.stage == self._stage < STAGES_MAX - 1:
                self._stage += 1
                for running in self._running:
                    running.counted = False
                self._done.clear()
                self._todo = deque(range(len(self._tasks)))

    def _again(self, task: int) -> None:
        if task not in self._done:
            self._todo.append(task)
