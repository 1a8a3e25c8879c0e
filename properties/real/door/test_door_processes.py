"""Threads, forks, many files, other users, and the end of the kit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from marker_sim.supervisor import end_process
from marker_sim.worlds.door.calls import Decision, FileCall
from marker_sim.worlds.door.door import Door
from properties.real.door.behind import ENDS_S, Seen, at, ended, python, run
from properties.volume import volume

HERE = Path(__file__).parents[3]
OPENS = volume(50_000, quick=2_500)


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


def test_numbers_are_used_again(root: Path) -> None:
    """More opens than a process may have files; those that stay open keep their numbers."""
    hard = 1024
    code = f"""
import os
kept = [os.open(f"kept{{n}}", os.O_WRONLY | os.O_CREAT) for n in range(5)]
numbers = set()
for n in range({OPENS}):
    file = os.open("a", os.O_WRONLY | os.O_CREAT)
    numbers.add(file)
    os.close(file)
assert not numbers & {{*kept}} and max(numbers) < {hard}, (kept, max(numbers))
for file in kept:
    os.write(file, b"mine")
many = []
try:
    while True:
        many.append(os.open("a", os.O_WRONLY))
except OSError as error:
    print(error.errno, len(many))
"""
    script = root.parent / "kit.py"
    script.write_text(
        "import resource, subprocess, sys\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))\n"
        "from pathlib import Path\n"
        "from marker_sim.worlds.door.door import Door, Decision\n"
        "with Door(Path(sys.argv[1]), lambda call: Decision()) as door:\n"
        f"    command = door.start([sys.executable, '-I', '-S', '-c', {code!r}], {{}}, process='p',"
        " folder=Path(sys.argv[1]))\n"
        "    print(command.popen.communicate()[0].decode(), command.base)\n"
    )
    said = kit(str(script), str(root))
    assert said.split() == ["24", str(hard - hard // 2 - 5), str(hard // 2)]
    assert all((root / f"kept{n}").read_text() == "mine" for n in range(5))


def kit(*words: str) -> str:
    """What a process that is the kit says."""
    done = subprocess.run(
        [sys.executable, *words], env={**os.environ, "PYTHONPATH": str(HERE)}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


HOLDS = """
import sys, time
from pathlib import Path
from marker_sim.worlds.door.door import Door, Decision
def decide(call):
    print("held", flush=True)
    return Decision(late_ms=100_000)
with Door(Path(sys.argv[1]), decide) as door:
    command = door.start(["sh", "-c", "(setsid sleep 400 &) ; echo x > a"], {}, process="p", folder=Path(sys.argv[1]))
    command.popen.wait(100)
"""


def test_when_the_kit_dies_nobody_hangs_and_nobody_is_left(root: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(root)], env={**os.environ, "PYTHONPATH": str(HERE)}, stdout=subprocess.PIPE
    )
    assert started.stdout is not None and started.stdout.readline() == b"held\n"
    assert len(at_work(root)) >= 2
    started.kill()
    started.wait(ENDS_S)
    started.stdout.close()
    deadline = time.monotonic() + ENDS_S
    while left := at_work(root):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    assert not (root / "a").exists()


def at_work(root: Path) -> list[str]:
    """Processes whose working directory is the root."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and os.readlink(f"/proc/{name}/cwd") == str(root):
                found.append(name)
        except OSError:
            continue
    return found


def test_a_fork_of_the_kit_holds_nobody(root: Path) -> None:
    """Its copy of the listener would keep a call waiting for ever once the kit is dead."""
    with Door(root, lambda call: Decision()) as door:
        command = door.start(["sleep", "100"], {}, process="p", folder=root)
        child = os.fork()
        if child == 0:
            os._exit(command.listener != -1 or command.control.fileno() != -1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert command.listener >= 0


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


AS_NOBODY = """
import os
os.umask(0o022)
os.close(os.open("open/mine", os.O_WRONLY | os.O_CREAT, 0o666))
for path in ("closed/not", "closed"):
    try:
        os.open(path + "/x", os.O_WRONLY | os.O_CREAT)
    except OSError as error:
        print(error.errno)
try:
    os.unlink("root-s")
except OSError as error:
    print(error.errno)
file = os.open("open/written", os.O_WRONLY | os.O_CREAT)
os.write(file, b"x")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_command_that_becomes_another_user_reaches_what_that_user_may(root: Path) -> None:
    for folder in (root, *root.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    for name, mode in (("open", 0o777), ("closed", 0o700)):
        (root / name).mkdir()
        (root / name).chmod(mode)
    (root / "root-s").touch()
    script = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if script is None or shutil.which("setpriv") is None:
        pytest.skip("needs setpriv and a /usr/bin/python3 that others may run")
    words = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", script, "-I", "-S", "-c", AS_NOBODY)
    seen = Seen()
    with seen.door(root) as door:
        assert run(door, root, *words) == (0, "13\n13\n13\n")
    assert (root / "open" / "mine").stat().st_uid == 65534 and (root / "open" / "written").read_text() == "x"
    assert ("write", "open/written") in seen.told() and os.geteuid() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="the kit is another user than root already")
def test_the_kit_needs_no_root(root: Path) -> None:
    """Forked, so that what is imported need not be readable."""
    for folder in (root, *root.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    os.chown(root, 65534, 65534)
    launcher = Path("/usr/bin/python3")
    if not launcher.exists():
        pytest.skip("needs a /usr/bin/python3 that others may run")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            said = _as_nobody(root, launcher, root.parent)
        finally:
            os.write(writing, said)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        assert end.read() == b"0: open a, write a, rename a"
    os.waitpid(child, 0)
    assert (root / "b").stat().st_uid == 65534


def _as_nobody(root: Path, python3: Path, folder: Path) -> bytes:
    from marker_sim.worlds.door import launch

    copied = Path("/tmp") / f"door-launcher-{os.getpid()}.py"
    copied.write_text(launch.LAUNCHER.read_text())
    copied.chmod(0o644)
    try:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        sys.executable = str(python3)
        launch.LAUNCHER = copied
        seen = Seen()
        with seen.door(root) as door:
            code, said = run(door, root, "sh", "-c", "echo x > a && mv a b")
        return f"{code}: {', '.join(' '.join(each) for each in seen.told())}{said}".encode()
    except BaseException as error:
        return repr(error).encode()


def test_a_second_door_below_the_first_is_refused_in_a_sentence(root: Path) -> None:
    code = """
import sys
from marker_sim.worlds.door.available import refused
print(refused())
"""
    with Seen().door(root) as door:
        command = door.start([sys.executable, "-c", code], {"PYTHONPATH": str(HERE)}, process="p", folder=root)
        assert ended(command) == (
            0, "seccomp refuses the filter (EBUSY): this process is under the listener of another program already\n"
        )  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        ("seccomp", 1, "seccomp is refused: EPERM (Operation not permitted)"),
        ("seccomp", 22, "seccomp refuses the filter (EINVAL (Invalid argument)): Linux 5.19 or later is needed"),
        ("pidfd_getfd", 1, "pidfd_getfd is refused (Operation not permitted), so the files of a process cannot be"),
    ],
)
def test_what_is_refused_is_said(call: str, error: int, sentence: str) -> None:
    """By a filter around the kit, as a container has one."""
    code = f"""
import ctypes, struct
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.door.kernel import own_numbers
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, own_numbers()[{call!r}]), (6, 0, 0, 0x50000 | {error}), (6, 0, 0, 0x7FFF0000)]
program = b"".join(struct.pack("=HBBI", *step) for step in steps)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]
library = ctypes.CDLL(None, use_errno=True)
assert library.prctl(38, 1, 0, 0, 0) == 0
assert library.prctl(22, 2, ctypes.byref(Program(len(steps), program))) == 0
print(refused())
"""
    assert sentence in kit("-c", code)


def test_memory_that_must_not_be_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from marker_sim.worlds.door import available, held

    def refuse(path: str) -> int:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(held, "open_memory", refuse)
    assert "the memory of a process that the kit started cannot be read (Permission denied)" in available.refused()


def test_a_process_that_does_not_die_is_the_kit_s_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marker_sim.supervisor.END_S", 0.05)
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
