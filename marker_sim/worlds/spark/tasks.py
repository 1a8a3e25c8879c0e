"""What executors do: for each task of a write a marker, a Parquet file and a write stat, under Spark's own attempt.

The write token is (task index, stage, attempt) of Spark's task context. The stage comes after digits of the instant,
for two applications number their stages and attempts alike, and nothing else in a log file's name keeps them apart;
the attempt is Spark's id of the task attempt, which no other one of the application has, a recomputed stage included.

Spark stops counting an attempt before its Python worker stops writing. So an attempt looks for its marker when its file
is whole, or its writing failed: where that is gone, the driver has deleted what it knew of, and the attempt deletes its
own. The directory alone would not do: another late attempt's marker brings it back. One that gets no answer fails, so
nobody counts it, and it deletes its own as well.
Source: Hudi 0.15.0 FSUtils.makeWriteToken and TaskContextSupplier; the digits are our decision.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from marker_sim.markers.files import retry_until_decided
from marker_sim.names import MarkerDirectory
from marker_sim.seams import Condition, SeamError, StorageWrapper
from marker_sim.timeline import WriteStat, WriteToken
from marker_sim.worlds.cluster.recording import record_call
from marker_sim.worlds.processes.children import Child
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.spark.outcome import TOO_LATE
from marker_sim.worlds.spark.plans import EXECUTOR
from marker_sim.writer.attempt import Assignment, marker_of, work_of

STAGES_MAX = 10_000


class TaskFailed(SeamError):
    """The error of an attempt that the plan lets fail."""


class TooLate(SeamError):
    """The error of an attempt whose instant was over when its file was written: a copy that Spark no longer counts."""


class WriteTasks(NamedTuple):
    """The body of every task of a write, sent to the executors.

    ordinal: of the write, from 1.
    works: of the tasks, whichever attempt does them.
    """

    spec: bytes
    place: MarkerDirectory
    mode: str
    ordinal: int
    works: tuple[Assignment, ...]

    def __call__(self, index: int, rows: Iterable[tuple[Any, Any]]) -> Iterable[tuple[int, tuple[Any, ...]]]:
        """The write stat of a task, as (0, stat), once its file is written. rows: (task index, (key, value)) each."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        child = child_of(self.spec)
        attempt = SparkAttempt(child, self.ordinal, index, context.attemptNumber())
        stage = int(self.place.instant[8:]) * STAGES_MAX + context.stageId()
        token = WriteToken(index, stage, context.taskAttemptId())
        work = work_of(self.works[index], token, tuple(row for _, row in rows))
        markers = child.markers(self.mode, self.place)
        around = replace(child.context(work.table), storage=attempt)

        def create(name: str, request: str) -> object:
            answer = markers.create(name, request)
            attempt.moment("marker")
            return answer

        def take_back() -> None:
            retry_until_decided(attempt, around.runtime, lambda: attempt.delete(f"{work.table}/{work.path}"))

        def took_back() -> bool:
            try:
                if marker_of(work) in markers.list_all():
                    return False
            except SeamError:
                take_back()
                raise
            take_back()
            return True

        def act() -> WriteStat:
            try:
                stat = child.system.write_file(work, around, create, 0, PARQUET)
            except SeamError:
                with suppress(SeamError):
                    took_back()  # Half a file is as late as a whole one.
                raise
            if took_back():
                raise TooLate(f"{work.path} was written {TOO_LATE}, and is deleted")
            attempt.moment("closed")
            return stat

        ended = record_call(child.link, child.me, "attempt", self.place, work.path, str(token), None, act)
        if ended.error is not None:
            raise ended.error
        return ((0, tuple(ended.value)),)


class SparkAttempt(StorageWrapper):
    """The storage of one attempt, which reports its moments to the kit: at each a fault may strike."""

    def __init__(self, child: Child, ordinal: int, task: int, number: int) -> None:
        super().__init__(child.storage)
        self._child = child
        self._who = (ordinal, task, number)

    def moment(self, name: str) -> None:
        """Report a moment to the kit; TaskFailed when the attempt is to fail here. May take long, or not return."""
        if self._child.link.ask("moment", name, *self._who) == "fail":
            raise TaskFailed(f"task {self._who[1]} of write {self._who[0]} fails at {name}")

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Store a whole data file; at the moment "file", its middle, nothing is stored yet."""
        self.moment("file")
        return super().put(path, data, condition, expected)

    def overwrite(self, path: str, data: bytes) -> None:
        """Write a data file in place; an attempt that is to fail at the moment "file" leaves half of it."""
        try:
            self.moment("file")
        except TaskFailed:
            super().overwrite(path, data[: len(data) // 2])
            raise
        super().overwrite(path, data)


@cache
def child_of(spec: bytes) -> Child:
    """The link from this Python worker to the kit, made once: Spark uses a worker for one task after another.

    spec: pickled, as `run.py` makes it.
    """
    host = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    name = f"{EXECUTOR}-{host.rpartition('.')[2]}-{os.getpid()}"
    told = pickle.loads(spec)
    child = Child({**told, "process": name, "role": EXECUTOR})
    child.link.ask("hello", os.getpid(), host, told["counters"])
    return child
