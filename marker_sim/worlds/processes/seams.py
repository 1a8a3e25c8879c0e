"""Storage and Runtime of real processes; every call through them is a step.

Steps are counted for each actor over all its lives, in memory that outlives a killed process. The interceptor is met
outside of here: in the S3 front, and for local files at the door.
"""

from __future__ import annotations

import mmap
import queue
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from marker_sim.faults import Fault
from marker_sim.history import UNSUPPORTED
from marker_sim.seams import Mailbox, Storage, StorageWrapper
from marker_sim.storages.locks import HostLocks
from marker_sim.worlds.processes.coordinator import CoordinatorClient

SLOTS = 256
_CELL = struct.Struct("<q")


class Counters:
    """The shared page. slot: an actor's place in it."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(SLOTS * _CELL.size))
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), SLOTS * _CELL.size)

    def read(self, slot: int) -> int:
        """Steps so far."""
        return int(_CELL.unpack_from(self._page, slot * _CELL.size)[0])

    def write(self, slot: int, steps: int) -> None:
        """Set the steps."""
        _CELL.pack_into(self._page, slot * _CELL.size, steps)


class Steps:
    """The steps of one process and the faults of its actor. strike: called in the thread whose step is due."""

    def __init__(
        self, counters: Counters, slot: int, faults: tuple[tuple[int, Fault], ...], strike: Callable[[int, Fault], None]
    ) -> None:
        self._counters, self._slot, self._strike = counters, slot, strike
        self._lock = threading.Lock()
        steps = counters.read(slot)
        self._pending = sorted(((f.n, number, f) for number, f in faults if f.n > steps), key=lambda e: e[:2])

    def step(self) -> None:
        """One more seam call."""
        due = []
        with self._lock:
            steps = self._counters.read(self._slot) + 1
            self._counters.write(self._slot, steps)
            while self._pending and self._pending[0][0] <= steps:
                due.append(self._pending.pop(0))
        for _, number, fault in due:
            self._strike(number, fault)


class CountedStorage(StorageWrapper):
    """A storage whose calls are steps; nothing else happens to them here."""

    def __init__(self, inner: Storage, steps: Steps, link: CoordinatorClient) -> None:
        super().__init__(inner)
        self._link = link
        self._count = steps.step

    def _call(self, operation: str, path: str, *arguments: Any) -> Any:
        """Count a step; record a call that needs what the storage lacks, even if its error is caught."""
        if lacks := self.capabilities.lacks(operation, *arguments[1:]):
            self._link.record(self._link.process, self._link.role, "observe", UNSUPPORTED, error=lacks)
        self._count()
        return super()._call(operation, path, *arguments)


class ThreadRuntime:
    """The Runtime seam of a process whose actors are threads.

    locks: of the host, None where processes may be on several hosts: then only the threads of this one are excluded.
    """

    def __init__(self, steps: Steps, locks: HostLocks | None, died: Callable[[str], object]) -> None:
        self._step = steps.step
        self._locks = locks
        self._own_locks: dict[str, threading.Lock] = {}
        self._died = died

    def now_ms(self) -> float:
        """Milliseconds since 1970."""
        return time.time() * 1000

    def sleep(self, duration_ms: float) -> None:
        """Let time pass."""
        self._step()
        time.sleep(duration_ms / 1000)

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        """Start a thread."""
        self._step()
        threading.Thread(target=self._guarded, args=(name, body), name=name, daemon=True).start()

    def _guarded(self, name: str, body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as error:
            self._died(f"{name}: {error!r}")

    def mailbox(self) -> Mailbox:
        """A queue between threads of this process."""
        return ThreadMailbox(self._step)

    def lock(self, name: str) -> AbstractContextManager[None]:
        """A lock of the host or, without one, of this process."""
        self._step()
        return self._hold_own(name) if self._locks is None else self._locks.hold(name)

    @contextmanager
    def _hold_own(self, name: str) -> Iterator[None]:
        with self._own_locks.setdefault(name, threading.Lock()):
            yield

    def unique_id(self) -> str:
        """A unique id, new in every process and life."""
        return uuid.uuid4().hex


class ThreadMailbox:
    """A queue between threads."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._step = step

    def put(self, item: Any) -> None:
        """Put an item, which the first waiting caller gets."""
        self._step()
        self._items.put(item)

    def get(self, timeout_ms: float | None = None) -> Any:
        """The next item, or None after `timeout_ms`."""
        self._step()
        try:
            return self._items.get(timeout=None if timeout_ms is None else timeout_ms / 1000)
        except queue.Empty:
            return None
