"""A timeline server for tables that have more than one."""

import os
import sys
from threading import RLock

from http_markers import read, remove, serve, write


class Markers:
    def __init__(self, storage: str) -> None:
        self.lock = RLock()
        self.known: dict[str, list[str]] = {}

    def names(self, directory: str) -> list[str]:
        with self.lock:
            if not os.path.exists(f"{directory}/MARKERS0"):  # Somebody deleted it.
                return []
            if directory not in self.known:
                self.known[directory] = read(directory)
            return self.known[directory]

    def create(self, directory: str, name: str) -> bool:
        with self.lock:
            names = self.names(directory)
            if name in names:
                return False
            write(directory, [*names, name])
            self.known[directory] = [*names, name]
            return True

    def delete(self, directory: str) -> bool:
        with self.lock:
            return remove(directory)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Markers(sys.argv[2]))
