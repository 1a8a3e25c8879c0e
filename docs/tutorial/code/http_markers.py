"""The HTTP of a timeline server (docs/protocol.md): checks requests and hands them to a store of markers."""

import json
import os
import re
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

DIRECTORY = re.compile(r"(/[^/]+)+/\.hoodie/\.temp/[^/]+")
CONTROL = re.compile("[\x00-\x1f\x7f\x85]")


class Markers(Protocol):
    """What a server does with requests that are in order. An OSError is answered 500."""

    def create(self, directory: str, name: str) -> bool: ...
    def names(self, directory: str) -> list[str]: ...
    def delete(self, directory: str) -> bool: ...


class Refused(Exception):
    """A request that is answered 400."""


def answer(markers: Markers, storage: str, route: str, query: str) -> bool | list[str]:
    try:
        values = parse_qs(query, keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise Refused("the query is no UTF-8") from error
    directory, name = (values.get(key, [""])[0] for key in ("markerdirpath", "markername"))
    directory = re.sub("/+", "/", directory).rstrip("/")
    if not (DIRECTORY.fullmatch(directory) and directory.startswith(f"{storage}/")) or ".." in directory.split("/"):
        raise Refused(f"no marker directory: {directory!a}")
    match route.removeprefix("/v1/hoodie/marker"):
        case "/create":
            if not name or CONTROL.search(name) or name.startswith("/") or ".." in name.split("/"):
                raise Refused(f"no marker name: {name!a}")
            return markers.create(directory, name)
        case "/all":
            return markers.names(directory)
        case "/create-and-merge":
            return [name for name in markers.names(directory) if not name.endswith("APPEND")]
        case "/append":
            return [name for name in markers.names(directory) if name.endswith("APPEND")]
        case "/dir/exists":
            return bool(markers.names(directory))
        case "/dir/delete":
            return markers.delete(directory)
    raise Refused(f"no such route: {route}")


def serve(port: int, storage: str, markers: Markers) -> None:
    """Answer requests until killed, each connection in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            target = urlsplit(self.path)
            try:
                status, value = 200, answer(markers, storage, target.path, target.query)
            except Refused as refused:
                status, value = 400, str(refused)
            except OSError as error:
                status, value = 500, str(error)
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *words: Any) -> None:
            pass

    ThreadingHTTPServer.request_queue_size = 512
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def read(directory: str) -> list[str]:
    """The stored names, none where there is no file."""
    try:
        with open(f"{directory}/MARKERS0", encoding="utf-8", newline="\n") as file:
            return file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def write(directory: str, names: list[str]) -> None:
    """Store these names instead of those that are there."""
    os.makedirs(directory, exist_ok=True)
    if not os.path.exists(f"{directory}/MARKERS.type"):
        replace(f"{directory}/MARKERS.type", "TIMELINE_SERVER_BASED")
    replace(f"{directory}/MARKERS0", "".join(f"{name}\n" for name in names))


def replace(path: str, text: str) -> None:
    """Replace a file: who reads it meanwhile, or is killed, has the old one or the new one."""
    with open(f"{path}.tmp", "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.replace(f"{path}.tmp", path)


def remove(directory: str) -> bool:
    """Remove the directory and say whether it had names: these first, then what they depend on."""
    there = bool(read(directory))
    for file in ("MARKERS0", "MARKERS.type"):
        if os.path.lexists(f"{directory}/{file}"):
            os.remove(f"{directory}/{file}")
    if os.path.isdir(directory):
        shutil.rmtree(directory)
    return there
