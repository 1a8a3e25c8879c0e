"""Several processes of one command behind the door, and the kit's own local storage behind it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from marker_sim.faults import Call, Fault, FaultKind
from properties.faces.worlds import (
    ArmedFault,
    Caller,
    Door,
    DoorCommand,
    Interceptor,
    LocalFront,
    Recorder,
    StorageCall,
)
from properties.real.door.behind import ENDS_S, Seen

TWO = """
import os, sys, time
children = []
for name in ("a", "b"):
    if (pid := os.fork()) == 0:
        open(name, "wb", 0).write(name.encode())
        os._exit(0)
    print(pid, flush=True)
    children.append(pid)
for pid in children:
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
STORED = """
import sys
from pathlib import Path
from marker_sim.seams import Condition, PreconditionFailed, StorageError
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.locks import HostLocks
storage = LocalStorage(Path(sys.argv[1]))
def tried(call, *arguments):
    try:
        call(*arguments)
    except (StorageError, PreconditionFailed) as error:
        print(type(error).__name__, flush=True)
tried(storage.put, "t/a", b"first")
tried(storage.put, "t/a", b"second")
tried(storage.put, "t/b", b"", Condition.IF_ABSENT)
tried(storage.put, "t/b", b"", Condition.IF_ABSENT)
tried(storage.put, "t/c", b"new", Condition.IF_ABSENT)
with HostLocks(Path(sys.argv[1])).hold("t/.hoodie/lock"):
    tried(storage.overwrite, "t/a", b"in place")
tried(storage.overwrite, "t/d", b"1")
tried(storage.delete, "t/a")
tried(storage.delete, "t/a")
"""


@dataclass
class Process:
    """A caller that a test names."""

    name: str
    role: str = "executor"
    ended: bool = False


def test_each_process_of_a_command_has_its_own_name_and_one_that_waits_or_ended_holds_up_nobody(tmp_path: Path) -> None:
    """The calls of one process wait until the other is through; then they are served, or it has ended."""
    for ends in (False, True):
        root = tmp_path / str(ends)
        root.mkdir()
        seen, known, free = Seen(), dict[int, Process](), threading.Event()

        def caller_of(
            _: DoorCommand, pid: int, known: dict[int, Process] = known, free: threading.Event = free
        ) -> Caller | None:
            found = known.get(pid)
            return found if found is not None and (found.name == "b" or found.ended or free.is_set()) else None

        with Door(root, seen.decide, seen.applied, caller_of=caller_of) as door:
            command = door.start([sys.executable, "-I", "-S", "-c", TWO], {}, process="two", folder=root)
            assert command.popen.stdout is not None
            first, second = (int(command.popen.stdout.readline()) for _ in "ab")
            known[first], known[second] = Process("a"), Process("b")
            deadline = time.monotonic() + ENDS_S
            while not (root / "b").exists() or (root / "b").read_bytes() != b"b":
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert {call.process for call in seen.calls} == {"b"} and not (root / "a").exists()
            known[first].ended = ends
            free.set()
            if ends:
                time.sleep(0.1)
                subprocess.run(["kill", "-9", str(first)], check=True)
            assert [int(line) for line in command.popen.stdout] == [-9 if ends else 0, 0]
        names = [(call.process, call.role, call.operation, call.path) for call in seen.calls]
        own = [("b", "executor", "open", "b"), ("b", "executor", "write", "b")]
        assert names == (own if ends else [*own, ("a", "executor", "open", "a"), ("a", "executor", "write", "a")])
        assert (root / "a").exists() != ends


def _stored(root: Path, *faults: Fault) -> tuple[list[tuple[str, str, object]], list[str]]:
    """The effects of STORED with faults at its calls, and what its calls raised."""
    recorder, process = Recorder(), Process("executor-1")

    def inject(armed: ArmedFault, call: StorageCall) -> None:
        process.ended = True
        recorder.record(call.process, call.role, "fault", armed.kind.value, path=call.path)

    interceptor = Interceptor(recorder, inject)
    interceptor.arm(*map(ArmedFault, faults))
    with LocalFront(root / "other", lambda pid: process) as front:
        (root / "run").mkdir()
        front.watch(root / "run", interceptor)
        words = [sys.executable, "-c", STORED, str(root / "run")]
        command = front.start(words, {"PYTHONPATH": ":".join(filter(None, sys.path))}, process="it")
        assert command.popen.stdout is not None
        if any(fault.kind.row.kills for fault in faults):
            deadline = time.monotonic() + ENDS_S
            while not process.ended:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            command.end()
        said = command.popen.stdout.read().decode().split()
        front.check()
    return [(e.operation, str(e.path), e.value) for e in recorder.events if e.kind == "effect"], said


WHOLE = [
    ("put", "t/a", b"first"),
    ("put", "t/a", b"second"),
    ("put", "t/b", b""),
    ("put", "t/c", b"new"),
    ("overwrite-begin", "t/a", b""),
    ("overwrite-piece", "t/a", b"in p"),
    ("overwrite-end", "t/a", b"in place"),
    ("overwrite-begin", "t/d", b""),
    ("overwrite-piece", "t/d", b"1"),
    ("overwrite-end", "t/d", b"1"),
    ("delete", "t/a", None),
]


def test_calls_of_local_storage_are_the_effects_that_plans_and_judges_know(tmp_path: Path) -> None:
    assert _stored(tmp_path) == (WHOLE, ["PreconditionFailed"])


def _at(kind: FaultKind, operation: str, n: int, when: str = "before", path: str = "", **settings: object) -> Fault:
    return Fault.of(kind, "executor", Call(path, (operation,), n, when), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "effects", "said"),
    [
        (_at(FaultKind.DISK_FULL, "put", 2), [WHOLE[0], *WHOLE[2:]], ["DiskFull", "PreconditionFailed"]),
        (_at(FaultKind.IO_ERROR, "put", 5, applied=True), WHOLE, ["PreconditionFailed", "StorageFailed"]),
        (
            _at(FaultKind.IO_ERROR, "overwrite", 2),
            [*WHOLE[:5], ("overwrite-end", "t/a", b""), *WHOLE[7:]],
            ["PreconditionFailed", "StorageFailed"],
        ),
        # The second deletion finds the file that the first one left.
        (_at(FaultKind.IO_ERROR, "delete", 1), WHOLE, ["PreconditionFailed", "StorageFailed"]),
        (_at(FaultKind.KILL, "put", 2), WHOLE[:1], []),
        (_at(FaultKind.KILL, "put", 2, "after"), WHOLE[:2], []),
        (_at(FaultKind.KILL, "overwrite", 2, "after"), WHOLE[:6], ["PreconditionFailed"]),
        (
            _at(FaultKind.TORN_WRITE, "overwrite", 2, "after"),
            [*WHOLE[:5], ("overwrite-piece", "t/a", b"in")],
            ["PreconditionFailed"],
        ),
    ],
)
def test_a_fault_strikes_at_the_call_that_a_plan_means(
    fault: Fault, effects: list[tuple[str, str, object]], said: list[str], tmp_path: Path
) -> None:
    assert _stored(tmp_path, fault) == (effects, said)
