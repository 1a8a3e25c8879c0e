"""A process for each connection, which ends at the first error of storage; nothing is remembered. Servers share locks.

python crash_only.py PORT ROOT
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import add, insist, lines, locked, remove
from scenarios.correct_servers.plain_http import Markers, serve

T = TypeVar("T")


class CrashOnly(Markers):
    """Its client sees the end of a process as a connection that was cut."""

    def __init__(self, root: str) -> None:
        self._root = root

    def create(self, directory: str, name: str) -> bool:
        """The file is replaced."""

        def do() -> bool:
            with locked(self._root, directory):
                return insist(lambda: add(directory, name))

        return _or_die(do)

    def names(self, directory: str) -> list[str]:
        """As they are in storage."""
        return _or_die(lambda: lines(f"{directory}/MARKERS0"))

    def delete(self, directory: str) -> bool:
        """One file after the other."""

        def do() -> bool:
            with locked(self._root, directory):
                return remove(directory)

        return _or_die(do)


def _or_die(do: Callable[[], T]) -> T:
    try:
        return do()
    except OSError as error:
        print(os.getpid(), error, file=sys.stderr, flush=True)
        os._exit(1)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], CrashOnly(sys.argv[2]), forking=True)
