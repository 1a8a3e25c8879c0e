"""A small HTTP marker server for the tests of `--sut http`: correct, or broken in one named way.

    python marker_server.py --port N --storage DIR --threads N --interval-ms N [--broken NAME]
    python marker_server.py --port N --storage s3a://BUCKET --endpoint URL ...

Standard library only, and nothing of marker_sim, so that it is somebody else's program. Creates queue up for their
directory; every interval one batch of each directory is taken, written to the next MARKERS<n> and then answered. On a
local directory that is a temporary file and a rename under a lock of the host, on S3 a put under the condition that
the object is still the one that was read; who is too late reads again. Everything is read again whenever a file is not
the one this server wrote, so a second server and a restart need nothing special.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.servers.marker_files import Changed, Files, LocalFiles, S3Files
from scenarios.servers.s3_objects import S3Objects

BASE = "/v1/hoodie/marker"
MARKER = re.compile(r".+\.marker\.(CREATE|MERGE|APPEND)\Z", re.DOTALL)
SEPARATORS = {0x2028: "_", 0x2029: "_"}
ANSWER_S = 300.0
SLOW_S = 0.06
STALE_S = 2.0
PAUSED_S = 0.25
CONFLICTS_MAX = 40
BROKEN = {
    "ack-before-flush": "answers a batch first and writes it a little later",
    "torn-in-place": "writes marker files in place, slowly (local only)",
    "rewritten-in-place": "writes marker files in place, as fast as it can (local only)",
    "joins-after-restart": "puts the names it found on storage on one line, joined by commas",
    "forgets-after-restart": "does not read which names are there when it starts",
    "memory-only": "never reads storage, and writes its files from memory",
    "exists-while-flushing": 'answers "exists" for a name whose batch is not written yet',
    "swallows-failure": "answers a batch as if it were written although that failed",
    "stores-nothing": "answers every batch and writes nothing",
    "stays-busy": "never frees the file of a batch that could not be written, and never answers that batch",
    "deaf-after-a-pause": "never again answers creates of its second directory when it was stopped for a while",
    "loses-workers": "never gets back a worker, of a pool for all directories, that could not write its batch",
    "stale-list": "answers listings from what it listed up to two seconds ago",
    "accepts-anything": "refuses no name",
    "splits-oddly": "takes the separators of Unicode for ends of lines, and refuses names with control characters only",
    "forgets-requests": "tells the resend of a request that it asks for what exists",
    "dies-of-a-broken-pipe": "is ended by SIGPIPE when it answers a client that is gone",
}


class Refused(Exception):
    """A request that is answered 400."""


class Request:
    """A create that waits: its name, its identity ("" for none) and its answer."""

    def __init__(self, name: str, identity: str) -> None:
        self.name = name
        self.identity = identity
        self.answer: Future[bool] = Future()


class Directory:
    """One marker directory. `lock` guards everything but the queue, which has a lock of its own."""

    def __init__(self, files: Files, threads: int, broken: str) -> None:
        self.files = files
        self.queue: list[Request] = []
        self.queue_lock = threading.Lock()
        self.flushing: dict[str, int] = {}
        self.next = 0
        self.busy: set[int] = set()
        self.lock = threading.RLock()
        self._threads = threads
        self._broken = broken
        self._listed: tuple[float, list[str]] = (0.0, [])
        self._makers: dict[str, str] = {}
        self._forgotten: set[str] = set()
        self._loaded = False

    def names(self) -> list[str]:
        """What is stored, and so also what is known."""
        with self.lock, self.files.exclusive():
            self._load()
            since, listed = self._listed
            if self._broken == "stale-list" and time.monotonic() - since < STALE_S:
                return listed
            self._listed = (time.monotonic(), sorted(self._known()))
            return self._listed[1]

    def exists(self) -> bool:
        """Whether anything of it is stored."""
        with self.lock:
            return self.files.exist()

    def create(self, batch: list[Request], index: int) -> None:
        """Write the new names of a batch into one file, then answer all of it."""
        try:
            if self._broken == "ack-before-flush":
                self._answer_early(batch)
                time.sleep(SLOW_S)
            with self.lock, self.files.exclusive():
                answers = self._written(batch, index)
        except OSError as error:
            if self._broken == "stays-busy":
                return
            if self._broken == "loses-workers":
                self._over(batch, index)
                threading.Event().wait()
            if self._broken == "swallows-failure":
                answers = [(request, True) for request in batch]
            else:
                self._over(batch, index)
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)
                return
        self._over(batch, index)
        for request, created in answers:
            if not request.answer.done():
                request.answer.set_result(created)

    def delete(self) -> bool:
        """Remove the directory; whether it was there."""
        with self.lock, self.files.exclusive():
            self._makers.clear()
            self._forgotten.clear()
            return self.files.remove()

    def wait(self, request: Request) -> bool:
        """Queue a create and wait for its answer."""
        with self.queue_lock:
            if self._broken == "exists-while-flushing" and self.flushing.get(request.name):
                return False
            self.flushing[request.name] = self.flushing.get(request.name, 0) + 1
            self.queue.append(request)
        return request.answer.result(ANSWER_S)

    def take(self) -> tuple[list[Request], int] | None:
        """The waiting batch and a free file for it."""
        with self.queue_lock:
            free = [i % self._threads for i in range(self.next, self.next + self._threads)]
            index = next((i for i in free if i not in self.busy), None)
            if not self.queue or index is None:
                return None
            batch, self.queue = self.queue, []
            self.next = index + 1
            self.busy.add(index)
            return batch, index

    def _written(self, batch: list[Request], index: int) -> list[tuple[Request, bool]]:
        """The answers of a batch whose new names are stored; reads again when another server was faster."""
        for _ in range(CONFLICTS_MAX):
            self._load()
            known, fresh = self._known(), []
            makers: dict[str, str] = {}
            answers = []
            for request in batch:
                name, identity = request.name, request.identity
                if name not in known:
                    known.add(name)
                    fresh.append(name)
                    makers[name] = identity
                    answers.append((request, True))
                else:
                    maker = makers.get(name, self._makers.get(name, ""))
                    again = bool(identity) and maker == identity and self._broken != "forgets-requests"
                    answers.append((request, again))
            try:
                if fresh and self._broken != "stores-nothing":
                    grown = self.files.contents.get(index, b"") + "".join(f"{name}\n" for name in fresh).encode()
                    self.files.write_type()
                    self._write(index, grown)
            except Changed:
                continue
            self._makers |= makers
            self._forgotten -= set(fresh)
            return answers
        raise OSError("other servers were faster each time")

    def _write(self, index: int, data: bytes) -> None:
        if self._broken == "torn-in-place":
            self.files.write_in_place(index, data, SLOW_S)
        elif self._broken == "rewritten-in-place":
            self.files.write_in_place(index, data, 0.0)
        else:
            self.files.write(index, data, blindly=self._broken == "memory-only")

    def _over(self, batch: list[Request], index: int) -> None:
        with self.queue_lock:
            self.busy.discard(index)
            for request in batch:
                self.flushing[request.name] -= 1

    def _answer_early(self, batch: list[Request]) -> None:
        with self.lock, self.files.exclusive():
            self._load()
            known = self._known()
        for request in batch:
            request.answer.set_result(request.name not in known)
            known.add(request.name)

    def _known(self) -> set[str]:
        whole = (data[: data.rfind(b"\n") + 1] for data in self.files.contents.values())
        texts = (data.decode("utf-8", "replace") for data in whole)
        lines = (text.splitlines() if self._broken == "splits-oddly" else text.split("\n") for text in texts)
        return {name for names in lines for name in names if name} - self._forgotten

    def _load(self) -> None:
        first, self._loaded = not self._loaded, True
        if self._broken == "memory-only":
            return
        self.files.refresh()
        if first and self._broken == "joins-after-restart":
            for index, data in self.files.contents.items():
                self.files.contents[index] = b",".join(data.split(b"\n")[:-1])
        if first and self._broken == "forgets-after-restart":
            self._forgotten = self._known()


class Service:
    """All directories, the dispatcher and the pool."""

    def __init__(self, storage: str, endpoint: str, threads: int, interval_ms: int, broken: str) -> None:
        scheme, found, bucket = storage.partition("://")
        self._root = f"{scheme}{found}{bucket}".rstrip("/") + "/"
        self._objects = S3Objects(endpoint, bucket.partition("/")[0]) if found else None
        self._locks = Path("/" if found else storage, ".marker-server-locks")
        self._threads = threads
        self._interval_s = interval_ms / 1000
        self._broken = broken
        self._directories: dict[str, Directory] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(threads)
        threading.Thread(target=self._dispatch, daemon=True).start()

    def answer(self, method: str, route: str, parameters: dict[str, str]) -> Any:
        """The JSON value of the reply; Refused for what is no request."""
        directory = self._directory(parameters.get("markerdirpath", ""))
        match method, route:
            case "POST", "/create":
                name = parameters.get("markername", "")
                if self._broken != "accepts-anything":
                    check_name(name.translate(SEPARATORS) if self._broken == "splits-oddly" else name)
                return directory.wait(Request(name, parameters.get("requestid", "")))
            case "GET", "/all":
                return directory.names()
            case "GET", "/create-and-merge":
                return [name for name in directory.names() if not name.endswith(".APPEND")]
            case "GET", "/append":
                return [name for name in directory.names() if name.endswith(".APPEND")]
            case "GET", "/dir/exists":
                return directory.exists()
            case "POST", "/dir/delete":
                return directory.delete()
        raise Refused(f"there is no {method} {route}")

    def _directory(self, path: str) -> Directory:
        path = path.removeprefix("file:")
        if (
            "/.hoodie/.temp/" not in path
            or any(part in (".", "..") for part in path.split("/"))
            or not path.isprintable()
        ):
            raise Refused(f"{path!r} is no marker directory")
        with self._lock:
            if path not in self._directories:
                self._directories[path] = Directory(self._files(path), self._threads, self._broken)
            return self._directories[path]

    def _files(self, path: str) -> Files:
        if self._objects is None:
            return LocalFiles(Path(path), self._locks)
        if not path.startswith(self._root):
            raise Refused(f"{path!r} does not lie below {self._root}")
        return S3Files(self._objects, path.partition("://")[2].partition("/")[2])

    def _dispatch(self) -> None:
        deaf = False
        while True:
            before_s = time.monotonic()
            time.sleep(self._interval_s)
            if self._broken == "deaf-after-a-pause" and time.monotonic() - before_s > self._interval_s + PAUSED_S:
                deaf = True
            with self._lock:
                directories = list(self._directories.values())
            for directory in directories[:1] + directories[2:] if deaf else directories:
                taken = directory.take()
                if taken is not None:
                    self._pool.submit(directory.create, *taken)


def check_name(name: str) -> str:
    """The name, if it is a marker's."""
    if not MARKER.match(name) or not name.isprintable() or any(part in ("", ".", "..") for part in name.split("/")):
        raise Refused(f"{name!r} is no marker name")
    return name


class Handler(BaseHTTPRequestHandler):
    """HTTP on top of a service; connections persist."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: Service

    def do_GET(self) -> None:
        """Answer one request."""
        self._serve()

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Only errors are worth a line, and they are answered."""

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        target = urlsplit(self.path)
        try:
            given = parse_qs(target.query, keep_blank_values=True, errors="strict")
            parameters = {key: values[0] for key, values in given.items()}
            status, value = 200, self.service.answer(self.command, target.path.removeprefix(BASE), parameters)
        except (Refused, UnicodeDecodeError) as refused:
            status, value = 400, str(refused)
        except Exception as error:
            status, value = 500, repr(error)
        body = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Threads that die with the process, and a long queue of connections."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error."""

    def server_bind(self) -> None:
        """Bind without asking who 127.0.0.1 is."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", self.server_address[1]


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--storage", required=True)
    parser.add_argument("--endpoint", default="")
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--interval-ms", type=int, default=50)
    parser.add_argument("--broken", choices=sorted(BROKEN), default="")
    given = parser.parse_args()
    if given.broken == "dies-of-a-broken-pipe":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.setswitchinterval(0.001)
    Handler.service = Service(given.storage, given.endpoint, given.threads, given.interval_ms, given.broken)
    Server(("127.0.0.1", given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
