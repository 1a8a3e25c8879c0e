"""A deletion renames the directory; a thread removes it later, or the next server does. Two servers share locks.

python aside.py PORT ROOT
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import add, fresh, insist, lines, locked
from scenarios.correct_servers.plain_http import Markers, serve

LATER_S = 0.3


class Aside(Markers):
    """Remembers nothing but what it has to remove."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._gone: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._sweep, daemon=True).start()

    def create(self, directory: str, name: str) -> bool:
        """The file is replaced."""
        with locked(self._root, directory):
            return insist(lambda: add(directory, name))

    def names(self, directory: str) -> list[str]:
        """As they are in storage."""
        return lines(f"{directory}/MARKERS0")

    def delete(self, directory: str) -> bool:
        """Nothing of it is at its path any more; what failed may have been done."""
        gone = fresh(directory, "gone")
        with locked(self._root, directory):
            try:
                os.rename(directory, gone)
            except FileNotFoundError:
                return False
            finally:
                self._gone.put(gone)
        return True

    def _sweep(self) -> None:
        for above, below, _ in os.walk(self._root):
            for name in below:
                if above.endswith("/.hoodie/.temp") and ".gone." in name:
                    self._gone.put(f"{above}/{name}")
        while gone := self._gone.get():
            time.sleep(LATER_S)
            try:
                with suppress(FileNotFoundError):
                    shutil.rmtree(gone)
            except OSError:
                self._gone.put(gone)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Aside(sys.argv[2]))
