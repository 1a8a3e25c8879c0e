"""Hudi's HTTP interface as an ASGI application over `markers.protocol.handle`.

    400  a parameter is missing, given twice or malformed; the directory is none
    403  the directory lies outside the base paths
    404  no such path              405  another method            413  a body over BODY_SIZE_MAX_BYTES
    503  the queue is full, or the storage throttles (with Retry-After)
    500  the storage failed: the effect is unknown

Replies are JSON text, also the sentences of refusals; those of GZIP_SIZE_MIN_BYTES and more are compressed for clients
that take gzip (Hudi compresses from 1,500 bytes on as well). A body of a POST is read and ignored, as Hudi does. In a
query percent signs are decoded exactly once, known parameters come at most once, and text is UTF-8.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
import traceback
import zlib
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from marker_sim.markers.batches import Waiter
from marker_sim.markers.protocol import Creates, create_reply, handle
from marker_sim.markers.server import ServedMarkers
from marker_sim.markers.store import Created, MarkerStore
from marker_sim.seams import Reply, Request
from marker_sim.serve.bases import Located, Refusal, locate
from marker_sim.serve.runtime import LoopRuntime

BASE_PATH = "/v1/hoodie/marker"
CREATE_PATH = f"{BASE_PATH}/create"
BODY_SIZE_MAX_BYTES = 65_536
GZIP_SIZE_MIN_BYTES = 1_500
REQUEST_ID_SIZE_MAX = 256
RETRY_AFTER_S = 1
LOCATED_MAX = 1_024
LOCATED_FOR_S = 1.0
SERVED_MAX = 4_096
HEADS_MAX = 64
METHODS = {
    "/create": "POST",
    "/all": "GET",
    "/create-and-merge": "GET",
    "/append": "GET",
    "/dir/exists": "GET",
    "/dir/delete": "POST",
}
_PARAMETERS = frozenset({b"markerdirpath", b"markername", b"requestid"})
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_GZIP = re.compile(rb"(?:^|[\s,])(?:gzip|\*)\s*(?:;\s*q\s*=\s*(?P<q>[0-9.]+))?\s*(?:,|$)")
_JSON = (b"content-type", b"application/json")

Scope = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Done = Callable[[Reply], object]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Stores = Callable[[Located], tuple[MarkerStore, Creates]]


class MarkerRequest(NamedTuple):
    """A valid request."""

    request: Request
    located: Located


class MarkerApp:
    """The ASGI application.

    stores: maps a directory to its store and its create.
    waiting_max: the limit of unanswered requests; more are answered 503.
    """

    def __init__(self, runtime: LoopRuntime, bases: tuple[Located, ...], stores: Stores, waiting_max: int) -> None:
        self._runtime = runtime
        self._bases = bases
        self._stores = stores
        self._waiting_max = waiting_max
        self._waiting = 0
        self._creates = QueuedCreates(runtime.loop)
        self._served: dict[Located, ServedMarkers] = {}
        self._located: dict[bytes, tuple[float, Located]] = {}
        # By the text before and after the name in a create's query: its directory, valid for LOCATED_FOR_S.
        self._queries: dict[tuple[bytes, bytes], tuple[float, Located]] = {}
        # Headers of plain requests, raw and parsed.
        self.heads: dict[bytes, Headers] = {}
        self.learns_heads = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", scope["type"]
        asked = self.parse(scope["method"], scope["path"], scope["query_string"])
        if isinstance(asked, MarkerRequest) and has_body(scope["headers"]):
            size = await _read_body(receive)
            if size is None:
                return  # The body broke off; an incomplete request is ignored.
            if size > BODY_SIZE_MAX_BYTES:
                said = f"the body is longer than {BODY_SIZE_MAX_BYTES} bytes; parameters belong into the query"
                asked = Reply(413, said)
        if isinstance(asked, MarkerRequest):
            future: asyncio.Future[Reply] = self._runtime.loop.create_future()
            asked = self.start(asked, partial(_resolve, future)) or await future
        headers, body = await self.packed(asked, encode(asked.body), scope["path"], scope["headers"])
        await send({"type": "http.response.start", "status": asked.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def begin(self, method: str, path: str, query: bytes, done: Done) -> None:
        """Answer a request without a body; `done` gets the reply in a later turn of the loop."""
        asked = self.parse(method, path, query)
        refused = self.start(asked, done) if isinstance(asked, MarkerRequest) else asked
        if refused is not None:
            self._runtime.loop.call_soon(done, refused)

    def learn_head(self, raw: bytes, headers: Headers) -> None:
        """Cache these headers; the size is bounded, also for clients whose headers always differ."""
        self.heads[raw] = headers
        self.learns_heads = len(self.heads) < HEADS_MAX

    async def packed(
        self, reply: Reply, body: bytes, path: str, asked: Iterable[tuple[bytes, bytes]]
    ) -> tuple[Headers, bytes]:
        """The headers and body of a reply, compressed in a thread if it is large and `asked` allows it."""
        headers = reply_headers(reply, path)
        if len(body) >= GZIP_SIZE_MIN_BYTES and takes_gzip(asked):
            body = await self._runtime.loop.run_in_executor(None, _gzip, body)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
        headers.append((b"content-length", b"%d" % len(body)))
        return headers, body

    def parse(self, method: str, path: str, query: bytes) -> MarkerRequest | Reply:
        """The valid request, or the reply that refuses it."""
        operation = path.removeprefix(BASE_PATH)
        right = METHODS.get(operation)
        if right is None or operation is path:
            return Reply(404, f"{path[:200]!r} is none of {', '.join(BASE_PATH + known for known in METHODS)}")
        if method != right:
            return Reply(405, f"{operation} is asked for with {right}, not with {method}")
        try:
            if operation == "/create" and (alike := self._alike(query)) is not None:
                return alike
            found = parse_query(query, _PARAMETERS)
            located = self._locate(found.get(b"markerdirpath", b""))
            parameters = {"markerdirpath": located.directory}
            if operation == "/create":
                if not found.get(b"markername"):
                    return Reply(400, "markername is missing; /create needs the name of a marker")
                parameters["markername"] = decode(found[b"markername"])
                if b"requestid" in found:
                    parameters["requestid"] = decode(found[b"requestid"])
                    if len(parameters["requestid"]) > REQUEST_ID_SIZE_MAX:
                        return Reply(400, f"requestid is longer than {REQUEST_ID_SIZE_MAX} characters")
                else:
                    self._remember(query, found)
        except Refusal as error:
            return Reply(error.status, str(error))
        except ValueError as error:
            return Reply(400, str(error))
        return MarkerRequest(Request(operation, parameters), located)

    def start(self, asked: MarkerRequest, done: Done) -> Reply | None:
        """Begin to answer; `done` gets the reply later. Returns a 503 at once when too many requests wait."""
        if self._waiting >= self._waiting_max:
            return Reply(503, f"{self._waiting} requests wait already; ask again in {RETRY_AFTER_S} s")
        self._waiting += 1
        self._answer(asked, partial(self._finish, done))
        return None

    def _finish(self, done: Done, reply: Reply) -> None:
        self._waiting -= 1
        done(reply)

    def _answer(self, asked: MarkerRequest, done: Done) -> None:
        """Queue a create with the others of this turn; start an actor for every other request."""
        store = self._served.get(asked.located)
        if store is not None and asked.request.path == "/create":
            parameters = asked.request.parameters
            self._creates.add(store, parameters["markername"], parameters.get("requestid", ""), done)
        else:
            self._runtime.spawn_now("request", partial(self._act, asked, done))

    def _act(self, asked: MarkerRequest, done: Done) -> None:
        try:
            store, create = self._stores(asked.located)
            if type(store) is ServedMarkers:
                if len(self._served) >= SERVED_MAX:
                    self._served.clear()
                self._served[asked.located] = store
            reply = handle(asked.request, lambda _: store, lambda _: create)
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            reply = Reply(500, f"the server raised {error!r}")
        done(reply)

    def _alike(self, query: bytes) -> MarkerRequest | None:
        """The create, if its query differs from that of an earlier one only in the name; else None."""
        before, _, rest = query.partition(b"markername=")
        name, _, after = rest.partition(b"&")
        until_s, located = self._queries.get((before, after), (0.0, None))
        if located is None or not name or time.monotonic() >= until_s:
            return None
        return MarkerRequest(
            Request("/create", {"markerdirpath": located.directory, "markername": decode(name)}), located
        )

    def _remember(self, query: bytes, found: dict[bytes, bytes]) -> None:
        before, _, rest = query.partition(b"markername=")
        name, _, after = rest.partition(b"&")
        if name == found[b"markername"] and (not before or before.endswith(b"&")):
            if len(self._queries) >= LOCATED_MAX:
                self._queries.clear()
            self._queries[before, after] = self._located[found[b"markerdirpath"]]

    def _locate(self, raw: bytes) -> Located:
        """The marker directory of a request. Resolved symbolic links are cached for LOCATED_FOR_S."""
        now_s = time.monotonic()
        known = self._located.get(raw)
        if known is not None and now_s < known[0]:
            return known[1]
        located = locate(decode(raw), self._bases)
        if len(self._located) >= LOCATED_MAX:
            self._located.clear()
        self._located[raw] = (now_s + LOCATED_FOR_S, located)
        return located


def encode(body: Any) -> bytes:
    """A reply's body as JSON text; names that are not UTF-8 on disk are escaped."""
    if body is True:
        return b"true"
    try:
        return json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(body).encode("ascii")


def reply_headers(reply: Reply, path: str) -> Headers:
    """The headers that a status needs."""
    headers: Headers = [_JSON]
    if reply.status == 503:
        headers.append((b"retry-after", b"%d" % RETRY_AFTER_S))
    elif reply.status == 405:
        headers.append((b"allow", METHODS[path.removeprefix(BASE_PATH)].encode()))
    elif reply.status == 413:
        headers.append((b"connection", b"close"))
    return headers


def takes_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the client accepts gzip."""
    for name, value in headers:
        if name == b"accept-encoding":
            found = _GZIP.search(value.lower())
            return found is not None and (found["q"] is None or found["q"].strip(b"0.") != b"")
    return False


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body follows these headers."""
    return any(
        (name == b"content-length" and value.strip() != b"0") or name == b"transfer-encoding" for name, value in headers
    )


async def _read_body(receive: Receive) -> int | None:
    """The size of a body, read to its end or just over the limit; None when the client closed the connection first."""
    size = 0
    while size <= BODY_SIZE_MAX_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            return size
    return size


def _resolve(future: asyncio.Future[Reply], reply: Reply) -> None:
    if not future.done():
        future.set_result(reply)


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


def parse_query(raw: bytes, known: frozenset[bytes]) -> dict[bytes, bytes]:
    """The known parameters, still encoded; ValueError when one comes twice. Others are ignored, as Hudi does."""
    found: dict[bytes, bytes] = {}
    for piece in raw.split(b"&"):
        key, _, value = piece.partition(b"=")
        if b"%" in key or b"+" in key:
            key = decode(key).encode()
        if key in known:
            if key in found:
                raise ValueError(f"the parameter {key.decode()} is given twice; give it once")
            found[key] = value
    return found


def decode(raw: bytes) -> str:
    """One parameter as text; ValueError for a broken escape or bytes that are not UTF-8."""
    if b"+" in raw:
        raw = raw.replace(b"+", b" ")
    if b"%" in raw:
        if _BROKEN_ESCAPE.search(raw):
            raise ValueError("a percent sign is not followed by two hexadecimal digits; write %25 for a percent sign")
        raw = unquote_to_bytes(raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("a parameter is not UTF-8 after its percent signs were decoded") from None


class QueuedCreates:
    """Creates received in one turn of the loop, queued together.

    A greenlet for each would only wait for its answer, so none is made: the owner actor of `markers.server` passes the
    answer on directly. Stores of other classes have a create that may block, which runs in a greenlet.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[ServedMarkers, list[Waiter]] = {}

    def add(self, store: ServedMarkers, name: str, request: str, done: Done) -> None:
        """Queue a create; `done` gets its reply in a later turn of the loop."""
        if not self._due:
            self._loop.call_soon(self._hand_over)
        waiter = Waiter(name, request, _Answer(done))
        if store in self._due:
            self._due[store].append(waiter)
        else:
            self._due[store] = [waiter]

    def _hand_over(self) -> None:
        due, self._due = self._due, {}
        for store, waiters in due.items():
            store.queue(waiters)


class _Answer:
    __slots__ = ("_done",)

    def __init__(self, done: Done) -> None:
        self._done = done

    def put(self, item: Created | Exception) -> None:
        self._done(create_reply(item))
