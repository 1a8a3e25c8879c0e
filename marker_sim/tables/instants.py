"""What the entries of a timeline at rest say together. Pure.

    committed     by a completed commit, deltacommit or replacecommit; so compactions and clusterings complete as well
    completed     by any action
    unfinished    requested or inflight, and not completed
    owner         of a file: the commit that names it, else the instant in its name. But a log file of layout 1, also
                  once its table is of a later version, bears the instant of the base file below it
    undone        a rollback in layout 1 makes blocks of a log file invisible by a command block; both files stay

Audits and the judges of a history read the same index. An audit says what it does not know as undecided or as a note;
a judge knows only what was recorded, and must not accuse, so it leaves out more:

                                an audit (audit/claims.py)          a judge (history/index/table_audit.py)
    layout                      as hoodie.properties says           2 as soon as an entry lies where layout 2 has it
    archived entries            read                                not read: what is missing proves nothing
    name of a file              of any release                      as `parse_data_file` knows it, else no owner
    plan of a rollback, clean   counts beside the record            counts only where the record cannot be read
    pending                     any action; services that are only  writes; services wait for their turn
                                requested wait for their turn
    owner of a log file that    the instant in its first block      the rollback that undid it, else the write that
    bears another's instant                                         put it (history/index/tables.py), else unknown
    base files that are known   those of commits                    stored ones as well
    content of an entry         `tables/entries.py` says what of it is read by whom
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

from marker_sim.tables.entries import TableEntry
from marker_sim.timeline import COMMITS, DataFile, parse_table_file


class Instants:
    """Entries of a timeline, indexed. Paths are relative to the table. layout: of the timeline, 1 or 2.

    files: stored data files that count as known.
    """

    files: Mapping[str, int] = MappingProxyType({})

    def __init__(self, entries: Iterable[TableEntry], layout: int) -> None:
        self.entries = tuple(entries)
        self.layout = layout
        self._saying: dict[tuple[str, tuple[str, ...]], dict[str, list[TableEntry]]] = {}
        self.completed: dict[str, list[TableEntry]] = {}
        for entry in self.entries:
            if entry.done:
                self.completed.setdefault(entry.instant, []).append(entry)

    def parse(self, path: str) -> DataFile | None:
        """What the name of a data file says, None when it is none."""
        return parse_table_file(path)

    @cached_property
    def committed(self) -> dict[str, TableEntry]:
        """Completed commits by instant."""
        return {entry.instant: entry for entry in self.entries if entry.done and entry.action in COMMITS}

    @cached_property
    def unfinished(self) -> dict[str, list[TableEntry]]:
        """The entries of instants that are not completed."""
        found: dict[str, list[TableEntry]] = {}
        for entry in self.entries:
            if not entry.done and not entry.archived and entry.instant not in self.completed:
                found.setdefault(entry.instant, []).append(entry)
        return found

    def saying(self, word: str, *actions: str) -> dict[str, list[TableEntry]]:
        """The entries that have a fact of a kind, by its value, in order. actions: all when none is given."""
        if (word, actions) not in self._saying:
            found = self._saying[word, actions] = {}
            for entry in self.entries:
                for value in entry.of(word) if entry.action in actions or not actions else ():
                    found.setdefault(value, []).append(entry)
        return self._saying[word, actions]

    @cached_property
    def bases(self) -> frozenset[tuple[str, str, str]]:
        """Partition, file id and instant of the base files that are known."""
        files = map(self.parse, (*self.files, *self.saying("wrote")))
        return frozenset(file[:3] for file in files if file is not None and not file.log)

    def groups(self, paths: Iterable[str]) -> frozenset[tuple[str, str]]:
        """The file groups of data files, by partition and file id."""
        return frozenset(file[:2] for file in map(self.parse, paths) if file is not None)

    def bears_base(self, file: DataFile) -> bool:
        """Whether a file is a log file named by the instant of its base file instead of its own."""
        return file.log and (self.layout == 1 or file[:3] in self.bases)
