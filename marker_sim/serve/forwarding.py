"""Requests between the workers of a server: each marker directory has one owner, which alone creates and deletes there.

    worker A  parses ─► Asks, once per turn of the loop ─► owner B  as its own requests
    client ◄─ A ◄────── Answers, once per turn of the loop ◄─ B  when they are flushed

The owner follows from a hash of what `bases.locate` gives, so all spellings of a directory have the same. Lists and
existence are read from storage, by any worker. Every worker listens on a Unix socket that the parent opened and keeps
open: while an owner is being restarted, what is asked of it waits in the socket. What a dead owner had been sent gets
503 with Retry-After, for nobody knows whether it had an effect. It is not sent again: the marker may be stored, and its
creator would be told that it exists. Peers of other users are hung up on.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

import msgspec

from marker_sim.seams import Reply, Request
from marker_sim.serve.app import MarkerApp, MarkerRequest, encode
from marker_sim.serve.bases import Located
from marker_sim.serve.creates import Done

OWNED = frozenset({"/create", "/dir/delete"})
LOST = "the process that owns this directory ended; whether the request had an effect is unknown, ask again"
_SIZE = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")


class Asks(msgspec.Struct, array_like=True, frozen=True):
    """Requests of one kind for one directory. items: (number, marker name, request identity)."""

    local: bool
    root: str
    directory: str
    path: str
    items: list[tuple[int, str, str]]


class Answered(msgspec.Struct, array_like=True, frozen=True):
    """Numbers of requests by what came of them. others: (number, status, body as JSON)."""

    true: list[int]
    false: list[int]
    others: list[tuple[int, int, bytes]]


class Frames:
    """Messages of one stream: a size, then that many bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def fed(self, data: bytes) -> Iterator[bytes]:
        """The messages that are whole now."""
        data = self._rest + data
        at = 0
        while len(data) - at >= _SIZE.size:
            end = at + _SIZE.size + _SIZE.unpack_from(data, at)[0]
            if end > len(data):
                break
            yield data[at + _SIZE.size : end]
            at = end
        self._rest = data[at:]


def frame(message: object) -> bytes:
    """The bytes of one message."""
    packed = msgspec.msgpack.encode(message)
    return _SIZE.pack(len(packed)) + packed


class Forwarding:
    """This worker's side of it.

    me: the number of this worker.
    listeners: a Unix socket for each worker.
    """

    def __init__(self, app: MarkerApp, me: int, listeners: Sequence[socket.socket]) -> None:
        self._app = app
        self._me = me
        self._loop = asyncio.get_running_loop()
        self._listener = listeners[me]
        self._owners = [_ToOwner(self._loop, listener.getsockname()) for listener in listeners]
        self._askers: set[_FromAsker] = set()
        self._server: asyncio.Server | None = None
        self._owner_of = lru_cache(4_096)(partial(owner_of, workers=len(listeners)))

    async def begin(self) -> None:
        """Listen to the other workers, and route this one's requests from now on."""
        accept = partial(_FromAsker, self._loop, self._app, self._askers)
        self._server = await self._loop.create_unix_server(accept, sock=self._listener)
        await asyncio.gather(*(owner.connect() for number, owner in enumerate(self._owners) if number != self._me))
        self._app.route = self._route

    async def end(self, timeout_s: float) -> None:
        """Ask nobody any more, and answer the others until none of them asks."""
        for owner in self._owners:
            owner.end()
        until_s = self._loop.time() + timeout_s
        while self._askers and self._loop.time() < until_s:
            await asyncio.sleep(0.01)

    def _route(self, asked: MarkerRequest, done: Done) -> None:
        owner = self._owner_of(asked.located)
        if owner == self._me or asked.request.path not in OWNED:
            self._app.answer(asked, done)
        else:
            self._owners[owner].ask(asked, done)


def owner_of(located: Located, workers: int) -> int:
    """The number of the worker that owns a directory."""
    return zlib.crc32(repr(tuple(located)).encode("utf-8", "surrogatepass")) % workers


class _ToOwner(asyncio.Protocol):
    """The connection to an owner, made again when it broke."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: bytes) -> None:
        self._loop = loop
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._ended = False
        self._due: dict[tuple[Located, str], list[tuple[int, str, str]]] = {}
        self._waiting: dict[int, Done] = {}
        self._sent_to = 0
        self._last = 0
        self._frames = Frames()

    def ask(self, asked: MarkerRequest, done: Done) -> None:
        """Send a request with the others of this turn."""
        if not self._due:
            self._loop.call_soon(self._send)
        self._last += 1
        self._waiting[self._last] = done
        parameters = asked.request.parameters
        item = (self._last, parameters.get("markername", ""), parameters.get("requestid", ""))
        self._due.setdefault((asked.located, asked.request.path), []).append(item)

    def end(self) -> None:
        """Ask nothing any more."""
        self._ended = True
        if self._transport is not None:
            self._transport.close()

    async def connect(self) -> None:
        """Connect to the owner, or to its listener while it is being restarted."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self._address)  # The parent holds the listener, so this waits for nobody.
        connection.setblocking(False)
        await self._loop.create_unix_connection(lambda: self, sock=connection)

    def _send(self) -> None:
        if self._transport is None or not self._due:
            return
        due, self._due = self._due, {}
        self._sent_to = self._last
        self._transport.write(frame([Asks(*located, path, items) for (located, path), items in due.items()]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """What was asked meanwhile can be sent."""
        self._transport = transport  # type: ignore[assignment]
        self._send()

    def data_received(self, data: bytes) -> None:
        """Answers."""
        for message in self._frames.fed(data):
            answered = _DECODE_ANSWERED.decode(message)
            for number in answered.true:
                self._waiting.pop(number)(Reply(200, True))
            for number in answered.false:
                self._waiting.pop(number)(Reply(200, False))
            for number, status, body in answered.others:
                self._waiting.pop(number)(Reply(status, json.loads(body)))

    def connection_lost(self, exc: Exception | None) -> None:
        """The owner ended: what it had been sent is lost, the rest waits for the next."""
        self._transport = None
        self._frames = Frames()
        for number in [number for number in self._waiting if number <= self._sent_to]:
            self._waiting.pop(number)(Reply(503, LOST))
        if not self._ended:
            self._connecting = self._loop.create_task(self.connect())


class _FromAsker(asyncio.Protocol):
    """A worker that asks this one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, app: MarkerApp, askers: set[_FromAsker]) -> None:
        self._loop = loop
        self._app = app
        self._askers = askers
        self._frames = Frames()
        self._true: list[int] = []
        self._false: list[int] = []
        self._others: list[tuple[int, int, bytes]] = []
        self._sending = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Only processes of this user are listened to."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(peer)[1] != os.geteuid():
            self._transport.abort()
        else:
            self._askers.add(self)

    def data_received(self, data: bytes) -> None:
        """Requests."""
        if self not in self._askers:
            return
        for message in self._frames.fed(data):
            for asks in _DECODE_ASKS.decode(message):
                located = Located(asks.local, asks.root, asks.directory)
                for number, name, request in asks.items:
                    parameters = {"markerdirpath": asks.directory}
                    if name:
                        parameters |= {"markername": name, "requestid": request}
                    asked = MarkerRequest(Request(asks.path, parameters), located)
                    self._app.answer(asked, partial(self._answer, number))

    def connection_lost(self, exc: Exception | None) -> None:
        """It ended, and so did its clients' connections."""
        self._askers.discard(self)

    def _answer(self, number: int, reply: Reply) -> None:
        if reply.status == 200 and reply.body is True:
            self._true.append(number)
        elif reply.status == 200 and reply.body is False:
            self._false.append(number)
        else:
            self._others.append((number, reply.status, encode(reply.body)))
        if not self._sending:
            self._sending = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._sending = False
        answered = Answered(self._true, self._false, self._others)
        self._true, self._false, self._others = [], [], []
        if not self._transport.is_closing():
            self._transport.write(frame(answered))


_DECODE_ASKS = msgspec.msgpack.Decoder(list[Asks])
_DECODE_ANSWERED = msgspec.msgpack.Decoder(Answered)
