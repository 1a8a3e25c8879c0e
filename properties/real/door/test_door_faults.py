"""Each call of a process meets each fault, exactly where it was aimed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from properties.faces.worlds import Decision, DoorCommand, FileCall
from properties.real.door.behind import ENDS_S, Seen, at, ended, python, run

# Makes a few files, then does each call once, by itself or in a child for each, and says how each ended.
EACH = """
import ctypes, json, os, sys
names = ("w", "p", "v", "c", "t", "f", "s", "old", "gone", "linked")
for name in names:
    with open(name, "wb", 0) as file:
        file.write(b"0123456789")
os.mkdir("empty")
files = {name: os.open(name, os.O_RDWR) for name in names}
libc = ctypes.CDLL(None, use_errno=True)
def allocate():
    if libc.fallocate(files["f"], 0, 0, ctypes.c_long(100)):
        raise OSError(ctypes.get_errno(), "")
calls = {
    "write": lambda: os.write(files["w"], b"new"), "pwrite64": lambda: os.pwrite(files["p"], b"new", 2),
    "writev": lambda: os.writev(files["v"], [b"n", b"ew"]), "open": lambda: os.open("made", os.O_WRONLY | os.O_CREAT),
    "ftruncate": lambda: os.ftruncate(files["c"], 3), "truncate": lambda: os.truncate("t", 3), "fallocate": allocate,
    "fsync": lambda: os.fsync(files["s"]), "rename": lambda: os.rename("old", "moved"),
    "unlink": lambda: os.unlink("gone"), "link": lambda: os.link("linked", "second"),
    "symlink": lambda: os.symlink("w", "soft"), "mkdir": lambda: os.mkdir("folder"), "rmdir": lambda: os.rmdir("empty"),
    "mknod": lambda: os.mknod("node"),
}
os.mkdir("begin")
said = {}
for name, call in calls.items():
    if sys.argv[1] == "children":
        child = os.fork()
        if child:
            said[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            continue
    try:
        call()
        said[name] = 0
    except OSError as error:
        said[name] = error.errno
    if sys.argv[1] == "children":
        os._exit(0)
os.mkdir("end")
print(json.dumps(said))
"""
CALLS = (
    "write", "pwrite64", "writev", "open", "ftruncate", "truncate", "fallocate", "fsync", "rename", "unlink", "link",
    "symlink", "mkdir", "rmdir", "mknod",
)  # fmt: skip


def between(decision: Decision) -> Seen:
    """The same for every call between two marks."""
    inside = [False]

    def rule(call: FileCall) -> Decision | None:
        if call.path in ("begin", "end"):
            inside[0] = call.path == "begin"
            return None
        return decision if inside[0] else None

    return Seen([rule])


def state(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in root.iterdir()}


BEFORE = dict.fromkeys(("w", "p", "v", "c", "t", "f", "s", "old", "gone", "linked"), b"0123456789")
BEFORE |= {"empty": b"", "begin": b""}
AFTER = {
    "w": b"new3456789", "p": b"01new56789", "v": b"new3456789", "c": b"012", "t": b"012", "s": b"0123456789",
    "f": b"0123456789" + bytes(90), "moved": b"0123456789", "linked": b"0123456789", "second": b"0123456789",
    "made": b"", "soft": b"new3456789", "folder": b"", "node": b"", "begin": b"",
}  # fmt: skip


def each(root: Path, seen: Seen, mode: str = "itself") -> dict[str, int]:
    with seen.door(root) as door:
        code, said = run(door, root, *python(EACH), mode)
        assert code == 0, said
        assert door.unseen == ()
    found: dict[str, int] = json.loads(said)
    return found


def test_every_call_is_done_and_shown_once(root: Path) -> None:
    seen = Seen()
    assert each(root, seen) == dict.fromkeys(CALLS, 0)
    assert state(root) == AFTER | {"end": b""}
    between_marks = seen.outcomes[seen.told().index(("mkdir", "begin")) + 1 : -1]
    assert [(call.operation, call.path, call.target) for call, _ in between_marks] == [
        ("write", "w", ""), ("write", "p", ""), ("write", "v", ""), ("open", "made", ""), ("cut", "c", ""),
        ("cut", "t", ""), ("allocate", "f", ""), ("sync", "s", ""), ("rename", "old", "moved"), ("delete", "gone", ""),
        ("link", "linked", "second"), ("symlink", "soft", "w"), ("mkdir", "folder", ""), ("rmdir", "empty", ""),
        ("mknod", "node", ""),
    ]  # fmt: skip
    assert all(outcome.done and not outcome.error for _, outcome in seen.outcomes)
    writes = [(call.offset, call.data, outcome.result) for call, outcome in between_marks[:3]]
    assert writes == [(0, b"new", 3), (2, b"new", 3), (0, b"new", 3)]
    assert [call.number for call in seen.calls] == list(range(1, len(seen.calls) + 1))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES])
def test_a_refused_call_reports_the_error_and_does_nothing(root: Path, error: int) -> None:
    assert each(root, between(Decision(error=error))) == dict.fromkeys(CALLS, error)
    assert state(root) == BEFORE | {"end": b""}


def test_a_call_can_be_done_and_reported_as_failed(root: Path) -> None:
    assert each(root, between(Decision(error=errno.EIO, applied=True))) == dict.fromkeys(CALLS, errno.EIO)
    assert state(root) == AFTER | {"end": b""}


@pytest.mark.parametrize("when", ["before", "after"])
def test_any_call_can_be_the_last_thing_that_a_process_did(root: Path, when: str) -> None:
    seen = between(Decision(kill="before" if when == "before" else "after", alone=True))
    assert each(root, seen, "children") == dict.fromkeys(CALLS, -signal.SIGKILL)
    assert state(root) == (BEFORE if when == "before" else AFTER) | {"end": b""}


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
@pytest.mark.parametrize("killed", [False, True])
def test_a_write_ends_at_any_byte(root: Path, size: int, killed: bool) -> None:
    code = "import os\nprint(os.write(os.open('a', os.O_WRONLY | os.O_CREAT), bytes(1000)))"
    seen = Seen([at("write", "a", 1, Decision(bytes_max=size, kill="after" if killed else ""))])
    with seen.door(root) as door:
        status, said = run(door, root, *python(code))
    assert (status, said) == ((-signal.SIGKILL, "") if killed else (0, f"{size}\n"))
    assert (root / "a").stat().st_size == size
    assert seen.outcomes[-1][1].result == size


def test_a_late_call_holds_up_nobody_else(root: Path) -> None:
    code = """
import os, threading, time
file = os.open("slow", os.O_WRONLY | os.O_CREAT)
thread = threading.Thread(target=os.write, args=(file, b"late"))
thread.start()
while not os.path.exists("stopped"):
    time.sleep(0.01)
for number in range(20):
    open(f"quick{number}", "wb").close()
print(os.path.getsize("slow"))
open("done", "wb").close()
thread.join()
"""
    released = threading.Event()

    def rule(call: FileCall) -> Decision | None:
        if (call.operation, call.path) == ("write", "slow"):
            released.set()
            return Decision(late_ms=1500)
        return None

    seen = Seen([rule])
    with seen.door(root) as door:
        command = door.start(python(code), {}, process="server-1", folder=root)
        assert released.wait(ENDS_S)
        (root / "stopped").touch()
        assert ended(command) == (0, "0\n")
    order = [call.path for call, _ in seen.outcomes]
    assert order.index("done") < order.index("slow", 1) and (root / "slow").read_bytes() == b"late"


def test_a_process_that_is_killed_meanwhile_says_nothing_any_more(root: Path) -> None:
    """Its other threads go on until the signal arrives; when the call is over, so are they."""
    code = """
import os, threading
def talk():
    while True:
        os.write(20, b"x")
os.dup2(1, 20)
threading.Thread(target=talk, daemon=True).start()
file = os.open("a", os.O_WRONLY | os.O_CREAT)
os.write(file, b"12345678")
os.write(file, b"never")
"""
    sizes: list[int] = []
    output = root.parent / "output"
    seen = Seen([at("write", "a", 1, Decision(kill="after", bytes_max=4))])

    def applied(call: FileCall, outcome: object) -> None:
        seen.outcomes.append((call, outcome))  # type: ignore[arg-type]

    with output.open("wb") as out, seen.door(root) as door:
        command = door.start(python(code), {}, process="server-1", folder=root, stdout=out)
        command.popen.wait(ENDS_S)
        sizes.append(output.stat().st_size)
        time.sleep(0.05)
        sizes.append(output.stat().st_size)
    assert sizes[0] == sizes[1] > 0
    assert (root / "a").read_bytes() == b"1234" and seen.told() == [("open", "a"), ("write", "a")]


def test_a_kill_from_within_a_decision_leaves_nothing_to_answer(root: Path) -> None:
    """As the interceptor does it: the deciding thread ends the command, and the call is not done."""
    commands: list[DoorCommand] = []

    def rule(call: FileCall) -> Decision | None:
        if call.path == "b":
            commands[0].end()
        return None

    seen = Seen([rule])
    with seen.door(root) as door:
        commands.append(door.start(python("import time; time.sleep(1); open('a', 'w'); open('b', 'w')"), {},
                                   process="server-1", folder=root))  # fmt: skip
        assert ended(commands[0])[0] == -signal.SIGKILL
    assert [path.name for path in root.iterdir()] == ["a"]
    assert [outcome.done for _, outcome in seen.outcomes] == [True, False]


def test_a_kill_ends_all_that_the_command_started(root: Path) -> None:
    code = "sleep 500 & (setsid sleep 500 &) ; echo $! > pid; echo x > last; sleep 500"
    seen = Seen([at("open", "last", 1, Decision(kill="before"))])
    with seen.door(root) as door:
        assert run(door, root, "sh", "-c", code) == (-signal.SIGKILL, "")
    assert not (root / "last").exists()
    mine = subprocess.run(["pgrep", "-f", "^sleep 500"], capture_output=True, text=True, check=False, timeout=ENDS_S)
    folders = [f"/proc/{pid}/cwd" for pid in mine.stdout.split()]
    assert not [folder for folder in folders if os.path.exists(folder) and os.readlink(folder) == str(root)]


def test_a_lock_is_free_once_its_holder_was_killed(root: Path) -> None:
    code = """
import fcntl, os
file = os.open("lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
os.write(file, b"pid")
"""
    seen = Seen([at("write", "lock", 1, Decision(kill="after")), at("write", "lock", 2, Decision(kill="before"))])
    with seen.door(root) as door:
        for _ in range(2):
            assert run(door, root, *python(code)) == (-signal.SIGKILL, "locked\n")
        assert run(door, root, *python(code)) == (0, "locked\n")


def test_a_failure_of_the_kit_is_the_kit_s(root: Path) -> None:
    def rule(call: FileCall) -> Decision | None:
        raise ZeroDivisionError("a defect")

    with pytest.raises(HarnessError, match="ZeroDivisionError: a defect"), Seen([rule]).door(root) as door:
        code, said = run(door, root, *python("open('a', 'w')"))
        assert code == 1 and "Input/output error" in said
