"""The Runtime seam on an event loop: every actor is a greenlet on the loop's thread, and waiting is a switch.

The reference's plain blocking code runs here as it is, without a thread for each request and without preemption:
between two calls through a seam no other actor runs, as in the simulator. Everything here is called on the loop's
thread. An exception that leaves an actor ends the process: a server without its owner would answer no request.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from greenlet import getcurrent, greenlet

from marker_sim.seams import Mailbox
from marker_sim.serve.fair_thread_pool import FairThreadPool


class LoopMailbox:
    """A queue between actors of one loop; waiting actors are served in the order of their coming."""

    __slots__ = ("_items", "_runtime", "_waiting")

    def __init__(self, runtime: LoopRuntime) -> None:
        self._runtime = runtime
        self._items: deque[Any] = deque()
        self._waiting: deque[greenlet] = deque()

    def put(self, item: Any) -> None:
        """Hand an item to the longest waiting actor, or keep it."""
        if self._waiting:
            self._runtime.loop.call_soon(self._waiting.popleft().switch, item)
        else:
            self._items.append(item)

    def get(self, timeout_ms: float | None = None) -> Any:
        """The next item, or None after `timeout_ms`."""
        if self._items:
            return self._items.popleft()
        actor = getcurrent()
        self._waiting.append(actor)
        if timeout_ms is None:
            return self._runtime.park()
        # Rounded up to the resolution of the loop's clock: an actor must not wake too early.
        timer = self._runtime.loop.call_later(math.ceil(timeout_ms) / 1000, self._expire, actor)
        item = self._runtime.park()
        timer.cancel()
        return item

    def _expire(self, actor: greenlet) -> None:
        # An actor that was handed an item in the same turn of the loop is no longer waiting.
        if actor in self._waiting:
            self._waiting.remove(actor)
            actor.switch(None)


class LoopRuntime:
    """The Runtime seam of a process on its event loop.

    hold: locks of the host.
    died: called with an exception that left an actor.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lanes: FairThreadPool,
        hold: Callable[[LoopRuntime, str], AbstractContextManager[None]],
        died: Callable[[str, BaseException], None],
    ) -> None:
        self.loop = loop
        self._hub = getcurrent()
        self._lanes = lanes
        self._hold = hold
        self._died = died

    def park(self) -> Any:
        """Let other actors run until this one is resumed; returns the value passed to it."""
        assert getcurrent() is not self._hub, "a seam was called outside an actor"
        return self._hub.switch()

    def now_ms(self) -> float:
        """Monotonic milliseconds."""
        return time.monotonic() * 1000

    def sleep(self, duration_ms: float) -> None:
        """Sleep without blocking other actors."""
        self.loop.call_later(math.ceil(duration_ms) / 1000, getcurrent().switch, None)
        self.park()

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        """Start an actor in the loop's next turn."""
        self.loop.call_soon(greenlet(partial(self._guarded, name, body), self._hub).switch)

    def spawn_now(self, name: str, body: Callable[[], None]) -> None:
        """Start an actor at once; returns when it first waits or has ended. Called outside actors."""
        greenlet(partial(self._guarded, name, body), self._hub).switch()

    def _guarded(self, name: str, body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as error:
            self._died(name, error)

    def mailbox(self) -> Mailbox:
        """A new mailbox, for actors of this loop only."""
        return LoopMailbox(self)

    def lock(self, name: str) -> AbstractContextManager[None]:
        """A lock of the host."""
        return self._hold(self, name)

    def unique_id(self) -> str:
        """A unique id, new in every process and life."""
        return uuid.uuid4().hex

    def in_thread(self, place: str, body: Callable[[], Any]) -> Any:
        """The result of a blocking call run in a thread; this actor waits, the others continue."""
        actor = getcurrent()
        self._lanes.submit(place, body, lambda result, error: actor.switch((result, error)))
        result, error = self.park()
        if error is not None:
            raise error
        return result
