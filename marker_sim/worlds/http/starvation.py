"""How long a server was ready to run and got no processor: what it owes to the machine and not to itself.

The kernel counts for each thread how long it ran and how long it waited in a run queue (/proc/PID/task/TID/schedstat).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MS = 1_000_000
WORTH_MS = 50


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """The nanoseconds that a thread has run, and has waited for a processor, since it began."""

    ran_ns: int
    waited_ns: int


def processor_times(pids: Iterable[int]) -> dict[tuple[int, int], ProcessorTime]:
    """The times of all threads of some processes, by process and thread; empty where the kernel does not count."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # It is gone.
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    ran, waited, _ = map(int, Path(thread, "schedstat").read_text().split())
                    found[pid, int(thread.name)] = ProcessorTime(ran, waited)
    return found


def starved_ms(before: Mapping[tuple[int, int], ProcessorTime], now: Mapping[tuple[int, int], ProcessorTime]) -> int:
    """The milliseconds that a server waited for a processor between two measurements.

    That is the longest wait of one of its threads, less all that the server ran meanwhile: threads that keep each other
    waiting are its own doing.
    """
    none = ProcessorTime(0, 0)
    waited = max((time.waited_ns - before.get(key, none).waited_ns for key, time in now.items()), default=0)
    ran = sum(time.ran_ns - before.get(key, none).ran_ns for key, time in now.items())
    return max(0, waited - ran) // MS
