"""Hudi's files and no batches: each create writes MARKERS0 anew beside it and renames that, and all of it is synced.

The type file is written last of all that a directory needs, so where it is, the directory has its name on the disk. A
file is synced before it gets its name, and each answer comes after a sync of the directory.

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
from contextlib import contextmanager
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
            if _read(place / TYPE) != TYPE_TEXT:
                self._make(place)
            text, line = _read(place / FILE), name.encode() + b"\n"
            known = b"\n" + line in b"\n" + text
            if known:
                self._sync(place, "directories")  # Who wrote it may have died before that.
            else:
                self._write(place / FILE, text + line)
            return not known

    def names(self, directory: str) -> list[str]:
        """The lines."""
        with self._locked(directory):
            place = Path(directory)
            if place.is_dir():
                self._sync(place, "directories")
            return _read(place / FILE).decode().split("\n")[:-1]

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

    def _make(self, directory: Path) -> None:
        """The directory, and all above it up to the root, on the disk; then its type."""
        directory.mkdir(parents=True, exist_ok=True)
        place = directory
        while place != self._root:
            place = place.parent
            self._sync(place, "directories")
        self._write(directory / TYPE, TYPE_TEXT)

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


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("root")
    parser.add_argument("threads", type=int)
    parser.add_argument("--omit", choices=OMITTED, default="")
    asked = parser.parse_args()
    serve(asked.port, asked.root, Synced(os.path.realpath(asked.root), asked.omit))
