"""A request in other words: each form means what the usual one means, so a server answers it alike.

empty-chunk          the empty body of a POST comes in chunks (RFC 9112, 7.1), on a connection of its own
escaped              each byte of a parameter is %xx, with small letters, and each letter of its name
more-parameters      with `basepath`, as Hudi's clients send it, and one that nobody knows
last-on-connection   the client says `Connection: close`
offers-upgrade       the client could speak a protocol that nobody knows, so nothing changes (RFC 9110, 7.8)
in-pieces            a few bytes at a time, on a connection of its own
uncompressed         as usual, on a connection of its own

Those on connections of their own (`ALONE`) accept no compressed reply.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from http.client import HTTPResponse
from urllib.parse import urlencode

CHUNKED = "empty-chunk"
ALONE = (CHUNKED, "last-on-connection", "offers-upgrade", "in-pieces", "uncompressed")
_HEADERS = {
    "last-on-connection": "Connection: close\r\n",
    "offers-upgrade": "Connection: Upgrade\r\nUpgrade: nobody-knows/1\r\n",
}
PIECE_BYTES, PIECES = 23, 12
PIECE_S = 0.003


def query(parameters: Mapping[str, str | bytes], form: str = "") -> str:
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


def exchange(
    port: int, method: str, target: str, sent: Callable[[], object], form: str, timeout_s: float
) -> tuple[int, bytes, str]:
    """Status, body and content type of the reply to a request on a connection of its own; HTTPException or OSError.

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
        return reply(connection, method)


def reply(connection: socket.socket, method: str) -> tuple[int, bytes, str]:
    """Status, body and content type of what a server sends."""
    with HTTPResponse(connection, method=method) as read:
        read.begin()
        return read.status, read.read(), read.getheader("Content-Type", "")


def _escaped(value: str | bytes) -> str:
    return "".join(f"%{byte:02x}" for byte in (value if isinstance(value, bytes) else value.encode()))
