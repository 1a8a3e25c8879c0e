"""Odd: an append-only log, each entry an object of its own that is never changed; the next number is put if absent.

What was read is remembered as long as the oldest entry is the same: entries are deleted from the oldest on, and after
a deletion the numbers begin again, so that entry 5 may be another one. Without memory a create reads the whole log,
and two dozen writers at once take longer than anybody waits.
"""

from __future__ import annotations

import json

from marker_sim.markers.store import Context, Created
from marker_sim.seams import Condition, Conflicted, PreconditionFailed
from properties.correct.shape import AGAIN_MS, Shape

DIGITS = 9


class Markers(Shape):
    """Creates read what is new, then append; who finds the number taken reads again."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.oldest, self.known = b"", dict[int, str]()

    def create(self, name: str) -> Created:
        """The first entry with the name made it."""
        self.check(name)
        while True:
            entries = self._entries()
            if name in entries.values():
                return Created.EXISTS
            entry = json.dumps([name, self.runtime.unique_id()]).encode()
            try:
                self.storage.put(self._path(max(entries, default=0) + 1), entry, Condition.IF_ABSENT)
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                continue
            return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """All entries; one that is gone was deleted meanwhile."""
        return tuple(self._entries().values())

    def _entries(self) -> dict[int, str]:
        """Names by number; the memory is replaced as a whole, for other requests read it meanwhile."""
        parts = (path[len(self.prefix) :] for path in self.storage.list(f"{self.prefix}e"))
        numbers = [int(part[1:]) for part in parts if part[1:].isdigit() and len(part) == DIGITS + 1]
        first = self.read(self._path(numbers[0])) if numbers else None
        if first is None:
            return {}
        known = self.known if first.data == self.oldest else {}
        entries = {number: known[number] for number in numbers if number in known}
        fresh = self.read_all(self._path(number) for number in numbers if number not in entries)
        for number in numbers:
            if (data := fresh.get(self._path(number))) is not None:
                entries[number] = json.loads(data)[0]
        self.oldest, self.known = first.data, entries
        return entries

    def _path(self, number: int) -> str:
        return f"{self.prefix}e{number:0{DIGITS}}"
