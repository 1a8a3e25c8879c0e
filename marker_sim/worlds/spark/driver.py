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

from marker_sim.history import Value
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Task, Write
from marker_sim.timeline import COMMIT, DELTA_COMMIT, WriteStat
from marker_sim.worlds.processes.children import Child
from marker_sim.worlds.processes.driver_process import DriverMarkers, journal
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
    """Performs writes with a session. spec: pickled, what executors need to reach kit and storage."""

    def __init__(self, child: Child, session: SparkSession, spec: bytes, start_server: Any) -> None:
        self._child = child
        self._session = session
        self._spec = spec
        self._start_server = start_server

    def write(self, number: int) -> None:
        """Perform a write of the plan (from 0); what is raised says why it failed."""
        child = self._child
        plan, write = child.plan, child.plan.writes[number]
        table = plan.tables[write.table]
        mode, why = child.link.ask("mode", write.markers)
        if mode == "timeline":
            self._start_server()
        client = child.system.write_client(
            table,
            child.storage,
            child.runtime,
            child.options,
            DriverMarkers(child, mode),
            DELTA_COMMIT if plan.merge_on_read else COMMIT,
            partial(self._journal, table, number + 1),
        )
        instant = client.begin()
        child.link.record("kit", "kit", "observe", "mode", table, instant, value=mode, error=why or None)
        stats = self._run(client, write, MarkerDirectory(table, instant), mode, number + 1)
        if write.abandon:
            why = "the application gave up"
            child.link.record(child.me.name, child.me.role, "observe", "job-failed", value="abandoned", error=why)
            return
        client.finalize(instant, stats)
        client.commit(instant, stats, {"write": str(number + 1)})

    def _run(
        self, client: WriteClient, write: Write, place: MarkerDirectory, mode: str, ordinal: int
    ) -> tuple[WriteStat, ...]:
        """The stage: every task by as many attempts as Spark makes; one write stat for each."""
        tasks = tuple({(task.partition, task.group): task for task in write.tasks}.values())
        drafts = tuple(draft_of(task, client.slices, self._child.plan.merge_on_read) for task in tasks)
        count = len(tasks)
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

    def _journal(self, table: str, ordinal: int, operation: str, instant: str | None, value: Value, body: Any) -> Any:
        link = self._child.link
        link.ask("step", f"{operation}-begins", ordinal)
        result = journal(self._child, table, operation, instant, value, body)
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


class EmbeddedServer:
    """The timeline server of this driver: started when it is needed, and again whenever it dies."""

    def __init__(self, child: Child, spec_path: str) -> None:
        self._child = child
        self._spec_path = spec_path
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()

    def start(self) -> None:
        """Return when one serves; the first time it has to be started."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, daemon=True, name="embedded-server")
            self._thread.start()
        self._child.link.ask("server-ready")

    def _keep(self) -> None:
        while True:
            name = self._child.link.ask("new-server")
            words = [sys.executable, "-m", "marker_sim.worlds.spark", "server", self._spec_path, name]
            code = subprocess.Popen(words, stdin=subprocess.DEVNULL).wait()
            self._child.link.ask("server-gone", name, code)


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
    child = Child({**spec, "process": spec["driver"], "role": DRIVER})
    child.link.ask("hello", DRIVER, os.getpid(), "127.0.0.1")
    session = open_session(spec["settings"])
    driver = SparkDriver(child, session, raw, EmbeddedServer(child, spec_path).start)
    _say({"ready": True})
    while True:
        message = asked.get()
        try:
            driver.write(message["number"])
            _say({"ended": "ok"})
        except Exception as error:
            child.link.record(
                child.me.name, child.me.role, "observe", "job-failed", error=f"{type(error).__name__}: {error}"[:2000]
            )
            _say({"ended": "failed", "error": repr(error)[:2000]})


def _listen(asked: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        asked.put(json.loads(line))
    os.killpg(0, signal.SIGKILL)


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
