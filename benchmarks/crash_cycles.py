"""How many writers a second can be forked, killed at an exact storage effect, reaped and looked at.

One cycle: a process is forked from a template, performs an attempt of the reference (its marker, then its Parquet file)
on a local directory, and is killed by SIGKILL before or after a drawn effect, or in mid-write; then whatever it left is
looked at: a data file without its marker would be a lost marker. One writer in ten is let live, as a control.

The template is small, for the price of a fork is the memory that it maps: Parquet is encoded by the process above it,
and a writer is handed the content.

    python benchmarks/crash_cycles.py --seconds 10 --workers 2 --seed 7
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

from marker_sim.markers.direct import direct_markers
from marker_sim.markers.store import Context
from marker_sim.names import MarkerDirectory, MarkerType, marker_name
from marker_sim.options import MarkerOptions
from marker_sim.seams import Condition
from marker_sim.search.seeds import plan_seed
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.timeline import WriteToken
from marker_sim.worlds.processes.seams import ThreadRuntime
from marker_sim.writer.attempt import Assignment, path_of, write_file
from marker_sim.writer.slices import RowFormat, decode_rows

INSTANT = "20260101000000000"
TABLE = "t"
EFFECTS = 4  # The marker; the data file emptied, half written, whole.
SWEEP_EVERY = 200
CONTROL_SHARE = 0.1


class Fatal(LocalStorage):
    """A local storage that kills its process before or after its n-th effect."""

    def __init__(self, root: Path, nth: int, after: bool) -> None:
        super().__init__(root)
        self._nth = nth
        self._after = after
        self._seen = 0

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """As a local storage, unless it is the end."""
        self._die(False)
        version = super().put(path, data, condition, expected)
        self._die(True)
        return version

    def overwrite(self, path: str, data: bytes) -> None:
        """In three pieces."""
        for part in (b"", data[: len(data) // 2], data):
            self._die(False)
            super().overwrite(path, part)
            self._die(True)

    def _die(self, after: bool) -> None:
        self._seen += not after
        if self._seen == self._nth and after == self._after:
            os.kill(os.getpid(), signal.SIGKILL)


class _NoSteps:
    def step(self) -> None:
        """Counts nothing."""


def _write(root: Path, work: Assignment, data: bytes, nth: int, after: bool) -> None:
    storage = Fatal(root, nth, after)
    runtime = ThreadRuntime(_NoSteps(), HostLocks(root), print)  # type: ignore[arg-type]
    directory = MarkerDirectory(TABLE, INSTANT).path
    context = Context(
        storage=storage, runtime=runtime, wire=None, directory=directory, options=MarkerOptions()  # type: ignore[arg-type]
    )  # fmt: skip
    encoded = RowFormat(lambda rows, made_by: data, decode_rows)
    write_file(work, context, direct_markers(context).create, 0.0, encoded)


def _work(cycle: int) -> Assignment:
    token = WriteToken(cycle, 0, 0)
    path = path_of(INSTANT, f"dt={cycle % 7}", "f-0", "CREATE", token, None)
    rows = tuple((f"{cycle}/{row}", "1") for row in range(10))
    return Assignment(TABLE, INSTANT, f"dt={cycle % 7}", "f-0", "CREATE", token, path, rows)


def _look(root: Path, work: Assignment, data: bytes) -> str:
    """What a dead writer left: nothing, marker, torn, whole; "LOST" for a data file without its marker."""
    name = marker_name(work.partition, work.path.rpartition("/")[2], MarkerType.CREATE)
    marked = (root / MarkerDirectory(TABLE, INSTANT).path / name).exists()
    try:
        left = (root / TABLE / work.path).read_bytes()
    except FileNotFoundError:
        return "marker" if marked else "nothing"
    if not marked or not data.startswith(left):
        return "LOST"
    return "whole" if left == data else "torn"


def _template(asked: Connection, root: Path) -> None:
    """Fork one writer after another; the answer is how it ended."""
    gc.collect()
    gc.freeze()
    while True:
        try:
            work, data, nth, after = asked.recv()
        except EOFError:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            try:
                _write(root, work, data, nth, after)
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        asked.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _cycles(seed: int, seconds: float, root: str) -> Counter[str]:
    """Fork, kill and look until the time is over."""
    rng, found, place = random.Random(seed), Counter[str](), Path(root)
    ask, asked = Pipe()
    template = os.fork()
    if template == 0:
        ask.close()
        _template(asked, place)
    asked.close()
    from marker_sim.worlds.processes.parquet import encode

    deadline = time.monotonic() + seconds
    cycle = 0
    while time.monotonic() < deadline:
        cycle += 1
        lives = rng.random() < CONTROL_SHARE
        nth, after = (0 if lives else rng.randint(1, EFFECTS)), rng.random() < 0.5
        work = _work(cycle)
        data = encode(dict(work.rows), str(work.token))
        ask.send((work, data, nth, after))
        code = ask.recv()
        assert code == (0 if lives else -signal.SIGKILL), f"cycle {cycle} ended with {code}"
        found["ended by itself" if lives else "killed"] += 1
        found[f"left {_look(place, work, data)}"] += 1
        if cycle % SWEEP_EVERY == 0:
            shutil.rmtree(place)
            place.mkdir()
    ask.close()
    os.waitpid(template, 0)
    return found


def main() -> None:
    """Print the rate and what was left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    fast = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=fast if fast.is_dir() else None) as scratch:
        places = [Path(scratch) / str(number) for number in range(given.workers)]
        for place in places:
            place.mkdir()
        began = time.monotonic()
        with get_context("spawn").Pool(given.workers) as pool:
            jobs = [(plan_seed(given.seed, number), given.seconds, str(place)) for number, place in enumerate(places)]
            total = sum(pool.starmap(_cycles, jobs), Counter[str]())
        spent = time.monotonic() - began
    forked = total["killed"] + total["ended by itself"]
    for what, count in sorted(total.items()):
        print(f"{what:20} {count:8,}")
    print(
        f"{forked / given.seconds:,.0f} forked writers a second ({given.workers} workers, {spent:.1f} s with start-up)"
    )
    print(f"{total['killed'] / given.seconds:,.0f} of them killed")
    sys.exit(1 if total["left LOST"] else 0)


if __name__ == "__main__":
    main()
