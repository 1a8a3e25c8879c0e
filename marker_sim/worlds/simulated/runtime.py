"""The Runtime seam in the simulated world: mailboxes, sleep, locks of the host, unique ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from greenlet import getcurrent, greenlet

from marker_sim.faults.sites import ANSWER_HANDED_OVER, LOCK_ASKED, REQUEST_QUEUED, WORKER_REPORTS, WORKER_STARTED
from marker_sim.seams import Mailbox
from marker_sim.worlds.simulated.scheduler import MS, Process, Scheduler


class SimMailbox:
    """A queue between actors of one process; waiting actors are served in the order of arrival."""

    __slots__ = ("_items", "_process", "_scheduler", "_waiting")

    def __init__(self, scheduler: Scheduler, process: Process) -> None:
        self._scheduler = scheduler
        self._process = process
        self._items: list[Any] = []  # Lists, not deques: both are short, and every request has one.
        self._waiting: list[list[Any]] = []

    def put(self, item: Any) -> None:
        """Pass an item to the longest waiting actor, or keep it."""
        scheduler = self._scheduler
        scheduler.step(self._process)
        if self._process.actor.sited:
            scheduler.arrive(self._process, self._site_of_put())
        if self._waiting:
            scheduler.at(scheduler.now_ns, scheduler.resume, self._handed(item))
        else:
            self._items.append(item)

    def _handed(self, item: Any) -> tuple[Process, greenlet, Any]:
        """What lets the longest waiting actor go on with an item."""
        ticket = self._waiting.pop(0)
        ticket[1] = False
        return self._process, ticket[0], item

    def _site_of_put(self) -> str:
        """The site of a put in a server: of a request, of its answer, or of other work; "" elsewhere."""
        if self._process.role != "timeline-server":
            return ""
        serving = [call.handler for call in self._process.calls]
        if getcurrent() in serving:
            return REQUEST_QUEUED
        return ANSWER_HANDED_OVER if self._waiting and self._waiting[0][0] in serving else WORKER_REPORTS

    def post(self, item: Any) -> None:
        """Put an item from outside of all actors, without a step and without delay."""
        if self._waiting:
            self._scheduler.resume(self._handed(item))
        else:
            self._items.append(item)

    def get(self, timeout_ms: float | None = None) -> Any:
        """The next item, or None after `timeout_ms`."""
        scheduler = self._scheduler
        scheduler.step(self._process)
        if self._items:
            return self._items.pop(0)
        ticket: list[Any] = [getcurrent(), True]
        self._waiting.append(ticket)
        if timeout_ms is not None:
            # Rounded up, because an actor must not wake too early.
            scheduler.at(scheduler.now_ns + int(timeout_ms * MS) + 1, self._expire, ticket)
        return scheduler.park()

    def _expire(self, ticket: list[Any]) -> None:
        if ticket[1]:
            ticket[1] = False
            self._waiting.remove(ticket)
            self._scheduler.resume((self._process, ticket[0], None))


class SimHostLocks:
    """Exclusive locks by name; a process's death frees its locks.

    one_host: every process is on the same host, which shares its locks; else each is on a host of its own.
    """

    def __init__(self, scheduler: Scheduler, *, one_host: bool = True) -> None:
        self._scheduler = scheduler
        self._one_host = one_host
        self._holders: dict[str, tuple[Process, greenlet]] = {}
        self._waiting: dict[str, deque[tuple[Process, greenlet]]] = {}

    def hold(self, name: str, process: Process) -> AbstractContextManager[None]:
        """A lock held during the block."""
        return _SimLockHeld(self, name if self._one_host else f"{process.name} {name}", process)

    def acquire(self, name: str, process: Process) -> None:
        """Wait until the lock is free, and take it."""
        scheduler = self._scheduler
        scheduler.step(process)
        if process.actor.sited and process.role == "timeline-server":
            scheduler.arrive(process, LOCK_ASKED)
        me = (process, getcurrent())
        while name in self._holders:
            self._waiting.setdefault(name, deque()).append(me)
            scheduler.park()
        self._holders[name] = me
        process.locks[name] = None

    def release(self, name: str, process: Process) -> None:
        """Release the lock; an actor that is being unwound lost it when its process died."""
        if not self._scheduler.closed:
            self._release(name, process)

    def drop(self, process: Process) -> None:
        """Free the locks of a process that died."""
        for name in list(process.locks):
            self._release(name, process)

    def drop_actor(self, process: Process, actor: greenlet) -> None:
        """Free the locks of one actor that ended within its work, in a process that lives."""
        for name in list(process.locks):
            if self._holders.get(name) == (process, actor):
                self._release(name, process)

    def _release(self, name: str, process: Process) -> None:
        self._holders.pop(name, None)
        process.locks.pop(name, None)
        waiting = self._waiting.get(name)
        while waiting:
            next_process, actor = waiting.popleft()
            self._scheduler.at(self._scheduler.now_ns, self._scheduler.resume, (next_process, actor, None))


class _SimLockHeld:
    """A lock that is held for a block; a class, because a generator's frame would cost more than the lock."""

    __slots__ = ("_locks", "_name", "_process")

    def __init__(self, locks: SimHostLocks, name: str, process: Process) -> None:
        self._locks = locks
        self._name = name
        self._process = process

    def __enter__(self) -> None:
        self._locks.acquire(self._name, self._process)

    def __exit__(self, *_: object) -> None:
        self._locks.release(self._name, self._process)


class SimRuntime:
    """The Runtime seam of one process."""

    def __init__(self, scheduler: Scheduler, process: Process, locks: SimHostLocks) -> None:
        self._scheduler = scheduler
        self._process = process
        self._locks = locks
        self._ids = 0

    def now_ms(self) -> float:
        """Virtual milliseconds since the run began; reading the clock is no step."""
        return self._scheduler.now_ns / MS + self._process.clock_ms

    def sleep(self, duration_ms: float) -> None:
        """Wait in virtual time."""
        factor = self._scheduler.step(self._process)
        self._scheduler.sleep(self._process, int(duration_ms * MS + factor * 1_000))

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        """Start an actor of this process."""
        process, scheduler = self._process, self._scheduler
        scheduler.step(process)
        if process.actor.sited and process.role == "timeline-server":
            scheduler.arrive(process, WORKER_STARTED)
        scheduler.spawn(process, body)

    def mailbox(self) -> Mailbox:
        """A new mailbox, for actors of this process only."""
        return SimMailbox(self._scheduler, self._process)

    def lock(self, name: str) -> AbstractContextManager[None]:
        """A lock of the simulated host that this process is on."""
        return self._locks.hold(name, self._process)

    def unique_id(self) -> str:
        """A unique id, new in every process and life."""
        self._ids += 1
        return f"{self._process.name}-{self._ids}"
