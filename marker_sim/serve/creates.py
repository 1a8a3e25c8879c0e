"""Creates received in one turn of the loop, queued together: most requests are creates, and most need no actor.

A greenlet for each would only wait for its answer, so none is made: the answer of the owner of `markers.server` is
passed on at once. Stores of other classes have a create of their own, which may wait, and get a greenlet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from marker_sim.markers.batches import Waiter
from marker_sim.markers.protocol import create_reply
from marker_sim.markers.server import ServedMarkers
from marker_sim.markers.store import Created
from marker_sim.seams import Reply

Done = Callable[[Reply], object]


class QueuedCreates:
    """The creates received in this turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[ServedMarkers, list[Waiter]] = {}

    def add(self, store: ServedMarkers, name: str, request: str, done: Done) -> None:
        """Queue a create; `done` gets its reply in a later turn of the loop."""
        if not self._due:
            self._loop.call_soon(self._hand_over)
        waiter = Waiter(name, request, _Answer(done))
        if store in self._due:
            self._due[store].append(waiter)
        else:
            self._due[store] = [waiter]

    def _hand_over(self) -> None:
        due, self._due = self._due, {}
        for store, waiters in due.items():
            store.queue(waiters)


class _Answer:
    __slots__ = ("_done",)

    def __init__(self, done: Done) -> None:
        self._done = done

    def put(self, item: Created | Exception) -> None:
        self._done(create_reply(item))
