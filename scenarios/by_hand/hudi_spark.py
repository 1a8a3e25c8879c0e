"""The findings about Hudi's write path again, with nothing but PySpark and kill -9.

    python hudi_spark.py BUNDLE [torn-commit] [markers-left]

BUNDLE is Hudi's Spark bundle, a jar. A driver writes eight rows to a local table; it is killed as soon as a file of the
timeline is seen, by looking all the time; the next driver writes and reads. What is on disk is shown before and after.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DRIVER = """
import sys
from pyspark.sql import SparkSession
bundle, table, ordinal, markers = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", bundle)
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer").config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.driver.host", "127.0.0.1").getOrCreate())
if ordinal != "read":
    rows = [(f"k{n}", f"p{n % 4}", f"w{ordinal}", int(ordinal)) for n in range(8)]
    (spark.createDataFrame(rows, "key string, part string, value string, ts long").write.format("hudi").mode("append")
        .options(**{"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "key",
            "hoodie.datasource.write.partitionpath.field": "part", "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.write.markers.type": markers, "hoodie.metadata.enable": "false"}).save(table))
print("rows by value:", sorted((r["value"], r["count"]) for r in
    spark.read.format("hudi").load(table).groupBy("value").count().collect()))
"""
TRIES = 10
DRIVER_S = 120.0


def run(bundle: str, table: Path, ordinal: str, markers: str, kill_at: int | None = None) -> None:
    """One driver. kill_at: kill it when the timeline has that many completed commits."""
    words = [sys.executable, "-c", DRIVER, bundle, str(table), ordinal, markers]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    driver = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    deadline = time.monotonic() + DRIVER_S
    while kill_at is not None and driver.poll() is None and time.monotonic() < deadline:
        if len(completed(table)) >= kill_at:
            os.killpg(driver.pid, signal.SIGKILL)
            print(f"$ kill -9 driver {ordinal}   # {completed(table)[-1].name} was seen")
            break
    try:
        said, _ = driver.communicate(timeout=max(1.0, deadline - time.monotonic()))
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    print(f"driver {ordinal} ended with {driver.returncode}", said.strip())


def completed(table: Path) -> list[Path]:
    """The completed commits on the timeline, of either layout."""
    found: list[Path] = []
    for folder in (table / ".hoodie", table / ".hoodie" / "timeline"):
        if folder.is_dir():
            found += [folder / name for name in os.listdir(folder) if name.endswith(".commit")]
    return sorted(found, key=lambda path: path.name)


def show(table: Path) -> None:
    """Sizes of completed commits, and what lies in marker directories."""
    for path in completed(table):
        print(f"  {path.stat().st_size:6d} bytes  {path.relative_to(table)}")
    left = [path for path in sorted((table / ".hoodie" / ".temp").rglob("*")) if path.is_file()]
    for path in left:
        print(f"  left of its markers: {path.relative_to(table)}")


def torn_commit(bundle: str, scratch: Path) -> None:
    """A driver that dies while it makes the completed commit leaves an empty one, which counts as completed."""
    for attempt in range(TRIES):
        table = scratch / f"torn-{attempt}"
        run(bundle, table, "1", "TIMELINE_SERVER_BASED")
        run(bundle, table, "2", "TIMELINE_SERVER_BASED", kill_at=2)
        print("after the kill:")
        show(table)
        if any(path.stat().st_size == 0 for path in completed(table)):
            run(bundle, table, "3", "TIMELINE_SERVER_BASED")
            print("after the next write:")
            show(table)
            return
    print(f"not seen in {TRIES} kills")


def markers_left(bundle: str, scratch: Path) -> None:
    """A driver that dies between its commit and the deletion of its markers leaves them, whoever writes after it."""
    table = scratch / "markers"
    run(bundle, table, "1", "DIRECT")
    run(bundle, table, "2", "DIRECT", kill_at=2)
    for ordinal in ("3", "4"):
        run(bundle, table, ordinal, "DIRECT")
    print("after two more writes:")
    show(table)


FINDINGS = {"torn-commit": torn_commit, "markers-left": markers_left}

if __name__ == "__main__":
    bundle, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or FINDINGS:
            print(f"== {name}")
            FINDINGS[name](bundle, Path(scratch))
