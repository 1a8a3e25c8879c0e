"""The Runtime and Storage seams on an event loop: an actor is a greenlet on the loop's thread, waiting is a switch.

The reference's plain blocking code runs here as it is, without a thread for each request and without preemption:
between two calls through a seam no other actor runs, as in the simulator. Everything here is called on the loop's
thread. An exception that leaves an actor ends the process: a server without its owner would answer no request.

Blocking calls are made by a bounded number of threads, shared fairly between places, so that none of them starves. A
place (a marker directory) has at most PLACE_MAX calls under way, and waiting places take turns. The first call of
a place may use threads beyond THREADS_MAX, up to FIRST_MAX: calls that hang in some directories never keep all threads
from the others (guarantee isolation).
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

from greenlet import getcurrent, greenlet

from marker_sim.names import place_of
from marker_sim.seams import Mailbox, Storage, StorageWrapper
from marker_sim.storages.locks import HostLocks

LOCK_PAUSE_MS = 1.0
LOCK_PAUSE_MAX_MS = 20.0
THREADS_MAX = 64
FIRST_MAX = 256
PLACE_MAX = 24


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

    locks: of the host, None for a storage that needs none.
    died: called with an exception that left an actor.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lanes: FairThreadPool,
        locks: HostLocks | None,
        died: Callable[[str, BaseException], None],
    ) -> None:
        self.loop = loop
        self._hub = getcurrent()
        self._lanes = lanes
        self._locks = locks
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

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """The lock of a name on this host, for a block; waits as long as its holder lives.

        One that is taken is tried again with growing pauses: waiting inside the kernel would block a thread each, and a
        paused process that holds one lock could block all of them.
        """
        if self._locks is None:
            yield
            return
        pause_ms = LOCK_PAUSE_MS
        while (taken := self.in_thread(place_of(name), partial(self._locks.try_hold, name))) is None:
            self.sleep(pause_ms)
            pause_ms = min(2 * pause_ms, LOCK_PAUSE_MAX_MS)
        try:
            yield
        finally:
            self._locks.release(taken)

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


class _Call(NamedTuple):
    place: str
    body: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]


class FairThreadPool:
    """Runs calls in threads and returns their results on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
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
        return busy < PLACE_MAX and self._running < THREADS_MAX

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


class LoopStorage(StorageWrapper):
    """A storage whose calls run in threads while the loop continues."""

    def __init__(self, inner: Storage, runtime: LoopRuntime) -> None:
        super().__init__(inner)
        self._run = runtime.in_thread

    def _call(self, operation: str, path: str, *arguments: Any) -> Any:
        return self._run(place_of(path), partial(super()._call, operation, path, *arguments))
