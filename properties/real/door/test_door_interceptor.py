"""The interceptor behind a door: crash points and storage faults of a plan, for an unmodified program."""

from __future__ import annotations

import errno
import signal
from pathlib import Path

import pytest

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.worlds.door.calls import CallOutcome, Decision, FileCall
from marker_sim.worlds.door.door import Door
from marker_sim.worlds.door.launch import DoorCommand
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder
from properties.real.door.behind import ended

SCRIPT = "for n in 1 2 3 4; do echo name-$n > marker-$n || echo failed $n; done"


class Behind:
    """Calls of a door as calls on storage; a kill is the world's, which ends the command and then records it."""

    def __init__(self, root: Path, *faults: Fault) -> None:
        self.recorder, self.root = Recorder(), root
        self.interceptor = Interceptor(self.recorder, self.inject)
        self.interceptor.arm(*map(ArmedFault, faults))
        self.struck: dict[int, ArmedFault | None] = {}
        self.commands: dict[str, DoorCommand] = {}

    def play(self) -> tuple[int, str]:
        with Door(self.root, self.decide, self.applied, lock=self.recorder.lock) as door:
            with self.recorder.lock:
                self.commands["server-1"] = door.start(["sh", "-c", SCRIPT], {}, process="server-1", folder=self.root)
            return ended(self.commands["server-1"])

    def inject(self, armed: ArmedFault, call: StorageCall) -> None:
        self.commands[call.process].end()
        self.recorder.record(call.process, "nemesis", "fault", armed.kind.value, path=call.path)

    def storage_call(self, call: FileCall) -> StorageCall:
        return StorageCall(call.process, call.role, {"write": "put"}.get(call.operation, call.operation), call.path)

    def decide(self, call: FileCall) -> Decision:
        armed = self.struck[call.number] = self.interceptor.strike(self.storage_call(call))
        if armed is None or armed.injected:
            return Decision()
        assert armed.kind is FaultKind.IO_ERROR
        return Decision(error=errno.EIO, applied=armed.fault.settings.applied)

    def applied(self, call: FileCall, outcome: CallOutcome) -> None:
        armed, shown = self.struck.pop(call.number), self.storage_call(call)
        if outcome.done:
            self.interceptor.applied(armed, shown, "put", call.path, (self.root / call.path).read_bytes())

    def events(self) -> list[tuple[str, str, str | None, object]]:
        return [(event.kind, event.operation, event.path, event.value) for event in self.recorder.events]


def made(*names: int) -> list[tuple[str, str, str | None, object]]:
    return [
        ("effect", "put", f"marker-{n}", value) for n in names for value in (b"", f"name-{n}\n".encode())
    ]  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", ["open", "put"])
def test_a_kill_is_exact(root: Path, operation: str, when: str) -> None:
    trigger = Call(pattern="marker", operations=(operation,), n=3, when="before" if when == "before" else "after")
    behind = Behind(root, Fault.of(FaultKind.KILL, "server-1", trigger))
    assert behind.play() == (-signal.SIGKILL, "")
    effects = [*made(1, 2), *made(3)[: (operation == "put") + (when == "after")]]
    assert behind.events() == [*effects, ("fault", "kill", "marker-3", None)]
    assert sorted(path.name for path in root.iterdir()) == sorted({str(effect[2]) for effect in effects})


@pytest.mark.parametrize("applied", [False, True])
def test_a_storage_fault_is_exact(root: Path, applied: bool) -> None:
    fault = Fault.of(FaultKind.IO_ERROR, "server-1", Call(operations=("put",), n=2), applied=applied)
    behind = Behind(root, fault)
    status, said = behind.play()
    assert status == 0 and "failed 2" in said and "failed 3" not in said
    assert (root / "marker-2").read_text() == ("name-2\n" if applied else "")
    error = ("fault", "io-error", "marker-2", None)
    second = made(2)
    assert behind.events() == [*made(1), second[0], error, *second[1:][: int(applied)], *made(3, 4)]
