"""Judges a history too large for memory table by table: the same findings, for the guarantees of one table.

Two passes over the file. The first assigns each event to a table, and so to a group of tables. The second
writes the events to shelves, files of some groups each, and those that concern all tables (server lives, faults,
phases) to another. Then one group after another is judged, as a history in which the others are holes.

Judged are the guarantees about one marker directory or one table. The others compare tables or need every request of
the run, and are inconclusive. So are all guarantees of a table that is too large by itself; sets judge it instead.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from marker_sim.errors import UsageError
from marker_sim.history import Event, Header, History, PartOfEvents
from marker_sim.history.index.calls import STEPS
from marker_sim.judges import judge
from marker_sim.judges.findings import Finding
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.report.columns import events_of, open_parquet
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


WHOLE_MAX = 1_000_000
# Judges compare calls and steps with each other, so small groups are judged faster than large ones.
GROUP_EVENTS = 5_000
_SHELF_EVENTS, _SHELVES_MAX = 200_000, 100
# Guarantees that concern other tables or the whole run.
OF_ALL_TABLES = frozenset({"G6", "G7", "G12", "G21", "G22", "G25"})
_BATCH_ROWS = 100_000
_index = attrgetter("index")
_TAKEN = ("index", "time_ns", "process", "kind", "operation", "table", "path", "caused_by")


def events_in(path: Path) -> int:
    """The number of events in a Parquet history, from its footer."""
    file, _ = open_parquet(path)
    return int(file.metadata.num_rows)


def judge_in_parts(
    path: Path, guarantees: frozenset[str] | None, group_events: int = GROUP_EVENTS, table_max: int = WHOLE_MAX
) -> tuple[Header, tuple[Finding, ...], bool]:
    """The findings about a Parquet history, judged some tables at a time, and whether every table was judged.

    guarantees: ids, None for all. group_events: at most so many events are read at once; table_max: a table with more
    is not judged whole.
    """
    file, header = open_parquet(path)
    tables = _tables_of(file)
    asked = frozenset(each.id for each in GUARANTEES if each.judge) if guarantees is None else guarantees
    if tables.black_box:
        why = "a write path of which only whole writes are recorded is not judged in parts"
        return header, tuple(_undecided(each, why) for each in _ordered(asked)), False
    groups, of = tables.groups(group_events)
    sizes = tables.sizes(groups)
    large = {number for number, size in enumerate(sizes) if size > table_max}
    found: list[tuple[Finding, ...]] = []
    beside = path.parent if os.access(path.parent, os.W_OK) else None
    with TemporaryDirectory(prefix="marker-sim-parts-", dir=beside) as scratch:
        groups_of = [of.get(number, NO_TABLE) for number in range(len(of))]
        shelves = _shelves(sizes)
        _distribute(file, tables, [shelves[group] for group in groups_of], Path(scratch))
        for group, events in _by_group(Path(scratch), tables, groups_of, max(shelves, default=-1)):
            if group not in large:
                found.append(judge(History(header, PartOfEvents(events, tables.times)), asked - OF_ALL_TABLES))
    merged = [
        _merged(each, [f for findings in found for f in findings if f.guarantee == each]) for each in _ordered(asked)
    ]
    return (
        header,
        tuple(
            _doubted(finding, [groups[number] for number in sorted(large)], len(tables.numbers), table_max)
            for finding in merged
        ),
        not large,
    )


def _tables_of(file: pq.ParquetFile) -> TablesOfEvents:
    tables = TablesOfEvents()
    for batch in file.iter_batches(_BATCH_ROWS, columns=list(_TAKEN)):
        for index, *row in zip(*(batch[name].to_pylist() for name in _TAKEN), strict=True):
            if index != len(tables.numbers):
                raise UsageError(f"event number {len(tables.numbers)} has index {index}; they must be the same")
            tables.take(*row)
    return tables


def _shelves(sizes: Sequence[int]) -> list[int]:
    """The shelf of each group; a shelf holds consecutive groups."""
    room = max(_SHELF_EVENTS, sum(sizes) // _SHELVES_MAX)
    shelves, filled = [], 0
    for size in sizes:
        shelves.append(filled // room)
        filled += size
    return shelves


def _distribute(file: pq.ParquetFile, tables: TablesOfEvents, shelf_of: Sequence[int], scratch: Path) -> None:
    """Write the rows of each shelf, and of no table, to a file of its own, in order. shelf_of: by a table's number."""
    writers: dict[int, pq.ParquetWriter] = {}
    begin = 0
    try:
        for batch in file.iter_batches(_BATCH_ROWS):
            table = pa.Table.from_batches([batch])
            numbers = tables.numbers[begin : begin + len(table)]
            begin += len(table)
            shelf = pa.array([NO_TABLE if number == NO_TABLE else shelf_of[number] for number in numbers], pa.int32())
            for each in pc.unique(shelf).to_pylist():
                if each not in writers:
                    writers[each] = pq.ParquetWriter(_file(scratch, each), table.schema, compression="lz4")
                writers[each].write_table(table.filter(pc.equal(shelf, each)))
    finally:
        for writer in writers.values():
            writer.close()


def _file(scratch: Path, shelf: int) -> Path:
    return scratch / f"{'all' if shelf == NO_TABLE else shelf}.parquet"


def _by_group(
    scratch: Path, tables: TablesOfEvents, group_of: Sequence[int], last_shelf: int
) -> Iterator[tuple[int, list[Event]]]:
    """The events of one group after another, with those of no table. group_of: by table number."""
    of_all = list(_events_on(_file(scratch, NO_TABLE)))
    if last_shelf < 0:
        yield 0, of_all
    for shelf in range(last_shelf + 1):
        by_group: dict[int, list[Event]] = {}
        for event in _events_on(_file(scratch, shelf)):
            by_group.setdefault(group_of[tables.numbers[event.index]], []).append(event)
        for group in sorted(by_group):
            yield group, sorted([*by_group.pop(group), *of_all], key=_index)


def _events_on(path: Path) -> Iterator[Event]:
    """The events in a file in order; none where there is no file."""
    if path.is_file():
        yield from events_of(pq.ParquetFile(path))


def _ordered(guarantees: Iterable[str]) -> Iterator[str]:
    return (each.id for each in GUARANTEES if each.id in guarantees and each.judge is not None)


def _undecided(guarantee: str, why: str) -> Finding:
    return Finding(guarantee=guarantee, applicable=True, undecided=why)


def _merged(guarantee: str, findings: Sequence[Finding]) -> Finding:
    """The finding of the whole, merged from those of its parts."""
    if guarantee in OF_ALL_TABLES:
        return _undecided(guarantee, "")
    excused: Counter[str] = Counter()
    for finding in findings:
        excused.update(dict(finding.excused))
    breaches = sorted(
        (breach for finding in findings for breach in finding.breaches),
        key=lambda breach: (breach.evidence, breach.message),
    )
    return Finding(
        guarantee=guarantee,
        applicable=any(finding.applicable for finding in findings),
        judged=sum(finding.judged for finding in findings),
        breaches=tuple(breaches),
        undecided=next((finding.undecided for finding in findings if finding.undecided), ""),
        eligible=sum(finding.eligible for finding in findings),
        excused=tuple(sorted(excused.items())),
    )


def _doubted(finding: Finding, large: Sequence[Sequence[str]], events: int, table_max: int) -> Finding:
    """The finding; where something was not judged it is undecided, with the reason."""
    if finding.guarantee in OF_ALL_TABLES:
        why = f"it is about all tables at once, and is judged up to {WHOLE_MAX:,} events; this history has {events:,}"
        return replace(finding, undecided=why)
    if large:
        names = ", ".join(large[0])
        why = f"{names} has more than {table_max:,} events in one group of tables; judge it with --sets"
        return replace(finding, applicable=True, undecided=why)
    return finding
