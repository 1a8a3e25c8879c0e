"""A marker file is written without a name (O_TMPFILE), linked beside the old one, and renamed over it.

The version before stays as a hard link. A name's hash says in which file it is.

    python linked.py PORT ROOT THREADS
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from threading import Lock
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import add, alone, fresh, insist, lines, remove, write
from scenarios.correct_servers.plain_http import Markers, serve


class Linked(Markers):
    """Has its storage alone."""

    def __init__(self, root: str, threads: int) -> None:
        self._alone = alone(root)
        self._threads = threads
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def create(self, directory: str, name: str) -> bool:
        """A new file is published by links."""
        file = f"MARKERS{crc32(name.encode()) % self._threads}"
        with self._locks[directory]:
            return insist(lambda: add(directory, name, file, _publish))

    def names(self, directory: str) -> list[str]:
        """Of all files."""
        with self._locks[directory]:
            return [name for number in range(self._threads) for name in lines(f"{directory}/MARKERS{number}")]

    def delete(self, directory: str) -> bool:
        """One file after the other."""
        with self._locks[directory]:
            return remove(directory)


def _publish(path: str, data: bytes) -> None:
    folder, _, name = path.rpartition("/")
    new, old = fresh(path, "linked"), f"{folder}/.{name}.before"
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o644)
        try:
            write(os.dup(file), data)
            os.link(f"/proc/self/fd/{file}", os.path.basename(new), dst_dir_fd=above)
        finally:
            os.close(file)
    finally:
        os.close(above)
    if os.path.exists(path):
        with suppress(FileNotFoundError):
            os.unlink(old)
        os.link(path, old)
    os.rename(new, path)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Linked(sys.argv[2], int(sys.argv[3])))
