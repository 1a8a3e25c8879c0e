"""Ends a command that hangs: prints the position of each of its threads, and exits as for trouble of the kit.

A thread watches the clock. Processes that the kit had started end as when a kit is killed (supervisor.py,
worker_pool.py).
Native code that never gives back Python's lock stops that thread too. Then faulthandler's own thread prints the
positions, and a timer of the system ends the command by SIGVTALRM, where there is one (Linux). faulthandler would exit
with 1, which means violated; SIGALRM is that of simulated runs (watchdog.py).
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import signal
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from marker_sim.errors import EXIT_HARNESS

# Time beyond the budget of a campaign: to shrink, end servers and write the report.
REST_S = 300.0
QUIET_S = 1_200.0  # Without a budget: time without progress; tasks of workers end earlier.
LOOK_S = 0.25
DUMP_S = 2.0  # faulthandler waits this much longer than the thread, and the timer as much longer than faulthandler.
_SHOW_CURSOR = "\x1b[?25h\n"


class TimeLimit:
    """A context manager that enforces the limit set last; none before the first one."""

    def __enter__(self) -> TimeLimit:
        self._limit: tuple[float, float, str] | None = None
        self._over = threading.Event()
        self._timer = ctypes.c_void_p()
        self._library: Any = ctypes.CDLL(None)
        event = struct.pack("qii48x", 0, signal.SIGVTALRM, 0)  # A sigevent (7) that sends the signal.
        if hasattr(self._library, "timer_create"):
            self._library.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(self._timer))
        threading.Thread(target=self._watch, daemon=True, name="time limit").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._end_after(0)
        faulthandler.cancel_dump_traceback_later()

    def set(self, seconds: float, what: str) -> None:
        """Set a new limit. what: what may take so long, for the message."""
        self._limit = time.monotonic() + seconds, seconds, " ".join(what.split())
        faulthandler.dump_traceback_later(seconds + DUMP_S, file=2)
        self._end_after(seconds + 2 * DUMP_S)

    def _end_after(self, seconds: float) -> None:
        """Let the system end this process after some seconds, 0 for never."""
        if hasattr(self._library, "timer_settime"):
            self._library.timer_settime(self._timer, 0, struct.pack("qqqq", 0, 0, math.ceil(seconds), 0), None)

    def renewed_by(self, say: Callable[[str], None], seconds: float | None = None) -> Callable[[str], None]:
        """The function `say`, each call of which renews the limit. seconds: until the next call, None for QUIET_S."""

        def renewing_say(line: str) -> None:
            self.set(QUIET_S if seconds is None else seconds, f"the next step after {line!r}")
            say(line)

        return renewing_say

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            if self._limit is not None and time.monotonic() > self._limit[0]:
                _end(*self._limit[1:])


def _end(seconds: float, what: str) -> None:
    show_cursor = _SHOW_CURSOR if os.isatty(2) else ""
    sentence = (
        f"{show_cursor}marker-sim: {what} did not end within {seconds:.0f} s, which is trouble of the kit and no"
        " verdict; the kit's threads stand here:\n"
    )
    os.write(2, sentence.encode(errors="replace"))  # Not print: the kit may hang on a lock of sys.stderr.
    faulthandler.dump_traceback(file=2, all_threads=True)
    os._exit(EXIT_HARNESS)
