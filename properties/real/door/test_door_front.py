"""A directory as the storage of a run: its effects in the words of a history, and the faults of plans at its calls."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.history.index.presence import PresenceIndex
from marker_sim.names import TEMP
from marker_sim.worlds.door.front import DirectoryFront
from marker_sim.worlds.door.known_files import files_below
from marker_sim.worlds.door.launch import DoorCommand
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

PLACE = f"t{TEMP}1"
FILE = f"{PLACE}/MARKERS0"
SHELL = f"mkdir -p {PLACE}; for n in 1 2 3 4; do echo name-$n > {PLACE}/m-$n.marker.CREATE || echo failed $n; done"
Effect = tuple[str, str, bytes | None]


class Run:
    """A front in a directory, with armed faults. What is killed is the command that made the call."""

    def __init__(self, root: Path, *faults: Fault, reads: bool = False) -> None:
        self.recorder = Recorder()
        self.commands: dict[str, DoorCommand] = {}
        self.front = DirectoryFront(root, Interceptor(self.recorder, self.inject), reads=reads)
        self.front.interceptor.arm(*map(ArmedFault, faults))

    def inject(self, armed: ArmedFault, call: StorageCall) -> None:
        if armed.kind.row.kills:
            self.commands[call.process].end()
        self.recorder.record(call.process, "nemesis", "fault", armed.kind.value, path=call.path)

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


def made(*numbers: int) -> list[Effect]:
    path = f"{PLACE}/m-%d.marker.CREATE"
    return [("put", path % n, text) for n in numbers for text in (b"", f"name-{n}\n".encode())]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    opened: list[Run] = []

    def run(*faults: Fault, reads: bool = False) -> Run:
        opened.append(Run(tmp_path / "root", *faults, reads=reads))
        return opened[-1]

    yield run
    for each in opened:
        each.front.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", ["open", "write"])
def test_a_kill_is_exact(runs: Callable[..., Run], operation: str, when: When) -> None:
    run = runs(at(FaultKind.KILL, operation, 3, when, "marker"))
    assert run.play("sh", "-c", SHELL) == (-signal.SIGKILL, "")
    assert run.effects() == [*made(1, 2), *made(3)[: (operation == "write") + (when == "after")]]
    assert run.faults() == ["kill"]
    assert run.front.objects() == {path: data for _, path, data in run.effects()}


@pytest.mark.parametrize("applied", [False, True])
def test_a_failing_call_is_exact(runs: Callable[..., Run], applied: bool) -> None:
    run = runs(at(FaultKind.IO_ERROR, "write", 2, applied=applied, pattern="marker"))
    status, said = run.play("sh", "-c", SHELL)
    assert status == 0 and "failed 2" in said and "failed 3" not in said
    assert run.effects() == [*made(1), *made(2)[: 1 + applied], *made(3, 4)]
    assert run.faults() == ["io-error"]


@pytest.mark.parametrize("empty", [False, True])
def test_a_torn_write_leaves_half_of_it_or_nothing(runs: Callable[..., Run], empty: bool) -> None:
    run = runs(at(FaultKind.TORN_WRITE, "write", 2, "after", "marker", empty=empty))
    assert run.play("sh", "-c", SHELL)[0] == -signal.SIGKILL
    assert run.effects()[-1] == ("put", f"{PLACE}/m-2.marker.CREATE", b"" if empty else b"nam")


def test_a_full_disk_refuses_what_needs_room(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.DISK_FULL, "put", 3, pattern="marker", calls=2))
    _, said = run.play("sh", "-c", f"{SHELL}; rm {PLACE}/m-1.marker.CREATE")
    assert [said.count(f"failed {n}") for n in (1, 2, 3, 4)] == [0, 1, 1, 0]
    run.front.full = True
    _, said = run.play("sh", "-c", SHELL + f"; rm {PLACE}/m-4.marker.CREATE && echo removed", process="server-2")
    assert "No space left on device" in said and "removed" in said


@pytest.mark.parametrize("rename", ["os.rename('new', name)", "os.rename('new', name); open(name, 'wb')"])
def test_a_full_disk_strikes_at_the_next_call_that_needs_room(runs: Callable[..., Run], rename: str) -> None:
    run = runs(at(FaultKind.DISK_FULL, "put", 1, pattern="MARKERS0"))
    (armed,) = run.front.interceptor._armed
    writes = rename + "; open(name, 'ab', 0).write(b'x')" * ("open" in rename)
    _, said = run.python(f"import os\nos.makedirs({PLACE!r})\nopen('new', 'w').close()\nname = {FILE!r}\n{writes}")
    assert ("No space left" in said) == ("open" in rename) == (armed.fired == 1)


def test_no_fault_meets_a_process_that_is_still_starting(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.IO_ERROR, "put", 3, pattern="marker"))
    (armed,) = run.front.interceptor._armed
    run.front.full = True
    run.front.interceptor.serves = lambda process: False
    assert run.play("sh", "-c", SHELL)[0] == 0
    assert run.effects() == made(1, 2, 3, 4) and armed.seen == armed.fired == run.front.refused == 0
    run.front.full, run.front.interceptor.serves = False, lambda process: True
    _, said = run.play("sh", "-c", SHELL)
    assert armed.fired == 1 and "failed 2" in said


def test_a_front_whose_door_failed_says_nothing_of_what_was_unseen(runs: Callable[..., Run]) -> None:
    run = runs()
    run.front.door.troubles.append(ZeroDivisionError("a defect"))
    with pytest.raises(HarnessError, match="a defect"):
        _ = run.front.unseen
    run.front.door.troubles.clear()


def test_a_slow_call_is_done_later_and_others_meanwhile(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.SLOW_STORAGE, "put", 1, pattern="m-1", late_ms=400))
    began = time.monotonic()
    run.play("sh", "-c", SHELL)
    assert time.monotonic() - began >= 0.4
    assert run.effects() == made(1, 2, 3, 4)


@pytest.mark.parametrize("operation", ["get", "list"])
def test_reads_fail_where_they_are_watched(runs: Callable[..., Run], operation: str) -> None:
    run = runs(at(FaultKind.IO_ERROR, operation, pattern=PLACE), reads=True)
    _, said = run.python(
        f"import os\nos.makedirs({PLACE!r})\nopen({FILE!r}, 'w').close()\n"
        f"for call in (lambda: open({FILE!r}).read(), lambda: os.listdir({PLACE!r})):\n"
        "    try: print(call())\n    except OSError as error: print(error.errno)"
    )
    assert said.split("\n")[:2] == (["5", "['MARKERS0']"] if operation == "get" else ["", "5"])


IN_PLACE = f"""
import os
os.makedirs({PLACE!r}, exist_ok=True)
def write(text, *pieces):
    with open({FILE!r}, "wb", buffering=0) as file:
        for piece in (text, *pieces): file.write(piece)
"""


def test_a_file_written_again_keeps_its_names_until_it_is_closed(runs: Callable[..., Run]) -> None:
    run = runs()
    run.python(IN_PLACE + 'write(b"a\\n")\nwrite(b"a\\n", b"b\\n")\nwrite(b"b\\n")\n')
    assert [(operation, data) for operation, _, data in run.effects()] == [
        ("put", b""),
        ("put", b"a\n"),
        ("overwrite-begin", b""),
        ("overwrite-end", b"a\n"),
        ("put", b"a\nb\n"),
        ("overwrite-begin", b""),
        ("overwrite-piece", b"b\n"),
        ("overwrite-end", b"b\n"),
    ]
    rest = PresenceIndex(reads=False)
    for index, (operation, path, data) in enumerate(run.effects()):
        if operation == "put":
            rest.put(index, path, data)
        else:
            rest.rewrite(index, path, data, "server-1", operation == "overwrite-end")
    assert rest.home(PLACE).spans == {"a": [1, 7], "b": [4]}


def test_a_file_that_is_emptied_and_opened_again_is_still_being_written(runs: Callable[..., Run]) -> None:
    run = runs()
    run.python(IN_PLACE + f'write(b"a\\n")\nopen({FILE!r}, "w").close()\nwrite(b"a\\nb\\n")\n')
    assert [operation for operation, _, _ in run.effects()] == ["put", "put", "overwrite-begin", "overwrite-end"]
    assert not run.front.rewriting(PLACE)


def test_what_a_dead_writer_left_is_what_the_file_holds(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.KILL, "write", 2, pattern="MARKERS0"))
    run.python(IN_PLACE + 'write(b"a\\n")\nwrite(b"a\\nb\\n")\n')
    assert run.effects()[-1] == ("overwrite-begin", FILE, b"") and not run.front.rewriting(PLACE)
    run.python(IN_PLACE + 'write(b"c\\n")\n', process="server-2")
    assert [(operation, data) for operation, _, data in run.effects()[3:]] == [("put", b"c\n")]


def test_a_rename_puts_the_target_and_deletes_the_source(runs: Callable[..., Run]) -> None:
    run = runs()
    run.python(IN_PLACE + f'write(b"a\\n")\nos.rename({FILE!r}, {FILE!r} + "1")\nos.link({FILE!r} + "1", {FILE!r})')
    assert run.effects()[2:] == [("put", f"{FILE}1", b"a\n"), ("delete", FILE, None), ("put", FILE, b"a\n")]


OTHER = f"{PLACE}/MARKERS1"
NAMED_TWICE = f"""
{IN_PLACE}
write(b"a\\n")
os.link({FILE!r}, {OTHER!r})
file = os.open({FILE!r}, os.O_WRONLY | os.O_APPEND)
"""


def test_a_file_that_lost_the_name_it_was_opened_by_is_written_under_the_other_one(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.KILL, "write", 2, "after", r"MARKERS1$"))
    status, _ = run.python(f"{NAMED_TWICE}os.unlink({FILE!r})\nos.write(file, b'b\\n')\nos.write(file, b'c\\n')")
    assert status == -signal.SIGKILL and run.effects()[2:] == [
        ("put", OTHER, b"a\n"), ("delete", FILE, None), ("put", OTHER, b"a\nb\n"), ("put", OTHER, b"a\nb\nc\n")
    ]  # fmt: skip
    assert not run.front.unseen


def test_a_write_changes_every_name_of_its_file(runs: Callable[..., Run]) -> None:
    run = runs()
    assert run.python(f"{NAMED_TWICE}os.write(file, b'b\\n')\nopen({OTHER!r}, 'w').close()") == (0, "")
    assert run.effects()[3:] == [
        (how, path, data)
        for how, data in (("put", b"a\nb\n"), ("overwrite-begin", b""))
        for path in (FILE, OTHER)
    ]  # fmt: skip
    assert not run.front.unseen


def test_a_rename_between_two_names_of_a_file_does_nothing(runs: Callable[..., Run]) -> None:
    run = runs()
    run.python(f"{NAMED_TWICE}os.rename({FILE!r}, {OTHER!r})")
    assert len(run.effects()) == 3 and run.front.objects() == {FILE: b"a\n", OTHER: b"a\n"}
    assert not run.front.unseen


def test_a_marker_file_that_is_a_link_holds_what_it_leads_to(runs: Callable[..., Run]) -> None:
    run = runs()
    said = run.python(
        f"{IN_PLACE}os.symlink({'../../../../names'!r}, {FILE!r})\nwrite(b'a\\n')\n"
        "open('names', 'ab', 0).write(b'b\\n')\nopen('new', 'wb', 0).write(b'c\\n')\n"
        f"os.rename('new', 'names')\nos.rename({FILE!r}, {OTHER!r})\nos.unlink('names')\nos.unlink({OTHER!r})"
    )
    assert said == (0, "")
    assert [(how, path, data) for how, path, data in run.effects() if path in (FILE, OTHER)] == [
        ("put", FILE, b""), ("put", FILE, b"a\n"), ("put", FILE, b"a\nb\n"),
        ("put", FILE, b"c\n"), ("put", OTHER, b"c\n"), ("delete", FILE, None), ("delete", OTHER, None),
    ]  # fmt: skip
    assert not run.front.unseen


EXCHANGES = f"""
import ctypes, os
os.makedirs("t{TEMP}2")
os.makedirs({PLACE!r})
open("t{TEMP}2/MARKERS0", "wb", 0).write(b"two\\n")
open({OTHER!r}, "wb", 0).write(b"one\\n")
assert ctypes.CDLL(None).renameat2(-100, b"t{TEMP}2", -100, {PLACE.encode()!r}, 2) == 0
"""


def test_directories_that_are_exchanged_have_each_other_s_files_and_no_others(runs: Callable[..., Run]) -> None:
    run = runs()
    assert run.python(EXCHANGES) == (0, "")
    assert run.effects()[4:] == [
        ("put", FILE, b"two\n"), ("delete", OTHER, None),
        ("put", f"t{TEMP}2/MARKERS1", b"one\n"), ("delete", f"t{TEMP}2/MARKERS0", None),
    ]  # fmt: skip
    assert not run.front.unseen


def test_a_file_made_by_mknod_is_put(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.KILL, "put", 2))
    status, _ = run.python(
        f"import os, stat\nos.makedirs({PLACE!r})\nos.mknod({PLACE!r} + '/pipe', stat.S_IFIFO | 0o600)\n"
        f"os.mknod({FILE!r})\nos.mknod({OTHER!r}, stat.S_IFREG | 0o600)"
    )
    assert status == -signal.SIGKILL and run.effects() == [("put", FILE, b"")]


def test_a_renamed_directory_takes_its_files_along(runs: Callable[..., Run]) -> None:
    run, other = runs(), f"t{TEMP}2"
    run.python(IN_PLACE + f'write(b"a\\n")\nos.rename({PLACE!r}, {other!r})\nos.unlink({other!r} + "/MARKERS0")')
    assert run.effects()[2:] == [
        ("put", f"{other}/MARKERS0", b"a\n"),
        ("delete", FILE, None),
        ("delete", f"{other}/MARKERS0", None),
    ]


def test_a_temporary_file_is_renamed_at_the_call_that_its_target_names(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.KILL, "put", 1, "before", r"MARKERS0$"))
    run.python(
        f"import os\nos.makedirs({PLACE!r})\nopen({PLACE + '/new'!r}, 'w').write('a')\n"
        f"os.rename({PLACE + '/new'!r}, {FILE!r})"
    )
    assert files_below(run.front.root) == {f"{PLACE}/new": b"a"}


WRITES_ELSEWHERE = """
import os
file = open("data", "wb", buffering=0)
for n in range(9):
    if (child := os.fork()) == 0:
        os.close(file.fileno())
        os._exit(0)
    os.waitpid(child, 0)
    file.write(b"x")
file.close()
open("next", "w").close()
"""


def test_a_file_elsewhere_is_put_when_it_is_made_and_when_who_made_it_closes_it(runs: Callable[..., Run]) -> None:
    run = runs()
    run.python(WRITES_ELSEWHERE)
    assert run.effects() == [
        ("put", "data", b""),
        ("put", "data", b"x" * 9),
        ("put", "next", b""),
        ("put", "next", b""),
    ]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_a_close_finds_the_file_whole(runs: Callable[..., Run], when: When) -> None:
    run = runs(at(FaultKind.KILL, "close", 1, when))
    assert run.python(WRITES_ELSEWHERE)[0] == -signal.SIGKILL
    assert run.front.objects() == {"data": b"x" * 9}
    assert run.effects()[1:] == [("put", "data", b"x" * 9)][: when == "after"]


def test_nothing_but_a_death_or_a_pause_can_be_at_a_close() -> None:
    for kind in (FaultKind.KILL, FaultKind.PAUSE, FaultKind.TORN_WRITE):
        assert not at(kind, "close").problem()
    for kind in (FaultKind.IO_ERROR, FaultKind.DISK_FULL, FaultKind.SLOW_STORAGE):
        assert "the closing of a file does not fail" in at(kind, "close").problem()


def test_a_directory_removed_by_another_program_is_gone_at_once(runs: Callable[..., Run]) -> None:
    run = runs()
    run.play("sh", "-c", SHELL)
    run.front.remove(PLACE, "outside-1")
    assert run.front.objects() == {}
    assert [operation for operation, _, _ in run.effects()[8:]] == ["delete"] * 4


def test_another_run_on_the_same_directory_has_its_own_history(runs: Callable[..., Run]) -> None:
    run = runs()
    run.play("sh", "-c", SHELL)
    second = Recorder()
    run.front.interceptor = Interceptor(second, run.inject, below="u/")
    run.play("sh", "-c", SHELL.replace("t/", "u/") + ";" + SHELL, process="server-2")
    assert len(run.effects()) == 8
    assert {str(event.path)[:2] for event in second.events} == {"u/"} and len(second.events) == 8


def test_a_program_is_found_on_the_path_before_reads_stop(runs: Callable[..., Run]) -> None:
    assert runs(reads=True).play("sh", "-c", SHELL) == (0, "")


def test_an_open_in_a_directory_that_another_thread_makes_meanwhile_is_seen_or_fails(runs: Callable[..., Run]) -> None:
    run = runs()
    code, _ = run.python(
        f"""
import os, threading
def work(turn, thread):
    path = f"{PLACE}/{{turn}}/MARKERS{{thread}}"
    while True:
        try:
            return os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        except FileNotFoundError:
            try: os.mkdir(os.path.dirname(path))
            except FileExistsError: pass
os.makedirs({PLACE!r})
for turn in range(150):
    threads = [threading.Thread(target=work, args=(turn, n)) for n in range(3)]
    for each in threads: each.start()
    for each in threads: each.join()
"""
    )
    assert code == 0 and len(run.effects()) == 450


def test_what_another_program_wrote_is_said_to_be_unseen(runs: Callable[..., Run]) -> None:
    run = runs()
    run.play("sh", "-c", SHELL)
    assert not run.front.unseen
    (run.front.root / FILE).write_text("by another program\n")
    assert run.front.unseen == (f"{FILE} changed, and not by a call that stopped",)
