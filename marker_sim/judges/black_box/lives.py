"""Lives of the instants of a table with several writers, read from the effects on its storage, in their true order.

    begun       its requested entry is put, by the writer whose instant it is
    inflight    its inflight entry is put; the writer has read the timeline and the files that it builds on before
    completed   its completed entry is put
    over        it is completed, or a rollback of it is: until then its markers may stand in the way of others
    ended       it is over, or its write has ended
    beats       its heartbeat file is put, until it is deleted or counts as expired (fault `heartbeat-expired`)
    group       a partition and file id, of a marker that names a data file of it or of the file itself

Only instants whose requested entry is in the history have a life. Source: BaseHoodieWriteClient.startCommit and its
preWrite, HoodieHeartbeatClient of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, periods
from marker_sim.judges.black_box.files import TableInquiry
from marker_sim.judges.findings import Finding, breach_of
from marker_sim.names import TEMP
from marker_sim.tables.entries import by_word, facts_of
from marker_sim.timeline import COMMITS, HEARTBEATS, HOODIE, ROLLBACK, WRITES, Entry, State, entry_at, parse_data_file

_ARCHIVES = (f"{HOODIE}/archived/", f"{HOODIE}/timeline/history/")
EXPIRED = "heartbeat-expired"
GOES_ON = frozenset({"pause", EXPIRED})  # Faults after which a writer goes on by itself.
# In the error of a write that was refused for a conflict, at its commit or by early detection.
AT_COMMIT, EARLY = "HoodieWriteConflictException", "HoodieEarlyConflictDetectionException"
# The same where it could not read the markers of another. Source: DirectMarkerBasedDetectionStrategy.
UNREAD = "IOException occurs during checking marker file conflict"
Group = tuple[str, str]


@dataclass(slots=True, eq=False)
class InstantLife:
    """What became of one instant.

    wrote: the files that its completed entry names, None when that is not known.
    files: its data files that its writer did not delete before it was completed, with their groups; paths are relative
        to the table.
    gone: those that others deleted, and its completed entry if they did, with the events.
    marked: by group, from when until when a marker named a file of it.
    """

    instant: str
    process: str
    begun: int
    inflight: int = NEVER
    completed: int = NEVER
    over: int = NEVER
    ended: int = NEVER
    write: TableWrite | None = None
    wrote: frozenset[str] | None = None
    files: dict[str, Group] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    marked: dict[Group, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def groups(self) -> set[Group]:
        """All groups of its markers and files."""
        return {*self.marked, *self.files.values()}

    def overlaps(self, other: InstantLife) -> bool:
        """Whether each began before the other was over."""
        return self is not other and self.begun < other.over and other.begun < self.over


@dataclass(slots=True, eq=False)
class RollbackLife:
    """One rollback. target: the instant that it rolls back, "" while it is not known. acts: the puts of its entries."""

    instant: str
    process: str
    target: str = ""
    plan: frozenset[str] = frozenset()
    completed: int = NEVER
    acts: list[int] = field(default_factory=list)


def shared(view: HistoryIndex) -> bool:
    """Whether a history is of Hudi's Java client with two writers or more."""
    header = view.header
    return header.world == "java" and header.witness == "effects" and int(header.options.get("writers", "1")) > 1


class SharedTable:
    """The instants and rollbacks of one table.

    beats: by instant, from when until when its heartbeat was alive.
    stood: by instant, when an entry of it was put.
    archived, cleaned: when an archive of the timeline was put, and when a clean was requested.
    services: whether a table service other than cleaning, or what replaces file groups, was at work.
    unowned: log files whose instant is not known.
    both_locked: by two processes, when the second took the table's lock that the first had.
    """

    def __init__(self, view: HistoryIndex, table: str) -> None:
        self.view = view
        self.name = table
        self.lives: dict[str, InstantLife] = {}
        self.rollbacks: dict[str, RollbackLife] = {}
        self.beats: dict[str, list[int]] = {}
        self.stood: dict[str, list[int]] = {}
        self.archived: list[int] = []
        self.cleaned: list[int] = []
        self.services = False
        self.unowned = 0
        self.both_locked: dict[frozenset[str], int] = {}
        self._later = False
        holders = set[str]()
        prefix = f"{table}/"
        for event in view.events:
            path = event.path or ""
            if event.kind == "effect" and path.startswith(prefix):
                self._effect(event, path.removeprefix(prefix))
            elif event.operation == "lock":
                for other in holders - {event.process}:
                    self.both_locked.setdefault(frozenset({other, event.process}), event.index)
                holders.add(event.process)
            elif event.operation == "unlock" or event.kind in ("ok", "info"):
                holders.discard(event.process)
            elif event.kind == "fault" and event.operation == EXPIRED:
                self._beat(event.instant or "", event.index, False)
        self._finish()

    def silent(self, instant: str, low: int, high: int) -> bool:
        """Whether an instant has a heartbeat, and it was not alive at any moment from one event to another."""
        span = self.beats.get(instant, ())
        return bool(span) and not any(since < high and low <= until for since, until in periods(span))

    def undoing(self, instant: str) -> list[RollbackLife]:
        """The rollbacks of an instant, in the order in which they began."""
        return [rollback for rollback in self.rollbacks.values() if rollback.target == instant]

    def pairs(self) -> Iterator[tuple[InstantLife, InstantLife]]:
        """All pairs of instants of different writers that overlap; the one that was over first comes first."""
        for one, other in combinations(sorted(self.lives.values(), key=lambda life: life.over), 2):
            if one.process != other.process and one.overlaps(other):
                yield one, other

    def chased(self, life: InstantLife) -> bool:
        """Whether another writer had begun to roll an instant back before its write ended."""
        done = life.write.done if life.write else NEVER
        return any(each.acts[0] < done and each.process != life.process for each in self.undoing(life.instant))

    def refused(self, life: InstantLife, *errors: str) -> bool:
        """Whether the write of an instant was refused for a conflict."""
        said = self.view.error_of(life.write) if life.write and life.write.outcome != "ok" else ""
        return any(error in said for error in errors or (AT_COMMIT, EARLY, UNREAD))

    def struck(self, write: TableWrite) -> bool:
        """Whether its writer met a fault after which it does not go on by itself."""
        faults = (fault for fault in self.view.faults if write.invoke < fault.begin < write.done)
        return any(fault.process == write.process and fault.kind not in GOES_ON for fault in faults)

    def _effect(self, event: Event, relative: str) -> None:
        entry = entry_at(relative)
        if entry is not None:
            self._later |= relative.count("/") > 1
            self._entry(event, entry, relative)
        elif relative.startswith(HEARTBEATS):
            self._beat(relative[len(HEARTBEATS) :], event.index, event.value is not None)
        elif relative.startswith(_ARCHIVES):
            self.archived.append(event.index)
        elif not relative.startswith(f"{HOODIE}/") and (file := parse_data_file(relative)) is not None:
            life = self.lives.get(file.instant)
            if life is None:
                return
            if file.log and not self._later:
                self.unowned += 1
            elif event.value is not None:
                life.files[relative] = file[:2]
                life.gone.pop(relative, None)
            elif event.process != life.process:
                life.gone[relative] = event.index
            elif life.completed == NEVER:
                life.files.pop(relative, None)

    def _entry(self, event: Event, entry: Entry, relative: str) -> None:
        if entry.action == ROLLBACK:
            self._rollback(event, entry)
            return
        self.services |= entry.action not in (*WRITES, "clean", "savepoint")
        if event.value is not None:
            self.stood.setdefault(entry.instant, []).append(event.index)
        if entry.action not in COMMITS:
            if entry.action == "clean" and entry.state is State.REQUESTED:
                self.cleaned.append(event.index)
        elif event.value is None:
            life = self.lives.get(entry.instant)
            if life is not None and entry.state is State.COMPLETED and event.process != life.process:
                life.gone[relative] = event.index
        elif entry.state is State.REQUESTED:
            self.lives.setdefault(entry.instant, InstantLife(entry.instant, event.process, event.index))
        elif (life := self.lives.get(entry.instant)) is not None:
            if entry.state is State.INFLIGHT:
                life.inflight = min(life.inflight, event.index)
            else:
                life.completed = min(life.completed, event.index)

    def _rollback(self, event: Event, entry: Entry) -> None:
        if event.value is None:
            return
        facts = by_word(facts_of(entry, event.value)[0]) if isinstance(event.value, bytes) else {}
        rollback = self.rollbacks.setdefault(entry.instant, RollbackLife(entry.instant, event.process))
        rollback.acts.append(event.index)
        if entry.state is State.REQUESTED:
            rollback.target = next(iter(facts.get("rolled-back", ())), rollback.target)
            rollback.plan |= frozenset(facts.get("will-delete", ()))
        elif entry.state is State.COMPLETED:
            rollback.completed = min(rollback.completed, event.index)

    def _beat(self, instant: str, index: int, there: bool) -> None:
        span = self.beats.setdefault(instant, [])
        if there != bool(len(span) % 2):
            span.append(index)

    def _finish(self) -> None:
        """Add what is known at the end: the writes of the instants, what commits that are still there name, their
        markers, and when they ended.
        """
        audit = self.view.tables.last(self.name)
        for life in self.lives.values():
            for write in self.view.table_writes:
                if (write.process, write.table) == (life.process, self.name) and write.invoke < life.begun < write.done:
                    life.write = write
            if audit and (commit := audit.committed.get(life.instant)) and not commit.error:
                life.wrote = frozenset(commit.of("wrote"))
            life.over = min([life.completed, *(rollback.completed for rollback in self.undoing(life.instant))])
            life.ended = min(life.over, life.write.done if life.write else NEVER)
            home = self.view.rest.homes.get(f"{self.name}{TEMP}{life.instant}")
            for name, span in home.spans.items() if home else ():
                file = parse_data_file(self.view.names_data(name)[1])
                if file is not None:
                    life.marked.setdefault(file[:2], []).extend(periods(span))


class SharedCase(TableInquiry):
    """What a judge finds in one history, by message."""

    def breach(self, table: SharedTable, message: str, *evidence: int) -> None:
        """Add a breach, with what proves it."""
        self.judged += 1
        self.breaches[table.name, message] = breach_of(self.view, f"{table.name}: {message}", evidence)


def judge_of_writers(
    guarantee: str, check: Callable[[SharedCase, SharedTable], None]
) -> Callable[[HistoryIndex], Finding]:
    """A judge made of a check of one table, applicable to histories of several writers."""

    def judged(view: HistoryIndex) -> Finding:
        if not shared(view):
            return Finding(guarantee=guarantee, applicable=False)
        case = SharedCase(view)
        for table in sorted({write.table for write in view.table_writes}):
            check(case, SharedTable(view, table))
        undecided = f"{case.open} cases could not be decided" if case.open and not case.judged else ""
        return case.finding(guarantee, undecided)

    return judged
