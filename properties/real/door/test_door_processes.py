"""Threads, forks, many files, other users, and the end of the kit."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from properties.faces.surroundings import end_process
from properties.faces.worlds import FILES_MAX, Decision, FileCall, Server
from properties.real.door.behind import ENDS_S, Seen, at, at_work, ended, python, run


def test_calls_of_many_threads_have_one_order(root: Path) -> None:
    code = """
import os, threading
def write(number):
    for turn in range(10):
        file = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b"%02d%02d\\n" % (number, turn))
        os.close(file)
threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    seen = Seen()
    with seen.door(root) as door:
        assert run(door, root, *python(code)) == (0, "")
    writes = [call for call, _ in seen.outcomes if call.operation == "write"]
    assert len(writes) == 160 and b"".join(call.data for call in writes) == (root / "log").read_bytes()
    assert [call.offset for call in writes] == list(range(0, 800, 5))
    assert len({call.thread for call in writes}) == 16 and len({call.pid for call in writes}) == 1


def test_forks_share_an_offset_and_choose_their_own_numbers(root: Path) -> None:
    code = """
import os
shared = os.open("shared", os.O_WRONLY | os.O_CREAT)
for number in range(4):
    if os.fork() == 0:
        own = [os.open(f"own{number}-{turn}", os.O_WRONLY | os.O_CREAT) for turn in range(3)]
        assert len({shared, *own}) == 4, (shared, own)
        for file in (shared, *own):
            os.write(file, b"%d" % number)
        os._exit(0)
for _ in range(4):
    assert os.wait()[1] == 0
os.write(shared, b"p")
"""
    seen = Seen()
    with seen.door(root) as door:
        assert run(door, root, *python(code)) == (0, "")
    assert sorted((root / "shared").read_text()) == sorted("0123p")
    assert all((root / f"own{number}-2").read_text() == str(number) for number in range(4))
    assert len({call.pid for call in seen.calls}) == 5


def test_one_process_of_a_command_can_be_killed_alone(root: Path) -> None:
    code = "for n in 1 2 3; do cp source copy$n || echo failed $n; done"
    (root / "source").write_text("x" * 100)
    seen = Seen([at("write", "copy2", 1, Decision(kill="after", bytes_max=10, alone=True))])
    with seen.door(root) as door:
        code_, said = run(door, root, "bash", "-c", code)
    assert code_ == 0 and "failed 2" in said and "failed 1" not in said and "failed 3" not in said
    assert [(root / f"copy{n}").stat().st_size for n in (1, 2, 3)] == [100, 10, 100]


def test_signals_and_exit_codes_go_through_the_launcher(root: Path) -> None:
    with Seen().door(root) as door:
        assert run(door, root, "sh", "-c", "exit 7") == (7, "")
        assert run(door, root, "sh", "-c", "kill -SEGV $$")[0] == -signal.SIGSEGV
        command = door.start(["sh", "-c", "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.05; done"], {},
                             process="p", folder=root)  # fmt: skip
        assert command.popen.stdout is not None and command.popen.stdout.readline() == b"up\n"
        command.popen.terminate()
        assert ended(command) == (3, "asked\n")
        with pytest.raises(HarnessError, match="not-there cannot be started: No such file"):
            door.start(["not-there"], {}, process="p", folder=root)


def test_a_command_that_ends_leaves_nothing_behind(root: Path) -> None:
    with Seen().door(root) as door:
        assert run(door, root, "sh", "-c", "(sleep 300 > /dev/null 2>&1 &); exit 0") == (0, "")
        assert not at_work(root)


def test_a_stopped_command_can_be_killed(root: Path) -> None:
    with Seen().door(root) as door:
        command = door.start(["sleep", "100"], {}, process="p", folder=root)
        os.killpg(command.popen.pid, signal.SIGSTOP)
        assert command.end() == -signal.SIGKILL


def test_a_command_may_open_many_files_and_not_a_million(root: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    with Seen().door(root) as door:
        command = door.start(["sh", "-c", "ulimit -n"], {}, process="p", folder=root)
        assert ended(command) == (0, f"{files}\n") and command.base < files


FORKED_TWICE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        while True:
            time.sleep(0.01)
    os._exit(0)
os.wait()
time.sleep(100)
"""


def test_a_pause_stops_what_left_its_parents_as_well(root: Path) -> None:
    with Seen().door(root) as door:
        command = door.start(python(FORKED_TWICE), {}, process="p", folder=root)
        assert command.popen.stdout is not None
        away = int(command.popen.stdout.readline())
        server = Server("server-1", 0, command, root / "log")
        assert {command.pid, away} <= {*server.pids()} and server.stop()
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in (away, command.pid)]
        assert states == ["T", "T"]
        server.proceed()
        server.kill()


def test_two_commands_share_a_directory_and_keep_their_names(root: Path) -> None:
    seen = Seen()
    with seen.door(root) as door:
        commands = [
            door.start(["sh", "-c", f"echo x > {name}"], {}, process=name, role="executor", folder=root)
            for name in ("executor-1", "executor-2")
        ]
        assert [ended(command)[0] for command in commands] == [0, 0]
    assert {(call.process, call.path, call.role) for call in seen.calls} == {
        (name, name, "executor") for name in ("executor-1", "executor-2")
    }  # fmt: skip


def test_a_process_that_does_not_die_is_the_kit_s_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marker_sim.surroundings.supervisor.END_S", 0.05)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda handle, number: None)
    process = subprocess.Popen(["sleep", "100"])
    try:
        with pytest.raises(HarnessError, match="did not end after SIGKILL"):
            end_process(process.pid)
    finally:
        process.kill()
        process.wait(ENDS_S)


def test_a_late_call_of_a_killed_command_is_never_done(root: Path) -> None:
    stopped = threading.Event()

    def rule(call: FileCall) -> Decision | None:
        stopped.set()
        return Decision(late_ms=200)

    seen = Seen([rule])
    with seen.door(root) as door:
        command = door.start(["sh", "-c", "echo x > a"], {}, process="p", folder=root)
        assert stopped.wait(ENDS_S)
        command.end()
        deadline = time.monotonic() + ENDS_S
        while not seen.outcomes and time.monotonic() < deadline:
            time.sleep(0.02)
    assert [outcome.done for _, outcome in seen.outcomes] == [False] and not (root / "a").exists()


def test_a_late_call_of_a_process_that_died_by_itself_is_never_done(root: Path) -> None:
    stopped = threading.Event()

    def rule(call: FileCall) -> Decision | None:
        stopped.set()
        return Decision(late_ms=1_000)

    seen = Seen([rule])
    with seen.door(root) as door:
        command = door.start(["sh", "-c", "echo x > a"], {}, process="p", folder=root)
        assert stopped.wait(ENDS_S)
        os.kill(command.pid, signal.SIGKILL)
        assert command.popen.wait(ENDS_S) == -signal.SIGKILL
        deadline = time.monotonic() + ENDS_S
        while not seen.outcomes and time.monotonic() < deadline:
            time.sleep(0.02)
        assert run(door, root, "sh", "-c", "echo the door serves others") == (0, "the door serves others\n")
        door.close()
    assert [outcome.done for _, outcome in seen.outcomes] == [False] and not (root / "a").exists()


def test_a_limit_that_leaves_no_number_is_the_kit_s_trouble(root: Path) -> None:
    said = "lowered its limit of open files to 100; watched ones"
    with pytest.raises(HarnessError, match=said), Seen().door(root) as door:
        run(door, root, "sh", "-c", "ulimit -n 100; echo x > a")
