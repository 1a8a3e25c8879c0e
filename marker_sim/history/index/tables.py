"""Tables of a black-box write path: their finished audits, when their files came, and which write made a log file.

table_audit.py explains audits. The order of files is known where every effect is recorded; elsewhere only that there is
no write while a table is at rest, and that the tasks of a driver die with it where Spark is local.

A log file of timeline layout 1 bears the instant of its base file. But a table has one writer, so a log file that a
driver puts during a write, after the requested entry of that write's instant, is of that instant, and after an entry of
a rollback it is a command block of that one. Before both it stays unknown. So do files of drivers that went on after a
write of theirs had failed, because its tasks may still run.
Source: BaseHoodieWriteClient.startCommit of 0.15.0 and 1.0.2, which rolls back and then requests.
"""

from __future__ import annotations

from collections.abc import Iterable

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.history.index.event_reader import EventReader
from marker_sim.history.index.presence import NEVER
from marker_sim.history.index.table_audit import Audit
from marker_sim.tables.entries import TableEntry
from marker_sim.timeline import HOODIE, ROLLBACK, WRITES, State, is_side_file, parse_data_file, table_entry


class Tables:
    """All finished audits of a run in order, and the processes that may still write."""

    def __init__(self, reading: EventReader) -> None:
        self._reading = reading
        self.writes = sorted(reading.table_writes)
        self._effects = reading.header.witness == "effects"
        self._writers: dict[str, dict[str, str]] = {}
        if self._effects and self.stayed_alone():
            tables = {write.table for write in self.writes}
            self._writers = {table: writers(reading.events, table, self.writes) for table in tables}
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
                writers_of_logs = self._writers.get(begin.table or "", {})
                found.append(Audit(begin, events, event.index, by_end.get(cause), writers_of_logs))
            elif event.table in open_:
                open_[event.table][1].append(event)
        return found

    def before(self, audit: Audit) -> Audit | None:
        """The previous audit of the same table."""
        return next((a for a in reversed(self.audits) if a.table == audit.table and a.end < audit.begin), None)

    def after(self, index: int, path: str) -> Audit | None:
        """The first audit after an event and a later completed write, of the table that contains a storage path."""
        later = (a for a in self.audits if a.begin > index and path.startswith(f"{a.table}/"))
        return next((audit for audit in later if audit.recovered), None)

    def last(self, table: str) -> Audit | None:
        """The last audit of a table."""
        return next((audit for audit in reversed(self.audits) if audit.table == table), None)

    def came(self, audit: Audit, path: str) -> int:
        """The event at which a data file of an audit appeared; NEVER where effects are not known."""
        spans = self._spans.get(f"{audit.table}/{path}", [])
        return max((index for index in spans[::2] if index < audit.begin), default=NEVER)

    def stayed_alone(self) -> bool:
        """Whether no task can outlive its driver or run twice at a time, because Spark was local (option `master`)."""
        return self._reading.header.options.get("master", "local").startswith("local")

    def surely_before_finalize(self, audit: Audit, path: str, commit: TableEntry) -> bool:
        """Whether a file that a commit leaves out was stored before the commit listed its markers for the last time.

        It was when a file that the commit names came later. Otherwise an abandoned task may have written it later,
        where tasks outlive their driver; and where effects are known it must have come before the completed entry,
        because a put may be applied late.
        """
        came = self.came(audit, path)
        if any(came < self.came(audit, other) < NEVER for other in commit.of("wrote")):
            return True
        stored = self._spans.get(commit.path, [NEVER])[0]
        return self.stayed_alone() and (not self._effects or came < stored < NEVER)

    def surely_before_rollback(self, audit: Audit, path: str, rollback: TableEntry) -> bool:
        """Whether a file was stored before a rollback listed markers: it came before the write that rolled back.

        Where effects are not known, every driver of a failed write must have died, and its tasks with it. Unknown, so
        False, for a log file that may have a command block when the rollback's record cannot be read.
        """
        if rollback.error and audit.log_of_base(path):
            return False
        if self._effects:
            entries = [e.path for e in audit.entries if e.instant == rollback.instant and e.action == rollback.action]
            stored = min((self._spans[entry][0] for entry in entries if entry in self._spans), default=-1)
            began = max((write.invoke for write in self.writes if write.invoke < stored), default=-1)
            return self.came(audit, path) < began
        return self.tells_rollbacks(audit)

    def tells_rollbacks(self, audit: Audit) -> bool:
        """Whether the history can show that a file came before a rollback listed markers."""
        if self._effects:
            return True
        return self.stayed_alone() and not any(self._raised(write) for write in self.writes if write.done < audit.begin)

    def _raised(self, write: TableWrite) -> bool:
        """Whether a write raised an error in a driver that went on to write."""
        return write.outcome != "ok" and any(w.process == write.process and w.invoke > write.done for w in self.writes)

    def first_puts(self) -> dict[tuple[str, str], int]:
        """The first put of each data file, by table and path; empty where effects are not known."""
        found: dict[tuple[str, str], int] = {}
        for path, span in self._spans.items():
            table = next(table for table in self._names if path.startswith(f"{table}/"))
            relative = path[len(table) + 1 :]
            if not relative.startswith(f"{HOODIE}/") and not is_side_file(relative):
                found[table, relative] = span[0]
        return found

    def _fold(self) -> dict[str, list[int]]:
        """The events at which each file of the tables appeared and was removed in turn, as a flat list by path."""
        spans: dict[str, list[int]] = {}
        prefixes = tuple(f"{table}/" for table in self._names)
        for event in self._reading.events:
            if event.kind == "effect" and event.path is not None and event.path.startswith(prefixes):
                span = spans.setdefault(event.path, [])
                if (event.value is None) == bool(len(span) % 2):
                    span.append(event.index)
        return {path: span for path, span in spans.items() if span}


def writers(events: Iterable[Event], table: str, writes: Iterable[TableWrite]) -> dict[str, str]:
    """The instants of log files, of rollbacks for command blocks, by path relative to the table; unknown ones are left
    out.
    """
    began = {write.invoke: write.process for write in writes if write.table == table}
    ended = {write.done: write for write in writes if write.table == table}
    now: dict[str, str] = {}
    failed: set[str] = set()
    found: dict[str, str] = {}
    for event in events:
        if event.index in began:
            now[event.process] = ""
        elif event.index in ended:
            now.pop(event.process, None)
            if ended[event.index].outcome != "ok":
                failed.add(event.process)
        elif event.kind == "effect" and event.value is not None and (event.path or "").startswith(f"{table}/"):
            relative = (event.path or "")[len(table) + 1 :]
            folder, _, name = relative.rpartition("/")
            entry = table_entry(name) if folder == HOODIE and event.process in now else None
            if entry is not None:
                if entry.action == ROLLBACK or (entry.action in WRITES and entry.state is State.REQUESTED):
                    now[event.process] = entry.instant
            elif not relative.startswith(f"{HOODIE}/"):
                file = parse_data_file(relative)
                instant = "" if event.process in failed else now.get(event.process, "")
                if file is not None and file.log:
                    found[relative] = instant if found.get(relative, instant) == instant else ""
    return {path: instant for path, instant in found.items() if instant}
