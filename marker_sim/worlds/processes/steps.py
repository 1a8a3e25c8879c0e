"""Counts the seam calls of each actor over all its lives, in memory that outlives a killed process."""

from __future__ import annotations

import mmap
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from marker_sim.faults import Fault

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

    def __init__(self, counters: Counters, slot: int, faults: tuple[tuple[int, Fault], ...]) -> None:
        self._counters = counters
        self._slot = slot
        self._lock = threading.Lock()
        steps = counters.read(slot)
        self._pending = sorted(((f.n, number, f) for number, f in faults if f.n > steps), key=lambda e: e[:2])
        self.strike: Callable[[int, Fault], None] = lambda number, fault: None

    def step(self) -> None:
        """One more seam call."""
        due = []
        with self._lock:
            steps = self._counters.read(self._slot) + 1
            self._counters.write(self._slot, steps)
            while self._pending and self._pending[0][0] <= steps:
                due.append(self._pending.pop(0))
        for _, number, fault in due:
            self.strike(number, fault)
