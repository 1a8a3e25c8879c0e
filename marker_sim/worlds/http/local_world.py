"""A local directory under runs of real servers: the kit does every storage call of theirs (worlds/door/front.py).

A disk that is full for a while refuses what needs room, from any server, with ENOSPC.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marker_sim.faults import Fault
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.door.front import DirectoryFront
from marker_sim.worlds.http.object_reader import ObjectReader
from marker_sim.worlds.http.snapshot_recorder import READER_TIMEOUT_S, run_reader
from marker_sim.worlds.http.stage import RunStage
from marker_sim.worlds.http.world import DirectoryReader, Surroundings
from marker_sim.worlds.interceptor import Interceptor

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire

FORMS: dict[str, Callable[[Path], str]] = {
    "path": str,
    "file": lambda path: f"file:{path}",
}


class LocalWorld:
    """A directory below `root`: a server may have its storage for itself while another run goes on.

    form: a key of `FORMS`.
    command: the user's reader, or "".
    """

    interceptor: Interceptor

    def __init__(self, stage: RunStage, root: Path, form: str, command: str) -> None:
        self.wire: ProxiedWire | None = None
        self._root = root / stage.storage
        self._form = FORMS[form]
        self._command = command
        self._full: list[tuple[Fault, int]] = []  # With the number of calls refused before.
        self._front = DirectoryFront(self._root, self._interceptor(stage), reads=stage.reads)
        self.bind(stage)

    def _interceptor(self, stage: RunStage) -> Interceptor:
        # A server with a format of its own may keep all directories in one file.
        below = "" if self._command else f"{stage.table}/"
        return Interceptor(stage.recorder, stage.injector.inject, below, stage.injector.serves)

    def bind(self, stage: RunStage) -> LocalWorld:
        """The next run below the same root."""
        self._recorder = stage.recorder
        self.interceptor = self._front.interceptor = self._interceptor(stage)
        names = self._names if self._command else None
        self.reader: DirectoryReader = ObjectReader(
            stage.recorder,
            self._front.objects,
            in_order=True,
            names=names,
            busy=lambda place: self._front.rewriting(f"{place.path}/"),
        )
        (self._root / stage.table).mkdir(parents=True)
        return self

    def describe(self) -> dict[str, Any]:
        """The storage in a header."""
        return {
            "storage": "local",
            "witness": "effects",
            "layout": "names" if self._command else "hudi",
            "capabilities": {"put_if_absent": True, "atomic_replace": True},
        }

    def address(self, place: MarkerDirectory) -> str:
        """The directory in the form asked for."""
        return self._form(self._root / place.path)

    def surroundings(self, process: str) -> Surroundings:
        """{storage} is the root, and servers start behind the door."""
        return Surroundings({"storage": str(self._root)}, {}, self._front.start)

    def unseen(self) -> tuple[str, ...]:
        """Sentences about storage calls that are known to have escaped."""
        return self._front.unseen

    def echo(self) -> None:
        """Wait until the front answers, as a call of a server does."""
        with self._recorder.lock:
            pass

    def begin(self, fault: Fault) -> None:
        """The disk is full from now on."""
        self._full.append((fault, self._front.refused))
        self._front.full = True
        if len(self._full) == 1:
            self._recorder.fault("storage", fault.kind.value, "begin")

    def heal(self, fault: Fault) -> bool:
        """The disk has room again, unless another fault fills it too."""
        begun = next(each for each in self._full if each[0] == fault)
        self._full.remove(begun)
        if not self._full:
            self._front.full = False
            self._recorder.fault("storage", fault.kind.value, "end")
        return self._front.refused > begun[1]

    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Remove a marker directory; readers see it vanish in one step."""
        self._front.remove(place.path, process)

    def close(self) -> None:
        """End the servers and remove what was stored; HarnessError when the front failed."""
        try:
            self._front.close()
        finally:
            shutil.rmtree(self._root, ignore_errors=True)

    def _names(self, place: MarkerDirectory, timeout_s: float = READER_TIMEOUT_S) -> list[str]:
        return run_reader(self._command, str(self._root / place.path), timeout_s=timeout_s)
