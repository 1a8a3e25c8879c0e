"""The Storage seam for actors on an event loop: calls run in threads, shared fairly by marker directory.

A lock that is taken is tried again with growing pauses: waiting inside the kernel would block a thread each, and a
paused process that holds one lock could block all of them.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

from marker_sim.names import place_of
from marker_sim.seams import Condition, Content, Storage
from marker_sim.serve.runtime import LoopRuntime
from marker_sim.storages.locks import HostLocks

LOCK_PAUSE_MS = 1.0
LOCK_PAUSE_MAX_MS = 20.0


class LoopStorage:
    """A storage whose calls run in threads while the loop continues."""

    def __init__(self, inner: Storage, runtime: LoopRuntime) -> None:
        self.capabilities = inner.capabilities
        self._inner = inner
        self._run = runtime.in_thread

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Replace atomically, under a condition; returns the new version."""
        version: str = self._run(place_of(path), partial(self._inner.put, path, data, condition, expected))
        return version

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace in place."""
        self._run(place_of(path), partial(self._inner.overwrite, path, data))

    def get(self, path: str) -> Content:
        """The object as it is now."""
        content: Content = self._run(place_of(path), partial(self._inner.get, path))
        return content

    def list(self, prefix: str) -> tuple[str, ...]:
        """Every path below a prefix, sorted."""
        paths: tuple[str, ...] = self._run(place_of(prefix), partial(self._inner.list, prefix))
        return paths

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is fine."""
        self._run(place_of(path), partial(self._inner.delete, path))


class LoopLocks:
    """Locks of the host for actors; without `locks` (storages that need none) nothing is locked."""

    def __init__(self, locks: HostLocks | None) -> None:
        self._locks = locks

    def hold(self, runtime: LoopRuntime, name: str) -> nullcontext[None] | _LoopLockHeld:
        """Hold the lock of a name for a block; waits as long as its holder lives."""
        return nullcontext() if self._locks is None else _LoopLockHeld(runtime, self._locks, name)


class _LoopLockHeld:
    def __init__(self, runtime: LoopRuntime, locks: HostLocks, name: str) -> None:
        self._runtime, self._locks, self._name = runtime, locks, name
        self._file = -1

    def __enter__(self) -> None:
        pause_ms = LOCK_PAUSE_MS
        while True:
            taken = self._runtime.in_thread(place_of(self._name), partial(self._locks.try_hold, self._name))
            if taken is not None:
                self._file = taken
                return
            self._runtime.sleep(pause_ms)
            pause_ms = min(2 * pause_ms, LOCK_PAUSE_MAX_MS)

    def __exit__(self, *_: object) -> None:
        self._locks.release(self._file)
