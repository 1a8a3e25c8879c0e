"""Tables of a black-box write path as they were found at rest, folded once: every audit that was begun and ended.

    instant       committed   a completed commit, deltacommit or replacecommit is on the timeline
                  pending     it was requested, and is neither committed nor gone
                  rolled back a completed rollback or restore names it
    owner         of a base file the instant in its name; of a log file in layout 2 (table versions from 8) as well.
                  A log file of layout 1 bears the instant of the base file below it, also once its table is of a
                  later version. So it belongs to the commit whose write stats name it or to the instant whose rollback
                  does, else to the write that put it (tables_windows.py), else to nobody that is known.
    command block the log file by which a rollback in layout 1 makes blocks invisible; their file stays, by design

What table services took away is no loss: a file that a clean deleted, or plans to delete, may be missing, and so may
one that a restore took. A completed rollback or clean that cannot be read is known by its plan. Where entries left
the timeline, or neither record nor plan of a clean can be read, nobody knows what may be missing (`hides_loss`); where
it is a rollback's, which instants there were (`hides_instants`). A rollback has no right to what is committed.
Limits: facts are those that the kit recorded of entries (docs/history.md); the metadata table is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from marker_sim.history import Event
from marker_sim.judges.calls import TableWrite
from marker_sim.judges.reading import Reading
from marker_sim.judges.stored import NEVER
from marker_sim.judges.tables_windows import writers
from marker_sim.timeline import DataFile, parse_data_file

COMMITS = frozenset({"commit", "deltacommit", "replacecommit"})
# A pending one of these is a write's. A replacecommit may be a clustering, which waits for its turn as compactions do.
WRITES = frozenset({"commit", "deltacommit"})
UNDOING = frozenset({"rollback", "restore"})
_SERVICES = UNDOING | {"clean"}
_HOODIE = ".hoodie/"
_PARTITION_METADATA = ".hoodie_partition_metadata"


class Entry(NamedTuple):
    """One entry of a timeline. facts: by their first word, each in order. error: why it cannot be read."""

    event: int
    instant: str
    path: str
    action: str
    state: str
    facts: dict[str, tuple[str, ...]]
    error: str | None

    @property
    def done(self) -> bool:
        """Whether it is a completed one."""
        return self.state == "completed"

    def of(self, word: str) -> tuple[str, ...]:
        """What its facts of a kind say."""
        return self.facts.get(word, ())


class Audit:
    """One look at one table. begin, end: events; write: the write that had ended before, None when nobody says which.

    files: data paths relative to the table, with their event; sizes: in bytes. markers: events of the files that are
    left below the marker directory of an instant. writers: instants of log files, as far as effects tell them.
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
        """Whether what was left behind must be over, because the write before it completed."""
        return self.write is None or self.write.outcome == "ok"

    @cached_property
    def committed(self) -> dict[str, Entry]:
        """Completed commits by instant."""
        return {entry.instant: entry for entry in self.entries if entry.done and entry.action in COMMITS}

    @cached_property
    def pending(self) -> dict[str, Entry]:
        """Writes that are on the timeline and not completed, by instant; table services that wait are none."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.action in WRITES and not entry.done and entry.instant not in self.waiting:
                found.setdefault(entry.instant, entry)
        return {instant: entry for instant, entry in found.items() if instant not in self.committed}

    @cached_property
    def waiting(self) -> frozenset[str]:
        """Instants of compactions and clusterings that wait for their turn; rolled back, they run again."""
        return frozenset(e.instant for e in self.entries if not e.done and e.action not in WRITES | _SERVICES)

    @cached_property
    def rolled_back(self) -> dict[str, list[Entry]]:
        """The completed rollbacks and restores of each instant."""
        return _targets(entry for entry in self.entries if entry.done)

    @cached_property
    def rolling_back(self) -> dict[str, list[Entry]]:
        """The rollbacks of each instant that were begun and not completed."""
        return _targets(self.begun)

    @cached_property
    def begun(self) -> list[Entry]:
        """The entries of what is not completed."""
        over = {entry.instant for entry in self.entries if entry.done}
        return [entry for entry in self.entries if entry.instant not in over]

    @cached_property
    def known(self) -> frozenset[str]:
        """Instants that the timeline says anything of."""
        return frozenset({e.instant for e in self.entries} | self.rolled_back.keys() | self.rolling_back.keys())

    @cached_property
    def named(self) -> dict[str, Entry]:
        """Which completed commit names a file."""
        return {path: entry for entry in self.committed.values() for path in entry.of("wrote")}

    @cached_property
    def taken(self) -> dict[str, Entry]:
        """Which completed rollback deleted a file."""
        return {p: e for e in self.entries if e.done and e.action == "rollback" for p in e.of("deleted")}

    @cached_property
    def cleaned(self) -> frozenset[str]:
        """Files that a clean or restore deleted, or that a clean is about to delete."""
        words = (("clean", "deleted"), ("clean", "will-delete"), ("restore", "deleted"))
        return frozenset(p for entry in self.entries for a, word in words if entry.action == a for p in entry.of(word))

    @cached_property
    def undone(self) -> dict[str, Entry]:
        """Which completed rollback made the blocks of a log file invisible."""
        return {p: e for e in self.entries if e.done and e.action in UNDOING for p in e.of("undone")}

    @cached_property
    def appended(self) -> frozenset[str]:
        """The log files that rollbacks wrote."""
        return frozenset(p for e in self.entries if e.action in UNDOING for p in e.of("appended"))

    @cached_property
    def layout(self) -> int:
        """The timeline's: 1, or 2 as soon as an entry lies where only layout 2 has it."""
        return 2 if any("/.hoodie/timeline/" in entry.path for entry in self.entries) else 1

    @cached_property
    def hides_loss(self) -> str:
        """Why what is missing proves nothing, "" when it does."""
        return self._hides({"clean": "will-delete", "restore": "deleted"})

    @cached_property
    def hides_instants(self) -> str:
        """Why an instant that the timeline has nothing of proves nothing, "" when it does."""
        return self._hides({"rollback": "rolled-back", "restore": "rolled-back"})

    def _hides(self, telling: dict[str, str]) -> str:
        if self._archives:
            return f"entries left the timeline of {self.table} for {self._archives[0].path}, which is not read"
        bad = (e for e in self.entries if e.error and e.done and e.action in telling and not e.of(telling[e.action]))
        entry = next(bad, None)
        return f"{entry.path} cannot be read: {entry.error}" if entry else ""

    @cached_property
    def owned(self) -> dict[str, list[str]]:
        """Data files by owner, "" for those of nobody that is known; a rollback's own command blocks are left out."""
        found: dict[str, list[str]] = {}
        for path in self.files:
            if path not in self.appended:
                found.setdefault(self.owner(path), []).append(path)
        return found

    def begun_after(self, instant: str) -> Entry | None:
        """A commit that began after an instant and is completed."""
        newest = max((key for key, entry in self.committed.items() if entry.action in COMMITS), default="")
        return self.committed[newest] if newest > instant else None

    def owner(self, path: str) -> str:
        """The instant that a data file is of, "" when nobody knows; it need not be there."""
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
        """Whether a file is a log file with the instant of the base file below it, and not with its own."""
        file = parse_data_file(path)
        if file is None or file.version is None:
            return False
        return self.layout == 1 or (file.partition, file.file_id, file.instant) in self._bases

    @cached_property
    def _bases(self) -> frozenset[tuple[str, str, str]]:
        files = (parse_data_file(path) for path in (*self.files, *self.named))
        return frozenset((f.partition, f.file_id, f.instant) for f in files if f is not None and f.version is None)

    def covers(self, rollback: Entry, path: str) -> bool:
        """Whether a command block of a rollback lies in the file group of a log file."""
        group = _group(parse_data_file(path))
        blocks = (block for block in rollback.of("appended") if block in self.files or block in self.cleaned)
        return any(_group(parse_data_file(block)) == group for block in blocks)


class Tables:
    """All audits of a run that were ended, in order, and what is known of who may still write."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.writes = sorted(reading.table_writes)
        self._effects = reading.header.witness == "effects"
        self._writers: dict[str, Mapping[str, str]] = {}
        self.audits = tuple(self._audits())
        self._names = sorted({write.table for write in self.writes} | {audit.table for audit in self.audits})
        self._spans = self._fold() if self._effects else {}

    def _audits(self) -> list[Audit]:
        by_end = {write.done: write for write in self.writes}
        found: list[Audit] = []
        open_: dict[str | None, tuple[Event, list[Event]]] = {}
        for event in self._reading.audited:
            if event.operation == "audit" and event.value == "begin":
                open_[event.table] = (event, [])
            elif event.operation == "audit" and event.table in open_:
                begin, events = open_.pop(event.table)
                cause = -1 if begin.caused_by is None else begin.caused_by
                tellers = self._written_by(begin.table or "")
                found.append(Audit(begin, events, event.index, by_end.get(cause), tellers))
            elif event.table in open_:
                open_[event.table][1].append(event)
        return found

    def _written_by(self, table: str) -> Mapping[str, str]:
        if not self._effects or not self.stayed_alone():
            return {}
        if table not in self._writers:
            self._writers[table] = writers(self._reading.events, table, self.writes)
        return self._writers[table]

    def before(self, audit: Audit) -> Audit | None:
        """The audit of the same table before one."""
        return next((a for a in reversed(self.audits) if a.table == audit.table and a.end < audit.begin), None)

    def after(self, index: int, path: str) -> Audit | None:
        """The first audit after an event and a completed write of the table that a storage path lies in."""
        later = (a for a in self.audits if a.begin > index and path.startswith(f"{a.table}/"))
        return next((audit for audit in later if audit.recovered), None)

    def last(self, table: str) -> Audit | None:
        """The last audit of a table."""
        return next((audit for audit in reversed(self.audits) if audit.table == table), None)

    def came(self, audit: Audit, path: str) -> int:
        """When a data file that an audit found had come, from absent to present; NEVER where effects are not known."""
        spans = self._spans.get(f"{audit.table}/{path}", [])
        return max((index for index in spans[::2] if index < audit.begin), default=NEVER)

    def stayed_alone(self) -> bool:
        """Whether no task outlives its driver or runs twice at a time: by the option `master`, Spark was local."""
        return self._reading.header.options.get("master", "local").startswith("local")

    def surely_before_finalize(self, audit: Audit, path: str, commit: Entry) -> bool:
        """Whether a file that a commit does not name was there when its markers were listed for the last time.

        It was when a file that the commit does name came later. Otherwise a task that nobody waited for may have
        written it after, where there are such tasks, and where effects are known it must at least have come before the
        completed entry: a put may be applied late.
        """
        came = self.came(audit, path)
        if any(came < self.came(audit, other) < NEVER for other in commit.of("wrote")):
            return True
        stored = self._spans.get(commit.path, [NEVER])[0]
        return self.stayed_alone() and (not self._effects or came < stored < NEVER)

    def surely_before_rollback(self, audit: Audit, path: str, rollback: Entry) -> bool:
        """Whether a file was there when a rollback listed markers: it came before the write that began to roll back.

        Where effects are not known, every driver whose write had not ended well died, and took its tasks along. Of a
        log file that may have a command block nobody can say when the rollback's record cannot be read.
        """
        if rollback.error and audit.bears_base(path):
            return False
        if self._effects:
            entries = [e.path for e in audit.entries if e.instant == rollback.instant and e.action == rollback.action]
            stored = min((self._spans[entry][0] for entry in entries if entry in self._spans), default=-1)
            began = max((write.invoke for write in self.writes if write.invoke < stored), default=-1)
            return self.came(audit, path) < began
        return self.tells_rollbacks(audit)

    def tells_rollbacks(self, audit: Audit) -> bool:
        """Whether anything could show that a file came before a rollback listed markers."""
        if self._effects:
            return True
        return self.stayed_alone() and not any(self._raised(write) for write in self.writes if write.done < audit.begin)

    def _raised(self, write: TableWrite) -> bool:
        """Whether a write ended badly in a driver that went on to write."""
        return write.outcome != "ok" and any(w.process == write.process and w.invoke > write.done for w in self.writes)

    def first_puts(self) -> dict[tuple[str, str], int]:
        """The first put of each data file, by table and path; empty where effects are not known."""
        found: dict[tuple[str, str], int] = {}
        for path, span in self._spans.items():
            table = next(table for table in self._names if path.startswith(f"{table}/"))
            relative = path[len(table) + 1 :]
            name = relative.rpartition("/")[2]
            if name and not relative.startswith(_HOODIE) and not name.startswith(_PARTITION_METADATA):
                found[table, relative] = span[0]
        return found

    def _fold(self) -> dict[str, list[int]]:
        """When files of the tables came and went, as flat lists of events."""
        spans: dict[str, list[int]] = {}
        prefixes = tuple(f"{table}/" for table in self._names)
        for event in self._reading.events:
            if event.kind == "effect" and event.path is not None and event.path.startswith(prefixes):
                span = spans.setdefault(event.path, [])
                if (event.value is None) == bool(len(span) % 2):
                    span.append(event.index)
        return {path: span for path, span in spans.items() if span}


def _entry(event: Event) -> Entry:
    facts: dict[str, list[str]] = {}
    for fact in event.value if isinstance(event.value, tuple) else ():
        word, _, rest = fact.partition(" ")
        facts.setdefault(word, []).append(rest)
    known = {word: tuple(values) for word, values in facts.items()}
    action, state = known.get("action", ("",))[0], known.get("state", ("",))[0]
    return Entry(event.index, event.instant or "", event.path or "", action, state, known, event.error)


def _with_plans(entries: list[Entry]) -> list[Entry]:
    """The same, with what plans say of completed entries that cannot be read: what was to be deleted counts as gone."""
    plans: dict[str, dict[str, tuple[str, ...]]] = {}
    for entry in entries:
        if not entry.done:
            plans.setdefault(entry.instant, {}).update(entry.facts)
    told = []
    for entry in entries:
        plan = plans.get(entry.instant, {}) if entry.done and entry.error and entry.action in _SERVICES else {}
        facts: dict[str, tuple[str, ...]] = {
            word: plan[word] for word in ("rolled-back", "will-delete") if word in plan
        }
        if entry.action in UNDOING and "will-delete" in facts:
            facts["deleted"] = facts["will-delete"]
        told.append(entry._replace(facts={**entry.facts, **facts}))
    return told


def _targets(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.action in UNDOING:
            for target in entry.of("rolled-back"):
                found.setdefault(target, []).append(entry)
    return found


def _group(file: DataFile | None) -> tuple[str, str] | None:
    return None if file is None else (file.partition, file.file_id)
