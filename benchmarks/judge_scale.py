"""Sets of markers judged at scale: seconds, rows a second and peak memory of each engine, one process each, in one run.

    python benchmarks/judge_scale.py [--markers 165000 1000000 10000000] [--spark 100000000] [--threads 2]

A marker has three facts: requested, answered, stored. PLANTED of them are answered and not stored, as many are stored
and were not requested, and each contestant must find exactly these.

    ids     the kit, over facts with interned ids (pyarrow); --spark too
    texts   the kit, over the same facts as texts, which it interns itself
    duckdb  the kit's rules as the SQL that Spark runs; spark: the same by PySpark on local[threads], from ids
    polars  the two differences written with polars, streaming
    sets    the two differences as Python sets of (directory, name), up to SETS_MAX markers

Seconds are those of reading and judging, without starting Python; CPU seconds are of all threads, without Spark's JVM,
whose memory counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

PLANTED = 5
SETS_MAX = 1_000_000
DIRECTORIES = 100
RULES_OF_MARKERS = ("answered-not-stored", "stored-not-requested")


def generate(place: Path, markers: int, ids: bool, threads: int) -> None:
    """Facts of so many markers as Parquet; names are as long as Spark's tasks make them."""
    import duckdb

    directory = f"'t' || (i % {DIRECTORIES}) || '/.hoodie/.temp/20260101000000000'"
    name = (
        "'dt=2026-01-' || (i % 30) || '/' || md5(i::VARCHAR) || '-0_' || i || '-17-' || (i + 40)"
        " || '_20260101000000000.parquet.marker.CREATE'"
    )
    if ids:
        directory, name = f"CAST(i % {DIRECTORIES} AS INTEGER)", "i"
    place.mkdir(parents=True)
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(
            f"COPY (SELECT fact, {directory} AS directory, {name} AS name, i AS moment FROM range({markers}) m(i),"
            " (VALUES ('requested'), ('answered'), ('stored')) f(fact)"
            f" WHERE NOT (fact = 'stored' AND i < {PLANTED}) AND NOT (fact = 'answered' AND i >= {markers - PLANTED})"
            f" AND NOT (fact = 'requested' AND i >= {markers - PLANTED}))"
            f" TO '{place}/facts.parquet' (FORMAT parquet, COMPRESSION zstd)"
        )


def by_kit(place: Path, master: str | None) -> list[int]:
    """The kit's columns, or Spark."""
    from marker_sim.scale.set_judging import find_facts, judge_facts

    facts = find_facts(place)
    assert facts is not None
    judged = judge_facts(facts, master)
    return [judged.differences[rule].breaches for rule in RULES_OF_MARKERS]


def by_duckdb(place: Path) -> list[int]:
    """The kit's SQL by DuckDB."""
    import duckdb

    from marker_sim.scale.engines import SqlFacts

    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW facts AS SELECT * FROM read_parquet('{place}/facts.parquet')")
        found = SqlFacts(lambda query: connection.execute(query).fetchall()).differences()
    return [found[rule].breaches for rule in RULES_OF_MARKERS]


def by_polars(place: Path) -> list[int]:
    """The two differences by anti-joins."""
    import polars

    facts = polars.scan_parquet(place / "facts.parquet")
    counts = []
    for one, other in (("answered", "stored"), ("stored", "requested")):
        left, right = (facts.filter(polars.col("fact") == fact) for fact in (one, other))
        rest = left.join(right, on=["directory", "name"], how="anti").select(polars.len())
        counts.append(int(rest.collect(engine="streaming").item()))
    return counts


def by_sets(place: Path) -> list[int]:
    """The two differences by Python sets."""
    import pyarrow.parquet as pq

    names: dict[str, set[tuple[str, str]]] = {"requested": set(), "answered": set(), "stored": set()}
    for batch in pq.ParquetFile(place / "facts.parquet").iter_batches(columns=["fact", "directory", "name"]):
        columns = (batch[name].to_pylist() for name in ("fact", "directory", "name"))
        for fact, directory, name in zip(*columns, strict=True):
            names[fact].add((directory, name))
    return [len(names["answered"] - names["stored"]), len(names["stored"] - names["requested"])]


def contest(name: str, place: Path, threads: int) -> None:
    """Judge in this process, and print seconds, peak megabytes and what was found as JSON."""
    contestants: dict[str, Callable[[], list[int]]] = {
        "ids": lambda: by_kit(place, None),
        "texts": lambda: by_kit(place, None),
        "duckdb": lambda: by_duckdb(place),
        "spark": lambda: by_kit(place, f"local[{threads}]"),
        "polars": lambda: by_polars(place),
        "sets": lambda: by_sets(place),
    }
    import pyarrow

    pyarrow.set_cpu_count(threads)
    for module in ("marker_sim.scale.set_judging", "duckdb", "polars"):
        __import__(module)
    begun, cpu_s = time.perf_counter(), time.process_time()
    found = contestants[name]()
    taken_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": taken_s, "cpu_s": cpu_s, "peak_mb": peak_mb, "found": found}))


def run(name: str, place: Path, markers: int, threads: int) -> None:
    """One contestant in a process of its own, and its line of the table."""
    command = [sys.executable, __file__, "--contest", name, str(place), "--threads", str(threads)]
    environment = os.environ | {"POLARS_MAX_THREADS": str(threads), "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        peak_jvm_mb = _peak_of_children_mb(process) if name == "spark" else 0.0
        said = process.communicate()[0].splitlines()
    if process.returncode or not said:
        raise SystemExit(f"{name} failed with {process.returncode}")
    told = json.loads(said[-1])
    assert told["found"] == [PLANTED, PLANTED], f"{name} found {told['found']}, planted were {PLANTED} each"
    rows = 3 * markers - 3 * PLANTED
    peak_mb = told["peak_mb"] + peak_jvm_mb
    seconds = told["seconds"]
    print(f"{name:8}{markers:12,}{seconds:9.2f}{told['cpu_s']:8.2f}{rows / seconds:14,.0f}{peak_mb:10,.0f}", flush=True)


def _peak_of_children_mb(process: subprocess.Popen[str]) -> float:
    """The most that the children of a process held at a time, looked at now and then until it ends."""
    peak = 0
    while process.poll() is None:
        try:
            held = [child.memory_info().rss for child in psutil.Process(process.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            held = []
        peak = max(peak, sum(held))
        time.sleep(0.5)
    return peak / 2**20


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markers", type=int, nargs="*", default=[165_000, 1_000_000, 10_000_000])
    parser.add_argument("--only", nargs="+", default=["ids", "texts", "duckdb", "polars", "sets"])
    parser.add_argument("--spark", type=int, default=0, help="markers for PySpark, none by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--directory", type=Path, default=None, help="where facts are made; the temporary one")
    parser.add_argument("--contest", nargs=2, metavar=("NAME", "FACTS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contest:
        contest(given.contest[0], Path(given.contest[1]), given.threads)
        return
    print(f"{'engine':8}{'markers':>12}{'seconds':>9}{'CPU s':>8}{'rows/s':>14}{'peak MB':>10}")
    scratch = Path(tempfile.mkdtemp(prefix="judge-scale-", dir=given.directory))
    try:
        for markers in given.markers:
            generate(scratch / "ids", markers, True, given.threads)
            if set(given.only) - {"ids"}:
                generate(scratch / "texts", markers, False, given.threads)
            for name in given.only:
                if name != "sets" or markers <= SETS_MAX:
                    run(name, scratch / ("ids" if name == "ids" else "texts"), markers, given.threads)
            for place in scratch.iterdir():
                shutil.rmtree(place)
        if given.spark:
            generate(scratch / "ids", given.spark, True, given.threads)
            run("spark", scratch / "ids", given.spark, given.threads)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
