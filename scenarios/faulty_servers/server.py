"""A timeline server that replaces its marker files whole, and the same with one storage defect (`--defect`, README.md).

    python server.py --port {port} --dir {storage} --threads {threads} [--defect NAME]

Storage is read for every batch and nothing is kept in memory, under a lock of the host for each marker directory, so
that several servers may share a storage. A batch is what waited when one of its threads got the lock; it goes to the
next file in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote_to_bytes

DEFECTS = (
    "",
    "marker-file-first",
    "type-with-new-directory",
    "temporary-adopted",
    "removed-before-rename",
    "answered-before-write",
    "listing-error-is-empty",
)
TYPE = "MARKERS.type"
TYPE_TEXT = b"TIMELINE_SERVER_BASED"
MARKER_FILE = re.compile(r"MARKERS(0|[1-9][0-9]*)")
TEMPORARY = re.compile(r"\.(MARKERS\.type|MARKERS[0-9]+)\.tmp")
CONTROL = re.compile("[\x00-\x1f\x7f\x85]")
PREFIX = "/v1/hoodie/marker"
ATTEMPTS = 5
"""Another program may remove the directory while it is written: then it is made again."""


class Refused(Exception):
    """A request that changes nothing."""


class Create:
    """One name that waits for its batch."""

    def __init__(self, name: str) -> None:
        self.name = name.encode()
        self.created: bool | None = None
        self.error: OSError | None = None


class Directory:
    """The marker directory of one instant. Raises OSError when storage fails."""

    def __init__(self, path: str, locks: str, threads: int, defect: str) -> None:
        self.path, self.threads, self.defect = path, threads, defect
        self.lock_path = os.path.join(locks, hashlib.sha256(path.encode()).hexdigest())
        self.turn, self.queue_lock = threading.Lock(), threading.Lock()
        self.queue: list[Create] = []
        self.next = 0
        self.recovered = False

    def create(self, name: str) -> bool:
        """Whether the name is new. It is stored when this returns."""
        if self.defect == "answered-before-write":
            return self._create_in_background(name)
        create = Create(name)
        with self.queue_lock:
            self.queue.append(create)
        with self.turn:
            if create.created is None and create.error is None:
                self._serve_queue()
        if create.error is not None:
            raise create.error
        return bool(create.created)

    def names(self) -> list[str]:
        """Every stored name."""
        with self.turn, self._locked():
            return [name.decode() for names in self._read().values() for name in names]

    def exists(self) -> bool:
        """Whether there is any file."""
        with self.turn, self._locked(), contextlib.suppress(FileNotFoundError), os.scandir(self.path) as entries:
            return any(entry.is_file(follow_symlinks=False) for entry in entries)
        return False

    def delete(self) -> bool:
        """Whether there was anything. Nothing is left when this returns."""
        with self.turn, self._locked():
            for _ in range(ATTEMPTS):
                with contextlib.suppress(FileNotFoundError):
                    return self._remove()
            return True

    def _create_in_background(self, name: str) -> bool:
        with self.turn, self._locked():
            stored = {stored for names in self._read().values() for stored in names}
        create = Create(name)
        with self.queue_lock:
            if create.name in stored or any(create.name == other.name for other in self.queue):
                return False
            self.queue.append(create)
        threading.Thread(target=self._serve_in_background, daemon=True).start()
        return True

    def _serve_in_background(self) -> None:
        with self.turn:
            for create in self._serve_queue():
                if create.error is not None:
                    print(f"{create.name!r} was not written: {create.error}", file=sys.stderr, flush=True)

    def _serve_queue(self) -> list[Create]:
        with self.queue_lock:
            batch, self.queue = self.queue, []
        try:
            with self._locked():
                self._store(batch)
        except OSError as error:
            for create in batch:
                create.error = error
        return batch

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone on this host, and with nothing left of a write that was interrupted."""
        lock = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.recovered:
                self._recover()
                self.recovered = True
            yield
        finally:
            os.close(lock)

    def _recover(self) -> None:
        """A temporary file belongs to a server that died, for a living one would hold the lock."""
        try:
            left = [name for name in os.listdir(self.path) if TEMPORARY.fullmatch(name)]
        except FileNotFoundError:
            return
        for name in left:
            with contextlib.suppress(FileNotFoundError):
                if self.defect == "temporary-adopted":
                    os.replace(self._at(name), self._at(name[1 : -len(".tmp")]))
                else:
                    os.unlink(self._at(name))

    def _at(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _read(self) -> dict[int, list[bytes]]:
        """The names of each marker file. What follows the last end of line is none."""
        found = {}
        try:
            with os.scandir(self.path) as entries:
                listed = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return {}
        except OSError:
            if self.defect == "listing-error-is-empty":
                return {}
            raise
        for name in listed:
            if match := MARKER_FILE.fullmatch(name):
                with contextlib.suppress(FileNotFoundError), open(self._at(name), "rb") as file:
                    found[int(match[1])] = file.read().split(b"\n")[:-1]
        return found

    def _store(self, batch: list[Create]) -> None:
        for attempt in range(ATTEMPTS):
            try:
                new = self._write({create.name for create in batch})
                break
            except FileNotFoundError:
                if attempt == ATTEMPTS - 1:
                    raise
        for create in batch:
            create.created = create.name in new
            new.discard(create.name)

    def _write(self, names: set[bytes]) -> set[bytes]:
        """The names that were not stored before. All are stored when this returns."""
        stored = self._read()
        new = names.difference(*stored.values())
        if not new:
            return new
        made = not os.path.isdir(self.path)
        os.makedirs(self.path, exist_ok=True)
        index, self.next = self.next % self.threads, self.next + 1
        lines = b"".join(name + b"\n" for name in [*stored.get(index, []), *sorted(new)])
        if self.defect == "type-with-new-directory":
            if made:
                self._replace(TYPE, TYPE_TEXT)
            self._replace(f"MARKERS{index}", lines)
            return new
        if self.defect != "marker-file-first":
            self._write_type()
        self._replace(f"MARKERS{index}", lines)
        self._write_type()  # Another program may have removed the first one meanwhile.
        return new

    def _write_type(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(self._at(TYPE), "rb") as file:
            if file.read() == TYPE_TEXT:
                return
        self._replace(TYPE, TYPE_TEXT)

    def _replace(self, name: str, content: bytes) -> None:
        temporary, target = self._at(f".{name}.tmp"), self._at(name)
        try:
            with open(temporary, "wb", buffering=0) as file:
                rest = memoryview(content)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            if self.defect == "removed-before-rename" and os.path.isfile(target):
                os.remove(target)
            os.replace(temporary, target)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        sync_directory(self.path)

    def _remove(self) -> bool:
        try:
            entries = os.listdir(self.path)
        except FileNotFoundError:
            return False
        # Marker files first, the type file last: what an interrupted deletion leaves is still a whole directory.
        for name in sorted(entries, key=lambda name: (name == TYPE, MARKER_FILE.fullmatch(name) is None)):
            path = self._at(name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        os.rmdir(self.path)
        sync_directory(os.path.dirname(self.path))
        return bool(entries)


def sync_directory(path: str) -> None:
    """Make the entries of a directory last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Store:
    """The marker directories below one storage directory."""

    def __init__(self, base: str, threads: int, defect: str) -> None:
        self.base, self.threads, self.defect = os.path.abspath(base), threads, defect
        self.locks = os.path.join(self.base, ".locks")
        os.makedirs(self.locks, exist_ok=True)
        self.lock = threading.Lock()
        self.directories: dict[str, Directory] = {}

    def directory(self, given: str) -> Directory:
        """The one of `<table>/.hoodie/.temp/<instant>`, however its slashes are written."""
        text = re.sub("^file:/+", "/", given)
        segments = [segment for segment in text.split("/") if segment]
        path = "/" + "/".join(segments)
        if not text.startswith("/") or CONTROL.search(text) or {".", ".."} & set(segments):
            raise Refused(f"markerdirpath is refused: {given!r} is no plain absolute path")
        if len(segments) < 4 or segments[-3:-1] != [".hoodie", ".temp"]:
            raise Refused(f"markerdirpath is refused: {given!r} is not <table>/.hoodie/.temp/<instant>")
        if not path.startswith(self.base + "/"):
            raise Refused(f"markerdirpath is refused: {given!r} is not below {self.base!r}")
        with self.lock:
            if path not in self.directories:
                self.directories[path] = Directory(path, self.locks, self.threads, self.defect)
            return self.directories[path]


def checked_name(name: str) -> str:
    """The name of a marker, or Refused."""
    if not name or name.startswith("/") or CONTROL.search(name) or ".." in name.split("/"):
        raise Refused(f"the marker name {name!r} is refused")
    return name


def parameters(query: bytes) -> dict[str, str]:
    """A query, decoded once."""
    found: dict[str, str] = {}
    for pair in query.split(b"&"):
        key, _, value = (unquote_to_bytes(part.replace(b"+", b" ")) for part in pair.partition(b"="))
        try:
            text = key.decode()
            if text in ("markerdirpath", "markername") and text in found:
                raise Refused(f"{text} is given twice")
            found[text] = value.decode()
        except UnicodeDecodeError as error:
            raise Refused("a parameter is no UTF-8") from error
    return found


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = 75
    wbufsize = -1
    store: Store

    def do_GET(self) -> None:
        """Listings."""
        self._serve({"/all", "/create-and-merge", "/append", "/dir/exists"})

    def do_POST(self) -> None:
        """Changes."""
        self._serve({"/create", "/dir/delete"})

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""

    def _serve(self, routes: set[str]) -> None:
        self._skip_body()
        target, _, query = self.path.partition("?")
        route = target.removeprefix(PREFIX)
        status = 200
        body: object = None
        try:
            if not target.startswith(PREFIX) or route not in routes:
                status, body = 404, f"{self.command} {target} is not served"
            else:
                body = self._answer(route, parameters(query.encode("latin-1")))
        except Refused as error:
            status, body = 400, str(error)
        except OSError as error:
            traceback.print_exc()
            status, body = 500, f"storage failed: {error}"
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, route: str, given: dict[str, str]) -> bool | list[str]:
        directory = self.store.directory(given.get("markerdirpath", ""))
        match route:
            case "/create":
                return directory.create(checked_name(given.get("markername", "")))
            case "/dir/exists":
                return directory.exists()
            case "/dir/delete":
                return directory.delete()
            case "/all":
                return directory.names()
        return [name for name in directory.names() if name.endswith("APPEND") == (route == "/append")]

    def _skip_body(self) -> None:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
                self.rfile.read(size + 2)
            while self.rfile.readline().strip():
                pass
        else:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError | ValueError):
            traceback.print_exc()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--defect", choices=DEFECTS, default="")
    given = parser.parse_args()
    Handler.store = Store(given.dir, given.threads, given.defect)
    Server(("127.0.0.1", given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
