"""One audit of a table of a black-box write path at rest, as a history has it: what its timeline says, the owners of
its files, and known losses.

`marker_sim.tables.instants` says what entries mean, and in what a judge differs from `marker-sim audit`. A file that a
clean deleted, or plans to delete, may be missing where readers do not need it, and so may one that a restore deleted.
Where entries were archived, or neither record nor plan of a clean can be read, missing files prove nothing; where it is
a rollback's, unknown instants prove nothing. A rollback must not delete committed files.
Limits: facts are those that the kit recorded of entries (docs/history.md); the metadata table is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.tables.entries import TableEntry, by_word
from marker_sim.tables.instants import Instants
from marker_sim.timeline import ROLLBACK, UNDOING, WRITES, parse_table_file

CLEANING = ("clean", "restore")
_SERVICES = UNDOING.union(CLEANING)
_LATER_TIMELINE = "/.hoodie/timeline/"


class Audit(Instants):
    """One audit of one table.

    begin, end: events.
    write: the write that had ended before, None when unknown.
    files: data paths relative to the table, with their event; sizes: in bytes.
    archives: events of archived entries, by path.
    markers: events of the files that are left below the marker directory of an instant.
    writers: instants of log files, as far as effects show them.
    """

    def __init__(
        self, begin: Event, events: list[Event], end: int, write: TableWrite | None, writers: Mapping[str, str]
    ) -> None:
        entries = [_entry(event) for event in events if event.operation == "entry"]
        self.table = begin.table or ""
        self.archives = {event.path: event for event in events if event.operation == "archive"}
        archive = next(iter(self.archives), None)
        hidden = f"entries of {self.table} were archived to {archive}, which is not read" if archive else ""
        super().__init__(entries, 2 if any(_LATER_TIMELINE in entry.path for entry in entries) else 1, hidden)
        self.begin = begin.index
        self.end = end
        self.write = write
        self._writers = writers
        self.files = {e.path: e.index for e in events if e.operation == "data-file" and e.path is not None}
        self.sizes = {e.path: e.value for e in events if isinstance(e.value, int)}
        self.markers: dict[str, list[Event]] = {}
        for event in events:
            if event.operation == "marker-file":
                self.markers.setdefault(event.instant or "", []).append(event)

    @property
    def recovered(self) -> bool:
        """Whether unfinished instants must have been recovered, because the write before the audit completed."""
        return self.write is None or self.write.outcome == "ok"

    @cached_property
    def pending(self) -> dict[str, TableEntry]:
        """The writes on the timeline that are not completed, by instant, without pending table services."""
        first = {instant: entries[0] for instant, entries in self.unfinished.items() if instant not in self.waiting}
        return {instant: entry for instant, entry in first.items() if entry.action in WRITES}

    @cached_property
    def waiting(self) -> frozenset[str]:
        """Instants of pending compactions and clusterings; after a rollback they run again."""
        return frozenset(e.instant for e in self.entries if not e.done and e.action not in WRITES | _SERVICES)

    @cached_property
    def rolling_back(self) -> dict[str, list[TableEntry]]:
        """The rollbacks of each instant that began and are not completed."""
        entries = self.saying("rolled-back").items()
        return {instant: own for instant, each in entries if (own := [e for e in each if e.instant in self.unfinished])}

    @cached_property
    def known(self) -> frozenset[str]:
        """The instants that an entry of the timeline has or names."""
        return frozenset({e.instant for e in self.entries} | self.rolled_back.keys() | self.rolling_back.keys())

    def taken(self, path: str) -> TableEntry | None:
        """The completed rollback that deleted a file, or planned to where its record cannot be read."""
        return next((e for e in reversed(self.deleting(path, ROLLBACK)) if e.instant in self.completed), None)

    @cached_property
    def owned(self) -> dict[str, list[str]]:
        """Data files by owner, "" for an unknown one, without the command blocks of rollbacks."""
        found: dict[str, list[str]] = {}
        for path in self.files:
            if path not in self.saying("appended"):
                found.setdefault(self.owner(path), []).append(path)
        return found

    def begun_after(self, instant: str) -> TableEntry | None:
        """A completed commit that began after an instant."""
        newest = max(self.committed, default="")
        return self.committed[newest] if newest > instant else None

    def owner(self, path: str) -> str:
        """The instant of a data file, with or without a timeline entry; "" when it is unknown."""
        if path in self.claims:
            return self.claims[path].instant
        file = parse_table_file(path)
        if file is None:
            return ""
        undone = self.saying("undone").get(path)
        if undone and undone[-1].of("rolled-back"):
            return undone[-1].of("rolled-back")[0]
        return self._writers.get(path, "") if self.bears_base(file) else file.instant

    def log_of_base(self, path: str) -> bool:
        """Whether a path is that of a log file which bears the instant of its base file instead of its own."""
        file = parse_table_file(path)
        return file is not None and self.bears_base(file)

    def undoes(self, rollback: TableEntry, path: str, *, attempted: bool = False) -> bool:
        """Whether a command block of a rollback lies in the file group of a log file.

        attempted: one that effects show, though its record does not name it, for a run of it that was killed put it.
        """
        put = (path for path, instant in self._writers.items() if instant == rollback.instant)
        named = put if attempted else rollback.of("appended")
        blocks = (block for block in named if block in self.files or self.deleting(block, *CLEANING))
        return bool(self.groups([path]) & self.groups(blocks))


def _entry(event: Event) -> TableEntry:
    facts = by_word(event.texts)
    action, state = facts.get("action", ("",))[0], facts.get("state", ("",))[0]
    return TableEntry(
        instant=event.instant or "",
        action=action,
        state=state,
        path=event.path or "",
        facts=facts,
        error=event.error or "",
        event=event.index,
        completion=facts.get("completed-at", ("",))[0],
    )
