"""Hudi's files and no batches: each create writes MARKERS0 anew beside it and renames that, and all of it is synced.

It keeps the profile `http-power-loss`: what it answers is on the disk, also what a server before it left without a
sync. It does nothing by threads and takes no {interval_ms}. Without the syncs of --omit it is not a correct server:

    python synced.py PORT ROOT THREADS [--omit files|directories|all]
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.plain_http import Markers, serve

TYPE, TYPE_TEXT, FILE = "MARKERS.type", b"TIMELINE_SERVER_BASED", "MARKERS0"
OMITTED = {"": (), "files": ("files",), "directories": ("directories",), "all": ("files", "directories")}


class Synced(Markers):
    """Remembers nothing. The lock is the table's, so that it does not lie in what is deleted."""

    def __init__(self, root: str, omit: str) -> None:
        self._root, self._omitted = Path(root), OMITTED[omit]

    def create(self, directory: str, name: str) -> bool:
        """Write the file anew, unless the name is there."""
        with self._locked(directory):
            place = Path(directory)
            self._make(place)
            if self._read(place / TYPE) != TYPE_TEXT:
                self._write(place / TYPE, TYPE_TEXT)
            text, line = self._read(place / FILE) or b"", name.encode() + b"\n"
            if b"\n" + line in b"\n" + text:
                return False
            self._write(place / FILE, text + line)
            return True

    def names(self, directory: str) -> list[str]:
        """The lines."""
        with self._locked(directory):
            return (self._read(Path(directory, FILE)) or b"").decode().split("\n")[:-1]

    def delete(self, directory: str) -> bool:
        """The names first, the type last."""
        with self._locked(directory):
            place = Path(directory)
            there = place.is_dir()
            if there:
                for name in sorted(os.listdir(place)):
                    (place / name).unlink()
                    self._sync(place, "directories")
                place.rmdir()
            self._sync(place.parent, "directories")
            return there

    def _make(self, place: Path) -> None:
        """The directory, and all above it up to the root, on the disk."""
        place.mkdir(parents=True, exist_ok=True)
        while place != self._root:
            place = place.parent
            self._sync(place, "directories")

    def _read(self, path: Path) -> bytes | None:
        """What a file holds, None for none, and it is on the disk."""
        data = None
        with suppress(FileNotFoundError):
            data = path.read_bytes()
            self._sync(path, "files")
        with suppress(FileNotFoundError):
            self._sync(path.parent, "directories")
        return data

    def _write(self, path: Path, data: bytes) -> None:
        beside = path.with_name(f".{path.name}.new")
        beside.write_bytes(data)
        self._sync(beside, "files")
        beside.rename(path)
        self._sync(path.parent, "directories")

    def _sync(self, path: Path, kind: str) -> None:
        if kind not in self._omitted:
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    @contextmanager
    def _locked(self, directory: str) -> Iterator[None]:
        temp = Path(directory).parent
        temp.mkdir(parents=True, exist_ok=True)
        with (temp.parent / ".synced.lock").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("root")
    parser.add_argument("threads", type=int)
    parser.add_argument("--omit", choices=OMITTED, default="")
    asked = parser.parse_args()
    serve(asked.port, asked.root, Synced(os.path.realpath(asked.root), asked.omit))
