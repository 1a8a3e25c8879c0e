"""Measures one request on a separate connection: its result, when bytes came, when it was closed.

The request asks to keep the connection (HTTP/1.1). When the reply is whole, this side closes its half, and the time
until the other side closes too is part of what is seen; not earlier, because a proxy that passes the close on would
cut the reply off. Times are monotonic and in seconds.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from dataclasses import dataclass
from typing import Literal

End = Literal["reply", "refused", "reset", "closed", "silent"]
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_PIECE_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request with its result and times.

    end: a whole reply; refused, reset or closed before one; silent until patience ran out.
    status: of the reply, 0 for none.
    received: its bytes.
    pieces: in how many reads they came.
    took_s: until the end.
    lingered_s: from the end of a whole reply until the connection was closed by the other side, -1 when it was not or
        nobody waited.
    """

    end: End
    status: int
    received: int
    pieces: int
    took_s: float
    lingered_s: float


def exchange(port: int, request: bytes, patience_s: float, linger: bool = False) -> Exchange:
    """The result of a request to a port of 127.0.0.1; connection errors are part of it and not raised.

    linger: also wait for the end of the connection after a whole reply.
    """
    began = time.monotonic()
    data, pieces, took_s, lingered_s = b"", 0, 0.0, -1.0
    end: End = "silent"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(request)
            while not _whole(data):
                sock.settimeout(max(0.001, patience_s - (time.monotonic() - began)))
                piece = sock.recv(_PIECE_BYTES)
                if not piece:
                    end = "closed"
                    break
                data, pieces = data + piece, pieces + 1
            else:
                end = "reply"
            took_s = time.monotonic() - began
            if linger and end == "reply":
                lingered_s = _lingered_s(sock, patience_s)
    except ConnectionRefusedError:
        end = "refused"
    except (ConnectionResetError, BrokenPipeError):
        end = "reset"
    except TimeoutError:
        end = "silent"
    took_s = took_s or time.monotonic() - began
    status = int(data[9:12]) if data[:5] == b"HTTP/" and data[9:12].isdigit() else 0
    return Exchange(end=end, status=status, received=len(data), pieces=pieces, took_s=took_s, lingered_s=lingered_s)


def _lingered_s(sock: socket.socket, patience_s: float) -> float:
    """The seconds until the other side closes after we did; -1 when it does not."""
    began = time.monotonic()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(patience_s)
        while sock.recv(_PIECE_BYTES):
            pass
        return time.monotonic() - began
    return -1.0


def _whole(data: bytes) -> bool:
    """Whether an HTTP reply is complete, by its length or its last chunk."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    length = _LENGTH.search(head)
    return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")
