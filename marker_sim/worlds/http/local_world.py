"""A local directory as the storage of real servers: the kit performs all their storage calls (worlds/door/front.py).

While the disk is full, calls of any server that need room fail with ENOSPC.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marker_sim.faults import FaultKind
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.door.calls import HeldCalls
from marker_sim.worlds.door.front import DirectoryFront
from marker_sim.worlds.http.world import DirectoryReader, RunGround, RunStorage, Surroundings
from marker_sim.worlds.interceptor import Interceptor

FORMS = {"path": "", "file": "file:"}  # The prefix of a path in requests, by form.


class LocalWorld(RunStorage):
    """A directory below `root`: a server may have its storage for itself while another run goes on.

    form: a key of `FORMS`.
    """

    interceptor: Interceptor

    def __init__(self, ground: RunGround, root: Path, form: str, command: str) -> None:
        self._root = root / ground.storage
        super().__init__(command, f"{FORMS[form]}{self._root}", str(self._root), {})
        self._filling = 0  # The number of active faults that fill the disk.
        self._front = DirectoryFront(self._root, ground.interceptor(""), reads=ground.reads, power=ground.power)
        self.bind(ground)

    def bind(self, ground: RunGround) -> None:
        """Serve the next run below the same root."""
        self._recorder = ground.recorder
        # A server with a format of its own may keep all directories in one file.
        self.interceptor = self._front.interceptor = ground.interceptor("" if self.command else f"{ground.table}/")
        self.reader = DirectoryReader(
            ground.recorder,
            self._front.objects,
            in_order=True,
            names=self._names,
            busy=lambda place: self._front.rewriting(f"{place.path}/"),
        )
        (self._root / ground.table).mkdir(parents=True)
        self._front.settle(ground.table)

    def describe(self) -> dict[str, Any]:
        """The storage fields of a history's header."""
        return {
            "storage": "local",
            "witness": "effects",
            "layout": self.layout,
            "capabilities": {"put_if_absent": True, "atomic_replace": True},
        }

    def surroundings(self, process: str) -> Surroundings:
        """The root as {storage}, and a start behind the door."""
        return Surroundings({"storage": str(self._root)}, {}, self._front.start)

    def unseen(self) -> tuple[str, ...]:
        """Sentences about storage calls that did not stop at the door."""
        return self._front.unseen

    def echo(self) -> None:
        """Wait until the front answers a call, made as a server makes its calls."""
        with self._recorder.lock:
            pass

    def held(self, process: str) -> HeldCalls:
        """The calls of a server that stopped at the door; of one that still does, the seconds so far."""
        held = self._front.door.held.get(process, HeldCalls())
        return held._replace(seconds=held.seconds + time.monotonic() - held.since) if held.since else held

    def rewriting(self) -> bool:
        """Whether a server is rewriting a marker file in place."""
        return self._front.rewriting(self.interceptor.below)

    def has_called(self, process: str) -> bool:
        """Whether a call of this server stopped at the door, in this run or an earlier one."""
        return process in self._front.callers

    def fill_disk(self) -> Callable[[], bool]:
        """Fill the disk; it has room again after the result is called and no other fault fills it."""
        refused = self._front.refused
        self._fill(1, "begin")

        def heal() -> bool:
            self._fill(-1, "end")
            return self._front.refused > refused

        return heal

    def _fill(self, more: int, which: str) -> None:
        filled = self._front.full
        self._filling += more
        self._front.full = self._filling > 0
        if self._front.full != filled:
            self._recorder.fault("storage", FaultKind.DISK_FULL.value, which)

    def lose_power(self, names: bool, lengths: bool) -> None:
        """Revert what was not synced."""
        self._front.lose_power(names, lengths)

    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Remove a marker directory, atomically for readers."""
        self._front.remove(place.path, process)

    def close(self) -> None:
        """End the servers and remove what was stored; HarnessError when the front failed."""
        try:
            self._front.close()
        finally:
            shutil.rmtree(self._root, ignore_errors=True)
