"""Requests that change a directory wait in a queue for one of forty threads, which writes all of its creates at once.

What storage refuses is tried again for two seconds before it is answered.

    python patient.py PORT ROOT
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import alone, check, insist, lines, remove, replace, text, typed
from scenarios.correct_servers.plain_http import Markers, serve

THREADS, BATCH_S = 40, 0.02
PATIENCE_S, AGAIN_S = 2.0, 0.05
T = TypeVar("T")


class Waiting(NamedTuple):
    """A request. name: "" for a deletion."""

    name: str
    done: Future[bool]


class Patient(Markers):
    """Has its storage alone. A directory is in the queue, or with one thread, as long as requests of it wait."""

    def __init__(self, root: str) -> None:
        self._alone = alone(root)
        self._lock = Lock()
        self._waiting: dict[str, list[Waiting]] = {}
        self._queue: SimpleQueue[str] = SimpleQueue()
        for _ in range(THREADS):
            Thread(target=self._work, daemon=True).start()

    def create(self, directory: str, name: str) -> bool:
        """With the others that wait."""
        return self._put(directory, name)

    def delete(self, directory: str) -> bool:
        """In its turn."""
        return self._put(directory, "")

    def names(self, directory: str) -> list[str]:
        """As they are in storage."""
        return _patiently(lambda: lines(f"{directory}/MARKERS0"))

    def _put(self, directory: str, name: str) -> bool:
        one = Waiting(name, Future())
        with self._lock:
            if directory not in self._waiting:
                self._queue.put(directory)
            self._waiting.setdefault(directory, []).append(one)
        return one.done.result()

    def _work(self) -> None:
        while directory := self._queue.get():
            time.sleep(BATCH_S)
            with self._lock:
                batch, self._waiting[directory] = self._waiting[directory], []
            creates = [one for one in batch if one.name]
            _answer(creates, partial(_add, directory, [one.name for one in creates]))
            for one in batch:
                if not one.name:
                    _answer([one], partial(_remove, directory))
            with self._lock:
                if self._waiting[directory]:
                    self._queue.put(directory)
                else:
                    del self._waiting[directory]


def _answer(batch: list[Waiting], do: Callable[[], list[bool]]) -> None:
    try:
        results = _patiently(do) if batch else []
    except OSError as error:
        for one in batch:
            one.done.set_exception(error)
    else:
        for one, result in zip(batch, results, strict=True):
            one.done.set_result(result)


def _patiently(do: Callable[[], T]) -> T:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return insist(do)
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(AGAIN_S)


def _remove(directory: str) -> list[bool]:
    return [remove(directory)]


def _add(directory: str, names: list[str]) -> list[bool]:
    path = f"{directory}/MARKERS0"
    typed(directory)
    known = lines(path)
    new = [name for name in dict.fromkeys(names) if name not in known]
    if new:
        replace(path, text([*known, *new]))
        check(directory, path, new[-1])
    return [name in new and name not in names[:at] for at, name in enumerate(names)]


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Patient(sys.argv[2]))
