"""A server that owns each marker directory it is asked about, by a lock of the host which ends with its process.

What belongs to another server is answered 503, whatever was asked and before anything of it is looked at; what a dead
one owned belongs to whoever is asked about it next. All names are in one MARKERS0, which is replaced whole.

    python owned.py PORT ROOT
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from threading import Lock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.plain_http import Elsewhere, Markers, serve

TYPE, TYPE_TEXT = "MARKERS.type", b"TIMELINE_SERVER_BASED"


class Owned(Markers):
    """Remembers nothing but its locks, whose files lie beside the tables. One request at a time."""

    def __init__(self, root: str) -> None:
        self._locks = Path(root, ".owned")
        self._held: dict[str, int] = {}
        self._one = Lock()

    def admit(self, directory: str) -> None:
        """Own the directory, or leave it alone."""
        with self._one:
            if directory in self._held:
                return
            self._locks.mkdir(parents=True, exist_ok=True)
            path = self._locks / sha256(directory.encode("utf-8", "replace")).hexdigest()
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise Elsewhere(f"{directory!a} is owned by another server") from None
            self._held[directory] = lock

    def create(self, directory: str, name: str) -> bool:
        """Replace the file, unless it has the name."""
        with self._one:
            names = _stored(directory)
            if name in names:
                return False
            os.makedirs(directory, exist_ok=True)
            typed = Path(directory, TYPE)
            if not typed.is_file() or typed.read_bytes() != TYPE_TEXT:
                _replace(typed, TYPE_TEXT)
            _replace(Path(directory, "MARKERS0"), "".join(f"{each}\n" for each in (*names, name)).encode())
            return True

    def names(self, directory: str) -> list[str]:
        """What the file has."""
        return _stored(directory)

    def delete(self, directory: str) -> bool:
        """At once: it is moved aside, to a name that no request has, and removed there."""
        with self._one:
            there = os.path.isdir(directory)
            if there:
                aside = f"{directory}.deleting"
                shutil.rmtree(aside, ignore_errors=True)  # What a server left that was killed meanwhile.
                os.rename(directory, aside)
                shutil.rmtree(aside)
            return there


def _stored(directory: str) -> list[str]:
    try:
        return Path(directory, "MARKERS0").read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_bytes(content)
    beside.rename(path)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Owned(sys.argv[2]))
