"""Servers for the demonstrations: started, killed, paused and asked over plain HTTP; and a reader of marker files."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

HERE = Path(__file__).resolve().parent
BINARY = HERE / "build" / "server"
GO_FROM = 11  # Defects from this number on are those of the server in Go.


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply: its status, 0 for none in time, and its value."""

    status: int
    value: object

    @property
    def decided(self) -> bool:
        """Whether a create was answered "created" or "exists"."""
        return self.status == 200


def build() -> None:
    """Compiles the server in Go."""
    subprocess.run(["go", "build", "-o", str(BINARY), "."], cwd=HERE / "go_server", check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Server:
    """One server process."""

    process: "subprocess.Popen[bytes]"
    port: int

    def ask(self, method: str, route: str, directory: Path, *, timeout: float = 20.0, **more: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            return ask_over(connection, method, route, directory, **more)
        except (OSError, http.client.HTTPException):
            return Answer(0, None)
        finally:
            connection.close()

    def create(self, directory: Path, name: str, *, timeout: float = 20.0) -> Answer:
        return self.ask("POST", "create", directory, timeout=timeout, markername=name)

    def names(self, directory: Path, route: str = "all") -> list[str]:
        answer = self.ask("GET", route, directory)
        if not isinstance(answer.value, list):
            raise AssertionError(f"no listing: {answer}")
        return answer.value

    def delete(self, directory: Path) -> Answer:
        return self.ask("POST", "dir/delete", directory)

    def create_all(self, asked: list[tuple[Path, str]], *, gap_s: float = 0.0, timeout: float = 20.0) -> list[Answer]:
        """Creates at the same time, each a little after the one before."""
        answers = [Answer(0, None)] * len(asked)

        def one(position: int) -> None:
            answers[position] = self.create(*asked[position], timeout=timeout)

        together([partial(one, position) for position in range(len(asked))], gap_s=gap_s)
        return answers

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)


def together(jobs: list[Callable[[], object]], *, gap_s: float = 0.0) -> None:
    """Runs each job in a thread of its own and waits for all."""
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
        time.sleep(gap_s)
    for thread in threads:
        thread.join()


def ask_over(connection: http.client.HTTPConnection, method: str, route: str, directory: Path, **more: str) -> Answer:
    """One request over an open connection."""
    query = urlencode({"markerdirpath": str(directory), **more})
    connection.request(method, f"/v1/hoodie/marker/{route}?{query}")
    reply = connection.getresponse()
    return Answer(reply.status, json.loads(reply.read()))


@dataclass(slots=True)
class Bench:
    """A fresh storage, and the servers of one demonstration."""

    defect: int
    in_go: bool
    storage: Path
    servers: list[Server] = field(default_factory=list)

    def directory(self, instant: str = "001", table: str = "t") -> Path:
        return self.storage / table / ".hoodie" / ".temp" / instant

    def start(self, *, threads: int = 20, interval_ms: int = 50, file_limit: int = 0) -> Server:
        port = free_port()
        command = [str(BINARY)] if self.in_go else [sys.executable, str(HERE / "server.py")]
        command += ["--port", str(port), "--dir", str(self.storage), "--defect", str(self.defect)]
        command += ["--batch-threads", str(threads), "--interval-ms", str(interval_ms)]

        if file_limit:
            # In kibibytes. The signal that comes with the error is ignored, as on a full disk there is none.
            command = ["bash", "-c", f"trap '' XFSZ; ulimit -f {file_limit}; exec \"$@\"", "limited", *command]
        process = subprocess.Popen(command)
        server = Server(process, port)
        self.servers.append(server)
        end = time.monotonic() + 20
        while server.ask("GET", "dir/exists", self.directory("ready")).status != 200:
            if time.monotonic() > end:
                raise AssertionError("the server does not answer")
            time.sleep(0.02)
        return server


@contextmanager
def bench(defect: int, *, in_go: bool) -> Iterator[Bench]:
    """A bench whose servers and files are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="subtle-") as place:
        made = Bench(defect, in_go, Path(place))
        try:
            yield made
        finally:
            for server in made.servers:
                server.kill()


def stored(directory: Path) -> set[str]:
    """The names in the marker files of a directory."""
    names: set[str] = set()
    try:
        files = [entry for entry in os.listdir(directory) if entry.removeprefix("MARKERS").isdecimal()]
    except FileNotFoundError:
        return names
    for file in files:
        path = directory / file
        if path.is_file():
            names.update(path.read_bytes().decode().split("\n")[:-1])
    return names


def lost(directory: Path, asked: list[str], answers: list[Answer]) -> list[str]:
    """Names that were answered "created" or "exists" and are not stored."""
    there = stored(directory)
    return [name for name, answer in zip(asked, answers, strict=True) if answer.decided and name not in there]


def block(directory: Path, index: int = 0) -> None:
    """Makes a marker file impossible to write: its name is taken by a directory."""
    (directory / f"MARKERS{index}").mkdir(parents=True)
