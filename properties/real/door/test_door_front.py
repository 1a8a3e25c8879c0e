"""A directory as the storage of a run: its effects in the words of a history, and the faults of plans at its calls."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind, When
from marker_sim.names import TEMP
from properties.faces.history import PresenceIndex
from properties.faces.worlds import Interceptor, LocalWorld, Recorder, files_below
from properties.real.door.fronted import FILE, IN_PLACE, PLACE, SHELL, Effect, Run, at


def made(*numbers: int) -> list[Effect]:
    path = f"{PLACE}/m-%d.marker.CREATE"
    return [("put", path % n, text) for n in numbers for text in (b"", f"name-{n}\n".encode())]


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


def test_a_disk_that_becomes_full_within_a_write_does_half_of_it_and_then_nothing(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.DISK_FULL, "write", 1, pattern="MARKERS0", calls=2))
    _, said = run.python(f"""
import os
os.makedirs({PLACE!r})
file = os.open({FILE!r}, os.O_WRONLY | os.O_CREAT)
print(os.write(file, b"name-1"))
for rest in (b"e-1", b"e-1"):
    try:
        print(os.write(file, rest))
    except OSError as error:
        print(error.strerror)
""")
    assert said.split("\n") == ["3", "No space left on device", "3", ""]
    assert run.effects()[-2:] == [("put", FILE, b"nam"), ("put", FILE, b"name-1")]


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
    assert run.front.door.held["server-1"].seconds < 0.3, "the time of a fault is not the kit's"


def test_a_call_that_waits_for_the_kit_is_the_kit_s_time_while_it_waits(runs: Callable[..., Run]) -> None:
    run = runs()
    world: Any = SimpleNamespace(_front=run.front)
    with run.recorder.lock:
        command = run.front.start(["sh", "-c", SHELL], {}, process="server-1", folder=run.front.root)
        until = time.monotonic() + 30
        while LocalWorld.held(world, "server-1").seconds < 0.4 and time.monotonic() < until:
            time.sleep(0.05)
        assert LocalWorld.held(world, "server-1").seconds >= 0.4
    assert command.popen.wait(30) == 0
    held = run.front.door.held["server-1"]
    assert not held.since and held.calls and held.seconds >= 0.4


@pytest.mark.parametrize("operation", ["get", "list"])
def test_reads_fail_where_they_are_watched(runs: Callable[..., Run], operation: str) -> None:
    run = runs(at(FaultKind.IO_ERROR, operation, pattern=PLACE), reads=True)
    _, said = run.python(
        f"import os\nos.makedirs({PLACE!r})\nopen({FILE!r}, 'w').close()\n"
        f"for call in (lambda: open({FILE!r}).read(), lambda: os.listdir({PLACE!r})):\n"
        "    try: print(call())\n    except OSError as error: print(error.errno)"
    )
    assert said.split("\n")[:2] == (["5", "['MARKERS0']"] if operation == "get" else ["", "5"])


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
