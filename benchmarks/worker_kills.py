"""`marker-sim serve --workers N` under load, its workers and its parent killed by SIGKILL: what is lost, who suffers.

Clients create markers with unique names in directories of all workers. After each kill the clients go on until every
directory has answered again; then storage must hold every name that was ever answered. Only directories of the killed
worker may get a 503, and only until it is back. After a kill of the parent no process may be left, and the next server
starts at once on the same port.

    python benchmarks/worker_kills.py --worker-kills 150 --parent-kills 50 --workers 2
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections import Counter
from pathlib import Path

import psutil

from marker_sim.names import stored_names
from marker_sim.serve.bases import locate, parse_base
from marker_sim.serve.forwarding import owner_of

CLIENTS = 12
DIRECTORIES_EACH = 2
KILLS_PER_INSTANT = 20
ANSWER_TIMEOUT_S = 30.0
AGAIN_TIMEOUT_S = 30.0


class Load:
    """Clients that create markers until they are stopped. directories: by the worker that owns them."""

    def __init__(self, port: int, directories: dict[str, int]) -> None:
        self._port = port
        self._directories = directories
        self._over = threading.Event()
        self.acked: dict[str, set[str]] = {directory: set() for directory in directories}
        self.statuses: Counter[tuple[str, str]] = Counter()
        self.slowest_s = dict.fromkeys(directories, 0.0)
        self._threads = [threading.Thread(target=self._ask, args=(client,)) for client in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self, client: int) -> None:
        connection: http.client.HTTPConnection | None = None
        for number, directory in zip(itertools.count(), itertools.cycle(sorted(self._directories)), strict=False):
            if self._over.is_set():
                return
            name = f"p{client}/{number}.parquet.marker.CREATE"
            query = urllib.parse.urlencode({"markerdirpath": directory, "markername": name})
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_TIMEOUT_S)
                began_s = time.monotonic()
                connection.request("POST", f"/v1/hoodie/marker/create?{query}")
                answer = connection.getresponse()
                body = json.loads(answer.read())
                if answer.status == 200:
                    assert body is True, (directory, name, body)
                    self.acked[directory].add(name)
                    self.slowest_s[directory] = max(self.slowest_s[directory], time.monotonic() - began_s)
                self.statuses[directory, str(answer.status)] += 1
            except (OSError, http.client.HTTPException, ValueError):
                self.statuses[directory, "no answer"] += 1
                assert connection is not None
                connection.close()
                connection = None
                time.sleep(0.005)

    def go_on(self) -> float:
        """Wait until every directory has answered something new; the seconds that took."""
        began_s = time.monotonic()
        before = {directory: len(names) for directory, names in self.acked.items()}
        while any(len(names) <= before[directory] + 1 for directory, names in self.acked.items()):
            if time.monotonic() - began_s > AGAIN_TIMEOUT_S:
                raise SystemExit(f"a directory does not answer any more: {self.statuses}")
            time.sleep(0.005)
        return time.monotonic() - began_s

    def stop(self) -> None:
        """End all clients."""
        self._over.set()
        for thread in self._threads:
            thread.join()


class Server:
    """A server and the processes that it was seen to have, workers in the order of their numbers."""

    def __init__(self, base: Path, workers: int, port: int) -> None:
        words = [sys.executable, "-m", "marker_sim", "serve", "--base", str(base), "--batch-interval-ms", "10"]
        words += ["--workers", str(workers), "--port", str(port)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        self.port = int(line.rpartition(":")[2])
        self.workers = sorted(child.pid for child in psutil.Process(self.process.pid).children())

    def kill_worker(self, number: int) -> None:
        """SIGKILL; returns when another one has its place."""
        psutil.Process(self.workers[number]).kill()
        until_s = time.monotonic() + AGAIN_TIMEOUT_S
        while time.monotonic() < until_s:
            now = {child.pid for child in psutil.Process(self.process.pid).children()}
            if self.workers[number] not in now and (new := now - set(self.workers)):
                (self.workers[number],) = new
                return
            time.sleep(0.002)
        raise SystemExit("no new worker")

    def kill_parent(self) -> float:
        """SIGKILL; the seconds until no process is left."""
        workers = [psutil.Process(pid) for pid in self.workers]
        self.process.kill()
        self.process.wait()
        began_s = time.monotonic()
        while any(_runs(worker) for worker in workers):
            if time.monotonic() - began_s > AGAIN_TIMEOUT_S:
                raise SystemExit(f"left running: {workers}")
            time.sleep(0.001)
        return time.monotonic() - began_s


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def lost(load: Load) -> int:
    """How many answered names are not stored."""
    missing = 0
    for directory, names in load.acked.items():
        known = frozenset(names)
        files = {str(path): path.read_bytes() for path in Path(directory).iterdir() if path.is_file()}
        missing += len(known - stored_names(directory, files))
    return missing


def directories_of(base: Path, instant: int, workers: int) -> dict[str, int]:
    """Marker directories of one instant by their owner, the same number for each."""
    found: dict[str, int] = {}
    for table in itertools.count():
        directory = f"{base}/t{table}/.hoodie/.temp/{instant:03}"
        owner = owner_of(locate(directory, (parse_base(str(base)),)), workers)
        if list(found.values()).count(owner) < DIRECTORIES_EACH:
            found[directory] = owner
        if len(found) == workers * DIRECTORIES_EACH:
            return found
    raise AssertionError


def main() -> None:
    """Print kills, answers and losses; exit 1 for a loss, or a 503 where nobody was killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker-kills", type=int, default=150)
    parser.add_argument("--parent-kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    kinds = ["worker"] * given.worker_kills + ["parent"] * given.parent_kills
    rng.shuffle(kinds)
    losses = answers = innocent = 0
    statuses: Counter[str] = Counter()
    again_s: dict[str, list[float]] = {"worker": [], "parent": []}
    others_s, end_s = 0.0, 0.0
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="worker-kills-") as temporary:
        base = Path(temporary) / "lake"
        base.mkdir()
        server = Server(base, given.workers, 0)
        for turn in range(0, len(kinds), KILLS_PER_INSTANT):
            load = Load(server.port, directories_of(base, turn, given.workers))
            load.go_on()
            for kind in kinds[turn : turn + KILLS_PER_INSTANT]:
                time.sleep(rng.uniform(0.0, 0.1))
                before = Counter(load.statuses)
                if kind == "worker":
                    number = rng.randrange(given.workers)
                    server.kill_worker(number)
                else:
                    end_s = max(end_s, server.kill_parent())
                    losses += lost(load)
                    server = Server(base, given.workers, server.port)
                again_s[kind].append(load.go_on())
                losses += lost(load)
                if kind == "worker":
                    new = load.statuses - before
                    owners = load._directories
                    innocent += sum(n for (d, status), n in new.items() if status == "503" and owners[d] != number)
            load.stop()
            losses += lost(load)
            answers += sum(len(names) for names in load.acked.values())
            others_s = max(others_s, *load.slowest_s.values())
            for (_, status), number in load.statuses.items():
                statuses[status] += number
        server.kill_parent()
    for kind, seconds in again_s.items():
        if seconds:
            seconds.sort()
            print(
                f"{len(seconds)} kills of a {kind}; every directory answers again after"
                f" {1000 * seconds[len(seconds) // 2]:.0f} ms (median), {1000 * seconds[-1]:.0f} ms at most"
            )
    print(f"{answers:,} creates answered, {losses} of them lost; {innocent} times 503 for directories of other workers")
    print(f"statuses {dict(statuses)}; slowest answer {others_s:.2f} s; after the parent all ended in {end_s:.3f} s")
    sys.exit(1 if losses or innocent else 0)


if __name__ == "__main__":
    main()
