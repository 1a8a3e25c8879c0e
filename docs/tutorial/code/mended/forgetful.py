"""A timeline server that writes every marker to storage before it answers."""

import sys
from threading import Lock

from http_markers import read, remove, serve, write


class Forgetful:
    def __init__(self) -> None:
        self.lock = Lock()

    def names(self, directory: str) -> list[str]:
        return read(directory)

    def create(self, directory: str, name: str) -> bool:
        with self.lock:
            names = read(directory)
            if name in names:
                return False
            write(directory, [*names, name])
            return True

    def delete(self, directory: str) -> bool:
        with self.lock:
            return remove(directory)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Forgetful())
