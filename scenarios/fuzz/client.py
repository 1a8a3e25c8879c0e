"""A client that sends bytes as they are and reads what comes back; nothing on the way repairs anything.

It reads while it sends, so that a server that refuses early is heard. A reply is parsed strictly: what is no HTTP is
`Garbled`, which is the server's fault.
"""

from __future__ import annotations

import gzip
import select
import socket
import struct
import time
import zlib
from typing import NamedTuple

from scenarios.fuzz.http_inputs import Ending, Input

QUIET_S = 0.02
DRIP_S = 0.001
CHUNK_BYTES = 65536
_RESET = struct.pack("ii", 1, 0)


class Garbled(Exception):
    """The server sent what is no HTTP response."""


class Answer(NamedTuple):
    """One response. body: decoded. closes: whether the server says that it is the last one."""

    status: int
    headers: dict[str, str]
    body: bytes
    closes: bool


class Heard(NamedTuple):
    """What came of a connection. end: answered, closed, reset, silent (the bound passed), left (the client went)."""

    answers: tuple[Answer, ...]
    end: str
    seconds: float


class Line:
    """One connection to a server of this host."""

    def __init__(self, port: int, bound_s: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=bound_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._until = time.monotonic() + bound_s
        self._data = b""
        self._open = True
        self._lost = False

    def send(self, pieces: tuple[bytes, ...]) -> None:
        """Send all of it, and keep what the server says meanwhile; stops when the server stops listening."""
        for number, piece in enumerate(pieces):
            if number:
                self._read(DRIP_S)
            rest = memoryview(piece)
            while rest and not self._lost and time.monotonic() < self._until:
                readable, writable, _ = select.select([self._socket] if self._open else [], [self._socket], [], 1.0)
                if readable:
                    self._take()
                if writable:
                    try:
                        rest = rest[self._socket.send(rest[:CHUNK_BYTES]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        self._lost = True

    def answers(self, methods: tuple[bytes, ...], quiet_s: float | None = None) -> Heard:
        """Read until every method has its answer, the server closed, or the bound (or `quiet_s` of silence) passed."""
        began = time.monotonic()
        until = self._until if quiet_s is None else began + quiet_s
        while True:
            found, _ = parse(self._data, methods, ended=not self._open)
            if len(found) >= len(methods) > 0 or (found and found[-1].closes):
                return Heard(found, "answered", time.monotonic() - began)
            if not self._open:
                return Heard(found, "reset" if self._lost else "closed", time.monotonic() - began)
            if time.monotonic() >= until:
                return Heard(found, "silent", time.monotonic() - began)
            self._read(max(0.0, min(0.5, until - time.monotonic())))

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._lost = True

    def closed_by_server(self) -> bool:
        """Read on until the server closes; False when it did not within the bound."""
        while self._open and time.monotonic() < self._until:
            self._read(0.5)
        return not self._open

    def close(self, reset: bool = False) -> None:
        """Go away, by a reset or in good manners."""
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._socket.close()

    def _read(self, wait_s: float) -> None:
        if self._open and select.select([self._socket], [], [], wait_s)[0]:
            self._take()

    def _take(self) -> None:
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._lost, self._open = True, False
            return
        self._data += data
        self._open = bool(data)


def converse(port: int, given: Input, bound_s: float) -> tuple[Heard, Line | None]:
    """Do what an input says. The line is handed back where the client holds it open."""
    line = Line(port, bound_s)
    held = False
    try:
        line.send(given.pieces)
        methods = tuple(method for method, _ in given.requests)
        match given.ending:
            case Ending.WAIT:
                return line.answers(methods), None
            case Ending.HALF_CLOSE:
                line.answers((b"GET",), QUIET_S)
                line.half_close()
                closed = line.closed_by_server()
                heard = line.answers((*methods, *(b"GET",) * 50), 0.0)
                return heard if closed else heard._replace(end="silent"), None
            case Ending.HOLD:
                held = True
                return Heard((), "left", 0.0), line
            case Ending.RESET | Ending.VANISH:
                return Heard((), "left", 0.0), None
    finally:
        if not held:
            line.close(reset=given.ending is Ending.RESET)


def parse(data: bytes, methods: tuple[bytes, ...], ended: bool) -> tuple[tuple[Answer, ...], bytes]:
    """The whole responses in what was read, and what is left of it. ended: nothing more will come."""
    found: list[Answer] = []
    while data and len(found) < max(1, len(methods)):
        head, blank, rest = data.partition(b"\r\n\r\n")
        if not data.startswith(b"HTTP/1."[: len(data)]) or (not blank and len(data) > CHUNK_BYTES):
            raise Garbled(f"no HTTP response: {data[:80]!r}")
        if not blank:
            break
        status, headers = _head(head)
        if 100 <= status < 200:
            data = rest
            continue
        bare = status in (204, 304) or (methods[len(found)] == b"HEAD" if len(found) < len(methods) else False)
        body, rest_after = (b"", rest) if bare else _body(headers, rest, ended)
        if body is None:
            break
        data = rest_after
        closes = headers.get("connection", "").lower() == "close"
        found.append(Answer(status, headers, _decoded(headers, body), closes))
    return tuple(found), data


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[1].isdigit() or len(words[1]) != 3:
        raise Garbled(f"no status line: {first!r}")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or any(sign in line for sign in "\r\n\0"):
            raise Garbled(f"no header line: {line!r}")
        headers[name.strip().lower()] = value.strip()
    return int(words[1]), headers


def _body(headers: dict[str, str], rest: bytes, ended: bool) -> tuple[bytes | None, bytes]:
    """The body as it was sent and what follows it; None while it is not whole."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while True:
            size, line, after = rest.partition(b"\r\n")
            if not line:
                return None, rest
            count = int(size.partition(b";")[0], 16)
            if len(after) < count + 2:
                return None, rest
            body, rest = body + after[:count], after[count + 2 :]
            if count == 0:
                return body, rest
    if "content-length" in headers:
        size_bytes = int(headers["content-length"])
        return (rest[:size_bytes], rest[size_bytes:]) if len(rest) >= size_bytes else (None, rest)
    return (rest, b"") if ended else (None, rest)


def _decoded(headers: dict[str, str], body: bytes) -> bytes:
    if headers.get("content-encoding", "").lower() != "gzip" or not body:
        return body
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error) as error:
        raise Garbled(f"no gzip: {error}") from error
