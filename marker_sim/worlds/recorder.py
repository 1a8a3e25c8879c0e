"""Records events of many threads in one order, with the state that the kit's reader needs during the run.

An event gets its index and time under one lock, so that an invocation is recorded before its request is sent and a
completion after its reply was read: between two events of different threads the order is real time. Once closed, late
threads record nothing; once clients are over, what they had open stays open.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from marker_sim.faults import FaultKind
from marker_sim.history import Event, answer_bound_before_faults
from marker_sim.names import MarkerDirectory, parse_directory
from marker_sim.tables.parts import observed
from marker_sim.tables.sources import Files
from marker_sim.worlds.cluster.recording import Events


class Recorder(Events):
    """The history in progress. `answered` of a directory is what must be stored unless it was deleted."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.events: list[Event] = []
        self.closed = False
        self.clients_over = False
        self._began_ns = time.monotonic_ns()
        self._answered: dict[tuple[str | None, str | None], set[str]] = {}
        self._open: dict[int, Event] = {}
        self._killed: set[str] = set()

    def mark(self) -> int:
        """The index of the last event; anything read from now on is newer."""
        with self.lock:
            return len(self.events) - 1

    def append(self, row: tuple[Any, ...]) -> int:
        """Add an event and return its index; -1 once the history is closed."""
        with self.lock:
            if self.closed or (self.clients_over and row[1] == "client"):
                return -1
            index = len(self.events)
            now_ns = time.monotonic_ns() - self._began_ns
            event = Event(index, now_ns, *row)
            self.events.append(event)
            self._follow(event)
            return index

    def fault(
        self,
        process: str,
        operation: str,
        value: str | None = None,
        path: str | None = None,
        act: Act | None = None,
        error: str | None = None,
    ) -> int:
        """Record a fault and inject it under one lock, so that its consequences are recorded after it."""
        with self.lock:
            index = self.record(process, "nemesis", "fault", operation, value=value, path=path, error=error)
            if act is not None:
                act()
            return index

    def phase(self, name: str) -> None:
        """The run enters a phase."""
        self.record("kit", "kit", "observe", "phase", value=name)

    def close(self) -> tuple[Event, ...]:
        """Close the history."""
        with self.lock:
            self.closed = True
            return tuple(self.events)

    def answered(self, place: MarkerDirectory) -> frozenset[str]:
        """Names answered since the last invocation of a deletion of the directory; none while a deletion is open."""
        with self.lock:
            if any(e.operation == "delete" and (e.table, e.instant) == place for e in self._open.values()):
                return frozenset()
            return frozenset(self._answered.get(place, ()))

    def open_since(self, time_ns: float = math.inf) -> int:
        """The number of open invocations from before a time whose clients are alive."""
        with self.lock:
            waiting = (event for event in self._open.values() if event.process not in self._killed)
            return sum(event.time_ns < time_ns for event in waiting)

    def open_calls(self) -> tuple[int, ...]:
        """The open invocations of clients, in order."""
        with self.lock:
            return tuple(index for index, event in self._open.items() if event.role == "client")

    def now_ns(self) -> int:
        """The time of an event recorded now."""
        return time.monotonic_ns() - self._began_ns

    def bound_ms(self) -> int:
        """The bound of every-request-answered."""
        with self.lock:
            return answer_bound_before_faults(self.events)

    def count(self, kinds: Collection[str]) -> int:
        """The number of events of these kinds."""
        with self.lock:
            return sum(event.kind in kinds for event in self.events)

    def _follow(self, event: Event) -> None:
        key = (event.table, event.instant)
        if event.kind == "fault" and event.operation == FaultKind.KILL.value:
            self._killed.add(event.process)
        elif event.operation == FaultKind.DIRECTORY_REMOVED.value and event.path is not None:
            self._answered.pop(parse_directory(event.path), None)
        elif event.kind == "invoke":
            self._open[event.index] = event
            if event.operation == "delete":
                self._answered.pop(key, None)
        elif event.kind in ("ok", "fail", "info") and event.caused_by is not None:
            invoke = self._open.pop(event.caused_by, None)
            if invoke is not None and event.kind == "ok" and event.operation == "create" and event.path is not None:
                self._answered.setdefault(key, set()).add(event.path)


Act = Callable[[], object]


def observe_table(recorder: Recorder, table: str, files: Files, caused_by: int) -> None:
    """Record the content of a table at rest, from `audit` "begin" on. table: its storage path; caused_by: the write
    before. The caller records the rows that readers find, and the end of the audit.
    """
    recorder.record("kit", "kit", "observe", "audit", table, "", value="begin", caused_by=caused_by)
    for part in observed(files, table):
        recorder.record("kit", "kit", "observe", part.operation, table, part.instant, part.path, part.value, part.error)
