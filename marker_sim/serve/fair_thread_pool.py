"""A bounded number of threads for blocking calls, shared fairly between places, so that none of them starves.

A place (a marker directory) has at most `place_max` calls under way, and waiting places take turns. The first call of
a place may use threads beyond THREADS_MAX, up to FIRST_MAX: calls that hang in some directories never occupy all
threads (guarantee isolation). Everything but the calls themselves
happens on the thread of the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

THREADS_MAX = 64
FIRST_MAX = 256
PLACE_MAX = 24


class _Call(NamedTuple):
    place: str
    body: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]


class FairThreadPool:
    """Runs calls in threads and returns their results on the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, threads_max: int = THREADS_MAX, place_max: int = PLACE_MAX
    ) -> None:
        self._loop = loop
        self._threads_max = threads_max
        self._place_max = place_max
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._waiting: dict[str, deque[_Call]] = {}
        self._busy: dict[str, int] = {}
        self._running = 0
        self._threads = 0

    def submit(self, place: str, body: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        """Run `body` in a thread as soon as its place may, then `done(result, error)` on the loop."""
        call = _Call(place, body, done)
        if self._may_start(place):
            self._start(call)
        else:
            self._waiting.setdefault(place, deque()).append(call)

    def _may_start(self, place: str) -> bool:
        busy = self._busy.get(place, 0)
        if busy == 0:
            return self._running < FIRST_MAX
        return busy < self._place_max and self._running < self._threads_max

    def _start(self, call: _Call) -> None:
        self._running += 1
        self._busy[call.place] = self._busy.get(call.place, 0) + 1
        if self._threads < self._running:
            self._threads += 1
            # Daemons: a call that hangs for ever must not keep a stopped server from ending.
            threading.Thread(target=self._work, name=f"storage-{self._threads}", daemon=True).start()
        self._calls.put(call)

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            result, error = None, None
            try:
                result = call.body()
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # The loop is closed, so there is no waiter.
                self._loop.call_soon_threadsafe(self._finish, call, result, error)

    def _finish(self, call: _Call, result: Any, error: BaseException | None) -> None:
        self._running -= 1
        self._busy[call.place] -= 1
        if not self._busy[call.place]:
            del self._busy[call.place]
        if self._waiting:
            self._next()
        call.done(result, error)

    def _next(self) -> None:
        """Start one waiting call of the place that has waited longest for its turn."""
        for place in self._waiting:
            if self._may_start(place):
                calls = self._waiting.pop(place)
                self._start(calls.popleft())
                if calls:
                    self._waiting[place] = calls
                return
