"""Requests that urllib3 would not send so: in other words, and such as go wrong on their way.

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

import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlencode

from marker_sim.faults import Fault, FaultKind

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
_HEADERS = {
    "last-on-connection": "Connection: close\r\n",
    "offers-upgrade": "Connection: Upgrade\r\nUpgrade: nobody-knows/1\r\n",
}
Received = tuple[int, bytes, str]  # Status, body and content type of a reply.


def query(parameters: Mapping[str, str | bytes], form: str) -> str:
    """The parameters of a request, in a form."""
    match form:
        case "escaped":
            return "&".join(f"{_escaped(name)}={_escaped(value)}" for name, value in parameters.items())
        case "more-parameters":
            return f"basepath=%2Fdata%2Flake&{urlencode(parameters)}&nobody=knows+this&empty="
    return urlencode(parameters)


def head(port: int, method: str, target: str, form: str = "") -> bytes:
    """A whole request, which has no body."""
    chunked = form == CHUNKED and method == "POST"
    body = "Transfer-Encoding: chunked\r\n\r\n0" if chunked else "Content-Length: 0"
    more = _HEADERS.get(form, "")
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
        return  # The server is gone, or answers the first only; whoever sent the copy does not look at its reply.


def _reply(connection: socket.socket, method: str) -> Received:
    with HTTPResponse(connection, method=method) as read:
        read.begin()
        return read.status, read.read(), read.getheader("Content-Type", "")


def _reset(connection: socket.socket) -> None:
    """Let the connection end with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _escaped(value: str | bytes) -> str:
    return "".join(f"%{byte:02x}" for byte in (value if isinstance(value, bytes) else value.encode()))
