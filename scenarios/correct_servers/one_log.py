"""One log file for all tables: creates and deletions are lines, appended by one thread under a lock of the host.

A line counts when it is terminated; what a dead server left torn is cut off before the next line. Each turn of the
thread reads what other servers have appended, so its memory is the log's.

    python one_log.py PORT ROOT            serve
    python one_log.py --names DIR          print the names of a directory, for --reader
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import sys
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

LOG = "markers.log"
TURN_MAX = 64
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.


class Asked(NamedTuple):
    """what: create, delete or names."""

    what: str
    directory: str
    name: str
    answer: Future[bool | list[str]]


class Log:
    """The file, and what it says so far: names by directory, in the order in which they were made."""

    def __init__(self, path: Path) -> None:
        self.stored: dict[str, dict[str, None]] = {}
        self._read = 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def turn(self, batch: list[Asked]) -> None:
        """Read, decide, append, answer. What could not be appended is cut off again, and nothing of it is answered."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._catch_up(os.fstat(self._file).st_size)
            os.ftruncate(self._file, self._read)
            lines: list[tuple[str, str, str]] = []
            answers: list[bool | list[str]] = []
            for what, directory, name, _ in batch:
                here = self.stored.get(directory, {})
                new = name not in here if what == "create" else directory in self.stored
                if what == "names":
                    answers.append(list(here))
                    continue
                answers.append(new)
                if new:
                    lines.append((what, directory, name))
                    self._apply(*lines[-1])
            try:
                self._append(lines)
            except OSError:
                os.ftruncate(self._file, self._read)
                self.stored, self._read = {}, 0
                raise
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        for asked, answer in zip(batch, answers, strict=True):
            asked.answer.set_result(answer)

    def _append(self, lines: Iterable[tuple[str, str, str]]) -> None:
        data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        at = self._read
        while data:
            written = os.pwrite(self._file, data, at)
            data, at = data[written:], at + written
        self._read = at

    def _catch_up(self, size: int) -> None:
        data = os.pread(self._file, size - self._read, self._read)
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.decode().split("\n")[:-1]:
            self._apply(*json.loads(line))
        self._read += len(whole)

    def _apply(self, what: str, directory: str, name: str) -> None:
        if what == "delete":
            self.stored.pop(directory, None)
        else:
            self.stored.setdefault(directory, {})[name] = None


def main() -> None:
    """Serve, or print."""
    first, second = sys.argv[1:3]
    if first == "--names":
        path = next((above / LOG for above in Path(second).parents if (above / LOG).is_file()), None)
        names: dict[str, None] = {}
        data = path.read_bytes() if path else b""
        for line in data[: data.rfind(b"\n") + 1].decode().split("\n")[:-1]:
            what, directory, name = json.loads(line)
            if directory == second:
                names = {} if what == "delete" else names | {name: None}
        for name in names:
            print(name)
        return
    from scenarios.correct_servers.plain_http import Markers, serve

    inbox: queue.SimpleQueue[Asked] = queue.SimpleQueue()

    class OneLog(Markers):
        """Everything is asked of the one thread."""

        def _ask(self, what: str, directory: str, name: str = "") -> bool | list[str]:
            answer: Future[bool | list[str]] = Future()
            inbox.put(Asked(what, directory, name, answer))
            return answer.result()

        def create(self, directory: str, name: str) -> bool:
            return bool(self._ask("create", directory, name))

        def names(self, directory: str) -> list[str]:
            names = self._ask("names", directory)
            assert isinstance(names, list)
            return names

        def delete(self, directory: str) -> bool:
            return bool(self._ask("delete", directory))

    _start(Log(Path(second, LOG)), inbox)
    serve(int(first), second, OneLog())


def _start(log: Log, inbox: queue.SimpleQueue[Asked]) -> None:
    import threading

    def own() -> None:
        while True:
            batch = [inbox.get()]
            while len(batch) < TURN_MAX and not inbox.empty():
                batch.append(inbox.get())
            try:
                log.turn(batch)
            except OSError as error:
                for asked in batch:
                    asked.answer.set_exception(error)

    threading.Thread(target=own, daemon=True).start()


if __name__ == "__main__":
    main()
