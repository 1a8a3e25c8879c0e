"""The table that each event of a history belongs to, found in one pass."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

from marker_sim.history.index.calls import STEPS
from marker_sim.timeline import HOODIE

NO_TABLE = -1
_SEVERAL = "\0"  # Not the name of a table.
_INSIDE = f"/{HOODIE}/"
_OF_DRIVERS = STEPS - {"attempt"}
_COMPLETIONS = frozenset({"ok", "fail", "info"})
_OF_FILES = frozenset({"file", "raw-file", "snapshot"})
_OF_WHOLE_WRITES = frozenset({"write", "audit"})


class TablesOfEvents:
    """The tables of events. black_box: whether there are whole writes, whose tables are not distinguished.

    numbers: of each event the number of its table, NO_TABLE for one that concerns all. times: its `time_ns`.
    """

    def __init__(self) -> None:
        self.numbers = array("i")
        self.times = array("q")
        self.black_box = False
        self._known: dict[str, int] = {}
        self._driven: dict[str, str] = {}
        self._together: dict[str, str] = {}
        self._acts_in: dict[str, str] = {}

    def take(
        self,
        time_ns: int,
        process: str,
        kind: str,
        operation: str,
        table: str | None,
        path: str | None,
        caused_by: int | None,
    ) -> None:
        """Take in the next event."""
        number = NO_TABLE
        if operation in _OF_WHOLE_WRITES:
            self.black_box = True
        if kind == "fault":
            pass
        elif table is not None:
            number = self._number(table)
            if kind == "invoke" and self._acts_in.setdefault(process, table) != table:
                self._acts_in[process] = _SEVERAL
            if operation == "hostile" and path is not None and (at := path.find(_INSIDE)) > 0:
                self._number(path[:at])
                self._join(table, path[:at])
            if operation in _OF_DRIVERS:
                self._join(table, self._driven.setdefault(process, table))
        elif kind in _COMPLETIONS or operation == "arrived":
            if caused_by is not None and 0 <= caused_by < len(self.numbers):
                number = self.numbers[caused_by]
        elif operation == "exited":
            number = self._known.get(self._acts_in.get(process, _SEVERAL), NO_TABLE)
        elif path is not None and (kind == "effect" or operation in _OF_FILES):
            number = self._of_path(path)
        self.numbers.append(number)
        self.times.append(time_ns)

    def groups(self, events_max: int) -> tuple[list[list[str]], dict[int, int]]:
        """Tables in groups of about `events_max` events, and the group of each table's number.

        Tables of which one lies below the other are together, for a path may belong to either, and so are those that
        one driver writes, or one hostile request names, because judges of one table need the events of the other.
        """
        counts = Counter(self.numbers)
        by_root: dict[str, list[str]] = {}
        for table in sorted(self._known):
            for at, letter in enumerate(table):
                if letter == "/" and table[:at] in self._known:
                    self._join(table, table[:at])
        for table in sorted(self._known):
            by_root.setdefault(self._root(table), []).append(table)
        groups: list[list[str]] = []
        size = events_max
        for tables in by_root.values():
            more = sum(counts[self._known[table]] for table in tables)
            if size + more > events_max:
                groups.append([])
                size = 0
            groups[-1] += tables
            size += more
        return groups, {self._known[table]: at for at, tables in enumerate(groups) for table in tables}

    def sizes(self, groups: Iterable[list[str]]) -> list[int]:
        """The number of events of the tables of each group."""
        counts = Counter(self.numbers)
        return [sum(counts[self._known[table]] for table in tables) for tables in groups]

    def _join(self, one: str, other: str) -> None:
        first, second = self._root(one), self._root(other)
        if first != second:
            self._together[max(first, second)] = min(first, second)

    def _root(self, table: str) -> str:
        while table in self._together:
            table = self._together[table]
        return table

    def _number(self, table: str) -> int:
        return self._known.setdefault(table, len(self._known))

    def _of_path(self, path: str) -> int:
        """The table of a path: of its timeline or marker directory, else the innermost known table around it."""
        at = path.find(_INSIDE)
        if at > 0:
            return self._number(path[:at])
        while "/" in path:
            path = path.rpartition("/")[0]
            if path in self._known:
                return self._known[path]
        return NO_TABLE
