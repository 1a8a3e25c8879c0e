"""A timeline server that replaces its marker files whole, and the same with one defect (`--defect`, README.md).

    python server.py --port {port} --dir {storage} --threads {threads} --interval-ms {interval_ms} [--defect NAME]

Creates are answered after their batch was written, synced and renamed. Standard library only.
"""

import argparse
import gzip
import json
import os
import re
import sys
import threading
import unicodedata
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

sys.path.append(str(Path(__file__).resolve().parents[2]))  # Run by its path, from anywhere.

from scenarios.faulty_servers.marker_directory import Create, MarkerDirectory, Settings

DEFECTS = (
    "",
    "nfc-compared",
    "two-digit-index-unread",
    "decided-when-queued",
    "size-is-identity",
    "short-write-whole",
    "duplicate-answered-early",
    "written-without-lock",
    "told-apart-by-log",
    "late-is-exists",
    "parameter-kept",
    "marker-file-first",
    "type-with-new-directory",
    "temporary-adopted",
    "removed-before-rename",
    "listing-error-is-empty",
    "renamed-before-flush",
    "first-index-once",
    "compacted-file-by-file",
    "own-files-deleted",
    "busy-but-served",
    "writer-replies-to-all",
    "not-utf-8-replaced",
    "second-is-identity",
    "unasked-gzip",
    "made-remembered",
)
PREFIX = "/v1/hoodie/marker/"
LONGEST_NAME = 16_384
LONGEST_BODY = 65_536
ANSWER_WITHIN_S = 60.0


class RefusedError(Exception):
    """A request that is malformed or asks for what is not allowed; its text is the reply."""


def refuse_control_characters(what: str, text: str) -> None:
    """Neither names nor directories may hold any: a name is a line of a file."""
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise RefusedError(f"{what} holds a control character")


def checked_name(name: str) -> str:
    """The name, if it is a path below the table."""
    if not name:
        raise RefusedError("markername is empty")
    refuse_control_characters("markername", name)
    if name.startswith("/") or ".." in name.split("/"):
        raise RefusedError("markername leaves its table")
    if len(name.encode()) > LONGEST_NAME:
        raise RefusedError(f"markername has more than {LONGEST_NAME} bytes")
    return name


def checked_directory(text: str, root: str) -> str:
    """The one spelling of a marker directory, if it is one below the root."""
    refuse_control_characters("markerdirpath", text)
    path = re.sub(r"^file:(//)?(?=/)", "", text)
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or "." in parts or ".." in parts:
        raise RefusedError("markerdirpath is not an absolute path without . and ..")
    if any(len(part.encode()) > 200 for part in parts) or len(path.encode()) > 3_500:
        raise RefusedError("markerdirpath is too long")
    top = [part for part in root.split("/") if part]
    if parts[: len(top)] != top or len(parts) < len(top) + 3 or parts[-3:-1] != [".hoodie", ".temp"]:
        raise RefusedError("markerdirpath is no TABLE/.hoodie/.temp/INSTANT below the served directory")
    return "/" + "/".join(parts)


class Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # Headers and body are two writes, of which the second shows that a client is gone.
    server: "MarkerServer"

    def setup(self) -> None:
        super().setup()
        self.parameters: dict[str, str] = {}

    def do_GET(self) -> None:
        self._answer({"all", "create-and-merge", "append", "dir/exists"})

    def do_POST(self) -> None:
        self._answer({"create", "dir/delete"})

    def log_message(self, format: str, *args: object) -> None:
        del format, args

    @property
    def _defect(self) -> str:
        return self.server.settings.defect

    def _answer(self, routes: set[str]) -> None:
        path, _, query = self.path.partition("?")
        try:
            self._drop_body()
            if path.removeprefix(PREFIX) not in routes or not path.startswith(PREFIX):
                self._reply(404, f"no such call: {self.command} {path}")
                return
            self._read_parameters(query)
            value = self._call(path.removeprefix(PREFIX))
            if value is not None:
                self._reply(200, value)
        except RefusedError as error:
            self._reply(400, str(error))
        except TimeoutError as error:
            self._reply(409 if self._defect == "busy-but-served" else 503, str(error))
        except OSError as error:
            self._reply(500, f"storage failed: {error}")

    def _drop_body(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal() or int(length) > LONGEST_BODY:
            self.close_connection = True
            raise RefusedError("a body is not expected")
        self.rfile.read(int(length))

    def _read_parameters(self, query: str) -> None:
        if not query.isascii() or re.search(r"%(?![0-9A-Fa-f]{2})", query):
            raise RefusedError("the query is not percent-encoded")
        errors = "replace" if self._defect == "not-utf-8-replaced" else "strict"
        try:
            found = parse_qs(query, keep_blank_values=self._defect != "parameter-kept", errors=errors)
        except ValueError as error:
            raise RefusedError("the query is not UTF-8") from error
        if any(len(values) > 1 for values in found.values()):
            raise RefusedError("a parameter is given twice")
        if self._defect != "parameter-kept":
            self.parameters.clear()
        self.parameters.update({key: values[0] for key, values in found.items()})

    def _call(self, route: str) -> object:
        settings = self.server.settings
        directory = self.server.directory(checked_directory(self.parameters.get("markerdirpath", ""), settings.root))
        match route:
            case "create":
                return self._create(directory, checked_name(self.parameters.get("markername", "")))
            case "dir/delete":
                return directory.delete()
            case "dir/exists":
                return directory.exists()
            case "all":
                return directory.names()
        if self._defect == "told-apart-by-log":
            return [name for name in directory.names() if (".log." in name) == (route == "append")]
        return [name for name in directory.names() if name.endswith("APPEND") == (route == "append")]

    def _create(self, directory: MarkerDirectory, name: str) -> bool | None:
        """Whether the name is new; None when the answer is out."""
        create = Create(name=name)
        if self._defect == "writer-replies-to-all":
            create.reply = lambda created: self._reply(200, created)
        directory.submit(create)
        if self._defect == "late-is-exists":
            create.done.wait(1.0)
        elif not create.done.wait(0.5 if self._defect == "busy-but-served" else ANSWER_WITHIN_S):
            raise TimeoutError("the batch is not written yet")
        if create.error:
            raise OSError(create.error)
        return create.created if create.reply is None else None

    def _reply(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if self._defect == "unasked-gzip" and len(body) >= 1500:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class MarkerServer(ThreadingHTTPServer):
    """Serves the marker directories below one root."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, settings: Settings) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.settings = settings
        self._lock = threading.Lock()
        self._directories: dict[str, MarkerDirectory] = {}

    def directory(self, path: str) -> MarkerDirectory:
        """The state of a marker directory."""
        with self._lock:
            if path not in self._directories:
                self._directories[path] = MarkerDirectory(path, self.settings)
            return self._directories[path]

    def handle_error(self, request: object, client_address: object) -> None:
        """Says what went wrong, unless the client has hung up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--interval-ms", type=int, default=50)
    parser.add_argument("--defect", choices=DEFECTS, default="")
    given = parser.parse_args()
    settings = Settings(
        root=os.path.abspath(given.dir),
        threads=given.threads,
        interval_s=given.interval_ms / 1000,
        defect=given.defect,
    )
    with MarkerServer(given.port, settings) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
