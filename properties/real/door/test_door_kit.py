"""The kit itself: what it is refused, as whom it runs, and what is left of its commands when it dies."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from marker_sim.worlds.door import available, held, launch
from properties.faces.worlds import Decision, Door, assemble, own_numbers, this_machine
from properties.real.door.behind import ENDS_S, Seen, at_work, ended, run
from properties.volume import volume

HERE = Path(__file__).parents[3]
NOBODY, PYTHON = 65534, Path("/usr/bin/python3")
OPENS = volume(5_000, quick=2_500, nightly=50_000)


def kit(*words: str) -> str:
    """What a process that is the kit says."""
    done = subprocess.run(
        [sys.executable, *words], env={**os.environ, "PYTHONPATH": str(HERE)}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def test_when_the_kit_dies_before_it_has_the_listener_nobody_waits_for_it() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [str(launch.LAUNCHER), str(theirs.fileno()), str(own_numbers()["seccomp"]), "100", "sleep", "sleep", "600"]
    ours.send(assemble(this_machine(), launch.BASE_MAX, reads=False))
    ours.close()
    with theirs, subprocess.Popen([sys.executable, "-I", "-S", *words], pass_fds=(theirs.fileno(),)) as launcher:
        theirs.close()
        try:
            assert launcher.wait(ENDS_S) != 0
        finally:
            launcher.kill()


def test_a_fork_of_the_kit_holds_nobody(root: Path) -> None:
    """Its copy of the listener would keep a call waiting for ever once the kit is dead."""
    with Door(root, lambda call: Decision()) as door:
        command = door.start(["sleep", "100"], {}, process="p", folder=root)
        child = os.fork()
        if child == 0:
            os._exit(command.listener != -1 or command.control.fileno() != -1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert command.listener >= 0


def reachable(root: Path) -> None:
    """Let other users pass through the directories of a test."""
    for folder in (root, *root.parents):
        if folder.is_relative_to(tempfile.gettempdir()) and str(folder) != tempfile.gettempdir():
            folder.chmod(folder.stat().st_mode | 0o011)
        elif not folder.stat().st_mode & 0o001:
            pytest.skip(f"other users may not pass through {folder}")


AS_NOBODY = """
import os
os.umask(0o022)
os.close(os.open("open/mine", os.O_WRONLY | os.O_CREAT, 0o666))
for call in (lambda: os.open("closed/x", os.O_WRONLY | os.O_CREAT), lambda: os.unlink("root-s")):
    try:
        call()
    except OSError as error:
        print(error.errno)
file = os.open("open/written", os.O_WRONLY | os.O_CREAT)
os.write(file, b"x")
"""


def test_a_command_that_becomes_another_user_reaches_what_that_user_may(root: Path) -> None:
    reachable(root)
    for name, mode in (("open", 0o777), ("closed", 0)):
        (root / name).mkdir()
        (root / name).chmod(mode)
    (root / "root-s").touch()
    root.chmod(0o555)
    user = os.geteuid()
    words: tuple[str, ...] = ("-I", "-S", "-c", AS_NOBODY)
    if user == 0:
        if shutil.which("setpriv") is None or not PYTHON.exists():
            pytest.skip(f"needs setpriv, of util-linux, and {PYTHON}, which others may run")
        user, words = NOBODY, ("--clear-groups", str(PYTHON), *words)
        words = ("setpriv", f"--reuid={user}", f"--regid={user}", *words)
    else:
        words = (sys.executable, *words)
    seen = Seen()
    with seen.door(root) as door:
        assert run(door, root, *words) == (0, "13\n13\n")
    assert (root / "open" / "mine").stat().st_uid == user and (root / "open" / "written").read_text() == "x"
    assert ("write", "open/written") in seen.told() and (root / "root-s").exists()


def test_the_kit_needs_no_root(root: Path) -> None:
    """Forked where it is root, so that what is imported need not be readable."""
    if os.geteuid() != 0:
        assert _moved(root) == b"0: open a, write a, rename a"
        return
    if not PYTHON.exists():
        pytest.skip(f"needs {PYTHON}, which others may run")
    reachable(root)
    os.chown(root, NOBODY, NOBODY)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            said = _as_nobody(root)
        finally:
            os.write(writing, said)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        assert end.read() == b"0: open a, write a, rename a"
    os.waitpid(child, 0)
    assert (root / "b").stat().st_uid == NOBODY


def _as_nobody(root: Path) -> bytes:
    copied = root.parent / "launcher.py"
    copied.write_text(launch.LAUNCHER.read_text())
    copied.chmod(0o644)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    sys.executable, launch.LAUNCHER = str(PYTHON), copied
    try:
        return _moved(root)
    except BaseException as error:
        return repr(error).encode()


def _moved(root: Path) -> bytes:
    seen = Seen()
    with seen.door(root) as door:
        code, said = run(door, root, "sh", "-c", "echo x > a && mv a b")
    return f"{code}: {', '.join(' '.join(each) for each in seen.told())}{said}".encode()


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
    def refuse(path: str) -> int:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(held, "open_memory", refuse)
    assert "the memory of a process that the kit started cannot be read (Permission denied)" in available.refused()
