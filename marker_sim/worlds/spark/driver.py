"""A Spark driver of the reference's write path: begin, a stage of tasks that write, finalize, commit.

    DataFrame (partition, file_group, key, value)
      ── shuffle: the rows of a file group to one task ──► marker, Parquet file, write stat
      ── shuffle: all write stats to one task ──► the driver, which gets one for each task, whichever attempt made it

The second shuffle keeps the stats on the executors until all are there, as Hudi's persisted write statuses are: an
executor that is lost in between takes them along, and Spark computes those tasks again, files and all.

Told by JSON lines (`worlds/spark/application.py`): {"do": "write", "number": N} is answered with {"ended": ...}.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from marker_sim.names import MarkerDirectory
from marker_sim.plan import Task, Write
from marker_sim.timeline import WriteStat
from marker_sim.worlds.cluster.environment import ProcessEnvironment
from marker_sim.worlds.cluster.work import perform_write, record_part
from marker_sim.worlds.processes.children import Child
from marker_sim.worlds.spark.plans import DRIVER
from marker_sim.worlds.spark.tasks import Draft, WriteTasks
from marker_sim.writer.client import WriteClient
from marker_sim.writer.slices import Group, Slice

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "task int, partition string, file_group string, key string, value string"
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.executor.extraJavaOptions": JVM,
    "spark.locality.wait": "0",
    "spark.task.maxFailures": "6",
    "spark.stage.maxConsecutiveAttempts": "6",
    # How long a Python worker goes on after Spark has stopped counting its attempt; the default of 2 s hides late ones.
    "spark.python.task.killTimeout": "8s",
    # Copies start within a second, as soon as half of the tasks are through.
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "100ms",
}


class SparkDriver:
    """Performs writes with a session.

    spec: pickled, what executors need to reach kit and storage.
    """

    def __init__(self, child: Child, session: SparkSession, spec: bytes) -> None:
        self._child = child
        self._session = session
        self._spec = spec

    def write(self, number: int) -> str:
        """Perform a write of the plan (from 0); "", or why it failed."""
        write, ordinal = self._child.plan.writes[number], number + 1
        note_part = partial(self._note_part, ordinal)
        return perform_write(self._child, write, ordinal, partial(self._run, write, ordinal), note_part)

    def _run(self, write: Write, ordinal: int, client: WriteClient, instant: str, mode: str) -> tuple[WriteStat, ...]:
        """The stage: every task by as many attempts as Spark makes; one write stat for each."""
        tasks = tuple({(task.partition, task.group): task for task in write.tasks}.values())
        drafts = tuple(draft_of(task, client.slices, self._child.plan.merge_on_read) for task in tasks)
        count = len(tasks)
        place = MarkerDirectory(self._child.plan.tables[write.table], instant)
        body: Any = WriteTasks(self._spec, place, mode, ordinal, drafts)
        rows = self._frame(tasks, ordinal).rdd.map(lambda row: (row.task, (row.key, row.value)))
        made: RDD[Any] = rows.partitionBy(count, int).mapPartitionsWithIndex(body)
        stats = made.partitionBy(1, int).values().collect()
        return tuple(WriteStat(*stat) for stat in stats)

    def _frame(self, tasks: tuple[Task, ...], ordinal: int) -> DataFrame:
        """The rows of a write, which its plan determines: two for each task."""
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


def draft_of(task: Task, slices: dict[Group, Slice], merge_on_read: bool) -> Draft:
    """What a task of a plan makes of what the table holds of its file group."""
    file_id = f"{task.group}-0"
    there = slices.get((task.partition, file_id))
    if there is None:
        kind = "CREATE"
    elif task.kind == "APPEND" and merge_on_read:
        kind = "APPEND"
    else:
        kind = "MERGE"
    return Draft(task.partition, file_id, kind, there)


class DriverChild(Child):
    """The driver's process, which starts its timeline server when one is needed, and again whenever it dies."""

    def __init__(self, spec: dict[str, Any], spec_path: str) -> None:
        super().__init__(spec)
        self._spec_path = spec_path
        self._thread: threading.Thread | None = None

    def need_server(self) -> None:
        """Return when one serves."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_server, daemon=True, name="embedded-server")
            self._thread.start()
        self.link.ask("server-ready")

    def _keep_server(self) -> None:
        while True:
            name = self.link.ask("new-server")
            words = [sys.executable, "-m", "marker_sim.worlds.spark", "server", self._spec_path, name]
            code = subprocess.Popen(words, stdin=subprocess.DEVNULL).wait()
            self.link.ask("server-gone", name, code)


def open_session(settings: dict[str, str]) -> SparkSession:
    """A session with its JVM and executors."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("marker-sim")
    for key, value in {**SETTINGS, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def drive(spec_path: str) -> None:
    """Do what standard input says until it ends; then the whole session dies."""
    raw = Path(spec_path).read_bytes()
    spec = pickle.loads(raw)
    asked: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    child = DriverChild({**spec, "process": spec["driver"], "role": DRIVER}, spec_path)
    child.link.ask("hello", DRIVER, os.getpid(), "127.0.0.1")
    session = open_session(spec["settings"])
    driver = SparkDriver(child, session, raw)
    _say({"ready": True})
    while True:
        message = asked.get()
        why = driver.write(message["number"])
        if why:
            child.link.record(child.me.name, child.me.role, "observe", "job-failed", error=why[:2000])
        _say({"ended": "failed" if why else "ok", "error": why[:2000]})


def _listen(asked: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        asked.put(json.loads(line))
    os.killpg(0, signal.SIGKILL)


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
