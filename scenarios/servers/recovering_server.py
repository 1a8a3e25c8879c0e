"""A server with a journal and a state at the root of storage; a start puts what the journal has more into the state.

    create, delete   a line of journal.log, terminated
    a start          state.json and the lines after it ──► state.json anew, by rename ──► journal.log is emptied

It ends when storage fails at a start, and comes up when it is started again. What it keeps promises only in this order;
`--broken` has others:

    empties-first    the journal is emptied before the state is written: a death between them loses what was answered
    needs-a-hand     a start that finds that the last one was cut short ends, for ever

    python recovering_server.py PORT ROOT [--broken WHAT]
    python recovering_server.py --names DIR          print the names of a directory, for --reader
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock

JOURNAL, STATE, BEGUN = "journal.log", "state.json", "recovery-begun"
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.plain_http import Markers, serve  # noqa: E402


def stored(root: Path) -> tuple[dict[str, list[str]], int]:
    """The names by directory, and the length of the journal up to its last whole line."""
    names: dict[str, list[str]] = {}
    with suppress(FileNotFoundError):
        names = json.loads((root / STATE).read_bytes())
    lines = b""
    with suppress(FileNotFoundError):
        data = (root / JOURNAL).read_bytes()
        lines = data[: data.rfind(b"\n") + 1]
    for line in lines.splitlines():
        apply(names, *json.loads(line))
    return names, len(lines)


def apply(names: dict[str, list[str]], directory: str, name: str | None) -> None:
    """A line. name: None for a deletion."""
    if name is None:
        names.pop(directory, None)
    elif name not in names.setdefault(directory, []):
        names[directory].append(name)


class Recovering(Markers):
    """One request at a time changes the journal; its end is what was answered."""

    def __init__(self, root: Path, broken: str) -> None:
        self._one = Lock()
        if broken == "needs-a-hand":
            (root / BEGUN).touch(exist_ok=False)
        self._names, self._length = stored(root)
        self._file = os.open(root / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        if self._length:
            for step in (self._empty, self._save) if broken == "empties-first" else (self._save, self._empty):
                step(root)
        (root / BEGUN).unlink(missing_ok=True)

    def _save(self, root: Path) -> None:
        (root / f"{STATE}.tmp").write_text(json.dumps(self._names), encoding="utf-8")
        (root / f"{STATE}.tmp").rename(root / STATE)

    def _empty(self, root: Path) -> None:
        os.ftruncate(self._file, 0)
        self._length = 0

    def _append(self, directory: str, name: str | None) -> None:
        os.ftruncate(self._file, self._length)  # Of what failed there may be a part.
        line = json.dumps([directory, name]).encode() + b"\n"
        written = 0
        while written < len(line):
            written += os.write(self._file, line[written:])
        self._length += len(line)
        apply(self._names, directory, name)

    def create(self, directory: str, name: str) -> bool:
        """By a line, unless it is there."""
        with self._one:
            new = name not in self._names.get(directory, ())
            if new:
                self._append(directory, name)
            return new

    def names(self, directory: str) -> list[str]:
        """From memory."""
        with self._one:
            return list(self._names.get(directory, ()))

    def delete(self, directory: str) -> bool:
        """By a line, if there is anything."""
        with self._one:
            there = directory in self._names
            if there:
                self._append(directory, None)
            return there


def main() -> None:
    """Serve, or print."""
    first, second, *rest = sys.argv[1:]
    if first == "--names":
        root = next((above for above in Path(second).parents if (above / JOURNAL).exists()), None)
        for name in stored(root)[0].get(second, []) if root else []:
            print(name)
        return
    serve(int(first), second, Recovering(Path(second), rest[1] if rest else ""))


if __name__ == "__main__":
    main()
