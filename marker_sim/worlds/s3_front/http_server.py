"""Serves an application on 127.0.0.1, port 0, one thread for each connection; `close` ends all threads.

An application answers a WSGI environment with a `Response`. Connections are kept alive (HTTP/1.1, Nagle off), a body is
read whole before the application is called, and a reply is one write. One that raises `NoReply` ends the connection
without a byte. Werkzeug's server was rejected: it
closes every connection after one request and waits 10 ms for more input first.
Limits: no TLS; bodies and replies are held in memory; a request whose body breaks off is never handed on.
"""

from __future__ import annotations

import io
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from marker_sim.errors import HarnessError

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

SOCKET = "marker_sim.socket"
BODY_SIZE_MAX_BYTES = 256 * 1024 * 1024
END_TIMEOUT_S = 10.0
_BODILESS = (204, 304)


class NoReply(Exception):
    """Ends the connection without a byte; `then` runs afterwards in its thread, and `close` waits for it."""

    def __init__(self, then: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.then = then


class Response(NamedTuple):
    """A complete reply.

    status: "200 OK".
    """

    status: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def code(self) -> int:
        """The status as a number."""
        return int(self.status[:3])


Application = Callable[["WSGIEnvironment"], Response]


class HttpServer:
    """Serves until `close`. troubles: errors of the application in the order of their occurrence."""

    def __init__(self, application: Application, name: str = "http") -> None:
        self.troubles: list[str] = []
        self._listener = _Listener(application, self.troubles)
        self.port: int = self._listener.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        # Daemons, here and below: an exit that skips `close` must not wait for requests for ever.
        self._thread = threading.Thread(
            target=self._listener.serve_forever,
            kwargs={"poll_interval": 0.02},
            name=f"{name}-{self.port}",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Close every connection and end every thread; HarnessError when one does not end in time. May be repeated."""
        deadline = time.monotonic() + END_TIMEOUT_S
        if self._thread.is_alive():
            self._listener.shutdown()
            self._thread.join(END_TIMEOUT_S)
        self._listener.server_close()
        self._listener.end_connections()
        for thread in self._listener.threads():
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise HarnessError(f"{thread.name} still serves a request {END_TIMEOUT_S:g} s after the end was asked")


class _Listener(socketserver.TCPServer):
    request_queue_size = 256

    def __init__(self, application: Application, troubles: list[str]) -> None:
        self.application = application
        self.troubles = troubles
        self._guard = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        super().__init__(("127.0.0.1", 0), _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        name = f"connection-{client_address[1]}-to-{self.server_address[1]}"
        thread = threading.Thread(target=self._run, args=(request, client_address), name=name, daemon=True)
        with self._guard:
            self._open[request] = thread
        thread.start()

    def _run(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except ConnectionError:
            pass
        except Exception as error:
            self.troubles.append(f"{type(error).__name__}: {error}")
        finally:
            self.shutdown_request(request)
            with self._guard:
                self._open.pop(request, None)

    def threads(self) -> list[threading.Thread]:
        """The threads that serve a connection now."""
        with self._guard:
            return list(self._open.values())

    def end_connections(self) -> None:
        """End all connections; those who read from them find the end of the stream."""
        with self._guard:
            for connection in self._open:
                hang_up(connection)


def hang_up(connection: socket.socket) -> None:
    """Shut a connection down in both directions; one that is closed already is fine."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "marker-sim"
    sys_version = ""
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: requests are in the history."""

    def _serve(self) -> None:
        body = self._body()
        if body is None:
            self.close_connection = True
            return
        try:
            response = self.server.application(self._environ(body))
        except NoReply as end:
            self.close_connection = True
            hang_up(self.connection)
            if end.then is not None:
                end.then()
            return
        except Exception as error:
            self.server.troubles.append(f"{self.command} {self.path}: {type(error).__name__}: {error}")
            response = Response("500 Internal Server Error", [], b"")
            self.close_connection = True
        self._send(response)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_PATCH = _serve

    def _body(self) -> bytes | None:
        """The complete body, None when it is cut off or far too large."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        try:
            size = int(self.headers.get("Content-Length", "0"))
        except ValueError:
            return None
        if not 0 <= size <= BODY_SIZE_MAX_BYTES:
            return None
        body = self.rfile.read(size)
        return body if len(body) == size else None

    def _chunks(self) -> bytes | None:
        body = bytearray()
        while len(body) <= BODY_SIZE_MAX_BYTES:
            try:
                size = int(self.rfile.readline(64).split(b";")[0], 16)
            except ValueError:
                return None
            if size == 0:
                while self.rfile.readline(4096).strip():
                    continue
                return bytes(body)
            chunk = self.rfile.read(size)
            if size < 0 or len(chunk) != size or self.rfile.readline(2) != b"\r\n":
                return None
            body += chunk
        return None

    def _environ(self, body: bytes) -> WSGIEnvironment:
        target = f"/{self.path.split('/', 3)[-1]}" if self.path.startswith("http://") else self.path
        path, _, query = target.partition("?")
        environ: WSGIEnvironment = {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path).encode("utf-8", "surrogateescape").decode("latin-1"),
            "QUERY_STRING": query,
            "REQUEST_URI": target,
            "RAW_URI": target,
            "REMOTE_ADDR": "127.0.0.1",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.server.server_address[1]),
            "SERVER_PROTOCOL": self.request_version,
            SOCKET: self.connection,
        }
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = f"HTTP_{key}"
            environ[key] = f"{environ[key]},{value}" if key in environ else value
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        return environ

    def _send(self, response: Response) -> None:
        lines = [f"HTTP/1.1 {response.status}"]
        names = set()
        for name, value in response.headers:
            if name.lower() in ("connection", "transfer-encoding"):
                continue
            names.add(name.lower())
            lines.append(f"{name}: {value}")
        if "content-length" not in names and response.code not in _BODILESS:
            lines.append(f"Content-Length: {len(response.body)}")
        if "date" not in names:
            lines.append(f"Date: {self.date_time_string()}")
        if self.close_connection:
            lines.append("Connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        bodiless = self.command == "HEAD" or response.code in _BODILESS
        self.wfile.write(head if bodiless else head + response.body)
