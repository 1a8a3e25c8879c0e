"""Markers of 1,000 to 165,000 files through PySpark, as Hudi's blog measured them: requests, bytes and seconds.

    python benchmarks/spark_markers.py                                    everything, storage as fast as it is
    python benchmarks/spark_markers.py --files 1000 10000 --latency-ms 450 --storage s3

Tasks of a Spark stage make the markers, `--slots` at a time; then the driver asks for the data files that they name and
deletes them, as finalize does. Timeline-server markers go to a `marker-sim serve` process. S3 is the kit's front in a
process of its own, which counts requests and bytes, and with `--latency-ms` makes each request take that much longer.
Afterwards storage must hold exactly the names that were asked for, and nothing after the deletion.

Beside each S3 row stands what the model of docs/performance-table.md predicts for the same slots. Its one constant, the
time of a request, is the given latency, or else what the deletion of the first row of direct markers took.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from benchmarks.many_markers import NoWire, ThreadRuntime, spent
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.names import stored_names
from marker_sim.options import MarkerOptions
from marker_sim.seams import Reply, Request
from properties.faces.faults import ANY_CALL
from properties.faces.markers import Context, Created, DirectMarkers, TimelineMarkers
from properties.faces.storages import LocalStorage, S3Storage
from properties.faces.surroundings import find_java
from properties.faces.worlds import ArmedFault, Interceptor, Recorder, S3Front, StorageCall
from scenarios.performance.world import Figures, Setting, marker_names, simulate

BUCKET, KEY, REGION = "lake", "spark", "us-east-1"
INSTANT = "20210820173605"
TIMEOUT_S = 120.0
ALWAYS = 1_000_000_000


class Place(NamedTuple):
    """Where the markers of a row go; sent to the executors.

    root: a directory of this host, "" on S3.
    endpoint: of S3, "" on a local directory.
    port: of the timeline server, 0 for direct markers.
    """

    root: str
    endpoint: str
    port: int
    directory: str

    def context(self) -> Context:
        """What markers of either mode need in a process of this host."""
        local = Path(self.root or tempfile.gettempdir())
        return Context(
            storage=LocalStorage(local) if self.root else self._bucket(),
            runtime=ThreadRuntime(local),
            wire=HttpClient(self.port) if self.port else NoWire(),
            directory=self.address() if self.port else self.directory,
            options=MarkerOptions(),
        )

    def markers(self) -> DirectMarkers | TimelineMarkers:
        """The markers of a thread through the server, whose connection is its own, or of a process."""
        return TimelineMarkers(self.context()) if self.port else DirectMarkers(self.context())

    def address(self) -> str:
        """The marker directory as requests name it."""
        return f"{self.root}/{self.directory}" if self.root else f"s3a://{BUCKET}/{self.directory}"

    def _bucket(self) -> S3Storage:
        return S3Storage(
            self.endpoint, BUCKET, "", KEY, connect_timeout_s=TIMEOUT_S, read_timeout_s=TIMEOUT_S, concurrency=256
        )


class HttpClient:
    """The Wire seam over one kept connection."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    def call(self, server: str, request: Request, deadline_ms: int) -> Reply:
        """One request and its reply."""
        query = urlencode(request.parameters)
        method = "POST" if request.path in ("/create", "/dir/delete") else "GET"
        self._http.request(method, f"/v1/hoodie/marker{request.path}?{query}", headers={"Accept-Encoding": "identity"})
        answer = self._http.getresponse()
        return Reply(answer.status, json.loads(answer.read()))


class Row(NamedTuple):
    """The result of one mode. requests, wrote_bytes: None if they were not counted."""

    storage: str
    mode: str
    files: int
    create_s: float
    list_s: float
    delete_s: float
    marker_files: int
    requests: int | None
    wrote_bytes: int | None


class Finalized(NamedTuple):
    """Seconds of creating, listing and deleting; marker files, without the type file."""

    create_s: float
    list_s: float
    delete_s: float
    marker_files: int


Objects = Callable[[], dict[str, bytes]]


class WeighingInterceptor(Interceptor):
    """Adds up the bytes of puts and keeps no events."""

    wrote_bytes = 0

    def applied(
        self, armed: ArmedFault | None, call: StorageCall, operation: str, path: str, data: bytes | None
    ) -> None:
        """Weigh an effect."""
        self.wrote_bytes += len(data or b"")


class Forgetful(Recorder):
    """Keeps nothing."""

    def record(self, *what: Any, **more: Any) -> int:
        """Drop an event."""
        return -1


def front_in_child(pipe: Connection, latency_ms: int) -> None:
    """The process of the S3: answers "counts", "objects" and "end"."""
    interceptor = WeighingInterceptor(Forgetful())
    with S3Front(interceptor, bucket=BUCKET) as front:
        front.healed()
        if latency_ms:
            settings = {"late_ms": latency_ms, "calls": ALWAYS}
            slow = Fault.of(FaultKind.SLOW_STORAGE, "", Call(operations=ANY_CALL), **settings)
            interceptor.arm(ArmedFault(slow))
        pipe.send(front.endpoint)
        while (asked := pipe.recv()) != "end":
            if asked == "counts":
                pipe.send((sum(front.requests.values()), interceptor.wrote_bytes))
            else:
                pipe.send(front.objects())


class FrontProcess:
    """The S3 of all rows. endpoint: its URL."""

    def __init__(self, latency_ms: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=front_in_child, args=(theirs, latency_ms))
        self._child.start()
        self.endpoint: str = self._pipe.recv()

    def ask(self, what: str) -> Any:
        """ "counts": (requests, bytes put) so far; "objects": what is stored."""
        self._pipe.send(what)
        return self._pipe.recv()

    def close(self) -> None:
        """End it."""
        self._pipe.send("end")
        self._child.join()


def creates(place: Place, threads: int) -> Callable[[Iterable[str]], Iterator[int]]:
    """The body of a task: every name of its partition, `threads` at a time; yields how many were created."""

    def body(names: Iterable[str]) -> Iterator[int]:
        shares = list(names)
        shared = place.markers()

        def one(share: list[str]) -> int:
            markers = place.markers() if place.port else shared
            return sum(markers.create(name) is Created.CREATED for name in share)

        with ThreadPoolExecutor(threads) as pool:
            yield sum(pool.map(one, [shares[n::threads] for n in range(threads)]))

    return body


@contextmanager
def server(place: Place) -> Iterator[tuple[int, int]]:
    """A `marker-sim serve` for the place; its port and process."""
    base = place.root or f"s3://{BUCKET}"
    command = [sys.executable, "-m", "marker_sim", "serve", "--port", "0", "--base", base]
    command += ["--s3-endpoint", place.endpoint] if place.endpoint else []
    keys = {"AWS_ACCESS_KEY_ID": "server", "AWS_SECRET_ACCESS_KEY": "server", "AWS_DEFAULT_REGION": REGION}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **keys})
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)


def measure(session: Any, place: Place, count: int, given: argparse.Namespace, objects: Objects) -> Finalized:
    """Create, list and delete."""
    names = marker_names(count)
    tasks = min(given.tasks, given.slots)
    body = creates(place, max(1, given.slots // tasks))
    began_s = time.monotonic()
    created = session.sparkContext.parallelize(names, tasks).mapPartitions(body).sum()
    created_s = time.monotonic()
    files = objects()
    stored = stored_names(place.directory, files)
    if created != count or stored != frozenset(names):
        raise SystemExit(f"{created} of {count} creates were CREATED, {len(stored)} are stored")
    driver = place.markers()
    looked_s = time.monotonic()
    listed = driver.list_data_paths()
    listed_s = time.monotonic()
    deleted = driver.delete()
    deleted_s = time.monotonic()
    left = objects()
    if len(listed) != count or not deleted or left:
        raise SystemExit(f"{len(listed)} of {count} files were listed; deleted: {deleted}, files left: {len(left)}")
    return Finalized(created_s - began_s, listed_s - looked_s, deleted_s - listed_s, len(files) - bool(place.port))


def row(session: Any, storage: str, mode: str, count: int, given: argparse.Namespace, front: FrontProcess) -> Row:
    """One row of the table, in a fresh directory or an empty bucket."""
    directory = f"table/.hoodie/.temp/{INSTANT}"
    root = Path(tempfile.mkdtemp(prefix="spark-markers-", dir=given.directory)) if storage == "local" else None
    place = Place(str(root or ""), "" if root else front.endpoint, 0, directory)

    def objects() -> dict[str, bytes]:
        if root is None:
            found: dict[str, bytes] = front.ask("objects")
            return found
        files = (path for path in (root / directory).rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    requests, wrote = front.ask("counts")
    written = 0
    try:
        if mode == "timeline":
            with server(place) as (port, pid):
                # What the server needs is imported and connected before it is measured.
                place._replace(port=port, directory="warm-up/.hoodie/.temp/0").markers().exists()
                made = measure(session, place._replace(port=port), count, given, objects)
                written = spent(pid)[0]
        else:
            made = measure(session, place, count, given, objects)
    finally:
        if root is not None:
            shutil.rmtree(root)
    later = front.ask("counts")
    if root is None:
        return Row(storage, mode, count, *made, later[0] - requests, later[1] - wrote)
    return Row(storage, mode, count, *made, None, written)


def predicted(made: Row, latency_ms: float, slots: int) -> Figures:
    """What the model says of a row."""
    return simulate(Setting(mode=made.mode, files=made.files, latency_ms=latency_ms, slots=slots))


def calibrated(made: Row) -> float:
    """Milliseconds of a request at which the model deletes a row's direct markers in the time that it took."""
    trial = Setting(mode="direct", files=made.files, latency_ms=100.0)
    return trial.latency_ms * made.delete_s / simulate(trial).delete_s


def shown(name: str, f: Row | Figures) -> str:
    """The figures of a run or of a prediction as a line."""
    requests = "-" if f.requests is None else f"{f.requests:,}"
    wrote = "-" if f.wrote_bytes is None else f"{f.wrote_bytes / 1e6:.1f}"
    return (
        f"{name:26} {f.create_s:9.1f} {f.list_s:8.1f} {f.delete_s:9.1f} {f.marker_files:13,} {requests:>9} {wrote:>9}"
    )


def spark_session(given: argparse.Namespace, scratch: Path) -> Any:
    """A local session, as many tasks at a time as are given, whose Python workers are this Python."""
    find_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("spark-markers").master(f"local[{min(given.tasks, given.slots)}]")
    quiet = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.local.dir": str(scratch)}
    for key, value in quiet.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000, 165_000])
    parser.add_argument("--storage", nargs="+", choices=("local", "s3"), default=["local", "s3"])
    parser.add_argument("--mode", nargs="+", choices=("direct", "timeline"), default=["direct", "timeline"])
    parser.add_argument("--slots", type=int, default=240, help="creates at a time")
    parser.add_argument("--tasks", type=int, default=4, help="Spark tasks that they are spread over")
    parser.add_argument("--latency-ms", type=int, default=0, help="added to each request of S3")
    parser.add_argument("--directory", default=None, help="where local tables are made; the system's temporary one")
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="spark-markers-session-"))
    front = FrontProcess(given.latency_ms)
    latency_ms: float = given.latency_ms
    session = spark_session(given, scratch)
    print(f"{given.slots} slots in {given.tasks} tasks; {given.latency_ms} ms more for each request of S3")
    print(f"{'':26} {'create s':>9} {'list s':>8} {'delete s':>9} {'marker files':>13} {'requests':>9} {'MB':>9}")
    try:
        for storage in given.storage:
            # Python workers are started and import what they need before anything is measured.
            row(session, storage, "direct", given.slots, given, front)
            for count in given.files:
                for mode in given.mode:
                    made = row(session, storage, mode, count, given, front)
                    print(shown(f"{storage} {mode} {count:,}", made), flush=True)
                    if storage == "s3":
                        latency_ms = latency_ms or calibrated(made)
                        print(
                            shown(f"  predicted, {latency_ms:.0f} ms", predicted(made, latency_ms, given.slots)),
                            flush=True,
                        )
    finally:
        session.stop()
        front.close()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
