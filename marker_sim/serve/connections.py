"""What a connection may not do: send endless headers, be slow for ever, or not take its answer.

    headers over HEAD_SIZE_MAX_BYTES (with the target)     431, closed
    a request not whole REQUEST_TIMEOUT_S after it began   408, closed; so is a connection without any request
    an answer not taken for ANSWER_TIMEOUT_S               closed
    malformed HTTP                                         400, closed (uvicorn)

Nobody waits for such a client: each connection is a state machine on the loop. One sweep a second looks at all of
them, which costs less than a timer for each request.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import Server

HEAD_SIZE_MAX_BYTES = 65_536
REQUEST_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0


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

    # When the request under way began, None while none does; when the client stopped taking its answer.
    _begun_s: float | None = None
    _paused_s: float | None = None
    _in_head = True
    _head_size = 0

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
            self._refuse(431, "the target and the headers are too long")

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
            self.transport.abort()
        elif self._begun_s is not None and now_s - self._begun_s > REQUEST_TIMEOUT_S:
            if self.cycle is not None and not self.cycle.response_complete:
                # An answer is on its way: there is no place for another in this connection.
                self.transport.abort()
            else:
                self._refuse(408, "the request did not become whole in time")

    def _refuse(self, status: int, sentence: str) -> None:
        body = f'"{sentence}"'.encode()
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
