"""One request on the wire to a timeline server, and what its end means for the history.

    200 and a body as the protocol has it          ok
    4xx; connection refused by the server itself   fail    it provably had no effect
    5xx, reset, time-out, malformed body,
    connection refused by a proxy                  info    nobody knows

Connections stay open and nothing below resends: urllib3's connection class without its pool has no retries. One
that the server closed while it was idle is replaced before anything is sent. Source: Hudi 0.15.0 RequestHandler and
MarkerHandler, as told in docs/guarantees.md; a name listed is the decoded JSON string.

Some requests are written as urllib3 would not write them, and some go wrong on their way.

Each form means what the usual one means, so a server answers it alike:

empty-chunk          the empty body of a POST comes in chunks (RFC 9112, 7.1), on a connection of its own
escaped              each byte of a parameter is %xx, with small letters, and each letter of its name
more-parameters      with `basepath`, as Hudi's clients send it, and one that nobody knows
last-on-connection   the client says `Connection: close`
offers-upgrade       the client could speak a protocol that nobody knows, so nothing changes (RFC 9110, 7.8)
in-pieces            a few bytes at a time, on a connection of its own
uncompressed         as usual, on a connection of its own

Those on connections of their own (`plan.ALONE`) accept no compressed reply. What goes wrong is done by the client
itself, so no proxy stands between it and the server:

request-lost       half of the request is sent, and the connection is closed
reply-lost, kill   the whole request is sent, and the connection is closed before the reply
connection-reset   the same, but the connection ends with a reset, before or after the whole request
delayed            half of the request is sent, and the rest a while later
duplicated         the request is sent once more on a connection of its own; the reply to the first counts
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from marker_sim.faults import Fault, FaultKind
from marker_sim.history import CallError, Kind, Value
from marker_sim.names import data_path
from marker_sim.plan import ALONE

if TYPE_CHECKING:  # Scripts use this module's forms of requests without urllib3.
    from urllib3.connection import HTTPConnection

CHUNKED = "empty-chunk"
BREAKING = (
    FaultKind.KILL,
    FaultKind.REQUEST_LOST,
    FaultKind.REPLY_LOST,
    FaultKind.RESET,
    FaultKind.DELAYED,
    FaultKind.DUPLICATED,
)
COPY_TIMEOUT_S = 10.0
PIECE_BYTES, PIECES = 23, 12
PIECE_S = 0.003
_FORM_HEADERS = {
    "last-on-connection": "Connection: close\r\n",
    "offers-upgrade": "Connection: Upgrade\r\nUpgrade: nobody-knows/1\r\n",
}
Received = tuple[int, bytes, str]  # Status, body and content type of a reply.
BASE = "/v1/hoodie/marker"
ROUTES = {
    "create": ("POST", "/create"),
    "hostile": ("POST", "/create"),
    "list": ("GET", "/all"),
    "list-data": ("GET", "/create-and-merge"),
    "list-log": ("GET", "/append"),
    "exists": ("GET", "/dir/exists"),
    "delete": ("POST", "/dir/delete"),
}
READ_ONLY = ("list", "list-data", "list-log", "exists")
REQUEST_TIMEOUT_S = 120.0
IDLE_MAX_S = 1.0
GZIP = b"\x1f\x8b"
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "gzip", "Connection": "keep-alive"}
_BODY_SHOWN = 160


class HttpOutcome(NamedTuple):
    """The outcome of a request."""

    kind: Kind
    value: Value
    error: str | None = None


def _unknown(why: str) -> HttpOutcome:
    return HttpOutcome("info", None, why)


@dataclass(eq=False)
class HttpConnection:
    """A persistent connection to one server; used by one thread at a time, but `abort` may come from any.

    timeout_s: to connect, and for each read; may be changed between requests, as `port` may.
    proxied: a proxy listens at the port, and what it refuses says nothing about the server.
    """

    port: int
    timeout_s: float = REQUEST_TIMEOUT_S
    proxied: bool = False
    _http: HTTPConnection | None = None
    _used_s: float = 0.0

    def call(
        self,
        operation: str,
        parameters: Mapping[str, str | bytes],
        sent: Callable[[], object],
        fault: Fault | None = None,
        form: str = "",
    ) -> HttpOutcome:
        """Send one request and wait for its end.

        sent: called each time when the request was passed to a connected server.
        fault: what happens to the request on its way; it then uses a connection of its own.
        form: as `Op.form`; some forms use a connection of their own as well.
        """
        import urllib3.exceptions as failed

        assert parameters.get("markerdirpath"), "an empty marker directory is never sent"
        method, route = ROUTES[operation]
        target = f"{BASE}{route}?{query(parameters, form)}"
        try:
            if fault is not None:
                read = break_off(self.port, method, target, sent, fault, self.timeout_s)
                if read is None:
                    return _unknown(f"{CallError.CUT}: {fault.kind.value}")
            elif form in ALONE:
                read = exchange(self.port, method, target, sent, form, self.timeout_s)
            else:
                read = self.exchange(method, target, sent)
        except failed.NewConnectionError as error:
            if self.proxied:
                return _unknown(f"refused by the proxy: {_short(error)}")
            return HttpOutcome("fail", None, f"connection refused: {_short(error)}")
        except failed.ConnectTimeoutError as error:
            return _unknown(f"no connection: {_short(error)}")
        except TimeoutError:
            self.abort()
            return _unknown(f"{CallError.WAITED} in {self.timeout_s:.0f} s")
        except Exception as error:  # A torn reply fails in many ways; each of them means that nobody knows.
            self.abort()
            return _unknown(f"connection broke: {_short(error)}")
        return interpret(operation, *read)

    def exchange(self, method: str, target: str, sent: Callable[[], object]) -> tuple[int, bytes, str]:
        """Status, body and content type of the reply to one request; raises whatever urllib3 raises."""
        http = self._connected()
        http.request(method, target, body=b"" if method == "POST" else None, headers=_HEADERS)
        sent()
        reply = http.getresponse()
        read = reply.status, reply.data, reply.headers.get("Content-Type", "")
        self._used_s = time.monotonic()
        return read

    def abort(self) -> None:
        """Close the connection; a call that waits on it ends."""
        http, self._http = self._http, None
        if http is not None:
            sock = http.sock
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            http.close()

    def _connected(self) -> HTTPConnection:
        from urllib3.connection import HTTPConnection

        if self._http is not None:
            fresh = self._http.is_connected and time.monotonic() - self._used_s < IDLE_MAX_S
            if fresh and self._http.port == self.port:
                self._http.timeout = self.timeout_s
                return self._http
            self.abort()
        http = HTTPConnection("127.0.0.1", self.port, timeout=self.timeout_s)
        http.connect()
        self._http = http
        return http


def probe(port: int, directory: str) -> str:
    """Why a port does not serve: its error when asked whether an unused marker directory exists; "" if it serves."""
    connection = HttpConnection(port, timeout_s=2.0)
    try:
        outcome = connection.call("exists", {"markerdirpath": directory}, lambda: None)
    finally:
        connection.abort()
    return "" if outcome.kind == "ok" else outcome.error or "no answer"


def decode(body: bytes, content_type: str) -> str:
    """The text of a reply: in the charset it names, else UTF-8, else ISO-8859-1, HTTP's old default for text.

    The last is what Hudi sends; refusing it would hide which names a server garbles and which it only encodes oddly.
    """
    charset = content_type.lower().partition("charset=")[2].strip("\"' ;") or "utf-8"
    try:
        return body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        return body.decode("iso-8859-1")


def interpret(operation: str, status: int, body: bytes, content_type: str = "") -> HttpOutcome:
    """The outcome that a reply stands for (see the module); a body that does not parse is quoted byte by byte."""
    text = decode(body, content_type)
    if status != 200:
        return HttpOutcome(
            "fail" if 400 <= status < 500 else "info", None, f"{status} {_printable(text[:_BODY_SHOWN])}"
        )
    try:
        value = json.loads(text)
    except ValueError:
        packed = body.startswith(GZIP)  # The client has already unpacked a body that it accepted.
        wrong = "a compressed body, which the client did not accept" if packed else "malformed body"
        return _unknown(f"{wrong}: {_raw(body)}")
    if operation in ("list", "list-data", "list-log"):
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            return _unknown(f"malformed body, no array of names: {_raw(body)}")
        names = value if operation == "list" else [data_path(name) for name in value]
        return HttpOutcome("ok", tuple(sorted(names)))
    if not isinstance(value, bool):
        return _unknown(f"malformed body, neither true nor false: {_raw(body)}")
    if operation in ("create", "hostile"):
        return HttpOutcome("ok", "created" if value else "exists")
    return HttpOutcome("ok", value)


def _raw(body: bytes) -> str:
    more = len(body) - _BODY_SHOWN
    return repr(body[:_BODY_SHOWN]) + (f" and {more} bytes more" if more > 0 else "")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_BODY_SHOWN]


def query(parameters: Mapping[str, str | bytes], form: str) -> str:
    """The query string of a request, encoded as its form says (`Op.form`)."""
    match form:
        case "escaped":
            return "&".join(f"{_escaped(name)}={_escaped(value)}" for name, value in parameters.items())
        case "more-parameters":
            return f"basepath=%2Fdata%2Flake&{urlencode(parameters)}&nobody=knows+this&empty="
    return urlencode(parameters)


def head(port: int, method: str, target: str, form: str = "") -> bytes:
    """The text of a request without a body."""
    chunked = form == CHUNKED and method == "POST"
    body = "Transfer-Encoding: chunked\r\n\r\n0" if chunked else "Content-Length: 0"
    more = _FORM_HEADERS.get(form, "")
    accept = "Accept: application/json\r\nAccept-Encoding: identity\r\n"
    return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{accept}{more}{body}\r\n\r\n".encode("ascii")


def exchange(port: int, method: str, target: str, sent: Callable[[], object], form: str, timeout_s: float) -> Received:
    """The reply to a request in a form, on a connection of its own; HTTPException or OSError.

    sent: called when the whole request was handed to the server.
    """
    request = head(port, method, target, form)
    with socket.create_connection(("127.0.0.1", port), timeout_s) as connection:
        if form == "in-pieces":
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for begin in range(0, PIECES * PIECE_BYTES, PIECE_BYTES):
                connection.sendall(request[begin : begin + PIECE_BYTES])
                time.sleep(PIECE_S)
            request = request[PIECES * PIECE_BYTES :]
        connection.sendall(request)
        sent()
        return _reply(connection, method)


def break_off(
    port: int, method: str, target: str, sent: Callable[[], object], fault: Fault, timeout_s: float
) -> Received | None:
    """The reply to a request that goes wrong, None when the client has none; HTTPException or OSError.

    sent: called each time the whole request was handed to the server.
    """
    request = head(port, method, target)
    half, late_s = len(request) // 2, fault.settings.late_ms / 1000
    if fault.kind is FaultKind.DUPLICATED:
        threading.Thread(target=_copy, args=(port, method, target, sent, late_s), daemon=True).start()
    with socket.create_connection(("127.0.0.1", port), timeout_s) as connection:
        connection.sendall(request[:half])
        match fault.kind:
            case FaultKind.REQUEST_LOST:
                return None
            case FaultKind.RESET if fault.settings.lost:
                _reset(connection)
                return None
            case FaultKind.DELAYED:
                time.sleep(late_s)
        connection.sendall(request[half:])
        sent()
        match fault.kind:
            case FaultKind.DELAYED | FaultKind.DUPLICATED:
                return _reply(connection, method)
            case FaultKind.RESET:
                _reset(connection)
    return None


def _copy(port: int, method: str, target: str, sent: Callable[[], object], late_s: float) -> None:
    time.sleep(late_s)
    try:
        exchange(port, method, target, sent, "", COPY_TIMEOUT_S)
    except (OSError, HTTPException):
        return  # The server is gone or answers only the first; nobody reads the reply to the copy.


def _reply(connection: socket.socket, method: str) -> Received:
    with HTTPResponse(connection, method=method) as read:
        read.begin()
        return read.status, read.read(), read.getheader("Content-Type", "")


def _reset(connection: socket.socket) -> None:
    """Make the close of a connection send a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _escaped(value: str | bytes) -> str:
    return "".join(f"%{byte:02x}" for byte in (value if isinstance(value, bytes) else value.encode()))
