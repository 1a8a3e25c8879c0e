"""The lives of `marker-sim serve`: overload, signals, kills, a second server, actors that die, storage that hangs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marker_sim.names import stored_names
from properties.real.served import Served, read_answer, ready, request_bytes, serving, start

EXIT_TIMEOUT_S = 30.0
FAST = ("--batch-interval-ms", "5")


def test_a_full_queue_is_said_at_once_and_what_waited_is_answered(tmp_path: Path) -> None:
    directory = str(tmp_path / "t/.hoodie/.temp/1")
    with serving("--base", str(tmp_path), "--waiting-max", "4", "--batch-interval-ms", "2000") as served:
        served.create(directory, "first.parquet.marker.CREATE")
        names = [f"{number}.parquet.marker.CREATE" for number in range(20)]
        with ThreadPoolExecutor(20) as pool:
            asked = [
                pool.submit(served.ask, "POST", "/create", markerdirpath=directory, markername=name) for name in names
            ]
            answers = [future.result() for future in asked]
        fine = {name for name, answer in zip(names, answers, strict=True) if answer.status == 200}
        refused = [answer for answer in answers if answer.status == 503]
        assert len(fine) >= 4 and refused and len(fine) + len(refused) == 20
        assert all(answer.headers["retry-after"] == "1" for answer in refused)
        assert set(served.names(directory)) == fine | {"first.parquet.marker.CREATE"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_after_what_is_queued_was_answered(tmp_path: Path, number: signal.Signals) -> None:
    directory = str(tmp_path / "t/.hoodie/.temp/1")
    with serving("--base", str(tmp_path), "--batch-interval-ms", "1500") as served:
        served.create(directory, "first.parquet.marker.CREATE")
        with served.connect() as connection, served.connect() as idle:
            connection.sendall(
                request_bytes("POST", "/create", markerdirpath=directory, markername="last.parquet.marker.CREATE")
            )
            # A request that came later is answered, so the first was read before the signal.
            assert served.ask("GET", "/dir/exists", markerdirpath=directory).body is True
            served.process.send_signal(number)
            assert read_answer(connection).body is True
            assert idle.recv(1) == b""
        assert served.process.wait(EXIT_TIMEOUT_S) == 0
        assert served.process.communicate() == ("", "")
    files = {str(path): path.read_bytes() for path in Path(directory).iterdir()}
    assert stored_names(directory, files) == {"first.parquet.marker.CREATE", "last.parquet.marker.CREATE"}


def test_after_a_kill_every_answered_marker_is_there_and_known(tmp_path: Path) -> None:
    directory = str(tmp_path / "t/.hoodie/.temp/1")
    acked: set[str] = set()
    for life in range(4):
        with serving("--base", str(tmp_path), *FAST) as served:
            assert acked <= set(served.names(directory))
            if acked:
                assert served.create(directory, min(acked)) is False
            enough = threading.Event()

            def load(client: int, served: Served = served, life: int = life, enough: threading.Event = enough) -> None:
                for number in range(10_000):
                    name = f"{life}/{client}-{number}.parquet.marker.CREATE"
                    try:
                        if served.create(directory, name) is True:
                            acked.add(name)
                    except (OSError, AssertionError):
                        return
                    if number == 5 + life:
                        enough.set()

            with ThreadPoolExecutor(8) as pool:
                clients = [pool.submit(load, client) for client in range(8)]
                assert enough.wait(EXIT_TIMEOUT_S)
                served.process.kill()
                for client in clients:
                    client.result()
    files = {str(path): path.read_bytes() for path in Path(directory).iterdir()}
    assert len(acked) >= 4 * 6 and acked <= stored_names(directory, files)


def test_two_servers_on_one_directory_create_each_name_once(tmp_path: Path) -> None:
    directory = str(tmp_path / "t/.hoodie/.temp/1")
    names = [f"{number}.parquet.marker.CREATE" for number in range(200)]
    with serving("--base", str(tmp_path), *FAST) as one, serving("--base", f"file:{tmp_path}/t", *FAST) as two:
        with ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(server.create, directory, name) for name in names for server in (one, two)]
            assert all(future.result() in (True, False) for future in asked)
        assert one.names(directory) == two.names(directory) == sorted(names)


def _program(text: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_actor_that_dies_ends_the_process_loudly(tmp_path: Path) -> None:
    process = _program(f"""
import marker_sim.markers.batches as batches
from marker_sim.serve.server import Settings, run
def broken(self, *_):
    raise LookupError("planted")
batches.DirectoryState.next_job = broken
run(Settings(bases=({str(tmp_path)!r},)))
""")
    try:
        served = ready(process)
        with pytest.raises((AssertionError, OSError)):
            served.create(str(tmp_path / "t/.hoodie/.temp/1"), "a.parquet.marker.CREATE")
        assert process.wait(EXIT_TIMEOUT_S) == 4
        said = process.communicate()[1]
        assert "the actor 'dispatcher' died" in said and "LookupError: planted" in said
    finally:
        process.kill()
        process.communicate()


def test_directories_whose_storage_hangs_hold_up_no_other(tmp_path: Path) -> None:
    process = _program(f"""
import threading
from pathlib import Path
from marker_sim.serve.server import Settings, run
from marker_sim.storages.local import LocalStorage
class Hanging(LocalStorage):
    def list(self, prefix):
        if "/hung/" in prefix:
            threading.Event().wait()
        return super().list(prefix)
run(Settings(bases=({str(tmp_path)!r},)), open_storage=lambda local, root: Hanging(Path(root)))
""")
    try:
        served = ready(process)
        connections = [served.connect() for _ in range(200)]
        for number, connection in enumerate(connections):
            hung = str(tmp_path / f"hung/.hoodie/.temp/{number % 5}")
            connection.sendall(request_bytes("GET", "/all", markerdirpath=hung))
        assert served.create(str(tmp_path / "t/.hoodie/.temp/1"), "a.parquet.marker.CREATE") is True
        assert served.names(str(tmp_path / "t/.hoodie/.temp/1")) == ["a.parquet.marker.CREATE"]
        for connection in connections:
            connection.close()
    finally:
        process.kill()
        process.communicate()


def test_a_forked_child_serves_as_well(tmp_path: Path) -> None:
    process = _program(f"""
import os
import marker_sim.serve.connections
from marker_sim.serve.server import Settings, run
for life in range(2):
    child = os.fork()
    if not child:
        run(Settings(bases=({str(tmp_path)!r},)))
        os._exit(0)
    os.waitpid(child, 0)
""")
    try:
        directory = str(tmp_path / "t/.hoodie/.temp/1")
        for life in range(2):
            served = ready(process)
            child = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert served.create(directory, f"{life}.parquet.marker.CREATE") is True
            os.kill(int(child[0]), (signal.SIGKILL, signal.SIGTERM)[life])
        assert process.wait(EXIT_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()


def test_an_address_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start("--base", str(tmp_path), "--port", str(taken.getsockname()[1]))
        out, err = process.communicate(timeout=EXIT_TIMEOUT_S)
    assert process.returncode == 4 and not out
    assert err.startswith("marker-sim: cannot listen on 127.0.0.1:") and err.count("\n") == 1
