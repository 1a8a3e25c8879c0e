"""Requests of the timeline server's protocol for the Python servers beside this module; standard library only."""

from __future__ import annotations

import json
import re
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ForkingMixIn, ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs, urlsplit

BASE = "/v1/hoodie/marker"
MARKER = re.compile(r".*[^/]\.marker\.(CREATE|MERGE|APPEND)\Z", re.DOTALL)
DIRECTORY = re.compile(r".*[^/]/\.hoodie/\.temp/[^/]+\Z")
ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffd]")
LENGTH_MAX_BYTES, PART_MAX_BYTES = 4096, 255


class Refused(Exception):
    """Answered 400."""


class Elsewhere(Exception):
    """Answered 503: another server has to be asked."""


class Markers(ABC):
    """What a server does; directories and names are checked. Called from a thread for each connection."""

    def admit(self, directory: str) -> None:  # noqa: B027
        """Raise Elsewhere for a directory that is not its own; asked before anything of a request is checked."""

    @abstractmethod
    def create(self, directory: str, name: str) -> bool:
        """Whether it is new."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """What is stored."""

    @abstractmethod
    def delete(self, directory: str) -> bool:
        """Whether there was anything."""


def serve(port: int, root: str, markers: Markers, forking: bool = False) -> None:
    """Answer until killed. root: what marker directories lie below. forking: a process for each connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, value = 200, _answer(markers, root, self.command, self.path)
            except Refused as refused:
                status, value = 400, str(refused)
            except Elsewhere as elsewhere:
                status, value = 503, str(elsewhere)
            except Exception as error:
                status, value = 500, repr(error)
            body = json.dumps(value, ensure_ascii=False).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    (_Forking if forking else _Threading)(("127.0.0.1", port), Handler).serve_forever()


def serve_on_s3(make: Callable[[str], Markers]) -> None:
    """The command line of a server on S3: PORT s3a://BUCKET serves, --names URI prints a directory's names.

    make: a server of a bucket.
    """
    first, second = sys.argv[1:3]
    uri = second if first == "--names" else f"{second}/"
    markers = make(uri.partition("://")[2].partition("/")[0])
    if first != "--names":
        serve(int(first), second, markers)
    for name in markers.names(second):
        print(name)


def key_of(uri: str) -> str:
    """The key of s3a://BUCKET/KEY."""
    return uri.partition("://")[2].partition("/")[2]


class _Server(HTTPServer):
    request_queue_size = 512

    def handle_error(self, request: object, client_address: object) -> None:
        pass

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", self.server_address[1]


class _Threading(ThreadingMixIn, _Server):
    daemon_threads = True


class _Forking(ForkingMixIn, _Server):
    max_children = 500


def _answer(markers: Markers, root: str, method: str, target: str) -> Any:
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    directory, name = query.get("markerdirpath", [""])[0], query.get("markername", [""])[0]
    markers.admit(directory)
    if not (DIRECTORY.match(directory) and _plain(directory) and directory.startswith(f"{root}/")):
        raise Refused(f"{directory!a} is no marker directory below {root}")
    if directory.count("/.hoodie/") != 1:
        raise Refused(f"{directory!a} lies inside another")
    match method, parts.path.removeprefix(BASE):
        case "POST", "/create":
            if not (MARKER.match(name) and _plain(name)) or name.startswith(("/", ".hoodie/")):
                raise Refused(f"{name!a} is no marker name")
            return markers.create(directory, name)
        case "GET", "/all":
            return markers.names(directory)
        case "GET", "/create-and-merge":
            return [name for name in markers.names(directory) if not name.endswith(".APPEND")]
        case "GET", "/append":
            return [name for name in markers.names(directory) if name.endswith(".APPEND")]
        case "GET", "/dir/exists":
            return bool(markers.names(directory))
        case "POST", "/dir/delete":
            return markers.delete(directory)
    raise Refused(f"there is no {method} {parts.path}")


def _plain(path: str) -> bool:
    if ODD.search(path) or len(path.encode()) > LENGTH_MAX_BYTES:
        return False
    inside = path.partition("://")[2] or path.removeprefix("/")
    return all(part not in ("", ".", "..") and len(part.encode()) <= PART_MAX_BYTES for part in inside.split("/"))
