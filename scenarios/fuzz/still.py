"""A Runtime for readers and writers in this process: threads, no waiting, and every call bounded."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from marker_sim.seams import Mailbox

T = TypeVar("T")


class StillRuntime:
    """Sleeping takes no time; what waits for others to finish does not live here."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def now_ms(self) -> float:
        """Milliseconds since 1970."""
        return time.time() * 1000

    def sleep(self, duration_ms: float) -> None:
        """Pass at once."""

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        """Start a thread."""
        threading.Thread(target=body, name=name, daemon=True).start()

    def mailbox(self) -> Mailbox:
        """A queue."""
        return _Queue()

    def lock(self, name: str) -> AbstractContextManager[Any]:
        """One lock for all names."""
        return self._lock

    def unique_id(self) -> str:
        """A new one."""
        return uuid.uuid4().hex


class _Queue:
    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, item: Any) -> None:
        self._items.put(item)

    def get(self, timeout_ms: float | None = None) -> Any:
        try:
            return self._items.get(timeout=60.0 if timeout_ms is None else timeout_ms / 1000)
        except queue.Empty:
            return None


def within(bound_s: float, what: str, call: Callable[[], T]) -> T | Exception:
    """The result of a call or the exception that it raised; AssertionError when it does not end within the bound."""
    results: list[T | Exception] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(bound_s)
    if not results:
        raise AssertionError(f"{what} does not end within {bound_s:.0f} s")
    return results[0]
