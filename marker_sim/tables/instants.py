"""What the entries of a timeline at rest say together. Pure.

    committed     by a completed commit, deltacommit or replacecommit; so compactions and clusterings complete as well
    completed     by any action
    unfinished    requested or inflight, and not completed
    rolled back   a rollback or restore that is completed names it, by its record or by its plan
    claimed       a file that a completed commit wrote
    owner         of a file: the commit that names it, else the instant in its name. But a log file of layout 1, also
                  once its table is of a later version, bears the instant of the base file below it
    undone        a rollback in layout 1 makes blocks of a log file invisible by a command block; both files stay
    hidden        what entries may have said that can be read neither in a record nor in a plan

Audits and the judges of a history read the same index. An audit says what it does not know as undecided or as a note;
a judge knows only what was recorded, and must not accuse, so it leaves out more:

                                an audit (audit/claims.py)          a judge (history/index/table_audit.py)
    layout                      as hoodie.properties says           2 as soon as an entry lies where layout 2 has it
    archived entries            read                                not read: what is missing proves nothing
    plans that cannot be read   hide what they said                 hide nothing: only what was completed counts
    pending                     any action; services that are only  writes; services wait for their turn
                                requested wait for their turn
    pending and rolled back     pending: the rollback may run again over: what it left is a breach
    owner of a log file that    the instant in its first block      the rollback that undid it, else the write that
    bears another's instant                                         put it (history/index/tables.py), else unknown
    base files that are known   those of commits                    stored ones as well
    content of an entry         `tables/entries.py` says what of it is read by whom
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from marker_sim.tables.entries import TableEntry
from marker_sim.timeline import COMMITS, DataFile, parse_table_file, stored_path


class Claim(NamedTuple):
    """What a commit says of a file it wrote. size: -1 when unknown; file: None where the name is none of Hudi's."""

    instant: str
    size: int
    archived: bool
    file: DataFile | None


class Instants:
    """Entries of a timeline, indexed. Paths are relative to the table. layout: of the timeline, 1 or 2.

    archive_error: why archived entries are not known, "" when they are.
    files: stored data files that count as known.
    """

    files: Mapping[str, int] = MappingProxyType({})

    def __init__(self, entries: Iterable[TableEntry], layout: int, archive_error: str = "") -> None:
        self.entries = tuple(entries)
        self.layout = layout
        self.archive_error = archive_error
        self._saying: dict[tuple[str, tuple[str, ...]], dict[str, list[TableEntry]]] = {}
        self.completed: dict[str, list[TableEntry]] = {}
        for entry in self.entries:
            if entry.done:
                self.completed.setdefault(entry.instant, []).append(entry)

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

    @cached_property
    def rolled_back(self) -> dict[str, TableEntry]:
        """The newest completed rollback or restore of each instant."""
        return {
            instant: self.completed[entry.instant][-1]
            for instant, entries in self.saying("rolled-back").items()
            for entry in entries
            if entry.instant in self.completed
        }

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """The files that completed commits wrote, by the path where they are stored; of several commits the newest,
        and the largest of their sizes.
        """
        found: dict[str, Claim] = {}
        for instant in sorted(self.completed):
            for entry in self.completed[instant]:
                if entry.action not in COMMITS:
                    continue
                sizes = {**entry.numbers("least"), **entry.numbers("size")}
                for named in entry.of("wrote"):
                    path = stored_path(named)
                    before = found[path].size if path in found else -1
                    size = max(before, int(sizes.get(named, -1)))
                    found[path] = Claim(instant, size, entry.archived, parse_table_file(named))
        return found

    def saying(self, word: str, *actions: str) -> dict[str, list[TableEntry]]:
        """The entries that have a fact of a kind, by its value, in order. actions: all when none is given."""
        if (word, actions) not in self._saying:
            found = self._saying[word, actions] = {}
            for entry in self.entries:
                for value in entry.of(word) if entry.action in actions or not actions else ():
                    found.setdefault(value, []).append(entry)
        return self._saying[word, actions]

    def deleting(self, path: str, *actions: str) -> list[TableEntry]:
        """The entries which say that they delete a file, plans before records. actions: all when none is given."""
        return [entry for word in ("will-delete", "deleted") for entry in self.saying(word, *actions).get(path, ())]

    def hidden(self, *actions: str, pending: bool = False) -> str:
        """The reason why not all is known that these actions did, "" when it is. pending: those not completed count."""
        if self.archive_error:
            return self.archive_error
        plans = {e.instant for e in self.entries if not e.error and (e.of("will-delete") or e.of("rolled-back"))}
        for entry in self.entries:
            if entry.error and entry.action in actions and (entry.done or pending) and entry.instant not in plans:
                return f"{entry.path} cannot be read: {entry.error}"
        return ""

    @cached_property
    def bases(self) -> frozenset[tuple[str, str, str]]:
        """Partition, file id and instant of the base files that are known."""
        files = map(parse_table_file, (*self.files, *self.saying("wrote")))
        return frozenset(file[:3] for file in files if file is not None and not file.log)

    def groups(self, paths: Iterable[str]) -> frozenset[tuple[str, str]]:
        """The file groups of data files, by partition and file id."""
        return frozenset(file[:2] for file in map(parse_table_file, paths) if file is not None)

    def bears_base(self, file: DataFile) -> bool:
        """Whether a file is a log file named by the instant of its base file instead of its own."""
        return file.log and (self.layout == 1 or file[:3] in self.bases)
