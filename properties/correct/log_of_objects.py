"""Odd: an append-only log, each entry an object of its own that is never changed; the next number is put if absent.

The object `head` names the log. It is the first that a deletion takes, and who finds none begins another log, in a
folder of its own: would the numbers begin again in the same one, then whoever read the log before a deletion could
append at a number where those who came after it do not look yet, and one name would be created twice. What was read of
a log is remembered: without memory a create reads all of it, and two dozen writers at once take longer than anybody
waits.
"""

from __future__ import annotations

from marker_sim.markers.store import Context, Created
from marker_sim.seams import Condition, Conflicted, PreconditionFailed
from properties.correct.shape import AGAIN_MS, Shape

DIGITS = 9


class Markers(Shape):
    """Creates read what is new, then append; who finds the number taken reads again."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.head = f"{self.prefix}head"
        self.memory = ("", dict[int, str]())

    def create(self, name: str) -> Created:
        """The first entry with the name made it, if the log that it is in is still the one that counts."""
        self.check(name)
        while True:
            log = self._log()
            entries = self._entries(log)
            if name in entries.values():
                return Created.EXISTS
            path, content = (
                (self._path(log, max(entries, default=0) + 1), name) if log else (self.head, self.runtime.unique_id())
            )
            try:
                self.storage.put(path, content.encode(), Condition.IF_ABSENT)
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                continue
            if log and self._log() == log:
                return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """All entries; one that is gone was deleted meanwhile."""
        return tuple(self._entries(self._log()).values())

    def delete(self) -> bool:
        """The head first: from then on there is no log."""
        paths = self.storage.list(self.prefix)
        for path in sorted(paths, key=lambda path: path != self.head):
            self.remove(path)
        return bool(paths)

    def _log(self) -> str:
        head = self.read(self.head)
        return head.data.decode() if head else ""

    def _entries(self, log: str) -> dict[int, str]:
        """Names by number; the memory of a log is replaced as a whole, for other requests read it meanwhile."""
        if not log:
            return {}
        remembered, known = self.memory
        parts = (path[-DIGITS:] for path in self.storage.list(f"{self.prefix}{log}/"))
        numbers = [int(part) for part in parts if part.isdigit()]
        entries = {number: known[number] for number in numbers if remembered == log and number in known}
        fresh = self.read_all(self._path(log, number) for number in numbers if number not in entries)
        for number in numbers:
            if (data := fresh.get(self._path(log, number))) is not None:
                entries[number] = data.decode()
        self.memory = (log, entries)
        return entries

    def _path(self, log: str, number: int) -> str:
        return f"{self.prefix}{log}/{number:0{DIGITS}}"
