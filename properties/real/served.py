"""A `marker-sim serve` process for tests, and requests to it that repair nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

BASE_PATH = "/v1/hoodie/marker"
ANSWER_TIMEOUT_S = 30.0
PROGRAM = ("marker_sim",)


class Answer(NamedTuple):
    """An answer as it came. body: decoded JSON; the bytes where it is none."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    port: int

    def connect(self) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_TIMEOUT_S)

    def raw(self, request: bytes) -> Answer:
        """Send bytes over a connection of their own and read one answer."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_answer(connection)

    def ask(self, method: str, path: str, headers: str = "", **parameters: str) -> Answer:
        """One request."""
        return self.raw(request_bytes(method, path, headers, **parameters))

    def create(self, directory: str, name: str, **more: str) -> Any:
        """The body of a create's 200."""
        answer = self.ask("POST", "/create", markerdirpath=directory, markername=name, **more)
        assert answer.status == 200, answer
        return answer.body

    def names(self, directory: str) -> list[str]:
        """All markers of a directory."""
        answer = self.ask("GET", "/all", markerdirpath=directory)
        assert answer.status == 200, answer
        listed: list[str] = answer.body
        return listed


def request_bytes(method: str, path: str, headers: str = "", **parameters: str) -> bytes:
    """A request that asks for the connection to be closed; `headers` are whole lines."""
    query = f"?{urlencode(parameters, quote_via=quote, safe='')}" if parameters else ""
    return f"{method} {BASE_PATH}{path}{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n".encode()


def read_answer(connection: socket.socket) -> Answer:
    """Read one answer to the end of its body."""
    with connection.makefile("rb") as stream:
        status_line = stream.readline()
        assert status_line.startswith(b"HTTP/1.1 "), status_line
        headers: dict[str, str] = {}
        while (line := stream.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        body = stream.read(int(headers["content-length"]))
    assert len(body) == int(headers["content-length"])
    try:
        return Answer(int(status_line.split()[1]), headers, json.loads(body))
    except ValueError:
        return Answer(int(status_line.split()[1]), headers, body)


@contextmanager
def serving(*arguments: str, program: Sequence[str] = PROGRAM, **environment: str) -> Iterator[Served]:
    """A server for a block; whatever became of it, it is gone afterwards."""
    process = start(*arguments, program=program, **environment)
    try:
        yield ready(process)
    finally:
        process.kill()
        process.communicate()


def start(*arguments: str, program: Sequence[str] = PROGRAM, **environment: str) -> subprocess.Popen[str]:
    """Start a server. program: the module that does what `marker-sim` does, and words before the command."""
    return subprocess.Popen(
        [sys.executable, "-m", *program, "serve", *(() if "--port" in arguments else ("--port", "0")), *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ready(process: subprocess.Popen[str]) -> Served:
    """Wait for the line that says where it listens."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("listening on http://127.0.0.1:"):
        process.kill()
        raise AssertionError(f"not ready: {line!r} {process.communicate()}")
    return Served(process=process, port=int(line.rpartition(":")[2]))
