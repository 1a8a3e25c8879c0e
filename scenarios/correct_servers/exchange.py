"""Each change builds the whole directory beside the old one, and exchanges the two (renameat2).

python exchange.py PORT ROOT
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from threading import Lock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import TYPE, TYPE_TEXT, alone, check, fresh, insist, lines, text, write
from scenarios.correct_servers.plain_http import Markers, serve

_LIBC = ctypes.CDLL(None, use_errno=True)
_HERE, _EXCHANGE = -100, 2


class Exchanging(Markers):
    """Has its storage alone."""

    def __init__(self, root: str) -> None:
        self._alone = alone(root)
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def create(self, directory: str, name: str) -> bool:
        """What was the directory before is removed then, if that is possible."""

        def once() -> bool:
            known = lines(f"{directory}/MARKERS0")
            if name in known:
                return False
            new = fresh(directory, "next")
            os.makedirs(new)
            for file, data in ((TYPE, TYPE_TEXT), ("MARKERS0", text([*known, name]))):
                write(os.open(f"{new}/{file}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), data)
            if os.path.isdir(directory):
                _exchange(new, directory)
                shutil.rmtree(new, ignore_errors=True)
            else:
                os.rename(new, directory)
            check(directory, f"{directory}/MARKERS0", name)
            return True

        with self._locks[directory]:
            return insist(once)

    def names(self, directory: str) -> list[str]:
        """As they are in storage; without the lock a directory could be emptied on the way to its file."""
        with self._locks[directory]:
            return lines(f"{directory}/MARKERS0")

    def delete(self, directory: str) -> bool:
        """Nothing takes the place of the directory."""
        gone = fresh(directory, "next")
        with self._locks[directory]:
            try:
                os.rename(directory, gone)
            except FileNotFoundError:
                return False
            shutil.rmtree(gone, ignore_errors=True)
            return True


def _exchange(one: str, other: str) -> None:
    if _LIBC.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), one)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Exchanging(sys.argv[2]))
