"""A part of a history's events that looks like the whole: each event keeps its index, all others are holes.

A part has the events of some tables and those that belong to no table. The index, number and time of all events are
those of the whole history, so a judge that looks at one table at a time finds the same in the part, word for word.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import overload

from marker_sim.history.model import Event

HOLE = "elsewhere"
_index = attrgetter("index")


class PartOfEvents(Sequence[Event]):
    """Some events of a history, by ascending index; iterating and slicing leave out the holes.

    times: the `time_ns` of every event of the whole history, which parts share.
    """

    __slots__ = ("_by_index", "_events", "_times")

    def __init__(self, events: Sequence[Event], times: array[int]) -> None:
        self._events = events
        self._times = times
        self._by_index = {event.index: event for event in events}

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        """An event, or an empty one with only a time for a hole; for a slice, its events without holes."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self._times))
            low = bisect_left(self._events, start, key=_index)
            return self._events[low : bisect_left(self._events, stop, key=_index)]
        at = index + len(self._times) if index < 0 else index
        found = self._by_index.get(at)
        return Event(at, self._times[at], "", "", "observe", HOLE) if found is None else found
