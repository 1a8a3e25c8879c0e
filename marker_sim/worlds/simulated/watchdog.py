"""Names the line that blocks outside the seams, where a simulated run would otherwise hang for ever, and lets an
interrupt wait until a run is over.

A run that goes on making steps is not blocked, however long it takes: ten thousand tasks of a system that rewrites a
file for each take minutes on a busy machine. How many steps a run may make the scheduler knows.

Works in the main thread only (signals); elsewhere a hang is a hang, and the caller's own time-out must end it.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from marker_sim.errors import HarnessError

LIMIT_S = 15.0


class _Hung(BaseException):
    """Raised in hanging code. A BaseException, so that the code does not catch it."""


@contextmanager
def watched(steps: Callable[[], int], limit_s: float = LIMIT_S) -> Iterator[None]:
    """Raise HarnessError with the blocked line when `steps()` is the same at two checks in a row.

    limit_s: seconds between two looks, so that a block is noticed after one to two of them. An interrupt is raised when
    the run is over, a second one at once: between two switches of actors it would be lost, or end the command with 1.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = -1

    def bark(_signal: int, frame: FrameType | None) -> None:
        nonlocal seen
        before, seen = seen, steps()
        if seen == before:
            raise _Hung("".join(traceback.format_stack(frame, limit=6)))

    interrupted = 0

    def wait(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            held[number](number, frame)
        interrupted = number

    ours = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    held: dict[int, Any] = {number: handler for number, handler in ours.items() if callable(handler)}
    previous = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, limit_s, limit_s)
    for number in held:
        signal.signal(number, wait)
    try:
        yield
    except _Hung as hung:
        raise HarnessError(
            f"a simulated run did not give control back within {limit_s:.0f} s; code under test must block through"
            f" the Runtime seam only. It stood here:\n{hung}"
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        for number, handler in held.items():
            signal.signal(number, handler)
        if interrupted:
            held[interrupted](interrupted, None)
