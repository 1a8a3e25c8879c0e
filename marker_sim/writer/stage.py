"""One stage of a write: its tasks run on idle executors, until one attempt of each has succeeded.

An attempt's write token is (task, stage, attempt). The first attempt of a task to succeed counts; copies that are
still running are not waited for. Stage numbers come from the instant: two applications number their stages alike, and
otherwise log files of their attempts could have the same name.
"""

from __future__ import annotations

from collections import deque

from marker_sim.plan import Task, Write
from marker_sim.timeline import WriteStat, WriteToken
from marker_sim.writer.attempt import Assignment, assigned, work_of
from marker_sim.writer.backend import Attempt, Backend, JobFailed, Message, Worker
from marker_sim.writer.slices import Group, Slice

ATTEMPTS_MAX = 6
STAGES_MAX = 4
PATIENCE_MS = 120_000


class Stage:
    """The driver's side of one stage, on any cluster. merge_on_read: the table type."""

    def __init__(
        self, table: str, instant: str, write: Write, ordinal: int, slices: dict[Group, Slice], merge_on_read: bool
    ) -> None:
        self._table = table
        self._instant = instant
        self._tasks = tuple({(task.partition, task.group): task for task in write.tasks}.values())
        self._ordinal = ordinal
        self._slices = slices
        self._merge_on_read = merge_on_read
        self._stage = 0
        self._todo: deque[int] = deque()
        self._done: dict[int, WriteStat] = {}
        self._started = [0] * len(self._tasks)
        self._running: list[Attempt] = []

    def run(self, backend: Backend) -> tuple[WriteStat, ...]:
        """Run every task; returns one write stat for each. JobFailed when that is not possible."""
        for task, spec in enumerate(self._tasks):
            self._todo.extend([task] * max(1, spec.copies))
            if spec.copies > 1:
                backend.speculated(f"{spec.partition}/{spec.group}")
        received = received_before = 0
        backend.remind(Message("patience", None, (self._table, self._instant)), PATIENCE_MS)
        while len(self._done) < len(self._tasks):
            self._start_some(backend)
            message = backend.receive()
            if message.kind != "patience":
                received += 1
                self._take_message(message)
            elif message.result == (self._table, self._instant):
                if received == received_before:
                    raise JobFailed(f"nothing was heard of {len(self._tasks) - len(self._done)} tasks")
                received_before = received
                backend.remind(message, PATIENCE_MS)
        return tuple(self._done[task] for task in sorted(self._done))

    def run_again(self, backend: Backend) -> None:
        """Run every task again although all are done; the new results are not counted (I 19593)."""
        self._stage += 1
        for task in range(len(self._tasks)):
            self._started[task] = 0
            self._start(task, backend.workers[task % len(backend.workers)], backend)
            self._running[-1].counted = False

    def _start_some(self, backend: Backend) -> None:
        for executor in backend.workers:
            if executor.alive and (executor.busy is None or not executor.busy.counted):
                while self._todo and self._todo[0] in self._done:
                    self._todo.popleft()
                if not self._todo:
                    return
                self._start(self._todo.popleft(), executor, backend)

    def _start(self, task: int, executor: Worker, backend: Backend) -> None:
        if self._started[task] >= ATTEMPTS_MAX:
            raise JobFailed(f"task {task} failed {ATTEMPTS_MAX} times")
        number = self._started[task]
        self._started[task] += 1
        spec = self._tasks[task]
        work = self._assignment(spec, WriteToken(task, int(self._instant[8:]) * 100 + self._stage, number))
        attempt = Attempt(task, self._stage, work, executor, spec.slow_ms)
        executor.busy = attempt
        self._running.append(attempt)
        backend.launch(attempt)

    def _assignment(self, spec: Task, token: WriteToken) -> Assignment:
        key, value = f"{spec.partition}/{spec.group}", str(self._ordinal)
        parity = "odd" if self._ordinal % 2 else "even"
        rows = ((f"{key}/all", value), (f"{key}/{parity}", value), (f"{key}/{self._ordinal}", value))
        work = assigned(spec, (self._table, self._instant), self._slices, self._merge_on_read)
        return work_of(work, token, rows)

    def _take_message(self, message: Message) -> None:
        attempt = message.attempt
        if attempt is not None and message.kind == "ended" and attempt.executor.busy is attempt:
            attempt.executor.busy = None
        if attempt is None or (attempt.work.table, attempt.work.instant) != (self._table, self._instant):
            return  # An executor registered again, or the result belongs to an earlier write.
        match message.kind:
            case "ended":
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
