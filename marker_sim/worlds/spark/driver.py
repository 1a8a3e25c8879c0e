"""A Spark driver of the reference's write path: begin, a stage of tasks that write, finalize, commit.

    DataFrame (partition, file_group, key, value)
      ── shuffle: the rows of a file group to one task ──► marker, Parquet file, write stat
      ── shuffle: all write stats to one task ──► the driver, which gets one for each task, whichever attempt made it

The second shuffle keeps the stats on the executors until all are there, as Hudi's persisted write statuses are: an
executor that is lost in between takes them along, and Spark computes those tasks again, files and all.

The kit gives one write after another. The timeline server is started when a write needs one, as in worlds/processes.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from marker_sim.names import MarkerDirectory
from marker_sim.plan import Task, Write
from marker_sim.timeline import WriteStat
from marker_sim.worlds.cluster.environment import ProcessEnvironment
from marker_sim.worlds.cluster.work import perform_write, record_part
from marker_sim.worlds.processes.children import Child
from marker_sim.worlds.spark.session import SETTINGS, SPECULATION, open_session
from marker_sim.worlds.spark.tasks import WriteTasks
from marker_sim.writer.attempt import assigned
from marker_sim.writer.client import WriteClient

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "task int, partition string, file_group string, key string, value string"
OWN_SETTINGS = {
    **SETTINGS,
    **SPECULATION,
    "spark.driver.memory": "512m",
    "spark.executor.cores": "2",
    "spark.locality.wait": "0",
    "spark.task.maxFailures": "6",
    "spark.stage.maxConsecutiveAttempts": "6",
    # How long a Python worker goes on after Spark has stopped counting its attempt; the default of 2 s hides late ones.
    "spark.python.task.killTimeout": "30s",
}


class SparkDriver:
    """A driver that performs the plan's writes with its Spark session.

    spec: pickled, what executors need to reach kit and storage.
    """

    def __init__(self, child: Child, session: SparkSession, spec: bytes) -> None:
        self._child = child
        self._session = session
        self._spec = spec

    def write(self, write: Write, ordinal: int) -> None:
        """Perform a write; one that fails is recorded and does not end the driver. ordinal: of it, from 1."""
        note_part = partial(self._note_part, ordinal)
        why = perform_write(self._child, write, ordinal, partial(self._run, write, ordinal), note_part)[:2000]
        if why:
            me = self._child.me
            self._child.link.record(me.name, me.role, "observe", "job-failed", error=why)

    def _run(self, write: Write, ordinal: int, client: WriteClient, instant: str, mode: str) -> tuple[WriteStat, ...]:
        """The write stats of a stage, one for each task, which Spark performs in as many attempts as it needs."""
        tasks = tuple({(task.partition, task.group): task for task in write.tasks}.values())
        plan, count = self._child.plan, len(tasks)
        place = MarkerDirectory(plan.tables[write.table], instant)
        works = tuple(assigned(task, place, client.slices, plan.merge_on_read) for task in tasks)
        body: Any = WriteTasks(self._spec, place, mode, ordinal, works)
        rows = self._frame(tasks, ordinal).rdd.map(lambda row: (row.task, (row.key, row.value)))
        made: RDD[Any] = rows.partitionBy(count, int).mapPartitionsWithIndex(body)
        stats = made.partitionBy(1, int).values().collect()
        return tuple(WriteStat(*stat) for stat in stats)

    def _frame(self, tasks: tuple[Task, ...], ordinal: int) -> DataFrame:
        """The rows of a write, two for each task, determined by its tasks and its number."""
        rows = []
        for index, task in enumerate(tasks):
            group = f"{task.partition}/{task.group}"
            rows.append((index, task.partition, task.group, f"{group}/all", str(ordinal)))
            rows.append((index, task.partition, task.group, f"{group}/{ordinal}", str(ordinal)))
        return self._session.createDataFrame(rows, SCHEMA)

    def _note_part(self, ordinal: int, environment: ProcessEnvironment, table: str, operation: str, *rest: Any) -> Any:
        link = self._child.link
        link.ask("step", f"{operation}-begins", ordinal)
        result = record_part(environment, table, operation, *rest)
        link.ask("step", f"{operation}-ended", ordinal)
        return result


def drive(spec_path: str) -> None:
    """Perform the writes that the kit gives until it is gone."""
    raw = Path(spec_path).read_bytes()
    spec = pickle.loads(raw)
    child, writes = Child(spec), SimpleQueue[tuple[Write, int]]()
    inbox = child.link.connect("inbox")
    threading.Thread(target=_listen, args=(inbox, writes), daemon=True).start()
    driver = SparkDriver(child, open_session(OWN_SETTINGS | spec["settings"]), raw)
    child.link.ask("ready")
    while True:
        driver.write(*writes.get())
        child.link.ask("through", "")


def _listen(inbox: Connection, writes: SimpleQueue[tuple[Write, int]]) -> None:
    """Take what the kit gives; when it is gone, kill the whole session, whatever it is doing."""
    try:
        while True:
            _, write, ordinal = inbox.recv()
            writes.put((write, ordinal))
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)
