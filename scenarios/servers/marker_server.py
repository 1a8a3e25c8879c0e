"""A small HTTP marker server for the tests of `--sut http`: correct, or broken in one named way.

    python marker_server.py --port N --storage DIR --threads N --interval-ms N [--broken NAME]

Standard library only, and nothing of marker_sim, so that it is somebody else's program. Creates queue up for their
directory; every interval one batch of each directory is taken, written to the next MARKERS<n> by temporary file and
rename under a lock of the host, and then answered. Everything is read again from storage under that lock whenever a
file is not the one this server wrote, so a second server and a restart need nothing special.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

BASE = "/v1/hoodie/marker"
MARKER = re.compile(r".+\.marker\.(CREATE|MERGE|APPEND)\Z", re.DOTALL)
ANSWER_S = 300.0
SLOW_S = 0.06
STALE_S = 0.5
BROKEN = {
    "ack-before-flush": "answers a batch first and writes it a little later",
    "torn-in-place": "writes marker files in place, slowly",
    "joins-after-restart": "puts the names it found on storage on one line, joined by commas",
    "forgets-after-restart": "does not read which names are there when it starts",
    "stays-busy": "never frees the file of a batch that could not be written, and never answers that batch",
    "stale-list": "answers listings from what it listed half a second ago",
}


class Refused(Exception):
    """A request that is answered 400."""


class Directory:
    """One marker directory. contents: each marker file as this server knows it; all access under `lock`."""

    def __init__(self, path: Path, locks: Path, threads: int, broken: str) -> None:
        self.path = path
        self.queue: list[tuple[str, Future[bool]]] = []
        self.queue_lock = threading.Lock()
        self.next = 0
        self.busy: set[int] = set()
        self._threads = threads
        self._broken = broken
        self._lock = threading.RLock()
        self._lock_file = locks / hashlib.sha256(str(path).encode()).hexdigest()
        self._contents: dict[int, bytes] = {}
        self._written: dict[str, tuple[int, int, int]] = {}
        self._listed: tuple[float, list[str]] = (0.0, [])
        self._loaded = False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Exclusive between threads and between servers of this host; dies with its process."""
        with self._lock, self._lock_file.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def names(self) -> list[str]:
        """What is stored, and so also what is known."""
        with self.lock():
            self._load()
            since, listed = self._listed
            if self._broken == "stale-list" and time.monotonic() - since < STALE_S:
                return listed
            self._listed = (time.monotonic(), sorted(self._known()))
            return self._listed[1]

    def create(self, batch: list[tuple[str, Future[bool]]], index: int) -> None:
        """Write the new names of a batch into one file, then answer all of it."""
        try:
            if self._broken == "ack-before-flush":
                self._answer_early(batch)
                time.sleep(SLOW_S)
            with self.lock():
                self._load()
                known, fresh = self._known(), []
                answers = []
                for name, future in batch:
                    answers.append((future, name not in known))
                    if name not in known:
                        known.add(name)
                        fresh.append(name)
                if fresh:
                    self._write_type()
                    grown = self._contents.get(index, b"") + "".join(f"{name}\n" for name in fresh).encode()
                    self._write(f"MARKERS{index}", grown)
                    self._contents[index] = grown
        except OSError as error:
            if self._broken == "stays-busy":
                return
            self.busy.discard(index)
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        self.busy.discard(index)
        for future, created in answers:
            if not future.done():
                future.set_result(created)

    def delete(self) -> bool:
        """Remove the directory; whether it was there."""
        with self.lock():
            there = self.path.is_dir()
            if there:
                shutil.rmtree(self.path)
            self._contents.clear()
            self._written.clear()
            return there

    def take(self) -> tuple[list[tuple[str, Future[bool]]], int] | None:
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

    def _answer_early(self, batch: list[tuple[str, Future[bool]]]) -> None:
        with self.lock():
            self._load()
            known = self._known()
        for name, future in batch:
            future.set_result(name not in known)
            known.add(name)

    def _known(self) -> set[str]:
        whole = (data[: data.rfind(b"\n") + 1] for data in self._contents.values())
        return {name for data in whole for name in data.decode("utf-8", "replace").split("\n") if name}

    def _load(self) -> None:
        """Read every marker file that is not the one this server wrote."""
        first, self._loaded = not self._loaded, True
        present = {}
        for path in self.path.glob("MARKERS[0-9]*") if self.path.is_dir() else ():
            stat = path.stat()
            present[path.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if self._written.get(path.name) == present[path.name]:
                continue
            index, data = int(path.name.removeprefix("MARKERS")), path.read_bytes()
            if self._broken == "joins-after-restart" and first:
                data = b",".join(data.split(b"\n")[:-1])
            if self._broken == "forgets-after-restart" and first:
                self._written[path.name] = present[path.name]
                continue
            self._contents[index] = data
        for name in self._written.keys() - present.keys():
            self._contents.pop(int(name.removeprefix("MARKERS")), None)
        self._written = present

    def _write_type(self) -> None:
        target = self.path / "MARKERS.type"
        if not target.is_file() or target.read_bytes() != b"TIMELINE_SERVER_BASED":
            self.path.mkdir(parents=True, exist_ok=True)
            self._replace(target, b"TIMELINE_SERVER_BASED")

    def _write(self, name: str, data: bytes) -> None:
        target = self.path / name
        if self._broken == "torn-in-place":
            with target.open("wb", buffering=0) as out:
                out.write(data[: len(data) // 2])
                time.sleep(SLOW_S)
                out.write(data[len(data) // 2 :])
        elif self._broken == "forgets-after-restart" and target.exists() and name not in self._mine():
            self._replace(target, target.read_bytes() + data)
        else:
            self._replace(target, data)
        stat = target.stat()
        self._written[name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def _mine(self) -> set[str]:
        return {f"MARKERS{index}" for index in self._contents}

    def _replace(self, target: Path, data: bytes) -> None:
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            beside.write_bytes(data)
            beside.replace(target)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


class Service:
    """All directories, the dispatcher and the pool."""

    def __init__(self, storage: Path, threads: int, interval_ms: int, broken: str) -> None:
        self._locks = storage / ".marker-server-locks"
        self._locks.mkdir(parents=True, exist_ok=True)
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
                name = check_name(parameters.get("markername", ""))
                future: Future[bool] = Future()
                with directory.queue_lock:
                    directory.queue.append((name, future))
                return future.result(ANSWER_S)
            case "GET", "/all":
                return directory.names()
            case "GET", "/create-and-merge":
                return [name for name in directory.names() if not name.endswith(".APPEND")]
            case "GET", "/append":
                return [name for name in directory.names() if name.endswith(".APPEND")]
            case "GET", "/dir/exists":
                return directory.path.is_dir()
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
                self._directories[path] = Directory(Path(path), self._locks, self._threads, self._broken)
            return self._directories[path]

    def _dispatch(self) -> None:
        while True:
            time.sleep(self._interval_s)
            with self._lock:
                directories = list(self._directories.values())
            for directory in directories:
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
        parameters = {key: values[0] for key, values in parse_qs(target.query, keep_blank_values=True).items()}
        try:
            status, value = 200, self.service.answer(self.command, target.path.removeprefix(BASE), parameters)
        except Refused as refused:
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
    parser.add_argument("--storage", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--interval-ms", type=int, default=50)
    parser.add_argument("--broken", choices=sorted(BROKEN), default="")
    given = parser.parse_args()
    sys.setswitchinterval(0.001)
    Handler.service = Service(given.storage, given.threads, given.interval_ms, given.broken)
    Server(("127.0.0.1", given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
