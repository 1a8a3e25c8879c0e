"""One audit of a table of a black-box write path at rest: its timeline, the owners of its files, and known losses.

    instant       committed   a completed commit, deltacommit or replacecommit is on the timeline
                  pending     it was requested, and is neither committed nor gone
                  rolled back a completed rollback or restore names it
    owner         of a base file the instant in its name; of a log file in layout 2 (table versions from 8) as well.
                  A log file of layout 1 bears the instant of the base file below it, also once its table is of a
                  later version. Its owner is the commit whose write stats name it or the instant whose rollback does,
                  else the write that put it (log_files.py), else unknown.
    command block the log file by which a rollback in layout 1 makes blocks invisible; their file stays, by design

A file that a clean deleted, or plans to delete, may be missing, and so may one that a restore deleted. The plan stands
in for a completed rollback or clean that cannot be read. Where entries were archived, or neither record nor plan of a
clean can be read, missing files prove nothing (`hides_loss`); where it is a rollback's, unknown instants prove nothing
(`hides_instants`). A rollback must not delete committed files.
Limits: facts are those that the kit recorded of entries (docs/history.md); the metadata table is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.timeline import DataFile, parse_data_file

COMMITS = frozenset({"commit", "deltacommit", "replacecommit"})
# A pending one of these is a write's. A replacecommit may be a clustering, which waits for its turn as compactions do.
WRITES = frozenset({"commit", "deltacommit"})
UNDOING = frozenset({"rollback", "restore"})
_SERVICES = UNDOING | {"clean"}


class AuditEntry(NamedTuple):
    """One entry of a table's timeline.

    facts: by their first word, each in order.
    error: why it cannot be read.
    """

    event: int
    instant: str
    path: str
    action: str
    state: str
    facts: dict[str, tuple[str, ...]]
    error: str | None

    @property
    def done(self) -> bool:
        """Whether the entry is completed."""
        return self.state == "completed"

    def of(self, word: str) -> tuple[str, ...]:
        """The values of its facts of one kind."""
        return self.facts.get(word, ())


class Audit:
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
        self.entries = _with_plans([_entry(event) for event in events if event.operation == "entry"])
        self._archives = [event for event in events if event.operation == "archive"]

    @property
    def recovered(self) -> bool:
        """Whether unfinished instants must have been recovered, because the write before the audit completed."""
        return self.write is None or self.write.outcome == "ok"

    @cached_property
    def committed(self) -> dict[str, AuditEntry]:
        """Completed commits by instant."""
        return {entry.instant: entry for entry in self.entries if entry.done and entry.action in COMMITS}

    @cached_property
    def pending(self) -> dict[str, AuditEntry]:
        """The writes on the timeline that are not completed, by instant, without pending table services."""
        found: dict[str, AuditEntry] = {}
        for entry in self.entries:
            if entry.action in WRITES and not entry.done and entry.instant not in self.waiting:
                found.setdefault(entry.instant, entry)
        return {instant: entry for instant, entry in found.items() if instant not in self.committed}

    @cached_property
    def waiting(self) -> frozenset[str]:
        """Instants of pending compactions and clusterings; after a rollback they run again."""
        return frozenset(e.instant for e in self.entries if not e.done and e.action not in WRITES | _SERVICES)

    @cached_property
    def rolled_back(self) -> dict[str, list[AuditEntry]]:
        """The completed rollbacks and restores of each instant."""
        return _targets(entry for entry in self.entries if entry.done)

    @cached_property
    def rolling_back(self) -> dict[str, list[AuditEntry]]:
        """The rollbacks of each instant that began and are not completed."""
        return _targets(self.begun)

    @cached_property
    def begun(self) -> list[AuditEntry]:
        """The entries of instants that are not completed."""
        over = {entry.instant for entry in self.entries if entry.done}
        return [entry for entry in self.entries if entry.instant not in over]

    @cached_property
    def known(self) -> frozenset[str]:
        """The instants that an entry of the timeline has or names."""
        return frozenset({e.instant for e in self.entries} | self.rolled_back.keys() | self.rolling_back.keys())

    @cached_property
    def named(self) -> dict[str, AuditEntry]:
        """The completed commit that names each file."""
        return {path: entry for entry in self.committed.values() for path in entry.of("wrote")}

    @cached_property
    def taken(self) -> dict[str, AuditEntry]:
        """The completed rollback that deleted each file."""
        return {p: e for e in self.entries if e.done and e.action == "rollback" for p in e.of("deleted")}

    @cached_property
    def cleaned(self) -> frozenset[str]:
        """The files that a clean or restore deleted, or that a planned clean will delete."""
        words = (("clean", "deleted"), ("clean", "will-delete"), ("restore", "deleted"))
        return frozenset(p for entry in self.entries for a, word in words if entry.action == a for p in entry.of(word))

    @cached_property
    def undone(self) -> dict[str, AuditEntry]:
        """The completed rollback that made the blocks of each log file invisible."""
        return {p: e for e in self.entries if e.done and e.action in UNDOING for p in e.of("undone")}

    @cached_property
    def appended(self) -> frozenset[str]:
        """The log files that rollbacks wrote."""
        return frozenset(p for e in self.entries if e.action in UNDOING for p in e.of("appended"))

    @cached_property
    def layout(self) -> int:
        """The layout of the timeline: 1, or 2 when an entry lies where only layout 2 stores it."""
        return 2 if any("/.hoodie/timeline/" in entry.path for entry in self.entries) else 1

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
            if path not in self.appended:
                found.setdefault(self.owner(path), []).append(path)
        return found

    def begun_after(self, instant: str) -> AuditEntry | None:
        """A completed commit that began after an instant."""
        newest = max((key for key, entry in self.committed.items() if entry.action in COMMITS), default="")
        return self.committed[newest] if newest > instant else None

    def owner(self, path: str) -> str:
        """The instant of a data file, with or without a timeline entry; "" when it is unknown."""
        if path in self.named:
            return self.named[path].instant
        file = parse_data_file(path)
        if file is None:
            return ""
        undone = self.undone.get(path)
        if undone is not None and undone.of("rolled-back"):
            return undone.of("rolled-back")[0]
        return self._writers.get(path, "") if self.bears_base(path) else file.instant

    def bears_base(self, path: str) -> bool:
        """Whether a file is a log file named by the instant of its base file instead of its own."""
        file = parse_data_file(path)
        if file is None or file.version is None:
            return False
        return self.layout == 1 or (file.partition, file.file_id, file.instant) in self._bases

    @cached_property
    def _bases(self) -> frozenset[tuple[str, str, str]]:
        files = (parse_data_file(path) for path in (*self.files, *self.named))
        return frozenset((f.partition, f.file_id, f.instant) for f in files if f is not None and f.version is None)

    def covers(self, rollback: AuditEntry, path: str) -> bool:
        """Whether a command block of a rollback lies in the file group of a log file."""
        group = _group(parse_data_file(path))
        blocks = (block for block in rollback.of("appended") if block in self.files or block in self.cleaned)
        return any(_group(parse_data_file(block)) == group for block in blocks)


def _entry(event: Event) -> AuditEntry:
    facts: dict[str, list[str]] = {}
    for fact in event.value if isinstance(event.value, tuple) else ():
        word, _, rest = fact.partition(" ")
        facts.setdefault(word, []).append(rest)
    known = {word: tuple(values) for word, values in facts.items()}
    action, state = known.get("action", ("",))[0], known.get("state", ("",))[0]
    return AuditEntry(event.index, event.instant or "", event.path or "", action, state, known, event.error)


def _with_plans(entries: list[AuditEntry]) -> list[AuditEntry]:
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


def _targets(entries: Iterable[AuditEntry]) -> dict[str, list[AuditEntry]]:
    found: dict[str, list[AuditEntry]] = {}
    for entry in entries:
        if entry.action in UNDOING:
            for target in entry.of("rolled-back"):
                found.setdefault(target, []).append(entry)
    return found


def _group(file: DataFile | None) -> tuple[str, str] | None:
    return None if file is None else (file.partition, file.file_id)
