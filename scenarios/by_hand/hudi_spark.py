"""The findings about Hudi's write path again, with nothing but PySpark and kill -9.

    python hudi_spark.py BUNDLE [torn-commit] [half-commit] [torn-rollback] [markers-left] [no-write-any-more]
                         [rows-unseen] [file-left]

BUNDLE is Hudi's Spark bundle, a jar. A driver writes eight rows to a local table; it is killed as soon as a file is
seen, by looking all the time; the next driver writes and reads. What is on disk is shown before and after.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

DRIVER = """
import sys
from pyspark.sql import SparkSession
import json
bundle, table, ordinal, more = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", bundle)
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer").config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.driver.host", "127.0.0.1").getOrCreate())
if ordinal != "read":
    rows = [(f"k{n}", f"p{n % 4}", f"w{ordinal}", int(ordinal)) for n in range(8)]
    (spark.createDataFrame(rows, "key string, part string, value string, ts long").write.format("hudi").mode("append")
        .options(**{"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "key",
            "hoodie.datasource.write.partitionpath.field": "part", "hoodie.datasource.write.precombine.field": "ts",
            **json.loads(more)}).save(table))
print("rows by value:", sorted((r["value"], r["count"]) for r in
    spark.read.format("hudi").load(table).groupBy("value").count().collect()))
"""
TRIES = 10
DRIVER_S = 300.0


DIRECT = {"hoodie.write.markers.type": "DIRECT", "hoodie.metadata.enable": "false"}
TIMELINE = {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED", "hoodie.metadata.enable": "false"}
MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.enable": "true",
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
}


def run(
    bundle: str,
    table: Path,
    ordinal: str,
    options: dict[str, str],
    seen: Callable[[], list[Path]] = list,
    number: int = 1,
) -> bool:
    """One driver, and whether it ended well. It is killed when `number` files are seen."""
    words = [sys.executable, "-c", DRIVER, bundle, str(table), ordinal, json.dumps(options)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryFile("w+") as errors:
        driver = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        deadline = time.monotonic() + DRIVER_S
        while seen is not list and driver.poll() is None and time.monotonic() < deadline:
            found = seen()
            if len(found) >= number:
                os.killpg(driver.pid, signal.SIGKILL)
                print(f"$ kill -9 driver {ordinal}   # {found[-1].name} was seen")
                break
        try:
            said, _ = driver.communicate(timeout=max(1.0, deadline - time.monotonic()))
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
        errors.seek(0)
        causes = [line.strip()[:160] for line in errors if line.startswith("Caused by")]
    rows = [line for line in said.splitlines() if line.startswith("rows by value")]
    print(f"driver {ordinal} ended with {driver.returncode}", *rows, *dict.fromkeys(causes), sep="\n    ")
    return driver.returncode == 0


def completed(table: Path, action: str = "commit") -> list[Path]:
    """The completed entries of an action on the timeline, of either layout."""
    found: list[Path] = []
    for folder in (table / ".hoodie", table / ".hoodie" / "timeline"):
        if folder.is_dir():
            found += [folder / name for name in os.listdir(folder) if name.endswith(f".{action}")]
    return sorted(found, key=lambda path: path.name)


def shell(command: str, folder: Path) -> None:
    """Show a command of the shell and run it in a folder."""
    print(f"$ {command}")
    subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True)


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
        run(bundle, table, "1", TIMELINE)
        run(bundle, table, "2", TIMELINE, partial(completed, table), 2)
        print("after the kill:")
        show(table)
        if any(path.stat().st_size == 0 for path in completed(table)):
            run(bundle, table, "3", TIMELINE)
            print("after the next write:")
            show(table)
            return
    print(f"not seen in {TRIES} kills")


def half_commit(bundle: str, scratch: Path) -> None:
    """Half of a completed commit, as a crash within its write leaves it: no driver writes or reads any more.

    Hadoop writes 4,096 bytes at a time to a local file, so a longer commit needs several writes, and its checksum file
    stays empty until the end.
    """
    table = scratch / "half"
    run(bundle, table, "1", TIMELINE)
    run(bundle, table, "2", TIMELINE)
    last = completed(table)[-1]
    whole = last.read_bytes()
    shell(f"truncate -s {len(whole) // 2} {last.relative_to(table)}", table)
    shell(f"truncate -s 0 {last.with_name(f'.{last.name}.crc').relative_to(table)}", table)
    for ordinal in ("3", "4", "read"):
        run(bundle, table, ordinal, TIMELINE)
    show(table)
    shell(f"rm {last.relative_to(table)}", table)
    run(bundle, table, "5", TIMELINE)


def torn_rollback(bundle: str, scratch: Path) -> None:
    """A driver that dies while it completes a rollback leaves an empty record, and no driver rolls back again."""
    for attempt in range(TRIES):
        table = scratch / f"rollback-{attempt}"
        run(bundle, table, "1", TIMELINE)
        run(bundle, table, "2", TIMELINE, lambda: list(table.glob("p*/*.parquet"))[4:])  # noqa: B023
        run(bundle, table, "3", TIMELINE, partial(completed, table, "rollback"))
        torn = [path for path in completed(table, "rollback") if path.stat().st_size == 0]
        print("after the kill:", *(f"       0 bytes  {path.relative_to(table)}" for path in torn), sep="\n")
        if torn:
            run(bundle, table, "4", TIMELINE)
            print("after the next write:")
            for path in completed(table, "rollback"):
                print(f"  {path.stat().st_size:6d} bytes  {path.relative_to(table)}")
            return
    print(f"not seen in {TRIES} kills")


def markers_left(bundle: str, scratch: Path) -> None:
    """A driver that dies between its commit and the deletion of its markers leaves them; later writes do too."""
    table = scratch / "markers"
    run(bundle, table, "1", DIRECT)
    run(bundle, table, "2", DIRECT, lambda: [path for path in completed(table) if path.stat().st_size], 2)
    for ordinal in ("3", "4"):
        run(bundle, table, ordinal, DIRECT)
    print("after two more writes:")
    show(table)


def no_write_any_more(bundle: str, scratch: Path) -> None:
    """With a metadata table, a log file that a killed driver left empty makes every later write fail."""
    for attempt in range(TRIES):
        table = scratch / f"empty-{attempt}"

        def logs(table: Path = table) -> list[Path]:
            return [path for path in table.glob("p*/.*.log.*") if not path.name.endswith(".crc")]

        run(bundle, table, "1", MERGE_ON_READ)
        run(bundle, table, "2", MERGE_ON_READ, logs, 3)
        print(
            "after the kill:",
            *(f"  {path.stat().st_size:6d} bytes  {path.relative_to(table)}" for path in logs()),
            sep="\n",
        )
        if not run(bundle, table, "3", MERGE_ON_READ):
            run(bundle, table, "4", MERGE_ON_READ)
            run(bundle, table, "5", {**MERGE_ON_READ, "hoodie.metadata.enable": "false"})
            return
    print(f"not seen in {TRIES} kills")


def rows_unseen(bundle: str, scratch: Path) -> None:
    """Rows of a completed write are not found: its instant is older than that of the rollback it began with, at whose
    command blocks a reader stops. The write after it brings them back.
    """
    table = scratch / "unseen"
    options = {**MERGE_ON_READ, "hoodie.metadata.enable": "false"}

    def logs() -> list[Path]:
        return [path for path in table.glob("p*/.*.log.*") if not path.name.endswith(".crc")]

    run(bundle, table, "1", options)
    run(bundle, table, "2", options, logs, 3)
    for ordinal in ("3", "read", "4", "read"):
        run(bundle, table, ordinal, options)
        print("  timeline:", *sorted(path.name for path in (table / ".hoodie").glob("2*")))


def file_left(bundle: str, scratch: Path) -> None:
    """A driver that dies while it writes its marker file again leaves data files that no rollback deletes.

    One batch thread and four files, so that the second batch empties the file that holds the markers of the first.
    """
    options = {**TIMELINE, "hoodie.markers.timeline_server_based.batch.num_threads": "1"}
    for attempt in range(TRIES):
        table = scratch / f"left-{attempt}"
        sizes: dict[Path, int] = {}

        def emptied(table: Path = table, sizes: dict[Path, int] = sizes) -> list[Path]:
            for path in (table / ".hoodie" / ".temp").glob("*/MARKERS0"):
                try:
                    size = path.stat().st_size
                except FileNotFoundError:
                    continue
                if size < sizes.get(path, 0):
                    return [path]
                sizes[path] = size
            return []

        run(bundle, table, "1", options)
        run(bundle, table, "2", options, emptied)
        dead = {path.parent.name for path in sizes}
        print("after the kill:")
        for path in sizes:
            if path.exists():
                print(f"  {path.stat().st_size:6d} bytes  {path.relative_to(table)}")
        run(bundle, table, "3", options)
        left = [path for path in table.glob("p*/*.parquet") if path.stem.rpartition("_")[2] in dead]
        if left and completed(table, "rollback"):
            print("after the next write, which rolled back:")
            for path in [*completed(table, "rollback"), *left]:
                print(f"  {path.stat().st_size:6d} bytes  {path.relative_to(table)}")
            return
    print(f"not seen in {TRIES} kills")


FINDINGS = {
    "torn-commit": torn_commit,
    "half-commit": half_commit,
    "torn-rollback": torn_rollback,
    "markers-left": markers_left,
    "no-write-any-more": no_write_any_more,
    "rows-unseen": rows_unseen,
    "file-left": file_left,
}

if __name__ == "__main__":
    bundle, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or FINDINGS:
            print(f"== {name}")
            FINDINGS[name](bundle, Path(scratch))
