"""Makes the same call for many items, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from marker_sim.seams import Runtime

T = TypeVar("T")


def for_each(runtime: Runtime, at_once: int, items: Iterable[T], do: Callable[[T], None]) -> None:
    """Call `do` for every item, at most `at_once` at the same time; raises the first error when all have ended.

    An error does not prevent the other calls.
    """
    left = deque(items)
    if len(left) == 1:
        do(left[0])
        return
    ended = runtime.mailbox()

    def work() -> None:
        error: Exception | None = None
        while left:
            try:
                item = left.popleft()
            except IndexError:
                break
            try:
                do(item)
            except Exception as failed:
                error = error or failed
        ended.put((error,))

    workers = min(at_once, len(left))
    for number in range(workers):
        runtime.spawn(f"worker-{number}", work)
    errors = [ended.get()[0] for _ in range(workers)]
    for error in errors:
        if error is not None:
            raise error
