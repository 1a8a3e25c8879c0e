"""Ends a command that hangs: prints the position of each of its threads, and exits as for trouble of the kit.

The clock is a process of its own, so no hanging thread, no lock, and no code that never releases Python's own lock can
stop it. It sends signals whose handlers are in C and need no thread of Python that still runs:

    SIGUSR1   where each thread stands, on standard error (faulthandler)
    SIGILL    `_exit` of the C library, which takes the number of the signal, 4, as the exit code
    SIGKILL   when the kit is there even so

Processes that the kit had started end as when a kit is killed (supervisor.py, worker_pool.py).
Limits: POSIX. The time of a kit that was stopped (SIGSTOP) counts as well.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

# Time beyond the budget of a campaign: to shrink, end servers and write the report.
REST_S = 300.0
QUIET_S = 1_200.0  # Without a budget: time without progress; tasks of workers end earlier.
DUMP_S = 1.0
EXIT_S = 5.0
_CHILD = "from marker_sim.surroundings.time_limit import main; main()"
_SHOW_CURSOR = "\x1b[?25h\n"


class TimeLimit:
    """A context manager that enforces the limit set last; none before the first one."""

    def __enter__(self) -> TimeLimit:
        from marker_sim.surroundings.worker_pool import environment_as_here

        self._library = ctypes.CDLL(None)
        self._library.signal.restype = ctypes.c_void_p
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
        self._before = self._handle_ill(ctypes.cast(self._library._exit, ctypes.c_void_p).value)
        self._clock = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=2,
            env=environment_as_here(),
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._clock.stdin is not None
        with suppress(OSError):
            self._clock.stdin.close()
        try:
            self._clock.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            self._clock.kill()
        self._handle_ill(self._before)
        faulthandler.unregister(signal.SIGUSR1)

    def set(self, seconds: float, what: str) -> None:
        """Set a new limit: `what` may last so long."""
        assert self._clock.stdin is not None
        with suppress(OSError):  # The clock process was killed.
            self._clock.stdin.write(f"{seconds} {' '.join(what.split())}\n".encode())
            self._clock.stdin.flush()

    def renewed_by(self, say: Callable[[str], None], seconds: float | None = None) -> Callable[[str], None]:
        """The function `say`, each call of which renews the limit. seconds: until the next call, None for QUIET_S."""

        def renewing_say(line: str) -> None:
            self.set(QUIET_S if seconds is None else seconds, f"the next step after {line!r}")
            say(line)

        return renewing_say

    def _handle_ill(self, handler: int | None) -> int | None:
        before: int | None = self._library.signal(signal.SIGILL, ctypes.c_void_p(handler))
        return before


def main() -> None:
    """The clock process, until its standard input ends: each line of that sets a limit and says of what."""
    kit, left_s, what, seconds = int(sys.argv[1]), None, "", ""
    while select.select([0], [], [], left_s)[0]:
        lines = os.read(0, 1 << 16).decode(errors="replace").splitlines()
        if not lines:
            return
        seconds, _, what = lines[-1].partition(" ")
        left_s = float(seconds)
    sys.stderr.write(_SHOW_CURSOR if os.isatty(2) else "")
    sys.stderr.write(
        f"marker-sim: {what} did not end within {float(seconds):.0f} s, which is trouble of the kit and no verdict; the"
        " kit's threads stand here:\n"
    )
    sys.stderr.flush()
    with suppress(ProcessLookupError):
        for number, after_s in ((signal.SIGUSR1, DUMP_S), (signal.SIGILL, EXIT_S), (signal.SIGKILL, 0.0)):
            os.kill(kit, number)
            deadline = time.monotonic() + after_s
            while time.monotonic() < deadline and os.getppid() == kit:
                time.sleep(0.05)
