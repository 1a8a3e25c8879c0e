"""A front in a directory of a test, with armed faults, and what it recorded of commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.names import TEMP
from properties.faces.worlds import ArmedFault, DirectoryFront, DoorCommand, Interceptor, Recorder, StorageCall

PLACE = f"t{TEMP}1"
FILE = f"{PLACE}/MARKERS0"
SHELL = f"mkdir -p {PLACE}; for n in 1 2 3 4; do echo name-$n > {PLACE}/m-$n.marker.CREATE || echo failed $n; done"
Effect = tuple[str, str, bytes | None]


class Run:
    """A front in a directory, with armed faults. What is killed is the command of the call; then comes `struck`."""

    def __init__(self, root: Path, *faults: Fault, reads: bool = False, power: bool = False) -> None:
        self.struck: Callable[[], object] = lambda: None
        self.recorder = Recorder()
        self.commands: dict[str, DoorCommand] = {}
        self.front = DirectoryFront(root, Interceptor(self.recorder, self.inject), reads=reads, power=power)
        self.front.interceptor.arm(*map(ArmedFault, faults))

    def inject(self, armed: ArmedFault, call: StorageCall) -> None:
        if armed.kind.row.kills:
            self.commands[call.process].end()
        self.recorder.record(call.process, "nemesis", "fault", armed.kind.value, path=call.path)
        self.struck()

    def play(self, *words: str, process: str = "server-1") -> tuple[int, str]:
        with self.recorder.lock:
            command = self.commands[process] = self.front.start(
                words, {}, process=process, stdout=subprocess.PIPE, folder=self.front.root
            )
        said, _ = command.popen.communicate(timeout=60)
        with self.recorder.lock:  # Its death comes before the record of it.
            return command.popen.returncode, said.decode()

    def python(self, text: str, process: str = "server-1") -> tuple[int, str]:
        return self.play(sys.executable, "-I", "-S", "-c", text, process=process)

    def effects(self) -> list[Effect]:
        return [(e.operation, str(e.path), e.value) for e in self.recorder.events if e.kind == "effect"]  # type: ignore[misc]

    def faults(self) -> list[str]:
        return [event.operation for event in self.recorder.events if event.kind == "fault"]


def at(
    kind: FaultKind, operation: str, n: int = 1, when: When = "before", pattern: str = "", **settings: object
) -> Fault:
    return Fault.of(kind, "server-1", Call(pattern, (operation,), n, when), **settings)


IN_PLACE = f"""
import os
os.makedirs({PLACE!r}, exist_ok=True)
def write(text, *pieces):
    with open({FILE!r}, "wb", buffering=0) as file:
        for piece in (text, *pieces): file.write(piece)
"""
