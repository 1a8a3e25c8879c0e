"""The executors of one driver, as their attempts show them: how long at least one of them was idle.

An executor is idle from its first attempt to its death while none of its attempts is under way and it is not paused.
One that has made no attempt yet leaves no trace in a history, so it is never idle.
"""

from __future__ import annotations

from collections.abc import Iterable

from marker_sim.history.index.calls import WriteStep
from marker_sim.history.index.history_index import HistoryIndex

Span = tuple[int, int]  # Indices of the first and last event.


class Executors:
    """The executors that made attempts for a driver's writes."""

    def __init__(self, view: HistoryIndex, driver: str) -> None:
        self._view, self._driver = view, driver
        begun = {(s.table, s.instant) for s in view.steps if s.operation == "begin" and s.process == driver}
        self._attempts: dict[str, list[WriteStep]] = {}
        for step in sorted(view.steps):
            if step.operation == "attempt" and (step.table, step.instant) in begun:
                self._attempts.setdefault(step.process, []).append(step)

    @property
    def processes(self) -> frozenset[str]:
        """The lives of all executors."""
        return frozenset(self._attempts)

    def idle_ns(self, low: int, high: int) -> int:
        """The time between two events in which the driver ran and at least one executor was idle."""
        idle: list[Span] = []
        for process, attempts in self._attempts.items():
            alive = max(low, attempts[0].invoke), min(high, self._view.ended(process))
            busy = [(step.invoke, self.over(step)) for step in attempts]
            idle += _outside(alive, [*busy, *self._pauses(process)])
        both = _outside((low, high), self._pauses(self._driver))
        spans = [(max(a, c), min(b, d)) for a, b in _merged(idle) for c, d in both]
        return sum(self._view.time_ns(end) - self._view.time_ns(begin) for begin, end in spans if begin < end)

    def over(self, attempt: WriteStep) -> int:
        """The event at which an attempt was over: answered, or killed while its executor lived on."""
        own = (f for f in self._view.faults if f.process == attempt.process and f.path == attempt.path)
        killed = (f.begin for f in own if f.kind == "attempt-killed" and f.begin > attempt.invoke)
        return min(killed, default=attempt.done)

    def _pauses(self, process: str) -> list[Span]:
        return [(f.begin, f.end) for f in self._view.faults if f.kind == "pause" and f.process == process]


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The union of spans, in order and without overlaps."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _outside(span: Span, holes: Iterable[Span]) -> list[Span]:
    """The parts of a span that lie outside some others."""
    left, (at, end) = [], span
    for begin, until in _merged(holes):
        if begin > at:
            left.append((at, min(begin, end)))
        at = max(at, until)
    left.append((at, end))
    return [(a, b) for a, b in left if a < b]
