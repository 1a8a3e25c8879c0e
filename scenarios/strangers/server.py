"""A timeline server of the standard library alone, correct with --defect 0; README.md says what the others are.

python3 -S -m scenarios.strangers.server --port 8080 --storage /data/lake --threads 20 --defect 0
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scenarios.strangers.server_files import Busy, Markers

DIRECTORY = re.compile(r"(/[^/]+)+/\.hoodie/\.temp/[^/]+")
CONTROL = re.compile("[\x00-\x1f\x7f\x85]")


class Refused(Exception):
    """A request that is answered 400."""


def answer(markers: Markers, route: str, query: str, reply: Callable[[bool], None]) -> bool | list[str] | None:
    """What to reply; None where the markers have replied already."""
    errors = "replace" if markers.defect == 9 else "strict"
    try:
        values = parse_qs(query, keep_blank_values=True, errors=errors)
    except ValueError as error:
        raise Refused("the query is no UTF-8") from error
    directory, name = (values.get(key, [""])[0] for key in ("markerdirpath", "markername"))
    rest = directory.removeprefix(markers.root)
    if markers.root.startswith("/"):
        rest = re.sub("/+", "/", rest)
    rest = rest.rstrip("/")
    if not (directory.startswith(markers.root) and DIRECTORY.fullmatch(rest)) or ".." in rest.split("/"):
        raise Refused(f"no marker directory: {directory!a}")
    directory = markers.root + rest
    match route.removeprefix("/v1/hoodie/marker"):
        case "/create":
            if not name or CONTROL.search(name) or name.startswith("/") or ".." in name.split("/"):
                raise Refused(f"no marker name: {name!a}")
            return markers.create(directory, name, reply)
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


def serve(port: int, markers: Markers) -> None:
    """Answer requests until killed, each connection in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            target = urlsplit(self.path)
            try:
                value = answer(markers, target.path, target.query, lambda new: self.reply(200, new))
                if value is not None:
                    self.reply(200, value)
            except Refused as refused:
                self.reply(400, str(refused))
            except Busy as busy:
                self.reply(409, str(busy))
            except ConnectionError:
                self.close_connection = True
            except OSError as error:
                self.reply(500, str(error))

        do_POST = do_GET

        def reply(self, status: int, value: object) -> None:
            body = json.dumps(value).encode()
            packed = markers.defect == 11 and len(body) >= 1500
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if packed:
                body = gzip.compress(body)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            pass

    ThreadingHTTPServer.request_queue_size = 512
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--storage", required=True)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--defect", type=int, default=0)
    given = parser.parse_args()
    if given.storage.startswith("s3a://"):
        from scenarios.strangers.server_s3 import Bucket

        serve(given.port, Bucket(given.storage, given.threads, given.defect))
    else:
        serve(given.port, Markers(given.storage, given.threads, given.defect))


if __name__ == "__main__":
    main()
