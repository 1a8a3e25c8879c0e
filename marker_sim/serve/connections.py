"""Limits of a connection: endless headers, slow requests, answers that are not read by their client.

    headers over HEAD_SIZE_MAX_BYTES (with the target)     431, closed
    no request for KEEP_ALIVE_S                            closed
    a request incomplete REQUEST_TIMEOUT_S after it began  408, closed; so is a connection without any request
    an answer not read for ANSWER_TIMEOUT_S                closed
    malformed HTTP                                         400, closed (uvicorn)
    a half-close by the client                             closed once every complete request is answered

Each connection is a state machine on the loop, so no other client waits for it. One sweep a second checks all of them,
which costs less than a timer for each request. A plain request (GET or POST without a body, no escapes in its path, no
other request before it in progress) takes a short path: no scope, no task, no ASGI messages, one write. All others are
passed to uvicorn once their head is complete, and reach the application through its ASGI interface. A client repeats
its headers: a create whose headers are, byte for byte, those of an earlier plain request is not parsed again.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server

from marker_sim.seams import Reply
from marker_sim.serve.app import CREATE_PATH, GZIP_SIZE_MIN_BYTES, Headers, MarkerApp, encode

HEAD_SIZE_MAX_BYTES = 65_536
KEEP_ALIVE_S = 75.0
REQUEST_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0

TOO_LONG = "the target and the headers are too long"
_PLAIN_METHODS = (b"GET", b"POST")
_PLAIN_PATH = re.compile(rb"/[A-Za-z0-9._~/-]*")
_CREATE = re.compile(rb"POST /v1/hoodie/marker/create\?([A-Za-z0-9._~%&=+:/-]*) HTTP/1\.1\r\n")
_WHOLE_HEAD = re.compile(rb"POST [!-~]+ HTTP/1\.1\r\n((?:[!-9;-~]+:[\x20-\x7e]*\r\n)+\r\n)")
HEAD_REPEATED_MAX_BYTES = 4_096
_FINE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_TRUE = _FINE % 4 + b"true"


class QuietServer(Server):
    """uvicorn's server without its signal handlers, which would end a stopped process by the signal."""

    once_started: Callable[[], object]

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals to the loop's own handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then report that the server is ready."""
        await super().startup(sockets)
        self.once_started()


class _NoTaskEvent:
    """A stand-in for the event with which uvicorn wakes a request's task, for plain requests, which have no task."""

    def set(self) -> None:
        """Nothing: there is no task to wake."""


@dataclass(slots=True, eq=False)
class Plain:
    """A plain request in progress, with the attributes that uvicorn's protocol expects of its own requests."""

    path: str
    headers: Headers
    keep_alive: bool
    disconnected: bool = False
    response_complete: bool = False
    more_body: bool = True
    message_event: ClassVar[_NoTaskEvent] = _NoTaskEvent()


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    app: MarkerApp
    # When the request in progress began (None without one), when the last answer was sent, and since when the client
    # has not read its answer.
    _begun_s: float | None = None
    _idle_s: float | None = None
    _paused_s: float | None = None
    _in_head = True
    _head_size = 0
    _answering: RequestResponseCycle | Plain | None = None
    _target = b""
    _head: Headers
    _has_body = False
    _eof = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a new connection."""
        super().connection_made(transport)
        self._begun_s = time.monotonic()

    def data_received(self, data: bytes) -> None:
        """Parse received data, unless its head is too long."""
        rested = self._in_head and not self._head_size and (self.cycle is None or self.cycle.response_complete)
        if rested and len(data) <= HEAD_REPEATED_MAX_BYTES:
            found = _CREATE.match(data)
            if found is not None:
                headers = self.app.heads.get(data[found.end() :])
                if headers is not None:
                    self._begun_s = None
                    self._begin("POST", CREATE_PATH, found[1], headers, keep_alive=True).more_body = False
                    return
        self._parse(data)
        if rested and self.app.learns_heads and isinstance(self.cycle, Plain):
            self._learn(data, self.cycle)

    def _learn(self, data: bytes, cycle: Plain) -> None:
        """Cache the headers of a request that arrived alone and in one read."""
        whole = _WHOLE_HEAD.fullmatch(data) if len(data) <= HEAD_REPEATED_MAX_BYTES and cycle.keep_alive else None
        if whole is not None and not cycle.more_body:
            self.app.learn_head(whole[1], cycle.headers)

    def _parse(self, data: bytes) -> None:
        if self._in_head:
            self._head_size += len(data)
            if self._begun_s is None:
                self._begun_s = time.monotonic()
        super().data_received(data)
        if self._in_head and self._head_size > HEAD_SIZE_MAX_BYTES and not self.transport.is_closing():
            self.send_400_response(TOO_LONG)

    def on_message_begin(self) -> None:
        """Note that a request begins; uvicorn's objects for it are created only when needed."""
        self._target = b""
        self._head = []
        self._has_body = False

    def on_url(self, url: bytes) -> None:
        """Add a piece of the request target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add one header."""
        name = name.lower()
        self._head.append((name, value))
        if name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0"):
            self._has_body = True

    def on_headers_complete(self) -> None:
        """The head is complete: answer a plain request here, or pass it to uvicorn."""
        self._in_head = False
        self._head_size = 0
        target = self._target
        method = self.parser.get_method()
        path, _, query = target.partition(b"?")
        plain = (
            not self._has_body
            and method in _PLAIN_METHODS
            and (self.cycle is None or self.cycle.response_complete)
            and _PLAIN_PATH.fullmatch(path) is not None
            and b"#" not in query
            and query.isascii()
            and not self.parser.should_upgrade()
        )
        if not plain:
            super().on_message_begin()
            super().on_url(target)
            for name, value in self._head:
                super().on_header(name, value)
            super().on_headers_complete()
            return
        keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
        self._begin(method.decode("ascii"), path.decode("ascii"), query, self._head, keep_alive=keep_alive)

    def _begin(self, method: str, path: str, query: bytes, headers: Headers, *, keep_alive: bool) -> Plain:
        cycle = Plain(path, headers, keep_alive)
        self.cycle = cycle  # type: ignore[assignment]
        self._answering = cycle
        self.app.begin(method, path, query, partial(self._answer, cycle))
        return cycle

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._in_head = True
        self._begun_s = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer 400 to malformed or too long data, unless an earlier request is still unanswered."""
        answering = self._answering
        waits = answering is not None and not answering.response_complete and not answering.more_body
        if waits or self.pipeline:
            self._drop()
        else:
            self._refuse(*((431, TOO_LONG) if self._head_size > HEAD_SIZE_MAX_BYTES else (400, msg)))

    def eof_received(self) -> bool:  # type: ignore[override]
        """Handle the client's end of stream; True, which keeps the connection, while a complete request is unanswered.

        An incomplete request is not answered.
        """
        self._eof = True
        self._begun_s = None
        last = self.cycle
        if last is not None and last.more_body and self.pipeline and self.pipeline[0][0] is last:
            self.pipeline.popleft()  # The pipeline gets new requests on the left; the one removed here is complete.
        answering = self._answering
        return answering is not None and not answering.response_complete and not answering.more_body

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection; the request being answered is notified, even if others wait behind it."""
        self._forget()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin the next request received already, or wait for one; the sweep closes connections that idle too long."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._eof:
            self.transport.close()
        else:
            self._idle_s = time.monotonic()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _answer(self, cycle: Plain, reply: Reply) -> None:
        """Write a short reply at once; let a task write a long one, or one to a slow client."""
        if cycle.disconnected or self.transport.is_closing():
            return
        if reply.status == 200 and reply.body is True and cycle.keep_alive and not self.flow.write_paused:
            self._write(cycle, _TRUE)
            return
        body = encode(reply.body)
        if reply.status == 200 and len(body) < GZIP_SIZE_MIN_BYTES and cycle.keep_alive and not self.flow.write_paused:
            self._write(cycle, _FINE % len(body) + body)
            return
        task = self.loop.create_task(self._answer_slowly(cycle, reply, body))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _answer_slowly(self, cycle: Plain, reply: Reply, body: bytes) -> None:
        headers, body = await self.app.packed(reply, body, cycle.path, cycle.headers)
        await self.flow.drain()
        if cycle.disconnected or self.transport.is_closing():
            return
        if not cycle.keep_alive:
            headers.append((b"connection", b"close"))
        head = b"".join(b"%s: %s\r\n" % header for header in headers)
        self._write(cycle, STATUS_LINE[reply.status] + head + b"\r\n" + body)

    def _write(self, cycle: Plain, answer: bytes) -> None:
        cycle.response_complete = True
        self.transport.write(answer)
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read its answer."""
        self._paused_s = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client reads its answer again."""
        self._paused_s = None
        super().resume_writing()

    def sweep(self, now_s: float) -> None:
        """Close the connection if its client is too slow."""
        if self.transport is None or self.transport.is_closing():
            return
        if self._paused_s is not None and now_s - self._paused_s > ANSWER_TIMEOUT_S:
            self._drop()
        elif self._begun_s is None and self._idle_s is not None and now_s - self._idle_s > KEEP_ALIVE_S:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()
        elif self._begun_s is not None and now_s - self._begun_s > REQUEST_TIMEOUT_S:
            if self.cycle is not None and not self.cycle.response_complete:
                # An answer is being sent, so no error reply can be sent.
                self._drop()
            else:
                self._refuse(408, "the request did not become whole in time")

    def _drop(self) -> None:
        self._forget()
        self.transport.abort()

    def _forget(self) -> None:
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def _refuse(self, status: int, sentence: str) -> None:
        body = encode(sentence)
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()


async def sweep_connections(connections: set[Any]) -> None:
    """Check every connection once a second, until cancelled."""
    while True:
        await asyncio.sleep(1.0)
        now_s = time.monotonic()
        for connection in tuple(connections):
            connection.sweep(now_s)
