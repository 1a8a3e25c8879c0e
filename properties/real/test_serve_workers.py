"""`marker-sim serve --workers N`: owners of directories, killed workers and parents, the end, and wrong starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import msgspec
import psutil
import pytest

from marker_sim.names import stored_names
from marker_sim.serve.bases import locate, parse_base
from marker_sim.serve.forwarding import Frames, frame, owner_of
from properties.real.served import Served, read_answer, ready, request_bytes, serving, start

EXIT_TIMEOUT_S = 30.0
TWO = ("--workers", "2", "--batch-interval-ms", "5")
NAME = "a.parquet.marker.CREATE"


def directory_of(base: Path, owner: int, workers: int = 2) -> str:
    """A marker directory that a worker owns."""
    bases = (parse_base(str(base)),)
    places = (f"{base}/t/.hoodie/.temp/{number}" for number in count())
    return next(place for place in places if owner_of(locate(place, bases), workers) == owner)


def workers_of(served: Served) -> list[psutil.Process]:
    """In the order of their numbers, as long as none was killed."""
    return sorted(psutil.Process(served.process.pid).children(), key=lambda child: child.pid)


def runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ended(processes: list[psutil.Process]) -> bool:
    """Whether all of them end before the deadline."""
    until_s = time.monotonic() + EXIT_TIMEOUT_S
    while any(map(runs, processes)) and time.monotonic() < until_s:
        time.sleep(0.005)
    return not any(map(runs, processes))


def stored(directory: str) -> frozenset[str]:
    return stored_names(directory, {str(path): path.read_bytes() for path in Path(directory).iterdir()})


def asked_until_answered(served: Served, directory: str, name: str, **more: str) -> object:
    """The body of the first 200; only a 503 or a connection that ends may come before it."""
    until_s = time.monotonic() + EXIT_TIMEOUT_S
    while time.monotonic() < until_s:
        try:
            answer = served.ask("POST", "/create", markerdirpath=directory, markername=name, **more)
        except (OSError, AssertionError):
            continue
        if answer.status == 200:
            return answer.body
        assert answer.status == 503 and answer.headers["retry-after"] == "1", answer
    raise AssertionError("no answer")


def test_each_connection_reaches_every_owner_and_gets_its_refusals(tmp_path: Path) -> None:
    with serving("--base", str(tmp_path), *TWO) as served:
        for owner in (0, 1):
            directory = directory_of(tmp_path, owner)
            for number in range(12):  # Twelve connections: both workers have some, but for one case in 2,048.
                assert served.create(directory, f"{number}.parquet.marker.CREATE") is True
                assert served.create(directory, f"{number}.parquet.marker.CREATE") is False
                refused = served.ask("POST", "/create", markerdirpath=directory, markername="../x.marker.CREATE")
                assert refused.status == 400 and "'..' segments" in refused.body
            assert len(served.names(directory)) == 12 == len(stored(directory))
            assert served.ask("POST", "/dir/delete", markerdirpath=directory).body is True
            assert served.ask("GET", "/dir/exists", markerdirpath=directory).body is False


def test_storage_that_fails_at_the_owner_is_said_to_every_client(tmp_path: Path) -> None:
    with serving("--base", str(tmp_path), *TWO) as served:
        for owner in (0, 1):
            directory = directory_of(tmp_path, owner)
            Path(directory).parent.mkdir(parents=True, exist_ok=True)
            Path(directory).write_text("no directory")
            for _ in range(8):
                answer = served.ask("POST", "/create", markerdirpath=directory, markername=NAME)
                assert answer.status in (400, 500) and isinstance(answer.body, str)


def test_all_spellings_of_a_directory_have_one_owner(tmp_path: Path) -> None:
    (tmp_path / "lake/t").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    directory = f"{tmp_path}/lake/t/.hoodie/.temp/1"
    spellings = [directory, f"file:{directory}", f"file://{directory}", f"{tmp_path}/link/t/.hoodie/.temp/1/"]
    base = (parse_base(str(tmp_path / "lake")),)
    assert len({owner_of(locate(spelling, base), 64) for spelling in spellings}) == 1
    bucket = (parse_base("s3a://b"),)
    assert len({owner_of(locate(f"{s}://b/k/.hoodie/.temp/1", bucket), 64) for s in ("s3", "s3a", "s3n")}) == 1
    with serving("--base", str(tmp_path / "lake"), *TWO) as served, ThreadPoolExecutor(16) as pool:
        names = [f"{number}.parquet.marker.CREATE" for number in range(50)]
        asked = [[pool.submit(served.create, spelling, name) for spelling in spellings] for name in names]
        assert all(sorted(future.result() for future in each) == [False, False, False, True] for each in asked)
        assert stored(directory) == set(names)


def test_a_killed_worker_comes_back_and_loses_nothing(tmp_path: Path) -> None:
    directories = [directory_of(tmp_path, owner) for owner in (0, 1)]
    acked: dict[str, set[str]] = {directory: set() for directory in directories}
    refused: set[str] = set()
    with serving("--base", str(tmp_path), *TWO) as served:
        over = threading.Event()

        def load(client: int) -> None:
            for number in count():
                directory, name = directories[number % 2], f"{client}-{number}.parquet.marker.CREATE"
                if over.is_set():
                    return
                try:
                    answer = served.ask("POST", "/create", markerdirpath=directory, markername=name)
                except (OSError, AssertionError):
                    continue
                if answer.status == 200 and answer.body is True:
                    acked[directory].add(name)
                else:
                    assert answer.status == 503 and "ended" in answer.body, answer
                    refused.add(directory)

        with ThreadPoolExecutor(8) as pool:
            clients = [pool.submit(load, client) for client in range(8)]
            try:
                killed, other = workers_of(served)
                for life in range(3):
                    killed.kill()
                    assert ended([killed])
                    for directory in directories:
                        name = f"after-{life}.parquet.marker.CREATE"
                        assert asked_until_answered(served, directory, name) in (True, False)
                        assert acked[directory].copy() <= stored(directory)
                    (killed,) = [child for child in workers_of(served) if child != other and runs(child)]
            finally:
                over.set()
            for client in clients:
                client.result()
        assert refused <= {directories[0]}, "only the directory of the killed worker may be refused"
        for directory in directories:
            assert len(acked[directory]) > 10 and acked[directory] <= stored(directory)
            assert served.create(directory, min(acked[directory])) is False
        assert len(workers_of(served)) == 2


def test_a_create_that_its_owner_took_along_is_refused_and_can_be_asked_again(tmp_path: Path) -> None:
    directory = directory_of(tmp_path, 0)
    with serving("--base", str(tmp_path), "--workers", "2", "--batch-interval-ms", "3000") as served:
        asked_until_answered(served, directory, "first.parquet.marker.CREATE")
        owner = workers_of(served)[0]
        connections = [served.connect() for _ in range(12)]
        for number, connection in enumerate(connections):
            query = {"markerdirpath": directory, "markername": f"{number}.marker.CREATE", "requestid": f"id-{number}"}
            connection.sendall(request_bytes("POST", "/create", **query))
        time.sleep(0.5)  # They are queued; the next batch is seconds away.
        owner.kill()
        sentences = set()
        for connection in connections:
            try:
                answer = read_answer(connection)
            except (OSError, AssertionError):
                continue  # It was a connection of the killed worker.
            assert answer.status == 503 and answer.headers["retry-after"] == "1"
            sentences.add(answer.body)
        assert len(sentences) == 1, "no connection of twelve was the other worker's"
        for number, connection in enumerate(connections):
            connection.close()
            again = {"requestid": f"id-{number}"}
            assert asked_until_answered(served, directory, f"{number}.marker.CREATE", **again) is True
        assert len(stored(directory)) == 13


def test_nothing_is_left_of_a_server_whose_parent_was_killed(tmp_path: Path) -> None:
    directory = directory_of(tmp_path, 1)
    with serving("--base", str(tmp_path), *TWO) as served:
        assert served.create(directory, NAME) is True
        workers = workers_of(served)
        served.process.kill()
        served.process.wait()
        assert ended(workers)
        with serving("--base", str(tmp_path), *TWO, "--port", str(served.port)) as again:
            assert again.port == served.port and again.create(directory, NAME) is False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("group", [False, True])
def test_a_signal_ends_all_after_what_is_queued_was_answered(
    tmp_path: Path, number: signal.Signals, group: bool
) -> None:
    directories = [directory_of(tmp_path, owner) for owner in (0, 1)]
    words = ["--base", str(tmp_path), "--workers", "2", "--batch-interval-ms", "1500", "--port", "0"]
    command = [sys.executable, "-m", "marker_sim", "serve", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        served = ready(process)
        for directory in directories:
            served.create(directory, NAME)
        workers = workers_of(served)
        connections = [(directory, served.connect()) for directory in directories * 6]
        for place, (directory, connection) in enumerate(connections):
            query = {"markerdirpath": directory, "markername": f"{place}.marker.CREATE"}
            connection.sendall(request_bytes("POST", "/create", **query))
        time.sleep(0.3)
        (os.killpg if group else os.kill)(process.pid, number)
        for _, connection in connections:
            assert read_answer(connection).body is True
            connection.close()
        assert process.wait(EXIT_TIMEOUT_S) == 0
        assert process.communicate() == ("", "")
        assert ended(workers)
    finally:
        process.kill()
        process.communicate()
    assert sum(len(stored(directory)) for directory in directories) == 2 + len(connections)


def _program(body: str, base: Path) -> subprocess.Popen[str]:
    settings = f"Settings(bases=({str(base)!r},), workers=2)"
    text = f"import os, sys\nimport marker_sim.serve.server as server\nfrom marker_sim.serve.server import *\n{body}"
    text += f"\nsys.exit(run({settings}))"
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("server.MarkerApp = lambda *_: os.kill(os.getpid(), 9)", "was killed 3 times before it listened; the server"),
        ("server.MarkerApp = lambda *_: sys.exit('planted')", "ended with exit code 4; the server ends"),
    ],
)
def test_workers_that_cannot_start_end_the_server(tmp_path: Path, body: str, said: str) -> None:
    process = _program(body, tmp_path)
    out, err = process.communicate(timeout=EXIT_TIMEOUT_S)
    assert (process.returncode, out) == (4, "") and said in err
    assert err.splitlines()[-1].startswith("marker-sim serve: worker ")


def test_an_actor_that_dies_in_a_worker_ends_the_whole_server(tmp_path: Path) -> None:
    body = "import marker_sim.markers.batches as batches\ndef broken(self, *_): raise LookupError('planted')\n"
    process = _program(body + "batches.DirectoryState.next_job = broken", tmp_path)
    try:
        served = ready(process)
        workers = workers_of(served)
        for owner in (0, 1):
            try:
                served.create(directory_of(tmp_path, owner), NAME)
            except (AssertionError, OSError):
                break
        assert process.wait(EXIT_TIMEOUT_S) == 4 and ended(workers)
        assert "LookupError: planted" in process.communicate()[1]
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_another_server_shares_among_its_workers_is_taken(tmp_path: Path) -> None:
    with serving("--base", str(tmp_path), *TWO) as served:
        process = start("--base", str(tmp_path), *TWO, "--port", str(served.port))
        out, err = process.communicate(timeout=EXIT_TIMEOUT_S)
    assert process.returncode == 4 and not out and err.startswith("marker-sim: cannot listen on 127.0.0.1:")


def test_messages_are_whole_however_they_are_cut() -> None:
    messages = [["x" * size, size] for size in (0, 1, 300, 5_000)]
    sent = b"".join(map(frame, messages))
    for step in (1, 3, 4, 5, 1_000, len(sent)):
        frames = Frames()
        found = [m for at in range(0, len(sent), step) for m in frames.fed(sent[at : at + step])]
        assert [msgspec.msgpack.decode(message) for message in found] == messages
