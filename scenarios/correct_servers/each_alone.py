"""Hudi's files and no batches: each create is appended to MARKERS0 by itself, under a lock of the host.

It takes neither {threads} nor {interval_ms}. A line that a dead server left torn is cut off before the next one.

    python each_alone.py PORT ROOT
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.plain_http import Markers, serve

TYPE, TYPE_TEXT = "MARKERS.type", b"TIMELINE_SERVER_BASED"


class EachAlone(Markers):
    """Remembers nothing. The lock is the table's, so that it does not lie in what is deleted."""

    def create(self, directory: str, name: str) -> bool:
        """Append, unless it is there."""
        with _locked(directory):
            os.makedirs(directory, exist_ok=True)
            typed = Path(directory, TYPE)
            if not typed.is_file() or typed.read_bytes() != TYPE_TEXT:
                beside = Path(directory, ".type.tmp")
                beside.write_bytes(TYPE_TEXT)
                beside.rename(typed)
            file = os.open(Path(directory, "MARKERS0"), os.O_RDWR | os.O_CREAT, 0o644)
            try:
                return _append(file, name)
            finally:
                os.close(file)

    def names(self, directory: str) -> list[str]:
        """Terminated lines."""
        try:
            data = Path(directory, "MARKERS0").read_bytes()
        except FileNotFoundError:
            return []
        return data[: data.rfind(b"\n") + 1].decode().split("\n")[:-1]

    def delete(self, directory: str) -> bool:
        """The file with the names first."""
        with _locked(directory):
            there = os.path.isdir(directory)
            if there:
                Path(directory, "MARKERS0").unlink(missing_ok=True)
                shutil.rmtree(directory)
            return there


def _append(file: int, name: str) -> bool:
    size = os.fstat(file).st_size
    data = os.pread(file, size, 0)
    whole = data.rfind(b"\n") + 1
    line = name.encode() + b"\n"
    if (b"\n" + data[:whole]).find(b"\n" + line) >= 0:
        return False
    os.ftruncate(file, whole)
    try:
        at = 0
        while at < len(line):
            at += os.pwrite(file, line[at:], whole + at)
    except OSError:
        os.ftruncate(file, whole)
        raise
    return True


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    temp = Path(directory).parent
    temp.mkdir(parents=True, exist_ok=True)
    with (temp.parent / ".each-alone.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], EachAlone())
