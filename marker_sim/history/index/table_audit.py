"""One audit of a table of a black-box write path at rest, as a history has it: what its timeline says, the owners of
its files, and known losses.

`marker_sim.tables.instants` says what entries mean, and in what a judge differs from `marker-sim audit`. A file that a
clean deleted, or plans to delete, may be missing, and so may one that a restore deleted. Where entries were archived,
or neither record nor plan of a clean can be read, missing files prove nothing (`hides_loss`); where it is a rollback's,
unknown instants prove nothing (`hides_instants`). A rollback must not delete committed files.
Limits: facts are those that the kit recorded of entries (docs/history.md); the metadata table is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.tables.entries import TableEntry, by_word
from marker_sim.tables.instants import Instants
from marker_sim.timeline import ROLLBACK, UNDOING, WRITES, DataFile, parse_data_file

_SERVICES = UNDOING | {"clean"}
_LATER_TIMELINE = "/.hoodie/timeline/"


class Audit(Instants):
    """One audit of one table.

    begin, end: events.
    write: the write that had ended before, None when unknown.
    files: data paths relative to the table, with their event; sizes: in bytes.
    markers: events of the files that are left below the marker directory of an instant.
    writers: instants of log files, as far as effects show them.
    """

    def __init__(
        self, begin: Event, events: list[Event], end: int, write: TableWrite | None, writers: Mapping[str, str]
    ) -> None:
        entries = _with_plans([_entry(event) for event in events if event.operation == "entry"])
        super().__init__(entries, 2 if any(_LATER_TIMELINE in entry.path for entry in entries) else 1)
        self.table = begin.table or ""
        self.begin = begin.index
        self.end = end
        self.write = write
        self._writers = writers
        self.files = {e.path: e.index for e in events if e.operation == "data-file" and e.path is not None}
        self.sizes = {e.path: e.value for e in events if e.operation == "data-file"}
        self.markers: dict[str, list[Event]] = {}
        for event in events:
            if event.operation == "marker-file":
                self.markers.setdefault(event.instant or "", []).append(event)
        self._archives = [event for event in events if event.operation == "archive"]

    def parse(self, path: str) -> DataFile | None:
        """What the name of a data file of a writer that is judged says; others have no owner."""
        return parse_data_file(path)

    @property
    def recovered(self) -> bool:
        """Whether unfinished instants must have been recovered, because the write before the audit completed."""
        return self.write is None or self.write.outcome == "ok"

    @cached_property
    def pending(self) -> dict[str, TableEntry]:
        """The writes on the timeline that are not completed, by instant, without pending table services."""
        found: dict[str, TableEntry] = {}
        for entry in self.entries:
            if entry.action in WRITES and not entry.done and entry.instant not in self.waiting:
                found.setdefault(entry.instant, entry)
        return {instant: entry for instant, entry in found.items() if instant not in self.committed}

    @cached_property
    def waiting(self) -> frozenset[str]:
        """Instants of pending compactions and clusterings; after a rollback they run again."""
        return frozenset(e.instant for e in self.entries if not e.done and e.action not in WRITES | _SERVICES)

    @cached_property
    def rolled_back(self) -> dict[str, list[TableEntry]]:
        """The completed rollbacks and restores of each instant."""
        entries = self.saying("rolled-back").items()
        return {instant: own for instant, each in entries if (own := [e for e in each if e.done])}

    @cached_property
    def rolling_back(self) -> dict[str, list[TableEntry]]:
        """The rollbacks of each instant that began and are not completed."""
        entries = self.saying("rolled-back").items()
        return {instant: own for instant, each in entries if (own := [e for e in each if e.instant in self.unfinished])}

    @cached_property
    def begun(self) -> list[TableEntry]:
        """The entries of instants that are not completed."""
        return [entry for entry in self.entries if entry.instant in self.unfinished]

    @cached_property
    def known(self) -> frozenset[str]:
        """The instants that an entry of the timeline has or names."""
        return frozenset({e.instant for e in self.entries} | self.rolled_back.keys() | self.rolling_back.keys())

    @cached_property
    def named(self) -> dict[str, TableEntry]:
        """The completed commit that names each file."""
        return {path: commits[-1] for path, commits in self.saying("wrote").items()}

    @cached_property
    def taken(self) -> dict[str, TableEntry]:
        """The completed rollback that deleted each file."""
        return {path: entries[-1] for path, entries in self.saying("deleted", ROLLBACK).items()}

    @cached_property
    def cleaned(self) -> frozenset[str]:
        """The files that a clean or restore deleted, or that a planned clean will delete."""
        return frozenset({*self.saying("deleted", "clean", "restore"), *self.saying("will-delete", "clean")})

    @cached_property
    def hides_loss(self) -> str:
        """The reason why missing files prove nothing, "" when they do."""
        return self._hides({"clean": "will-delete", "restore": "deleted"})

    @cached_property
    def hides_instants(self) -> str:
        """The reason why an instant without an entry proves nothing, "" when it does."""
        return self._hides({"rollback": "rolled-back", "restore": "rolled-back"})

    def _hides(self, telling: dict[str, str]) -> str:
        if self._archives:
            return f"entries of {self.table} were archived to {self._archives[0].path}, which is not read"
        bad = (e for e in self.entries if e.error and e.done and e.action in telling and not e.of(telling[e.action]))
        entry = next(bad, None)
        return f"{entry.path} cannot be read: {entry.error}" if entry else ""

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
        if path in self.named:
            return self.named[path].instant
        file = self.parse(path)
        if file is None:
            return ""
        undone = self.saying("undone").get(path)
        if undone and undone[-1].of("rolled-back"):
            return undone[-1].of("rolled-back")[0]
        return self._writers.get(path, "") if self.bears_base(file) else file.instant

    def log_of_base(self, path: str) -> bool:
        """Whether a path is that of a log file which bears the instant of its base file instead of its own."""
        file = self.parse(path)
        return file is not None and self.bears_base(file)

    def covers(self, rollback: TableEntry, path: str, *, attempted: bool = False) -> bool:
        """Whether a command block of a rollback lies in the file group of a log file.

        attempted: one that effects show, though its record does not name it, for a run of it that was killed put it.
        """
        put = (path for path, instant in self._writers.items() if instant == rollback.instant)
        named = put if attempted else rollback.of("appended")
        blocks = (block for block in named if block in self.files or block in self.cleaned)
        return bool(self.groups([path]) & self.groups(blocks))


def _entry(event: Event) -> TableEntry:
    facts = by_word(event.value if isinstance(event.value, tuple) else ())
    action, state = facts.get("action", ("",))[0], facts.get("state", ("",))[0]
    return TableEntry(event.instant or "", action, state, event.path or "", facts, event.error or "", event=event.index)


def _with_plans(entries: list[TableEntry]) -> list[TableEntry]:
    """The entries, with facts from plans where a completed one is unreadable; planned deletions count as done."""
    plans: dict[str, dict[str, tuple[str, ...]]] = {}
    for entry in entries:
        if not entry.done:
            plans.setdefault(entry.instant, {}).update(entry.facts)
    known = []
    for entry in entries:
        plan = plans.get(entry.instant, {}) if entry.done and entry.error and entry.action in _SERVICES else {}
        facts: dict[str, tuple[str, ...]] = {
            word: plan[word] for word in ("rolled-back", "will-delete") if word in plan
        }
        if entry.action in UNDOING and "will-delete" in facts:
            facts["deleted"] = facts["will-delete"]
        known.append(entry._replace(facts={**entry.facts, **facts}))
    return known
