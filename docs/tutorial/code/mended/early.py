"""A timeline server that collects the creates of 0.3 s, and writes them together."""

import sys
import time
from concurrent.futures import Future
from threading import Lock, Thread

from http_markers import read, remove, serve, write

INTERVAL_S = 0.3


class Batches:
    def __init__(self) -> None:
        self.lock = Lock()
        self.waiting: dict[str, dict[str, Future[None]]] = {}
        Thread(target=self.run, daemon=True).start()

    def names(self, directory: str) -> list[str]:
        return read(directory)

    def create(self, directory: str, name: str) -> bool:
        with self.lock:
            if name in read(directory):
                return False
            waiting = self.waiting.setdefault(directory, {})
            new = name not in waiting
            written = waiting.setdefault(name, Future())
        written.result()
        return new

    def run(self) -> None:
        while True:
            time.sleep(INTERVAL_S)
            with self.lock:
                for directory, creates in self.waiting.items():
                    self.write_batch(directory, creates)
                self.waiting = {}

    def write_batch(self, directory: str, creates: dict[str, Future[None]]) -> None:
        try:
            write(directory, [*read(directory), *creates])
        except OSError as error:
            for written in creates.values():
                written.set_exception(error)
        else:
            for written in creates.values():
                written.set_result(None)

    def delete(self, directory: str) -> bool:
        with self.lock:
            return remove(directory)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Batches())
