"""What a connection may not do: send endless headers, be slow for ever, or not take its answer.

    headers over HEAD_SIZE_MAX_BYTES (with the target)     431, closed
    nothing asked for KEEP_ALIVE_S                         closed
    a request not whole REQUEST_TIMEOUT_S after it began   408, closed; so is a connection without any request
    an answer not taken for ANSWER_TIMEOUT_S               closed
    malformed HTTP                                         400, closed (uvicorn)

Nobody waits for such a client: each connection is a state machine on the loop. One sweep a second looks at all of
them, which costs less than a timer for each request. A request without a body and with a short reply takes a short way:
no task, no ASGI messages, one write. All others go through the application's ASGI interface.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server

from marker_sim.seams import Reply
from marker_sim.serve.app import GZIP_SIZE_MIN_BYTES, MarkerApp, Scope, Send, encode, has_body, reply_headers

HEAD_SIZE_MAX_BYTES = 65_536
KEEP_ALIVE_S = 75.0
REQUEST_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0

TOO_LONG = "the target and the headers are too long"
_FINE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class QuietServer(Server):
    """uvicorn's server without its signal handlers, for those let a stopped process end by the signal."""

    once_started: Callable[[], object]

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The loop has handlers already."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self.once_started()


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    # When the request under way began, None while none does; when the last answer was given; when the client stopped
    # taking its answer.
    _begun_s: float | None = None
    _idle_s: float | None = None
    _paused_s: float | None = None
    _in_head = True
    _head_size = 0
    _answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came."""
        super().connection_made(transport)
        self._begun_s = time.monotonic()

    def data_received(self, data: bytes) -> None:
        """Parse what came, as long as its head is not too long."""
        if self._in_head:
            self._head_size += len(data)
            if self._begun_s is None:
                self._begun_s = time.monotonic()
        super().data_received(data)
        if self._in_head and self._head_size > HEAD_SIZE_MAX_BYTES and not self.transport.is_closing():
            self.send_400_response(TOO_LONG)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._head_size = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._in_head = True
        self._begun_s = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP, or too much of it. Where an answer is due to a request before, nothing is said."""
        answering = self._answering
        waits = answering is not None and not answering.response_complete and not answering.more_body
        if waits or self.pipeline:
            self._drop()
        else:
            self._refuse(*((431, TOO_LONG) if self._head_size > HEAD_SIZE_MAX_BYTES else (400, msg)))

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone: the request being answered hears of it, also when others wait behind it."""
        self._forget()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer was given: begin the next request that is here already, or rest. The sweep ends a long rest."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._idle_s = time.monotonic()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        if cycle.scope["method"] == "HEAD" or has_body(cycle.scope["headers"]):
            super()._start_asgi_task(cycle, app)
        else:
            assert isinstance(self.app, MarkerApp)
            # uvicorn's scope is a TypedDict, ours any mapping, as the interface says.
            scope = cast(Scope, cycle.scope)
            self.app.begin(scope, partial(self._answer, cycle, self.app))

    def _answer(self, cycle: RequestResponseCycle, app: MarkerApp, reply: Reply) -> None:
        """Write a short reply at once; leave a long one, or one to a slow client, to a task."""
        if cycle.disconnected or self.transport.is_closing():
            return
        body = encode(reply.body)
        if self.flow.write_paused or len(body) >= GZIP_SIZE_MIN_BYTES:
            task = self.loop.create_task(app.respond(cast(Scope, cycle.scope), cast(Send, cycle.send), reply, body))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)
            return
        if reply.status == 200 and cycle.keep_alive:
            head = _FINE % len(body)
        else:
            headers = reply_headers(reply, cycle.scope["path"])
            if not cycle.keep_alive:
                headers.append((b"connection", b"close"))
            headers.append((b"content-length", b"%d" % len(body)))
            head = STATUS_LINE[reply.status] + b"".join(b"%s: %s\r\n" % header for header in headers) + b"\r\n"
        cycle.response_started = cycle.response_complete = True
        self.transport.write(head + body)
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def pause_writing(self) -> None:
        """The client does not take its answer."""
        self._paused_s = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client takes its answer again."""
        self._paused_s = None
        super().resume_writing()

    def sweep(self, now_s: float) -> None:
        """Close the connection when its client is too slow."""
        if self.transport is None or self.transport.is_closing():
            return
        if self._paused_s is not None and now_s - self._paused_s > ANSWER_TIMEOUT_S:
            self._drop()
        elif self._begun_s is None and self._idle_s is not None and now_s - self._idle_s > KEEP_ALIVE_S:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()
        elif self._begun_s is not None and now_s - self._begun_s > REQUEST_TIMEOUT_S:
            if self.cycle is not None and not self.cycle.response_complete:
                # An answer is on its way: there is no place for another in this connection.
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
    """Look at every connection once a second, until cancelled."""
    while True:
        await asyncio.sleep(1.0)
        now_s = time.monotonic()
        for connection in tuple(connections):
            connection.sweep(now_s)
