"""Reads the events of a history once, in order, and sorts them into calls, lives, faults and what is stored.

Limits: an event's index is its position; a completion of something that is not open is ignored; times do not decrease.
Between indices the order is that of the history, so a world records an effect before the answer that follows it.
"""

from __future__ import annotations

from collections import Counter

from marker_sim.errors import UsageError
from marker_sim.faults import FAULT_CLASS
from marker_sim.history import Event, History, Value
from marker_sim.history.index.calls import (
    DEADLY,
    LISTINGS,
    MS,
    NO_LIFE,
    SEVERAL_LIVES,
    STEPS,
    Directory,
    FaultSpan,
    RecordedCall,
    ServerLife,
    TableWrite,
    WriteStep,
)
from marker_sim.history.index.presence import NEVER, PresenceIndex, directory_of
from marker_sim.names import TEMP

END_OF_RUN = "end-of-run"
# An embedded server ends with its driver, as a consequence of another fault.
WITH_ITS_DRIVER = "with-its-driver"
_CONSEQUENCES = frozenset({END_OF_RUN, WITH_ITS_DRIVER})


class EventReader:
    """The events of a history by kind. Built by its constructor, then read-only.

    reads: presence is known at snapshots only, because effects were not recorded or are not in Hudi's format.
    kills: when servers were killed, without the end of the run.
    observed: files as the kit read them last.
    closing: directories whose last snapshot came after their last effect.
    steps: the parts of writes, by completion, open ones last.
    exits: when a process ended by itself.
    starved: by process, from when to when it waited for a processor or the kit's own storage (ns), at most.
    table_writes: the writes of a black-box write path, by completion; audited: the events of audits of its tables.
    earlier: the instants that tables had before the run. future: the steps of their future, and listings.
    """

    def __init__(self, history: History) -> None:
        self.header = history.header
        self.events = history.events
        self.end = len(history.events)
        if self.events and self.events[-1].index != self.end - 1:
            raise UsageError(
                f"the last event has index {self.events[-1].index} and is number {self.end - 1}; the index of an event"
                " is its position in the history"
            )
        self.reads = self.header.witness == "reads" or self.header.layout == "names"
        self.rest = PresenceIndex(self.reads)
        self.directories: dict[str, Directory] = {}
        self.lives: dict[int, ServerLife] = {}
        self.crowded: list[tuple[int, int]] = []
        self.faults: list[FaultSpan] = []
        self.touched: dict[int, list[str]] = {}
        self.kills: list[int] = []
        self.phases: list[tuple[int, str]] = []
        self.modes: list[Event] = []
        self.steps: list[WriteStep] = []
        self.exits: dict[str, int] = {}
        self.late_echoes: list[int] = []
        self.starved: list[tuple[str, int, int]] = []
        self.given_up: list[Event] = []
        self.rows: list[Event] = []
        self.earlier: list[Event] = []
        self.future: list[Event] = []
        self.table_writes: list[TableWrite] = []
        self.audited: list[Event] = []
        self.file_reads: list[Event] = []
        self.in_place = False
        self.arrived: dict[int, int] = {}
        self.arrivals_again: dict[int, list[tuple[int, int]]] = {}
        self.observed: dict[str, Value] = {}
        self.closing: set[str] = set()
        self._open: dict[int, Event] = {}
        self._by_key: dict[tuple[str | None, str | None], Directory] = {}
        self._current: dict[str, ServerLife] = {}
        self._live = 0
        self._crowd_began = 0
        self._running: dict[tuple[str, str], list[int]] = {}
        self._spans: list[tuple[Event, int]] = []
        self._deaths: dict[str, int] = {}
        self._read()

    def starved_ns(self, begin_ns: int, end_ns: int) -> int:
        """The longest that a server waited for a processor or the kit's storage between two times, in ns."""
        lost: Counter[str] = Counter()
        first: dict[str, int] = {}  # Waits of several threads may overlap; they are in the order of their ends.
        for process, since_ns, until_ns in reversed(self.starved):
            counted = first.get(process, end_ns)
            lost[process] += max(0, min(until_ns, counted) - max(begin_ns, since_ns))
            first[process] = min(since_ns, counted)
        return max(lost.values(), default=0)

    @property
    def start(self) -> int:
        """The event at which the run begins; earlier ones describe what was there before, which no client requested."""
        return self.phases[0][0] if self.earlier and self.phases else 0

    def error_of(self, call: RecordedCall | TableWrite | WriteStep) -> str:
        """The error with which a call ended; "" without one, or while the call is open."""
        return "" if call.done == NEVER else self.events[call.done].error or ""

    def _read(self) -> None:  # noqa: C901
        """Sort all events into the records of the index. This is the hot loop, so frequent kinds are tested first."""
        open_, arrived, current, put = self._open, self.arrived, self._current, self.rest.put
        effects = not self.reads
        for event in self.events:
            kind = event.kind
            if kind == "invoke":
                open_[event.index] = event
            elif kind == "ok" or kind == "fail" or kind == "info":
                invoke = open_.pop(event.caused_by, None)  # type: ignore[arg-type]
                if invoke is not None:
                    self._keep(invoke, event.index, kind, event.value)
            elif kind == "effect":
                operation = event.operation
                if not effects or event.path is None:
                    continue
                if operation == "put" or operation == "delete":
                    put(event.index, event.path, event.value)  # type: ignore[arg-type]
                else:
                    self._rewrite(event)
                if self.closing:
                    self.closing.discard(directory_of(event.path) or "")
            elif event.operation == "arrived" and kind == "observe":
                cause, life = event.caused_by, current.get(event.process)
                start = NO_LIFE if life is None else life.start
                if cause in arrived:
                    self._arrived_again(cause, start, event.index)
                elif cause is not None:
                    arrived[cause] = start
            elif kind == "fault":
                self._fault(event)
            else:
                self._observe(event)
        for invoke in open_.values():
            self._keep(invoke, NEVER, "open", None)
        self._finish()

    def _keep(self, invoke: Event, done: int, outcome: str, value: Value) -> None:
        index, _, _, _, _, operation, table, instant, path, identity, _, addressed = invoke
        directory = self._by_key.get((table, instant))
        if directory is None:
            if operation in STEPS:
                self._keep_step(invoke, done, outcome)
                return
            if operation == "write":
                self._keep_write(invoke, done, outcome)
                return
            directory = self._directory(table, instant)
        life = self.arrived.get(index)
        if life is None:
            life = NO_LIFE if addressed is None else addressed
        # Three times as fast as calling RecordedCall, of which there is one for every two or three events.
        call = tuple.__new__(RecordedCall, (index, done, outcome, operation, path or "", value, identity, life))
        if operation == "create":
            directory.creates.append(call)
            if outcome == "ok":
                directory.answers.append(call)
                if value == "created" and self.in_place:
                    self.rest.created(done, directory.path, call.name)
        elif operation in LISTINGS:
            directory.listings.append(call)
        elif operation == "delete":
            directory.deletes.append(call)
        elif operation in STEPS:
            self._keep_step(invoke, done, outcome)
        elif operation == "hostile":
            directory.hostile.append(call)
        else:
            directory.others.append(call)

    def _keep_step(self, invoke: Event, done: int, outcome: str) -> None:
        instant = self.events[done].instant if done != NEVER else invoke.instant
        place = (invoke.table or "", instant or "", invoke.path or "")
        row = (invoke.index, done, outcome, invoke.operation, invoke.process, *place)
        self.steps.append(tuple.__new__(WriteStep, row))

    def _keep_write(self, invoke: Event, done: int, outcome: str) -> None:
        service = invoke.value if isinstance(invoke.value, str) else ""
        self.table_writes.append(
            TableWrite(invoke.index, done, outcome, invoke.process, invoke.table or "", invoke.texts, service)
        )

    def _directory(self, table: str | None, instant: str | None) -> Directory:
        path = f"{table}{TEMP}{instant}"
        directory = self.directories.setdefault(path, Directory(path))
        self._by_key[table, instant] = directory
        return directory

    def _rewrite(self, event: Event) -> None:
        self.in_place = True
        assert event.path is not None
        self.rest.rewrite(
            event.index, event.path, content_of(event.value), event.process, event.operation == "overwrite-end"
        )

    def _arrived_again(self, cause: int, start: int, index: int) -> None:
        first = self.arrived[cause]
        self.arrivals_again.setdefault(cause, [(cause, first)]).append((index, start))
        if start != first:
            self.arrived[cause] = SEVERAL_LIVES

    def _observe(self, event: Event) -> None:  # noqa: C901
        index = event.index
        match event.operation:
            case "file" | "raw-file":
                self._file(event)
            case "snapshot":
                self._snapshot(event)
            case "started":
                self._ends(index, event.process)
                self._current[event.process] = self.lives[index] = ServerLife(index, event.process)
                self._count(index, 1)
            case "exited":
                life = self._ends(index, event.process)
                if life is not None:
                    life.exited = True
                self.exits.setdefault(event.process, index)
                self.rest.died(index, event.process)
            case "mode":
                self.modes.append(event)
            case "phase":
                self.phases.append((index, str(event.value)))
            case "rows":
                self.rows.append(event)
            case "audit" | "entry" | "archive" | "data-file" | "marker-file":
                self.audited.append(event)
            case "future" | "listing":
                self.future.append(event)
            case "earlier":
                self.earlier.append(event)
            case "job-failed":
                self.given_up.append(event)
            case "echo-late":
                self.late_echoes.append(index)
            case "starved" if isinstance(event.value, int):
                self.starved.append((event.process, event.time_ns - event.value * MS, event.time_ns))

    def _file(self, event: Event) -> None:
        if event.path is None:
            return
        if self.reads:
            self.file_reads.append(event)
        if event.operation == "file":
            self.observed[event.path] = event.value
            if self.reads:
                self.rest.put(event.index, event.path, content_of(event.value))

    def _snapshot(self, event: Event) -> None:
        if event.path is None or event.error:
            return
        if self.reads:
            named = self.header.layout == "names"
            names = event.value if named and isinstance(event.value, tuple) else () if named else None
            begun = event.caused_by if event.caused_by is not None else event.index
            self.rest.home(event.path).snapshot(event.index, begun, names)
        else:
            self.closing.add(event.path)

    def _fault(self, event: Event) -> None:
        index, process, kind = event.index, event.process, event.operation
        if event.caused_by is not None:
            self.touched.setdefault(event.caused_by, []).append(kind)
        if event.value == "end":
            running = self._running.get((kind, process))
            if running:
                number = running.pop()
                self._spans[number] = (self._spans[number][0], index)
            if kind == "second-server" and self._ends(index, process) is not None:
                self.kills.append(index)
        elif event.value == "begin":
            self._running.setdefault((kind, process), []).append(len(self._spans))
            self._spans.append((event, NEVER))
        elif event.value not in _CONSEQUENCES:
            self._spans.append((event, index))
        if kind in DEADLY:
            self._deaths[process] = index
            if self._ends(index, process) is not None and event.value != END_OF_RUN:
                self.kills.append(index)
            self.rest.died(index, process)

    def _ends(self, index: int, process: str) -> ServerLife | None:
        life = self._current.get(process)
        if life is None or life.end != NEVER:
            return None
        life.end = index
        self._count(index, -1)
        return life

    def _count(self, index: int, change: int) -> None:
        if self._live == 1 and change == 1:
            self._crowd_began = index
        elif self._live == 2 and change == -1:
            self.crowded.append((self._crowd_began, index))
        self._live += change

    def _finish(self) -> None:
        """Close what is open at the end: by the death of its process, or because all faults were healed."""
        if self._live > 1:
            self.crowded.append((self._crowd_began, NEVER))
        servers = {life.process for life in self.lives.values()}
        healed = min((index for index, phase in self.phases if phase != "faults"), default=NEVER)
        for event, ended in self._spans:
            begin, kind = event.index, event.operation
            on_server = event.process in servers
            end = ended
            if ended == NEVER and self._deaths.get(event.process, -1) > begin:
                end = self._deaths[event.process]
            elif ended == NEVER and healed > begin and not (kind == "pause" and on_server):
                end = healed
            cls = FAULT_CLASS.get(kind, "none")
            if not on_server and (kind in DEADLY or kind == "pause"):
                cls = "client"
            home = directory_of(f"{event.path}/") if event.path else None
            self.faults.append(FaultSpan(kind, cls, event.process, event.path, event.caused_by, begin, end, home))
            if kind == "pause":
                for life in self.lives.values():
                    if life.process == event.process and life.start <= begin < life.end:
                        life.pauses.append((begin, min(end, life.end)))


def content_of(value: Value) -> bytes | None:
    """The content of a file in an event; UsageError when the event holds none."""
    if value is None or isinstance(value, bytes):
        return value
    raise UsageError(f"the content of a file is {type(value).__name__} {value!r}; it is bytes, or None when it is gone")
