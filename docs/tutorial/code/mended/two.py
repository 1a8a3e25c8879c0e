"""A timeline server for tables that have more than one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from threading import RLock

from http_markers import read, remove, serve, write


class Markers:
    def __init__(self, storage: str) -> None:
        self.lock = RLock()
        self.storage = storage

    @contextmanager
    def alone(self) -> Iterator[None]:
        with open(f"{self.storage}/.lock", "w") as file:
            flock(file, LOCK_EX)
            yield

    def names(self, directory: str) -> list[str]:
        return read(directory)

    def create(self, directory: str, name: str) -> bool:
        with self.lock, self.alone():
            names = read(directory)
            if name in names:
                return False
            write(directory, [*names, name])
            return True

    def delete(self, directory: str) -> bool:
        with self.lock, self.alone():
            return remove(directory)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Markers(sys.argv[2]))
