"""One request on the wire to a timeline server, and what its end means for the history.

    200 and a body as the protocol has it          ok
    4xx; connection refused by the server itself   fail    it provably had no effect
    5xx, reset, time-out, malformed body,
    connection refused by a proxy                  info    nobody knows

Connections stay open and nothing below resends: urllib3's connection class without its pool has no retries. One
that the server closed while it was idle is replaced before anything is sent. Source: Hudi 0.15.0 RequestHandler and
MarkerHandler, as told in docs/guarantees.md; a name listed is the decoded JSON string.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from marker_sim.faults import Fault
from marker_sim.history import Kind, Unanswered, Value
from marker_sim.names import data_path
from marker_sim.plan import ALONE
from marker_sim.worlds.http.request_forms import break_off, exchange, query

if TYPE_CHECKING:  # Scripts need the words of requests, and nobody who sends one.
    from urllib3.connection import HTTPConnection

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
    """How a request ended."""

    kind: Kind
    value: Value
    error: str | None


class HttpConnection:
    """A persistent connection to one server; used by one thread at a time, but `abort` may come from any.

    timeout_s: to connect, and for each read; may be changed between requests, as `port` may.
    proxied: a proxy listens at the port, and what it refuses says nothing about the server.
    """

    def __init__(self, port: int, timeout_s: float = REQUEST_TIMEOUT_S, proxied: bool = False) -> None:
        self.port = port
        self._proxied = proxied
        self.timeout_s = timeout_s
        self._http: HTTPConnection | None = None
        self._used_s = 0.0

    def call(
        self,
        operation: str,
        parameters: Mapping[str, str | bytes],
        sent: Callable[[], object],
        fault: Fault | None = None,
        form: str = "",
    ) -> HttpOutcome:
        """Send one request and wait for its end.

        sent: called each time it was handed to a connected server.
        fault: what happens to the request on its way, which goes over a connection of its own then.
        form: as `Op.form`; some go over a connection of their own as well.
        """
        import urllib3.exceptions as failed

        assert parameters.get("markerdirpath"), "an empty marker directory is never sent"
        method, route = ROUTES[operation]
        target = f"{BASE}{route}?{query(parameters, form)}"
        try:
            if fault is not None:
                read = break_off(self.port, method, target, sent, fault, self.timeout_s)
                if read is None:
                    return HttpOutcome("info", None, f"{Unanswered.CUT}: {fault.kind.value}")
            elif form in ALONE:
                read = exchange(self.port, method, target, sent, form, self.timeout_s)
            else:
                read = self.exchange(method, target, sent)
        except failed.NewConnectionError as error:
            if self._proxied:
                return HttpOutcome("info", None, f"refused by the proxy: {_short(error)}")
            return HttpOutcome("fail", None, f"connection refused: {_short(error)}")
        except failed.ConnectTimeoutError as error:
            return HttpOutcome("info", None, f"no connection: {_short(error)}")
        except TimeoutError:
            self.abort()
            return HttpOutcome("info", None, f"{Unanswered.WAITED} in {self.timeout_s:.0f} s")
        except Exception as error:  # A torn reply fails in many ways; each of them means that nobody knows.
            self.abort()
            return HttpOutcome("info", None, f"connection broke: {_short(error)}")
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
    """The error of a port that is asked whether an unused marker directory exists; "" when it answers true or false."""
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
        packed = body.startswith(GZIP)  # A body that a client accepted is unpacked by now.
        wrong = "a compressed body, which the client did not accept" if packed else "malformed body"
        return HttpOutcome("info", None, f"{wrong}: {_raw(body)}")
    if operation in ("list", "list-data", "list-log"):
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            return HttpOutcome("info", None, f"malformed body, no array of names: {_raw(body)}")
        names = value if operation == "list" else [data_path(name) for name in value]
        return HttpOutcome("ok", tuple(sorted(names)), None)
    if not isinstance(value, bool):
        return HttpOutcome("info", None, f"malformed body, neither true nor false: {_raw(body)}")
    if operation in ("create", "hostile"):
        return HttpOutcome("ok", "created" if value else "exists", None)
    return HttpOutcome("ok", value, None)


def _raw(body: bytes) -> str:
    more = len(body) - _BODY_SHOWN
    return repr(body[:_BODY_SHOWN]) + (f" and {more} bytes more" if more > 0 else "")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_BODY_SHOWN]
