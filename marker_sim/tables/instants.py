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
    needed        a committed file in the newest slice of a group that nothing replaced: no record excuses its loss,
                  where the timeline reaches back to its commit
    reaches back  from the first archived instant on, without an archive from the first active one that no savepoint
                  keeps there: were an instant after it ever requested, an entry or a rollback would say so

Audits and the judges of a history read the same index. An audit says what it does not know as undecided or as a note;
a judge knows only what was recorded, and must not accuse, so it leaves out more:

                                an audit (audit/)                   a judge (history/index/table_audit.py)
    layout                      as hoodie.properties says           2 as soon as an entry lies where layout 2 has it
    archived entries            read                                not read: what is missing proves nothing
    plans that cannot be read   hide what they said                 hide nothing: only what was completed counts
    pending                     any action; services that are only  writes; services wait for their turn
                                requested wait for their turn
    pending and rolled back     pending: the rollback may run again over: what it left is a breach
    owner of a log file that    the instant in its first block      the rollback that undid it, else the write that
    bears another's instant                                         put it (history/index/tables.py), else unknown
    base files that are known   those of commits                    stored ones as well
    size of a committed file    not less than its commit says       of a base file exactly that
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from marker_sim.tables.entries import TableEntry
from marker_sim.timeline import COMMITS, UNDOING, DataFile, parse_table_file, stored_path


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

    def ended(self, instant: str) -> TableEntry | None:
        """The entry by which an instant is over: of its completion, else of its rollback."""
        return self.completed[instant][0] if instant in self.completed else self.rolled_back.get(instant)

    def saying(self, word: str, *actions: str) -> dict[str, list[TableEntry]]:
        """The entries that have a fact of a kind, by its value, in order. actions: all when none is given."""
        if (word, actions) not in self._saying:
            found = self._saying[word, actions] = {}
            for entry in self.entries:
                for value in entry.of(word) if entry.action in actions or not actions else ():
                    found.setdefault(value, []).append(entry)
        return self._saying[word, actions]

    def deleting(self, path: str, *actions: str) -> list[TableEntry]:
        """The entries which say that they delete a committed file, plans before records. actions: all when none is
        given.
        """
        claim = self.claims.get(path)
        partition = claim.file.partition if claim and claim.file else ""
        dropped = self.saying("dropped", *actions).get(partition, ())
        found = [entry for entry in dropped if claim and entry.instant > claim.instant]
        return found + [e for word in ("will-delete", "deleted") for e in self.saying(word, *actions).get(path, ())]

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

    @cached_property
    def unread(self) -> dict[str, TableEntry]:
        """Completed commits whose files are not known, by instant."""
        return {instant: entry for instant, entry in self.committed.items() if entry.error}

    def replacing(self, file: DataFile) -> list[TableEntry]:
        """The commits that replaced the group of a committed file."""
        entries = self.saying("replaced").get("|".join(file[:2]), ())
        return [entry for entry in entries if entry.instant >= file.instant]

    @cached_property
    def newest_base(self) -> dict[tuple[str, str], str]:
        """The instant of the newest committed base file of a file group, by partition and file id."""
        found: dict[tuple[str, str], str] = {}
        for claim in self.claims.values():
            file = claim.file
            if file is not None and not file.log:
                found[file[:2]] = max(file.instant, found.get(file[:2], ""))
        return found

    def is_current(self, file: DataFile) -> bool:
        """Whether a committed file is in the newest slice of its group, as far as commits can be read.

        A log file that bears its own instant is in the newest slice whose base file was begun before the log file's
        commit was completed. Where that time is of another length than the newest base file's instant, the instant
        counts (HoodieFileGroup.getBaseInstantTime and CompletionTimeQueryViewV2 of 1.2.0).
        """
        newest = self.newest_base.get(file[:2], "")
        own = file.log and not self.bears_base(file)
        completed = self.committed[file.instant].completion if own and file.instant in self.committed else ""
        return (completed if len(completed) == len(newest) else file.instant) >= newest

    def convicts(self, claim: Claim) -> bool:
        """Whether the active timeline proves that readers need the file of a commit, whatever was recorded of it.

        Not where a later commit cannot be read, which may have made a newer slice, nor where entries between may be
        gone, as behind a savepoint.
        """
        known = not claim.archived and self.covers(claim.instant) and max(self.unread, default="") <= claim.instant
        return known and claim.file is not None and self.is_needed(claim.file)

    def is_needed(self, file: DataFile) -> bool:
        """Whether readers need a committed file: it is in the newest slice of a group that nothing replaced."""
        return self.is_current(file) and not self.replacing(file)

    @cached_property
    def command_groups(self) -> frozenset[tuple[str, str]]:
        """The file groups with a command block of a completed rollback, by partition and file id."""
        return self.groups(self.saying("appended"))

    @cached_property
    def first(self) -> str:
        """The instant from which on the timeline is known; "" when nothing is."""
        archived = [entry.instant for entry in self.entries if entry.archived]
        active = {entry.instant for entry in self.entries if not entry.archived}
        kept = {entry.instant for entry in self.entries if entry.action == "savepoint" and not entry.archived}
        if archived and not self.archive_error:
            return min(archived)
        return min(active - kept, default="")

    def covers(self, instant: str) -> bool:
        """Whether the timeline would know of an instant."""
        return bool(self.first) and instant >= self.first

    @cached_property
    def hides_cleans(self) -> str:
        """The reason why a file may have been deleted without a readable record or plan, "" when it cannot."""
        return self.hidden("clean", *UNDOING, pending=True)
