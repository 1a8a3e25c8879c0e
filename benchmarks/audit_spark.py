"""A Spark session of one version of Hudi, and small tables that are written with it.

One core, few rows and small bloom filters, so that a write takes about a second and a file a few kilobytes. All table
services are off unless a write asks for them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.surroundings.requirements import find_java, spark_home
from marker_sim.targets.hudi import bundle
from marker_sim.worlds.http.servers import VARIABLE
from marker_sim.worlds.spark.application import Application, driver_words
from marker_sim.worlds.spark.hudi.settings import spark_conf

PARALLEL = (
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.insert.shuffle.parallelism",
    "hoodie.bulkinsert.shuffle.parallelism",
    "hoodie.delete.shuffle.parallelism",
    "hoodie.simple.index.parallelism",
    "hoodie.bloom.index.parallelism",
    "hoodie.finalize.write.parallelism",
    "hoodie.rollback.parallelism",
    "hoodie.markers.delete.parallelism",
    "hoodie.cleaner.parallelism",
    "hoodie.archive.delete.parallelism",
    "hoodie.bootstrap.parallelism",
    "hoodie.metadata.index.column.stats.parallelism",
    "hoodie.metadata.index.bloom.filter.parallelism",
)
OPTIONS = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.embed.timeline.server.reuse.enabled": "true",
    "hoodie.index.bloom.num_entries": "20",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clustering.inline": "false",
    **dict.fromkeys(PARALLEL, "1"),
}
# A commit is refused by this query after all data files were written, so the write fails there.
FAILING = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#987654321",
}
KILL_S = 60.0
PARTITIONS = ("p0", "p1")
Row = tuple[str, str | None, str, int]


def rows(first: int, last: int, value: str, ts: int, partitions: tuple[str | None, ...] = PARTITIONS) -> list[Row]:
    """Rows k<first> to k<last - 1>, spread over the partitions."""
    return [(f"k{number:03}", partitions[number % len(partitions)], value, ts) for number in range(first, last)]


def _few_settings(scratch: Path) -> Path:
    """A folder for the class path that hides most defaults of Hadoop. Hudi sends all settings along with each task, and
    that was half of the time of a small write.
    """
    folder = scratch / "settings"
    folder.mkdir(parents=True, exist_ok=True)
    kept = {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": str(scratch / "hadoop"),
        "io.file.buffer.size": "4096",
        "io.serializations": "org.apache.hadoop.io.serializer.WritableSerialization",
        "hadoop.security.authentication": "simple",
        "hadoop.security.group.mapping": "org.apache.hadoop.security.ShellBasedUnixGroupsMapping",
    }
    said = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in kept.items())
    for name in ("core", "hdfs", "hdfs-rbf", "mapred", "yarn"):
        text = f"<configuration>{said if name == 'core' else ''}</configuration>"
        (folder / f"{name}-default.xml").write_text(text, encoding="utf-8")
    return folder


QUICK_LOCAL = """
public class QuickLocal extends org.apache.hadoop.fs.LocalFileSystem {
    public QuickLocal() {
        super(new org.apache.hadoop.fs.RawLocalFileSystem() {
            @Override public void setPermission(
                org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission) { }
        });
    }
}
"""


def _quick_local(folder: Path) -> dict[str, str]:
    """A local file system that starts no chmod for each file that it makes; none where there is no compiler."""
    compiler = shutil.which("javac")
    if compiler is None:
        return {}
    (folder / "QuickLocal.java").write_text(QUICK_LOCAL, encoding="utf-8")
    words = [compiler, "-cp", f"{spark_home()}/jars/*", "-d", str(folder), str(folder / "QuickLocal.java")]
    subprocess.run(words, check=True, timeout=KILL_S)
    return {"spark.hadoop.fs.file.impl": "QuickLocal"}


class Spark:
    """A session. version: of Hudi; scratch: for its own files."""

    def __init__(self, version: str, scratch: Path) -> None:
        from pyspark.sql import SparkSession

        os.environ.update(
            SPARK_HOME=str(spark_home()), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable,
            JAVA_HOME=str(Path(find_java()).resolve().parent.parent),
        )  # fmt: skip
        self.version = version
        self.scratch = scratch
        self.jars = bundle(version).find(print)
        self.conf = {**spark_conf("local[1]", self.jars, scratch), "spark.sql.shuffle.partitions": "1"}
        self.conf["spark.driver.memory"] = "2g"
        settings = _few_settings(scratch)
        self.conf["spark.driver.extraClassPath"] = f"{settings}:{self.conf['spark.driver.extraClassPath']}"
        self.conf |= _quick_local(settings)
        builder = SparkSession.builder
        for key, value in self.conf.items():
            builder = builder.config(key, value)
        self.session: Any = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def sql(self, statement: str) -> list[Any]:
        """The rows of a statement."""
        found: list[Any] = self.session.sql(statement).collect()
        return found

    def frame(self, found: Iterable[Row]) -> Any:
        """Rows as a frame of (key, part, value, ts), all of which may be null."""
        values = ", ".join(f"({', '.join(map(json.dumps, row))})" for row in found)
        none = "" if values else " WHERE false"
        values = values or '("k", "p0", "v", 0)'
        return self.session.sql(
            f"SELECT NULLIF(key, '') AS key, NULLIF(CAST(part AS STRING), '') AS part, NULLIF(value, '') AS value,"
            f" NULLIF(CAST(ts AS BIGINT), -1) AS ts"
            f" FROM VALUES {values} AS t(key, part, value, ts){none}"
        )

    def stop(self) -> None:
        """End the session."""
        self.session.stop()


class HudiTable:
    """A table that is being made. options: of each of its writes."""

    def __init__(self, spark: Spark, path: Path, options: dict[str, str]) -> None:
        self.spark = spark
        self.path = path
        self.name = path.name.replace("-", "_")
        self.options = {**OPTIONS, "hoodie.table.name": self.name, **options}

    @property
    def merge_on_read(self) -> bool:
        """Whether updates go to log files."""
        return self.options.get("hoodie.datasource.write.table.type") == "MERGE_ON_READ"

    @property
    def timeline(self) -> Path:
        """Where the active timeline is."""
        newer = self.path / ".hoodie" / "timeline"
        return newer if newer.is_dir() else self.path / ".hoodie"

    def write(self, found: Iterable[Row], operation: str = "", mode: str = "append", **settings: object) -> None:
        """Write rows. settings: options, with `__` for dots."""
        self.save(self.spark.frame(found), operation, mode, **settings)

    def save(self, frame: Any, operation: str = "", mode: str = "append", **settings: object) -> None:
        """Write a frame."""
        given = self.options | {key.replace("__", "."): str(value) for key, value in settings.items()}
        if operation:
            given["hoodie.datasource.write.operation"] = operation
        frame.write.format("hudi").options(**given).mode(mode).save(str(self.path))

    def fail(self, found: Iterable[Row], operation: str = "", **settings: object) -> None:
        """A write that fails after its data files were written and before its commit."""
        failing: dict[str, Any] = {key.replace(".", "__"): value for key, value in FAILING.items()}
        try:
            self.write(found, operation, **(failing | settings))
        except Exception as error:
            if "987654321" not in str(error) and "alidat" not in str(error):
                raise
            return
        raise HarnessError("the write was to fail and did not")

    def call(self, procedure: str, **settings: object) -> list[Any]:
        """CALL of a procedure on this table, with its options in force."""
        self.register()
        words = ", ".join(
            f"{key} => {value if isinstance(value, int) else repr(value)}" for key, value in settings.items()
        )
        return self.spark.sql(f"CALL {procedure}({words})")

    def register(self) -> str:
        """Its name in the session's catalog."""
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS {self.name} USING hudi LOCATION '{self.path}'")
        return self.name

    def sql(self, statement: str) -> list[Any]:
        """A statement that has {t} for the table; its options are set for it, and only for it."""
        name, session = self.register(), self.spark.session
        given = {key: value for key, value in self.options.items() if key != "hoodie.table.name"}
        given.pop("hoodie.datasource.write.operation")
        for key, value in given.items():
            session.conf.set(key, value)
        try:
            return self.spark.sql(statement.format(t=name))
        finally:
            for key in given:
                session.conf.unset(key)

    def completed(self, suffix: str = "commit") -> list[str]:
        """The instants (request times) that are completed, oldest first. suffix: how their action ends."""
        return sorted(
            path.name.partition(".")[0].partition("_")[0]
            for path in self.timeline.iterdir()
            if path.suffix.endswith(suffix) and not path.name.endswith((".crc", ".inflight", ".requested"))
        )

    def kill(self, found: Iterable[Row], seen: Callable[[Path], object], **settings: object) -> None:
        """A write in a driver of its own that is killed when `seen` says something about the table."""
        options = self.options | {key.replace("__", "."): str(value) for key, value in settings.items()}
        scratch = self.spark.scratch / f"killed-{self.name}"
        scratch.mkdir(parents=True, exist_ok=True)
        conf = spark_conf("local[1]", self.spark.jars, scratch)
        spec = {"settings": conf, "options": options, "table": str(self.path)}
        environment = {**os.environ, VARIABLE: f"audit-tables-{os.getpid()}"}
        words = driver_words("hudi", spec, scratch / "killed.spec")
        driver = Application("killed", words, environment, scratch / "log.txt")
        try:
            driver.wait_ready()
            driver.tell({"do": "write", "rows": [list(row) for row in found], "options": {}})
            deadline = time.monotonic() + KILL_S
            while not seen(self.path) and driver.alive and time.monotonic() < deadline:
                time.sleep(0.002)
            driver.kill_now()
        finally:
            driver.kill()
