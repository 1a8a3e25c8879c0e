"""Requests that go wrong on their way, made so by the client itself: no proxy stands between it and the server.

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
from collections.abc import Callable
from http.client import HTTPException

from marker_sim.faults import Fault, FaultKind
from marker_sim.worlds.http.request_forms import head, reply

COPY_TIMEOUT_S = 10.0
KINDS = (
    FaultKind.KILL,
    FaultKind.REQUEST_LOST,
    FaultKind.REPLY_LOST,
    FaultKind.RESET,
    FaultKind.DELAYED,
    FaultKind.DUPLICATED,
)


def play(
    port: int, method: str, target: str, sent: Callable[[], object], fault: Fault, timeout_s: float
) -> tuple[int, bytes, str] | None:
    """Status, body and content type of the reply, None when the client has none; HTTPException or OSError.

    sent: called each time the whole request was handed to the server.
    """
    request = head(port, method, target)
    half = len(request) // 2
    if fault.kind is FaultKind.DUPLICATED:
        args = (port, method, request, sent, fault.settings.late_ms / 1000)
        threading.Thread(target=_copy, args=args, daemon=True).start()
    with socket.create_connection(("127.0.0.1", port), timeout_s) as connection:
        connection.sendall(request[:half])
        match fault.kind:
            case FaultKind.REQUEST_LOST:
                return None
            case FaultKind.RESET if fault.settings.lost:
                _reset(connection)
                return None
            case FaultKind.DELAYED:
                time.sleep(fault.settings.late_ms / 1000)
        connection.sendall(request[half:])
        sent()
        match fault.kind:
            case FaultKind.DELAYED | FaultKind.DUPLICATED:
                return reply(connection, method)
            case FaultKind.RESET:
                _reset(connection)
    return None


def _copy(port: int, method: str, request: bytes, sent: Callable[[], object], late_s: float) -> None:
    time.sleep(late_s)
    try:
        with socket.create_connection(("127.0.0.1", port), COPY_TIMEOUT_S) as connection:
            connection.sendall(request)
            sent()
            reply(connection, method)
    except (OSError, HTTPException):
        return  # The server is gone, or answers the first only; whoever sent the copy does not look at its reply.


def _reset(connection: socket.socket) -> None:
    """Let the connection end with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
