"""What 1,000, 10,000 and 165,000 markers of one instant cost through each mode on a local directory.

    timeline  a `marker-sim serve` process, asked by one client process over some hundred connections
    direct    DirectMarkers over LocalStorage in a process of its own, from some threads

Seconds of creating, listing all and deleting; bytes that the process wrote (wchar of /proc/PID/io, which counts
answers on sockets as well, some 80 bytes each); its largest resident size; files. Afterwards storage must hold exactly
the names that were answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from marker_sim.markers.direct import DirectMarkers
from marker_sim.markers.store import Context, Created
from marker_sim.names import stored_names
from marker_sim.options import MarkerOptions
from marker_sim.seams import Mailbox, Refused, Reply, Request
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.worlds.processes.seams import ThreadMailbox

INSTANT = "20260101120000000"
DIRECTORY = f"t/.hoodie/.temp/{INSTANT}"
TIMEOUT_S = 3_600.0


class Cost(NamedTuple):
    """What one mode cost for a number of markers."""

    mode: str
    markers: int
    requests: int
    files: int
    wrote_bytes: int
    create_s: float
    list_s: float
    delete_s: float
    cpu_s: float
    peak_mb: float


def names_of(count: int) -> list[str]:
    """Marker names as Spark tasks make them, in thirty partitions."""
    return [
        f"dt=2026-01-{1 + number % 30:02}/{uuid.UUID(int=number * 2**64 + 7)}-0_{number}-17-{number + 40}_{INSTANT}"
        ".parquet.marker.CREATE"
        for number in range(count)
    ]


def spent(process: int) -> tuple[int, float, float]:
    """Bytes written, seconds of processor time and largest resident megabytes of a process so far."""
    wrote = int(Path(f"/proc/{process}/io").read_text().partition("wchar:")[2].split()[0])
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    peak = int(Path(f"/proc/{process}/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return wrote, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak


def verify(root: Path, names: list[str]) -> int:
    """The number of files of the directory, which must hold exactly these names."""
    directory = root / DIRECTORY
    files = {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    stored = stored_names(str(directory), files)
    if stored != set(names):
        raise SystemExit(f"{len(set(names) - stored)} answered names are missing, {len(stored - set(names))} strange")
    return len(files)


class Asking(asyncio.Protocol):
    """One connection that asks for a marker after another."""

    def __init__(self, take: Callable[[], bytes | None], done: Callable[[bytes], None], closed: Callable[[], None]):
        self._take, self._done, self._closed = take, done, closed
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the first time."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        """An answer ends in true or false."""
        self._received += data
        if self._received.endswith((b"true", b"false")):
            self._done(self._received)
            self._received = b""
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to ask."""
        self._closed()

    def _ask(self) -> None:
        request = self._take()
        if request is None:
            self._transport.close()
        else:
            self._transport.write(request)


async def ask_all(port: int, directory: str, names: list[str], connections: int) -> list[bytes]:
    """Every answer, names shared out among the connections as they come free."""
    query = urllib.parse.urlencode({"markerdirpath": directory})
    start = f"POST /v1/hoodie/marker/create?{query}&markername="
    requests = iter([f"{start}{urllib.parse.quote(n, safe='')} HTTP/1.1\r\nhost: x\r\n\r\n".encode() for n in names])
    answers: list[bytes] = []
    open_, finished = connections, asyncio.Event()

    def closed() -> None:
        nonlocal open_
        open_ -= 1
        if not open_:
            finished.set()

    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(
            lambda: Asking(lambda: next(requests, None), answers.append, closed), "127.0.0.1", port
        )
    await asyncio.wait_for(finished.wait(), TIMEOUT_S)
    return answers


def timeline(root: Path, count: int, connections: int) -> Cost:
    """Through a server process."""
    names = names_of(count)
    command = [sys.executable, "-m", "marker_sim", "serve", "--port", "0", "--base", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        url = f"http://127.0.0.1:{port}/v1/hoodie/marker"
        query = urllib.parse.urlencode({"markerdirpath": str(root / DIRECTORY)})
        begun = time.monotonic()
        answers = asyncio.run(ask_all(port, str(root / DIRECTORY), names, connections))
        create_s = time.monotonic() - begun
        wrote, cpu_s, _ = spent(process.pid)
        created = sum(answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"true") for answer in answers)
        if created != count:
            raise SystemExit(f"{created} of {count} creates were answered with true")
        files = verify(root, names)
        begun = time.monotonic()
        with urllib.request.urlopen(f"{url}/all?{query}", timeout=TIMEOUT_S) as answer:
            listed = json.load(answer)
        list_s = time.monotonic() - begun
        assert sorted(listed) == sorted(names)
        begun = time.monotonic()
        with urllib.request.urlopen(f"{url}/dir/delete?{query}", data=b"", timeout=TIMEOUT_S) as answer:
            assert json.load(answer) is True
        delete_s = time.monotonic() - begun
        return Cost("timeline", count, count, files, wrote, create_s, list_s, delete_s, cpu_s, spent(process.pid)[2])
    finally:
        process.terminate()
        process.communicate(timeout=60.0)


class ThreadRuntime:
    """What direct markers need of the Runtime seam when their callers are threads."""

    def __init__(self, root: Path) -> None:
        self._locks = HostLocks(root)

    def now_ms(self) -> float:
        """Monotonic milliseconds."""
        return time.monotonic() * 1000

    def sleep(self, duration_ms: float) -> None:
        """Let time pass."""
        time.sleep(duration_ms / 1000)

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        """Start a thread."""
        threading.Thread(target=body, name=name, daemon=True).start()

    def mailbox(self) -> Mailbox:
        """A queue between threads."""
        return ThreadMailbox(lambda: None)

    def lock(self, name: str) -> AbstractContextManager[None]:
        """A lock of the host."""
        return self._locks.hold(name)

    def unique_id(self) -> str:
        """New each time."""
        return uuid.uuid4().hex


class NoWire:
    """Direct markers call no server."""

    def call(self, server: str, request: Request, deadline_ms: int) -> Reply:
        """Raise: a timeline server sends no requests."""
        raise Refused(server)


def direct_in_child(pipe: Connection, root: Path, count: int, threads: int) -> None:
    """The measured process of direct mode."""
    names = names_of(count)
    markers = DirectMarkers(
        Context(
            storage=LocalStorage(root),
            runtime=ThreadRuntime(root),
            wire=NoWire(),
            directory=DIRECTORY,
            options=MarkerOptions(),
        )
    )
    wrote_before, cpu_before_s, _ = spent(os.getpid())
    begun = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        made = list(pool.map(markers.create, names, chunksize=100))
    create_s = time.monotonic() - begun
    assert made == [Created.CREATED] * count
    wrote, cpu_s, _ = spent(os.getpid())
    files = verify(root, names)
    begun = time.monotonic()
    listed = markers.list_all()
    list_s = time.monotonic() - begun
    assert listed == tuple(sorted(names))
    begun = time.monotonic()
    assert markers.delete() is True
    delete_s = time.monotonic() - begun
    found: Any = Cost(
        "direct",
        count,
        count,
        files,
        wrote - wrote_before,
        create_s,
        list_s,
        delete_s,
        cpu_s - cpu_before_s,
        spent(os.getpid())[2],
    )
    pipe.send(found)


def direct(root: Path, count: int, threads: int) -> Cost:
    """Through files of their own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=direct_in_child, args=(theirs, root, count, threads))
    child.start()
    theirs.close()
    try:
        cost: Cost = ours.recv()
        return cost
    finally:
        child.join()


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markers", type=int, nargs="+", default=[1_000, 10_000, 165_000])
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--directory", default=None, help="where the tables are made; the system's temporary one")
    arguments = parser.parse_args()
    print("mode      markers  requests   files      MB written  create s  us/marker  CPU s   list s  delete s  peak MB")
    for mode in ("timeline", "direct"):
        for count in arguments.markers:
            root = Path(tempfile.mkdtemp(prefix="many-markers-", dir=arguments.directory))
            try:
                cost = (
                    timeline(root, count, arguments.connections)
                    if mode == "timeline"
                    else direct(root, count, arguments.threads)
                )
            finally:
                shutil.rmtree(root)
            print(
                f"{cost.mode:8} {cost.markers:8} {cost.requests:9} {cost.files:7} {cost.wrote_bytes / 1e6:15.1f}"
                f" {cost.create_s:9.2f} {cost.create_s / count * 1e6:10.0f} {cost.cpu_s:6.2f}"
                f" {cost.list_s:8.3f} {cost.delete_s:9.3f} {cost.peak_mb:8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
