"""A file that is emptied to be written again: who does that is killed in it, who does not is not said to, and nobody
who is held for it is held for good.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.names import MarkerDirectory
from marker_sim.worlds import file_permissions
from marker_sim.worlds.file_permissions import CUT, OPEN, PermissionEvents, granted
from marker_sim.worlds.http.file_rewrites import CUT_KILL, CUT_SEEN, NEVER_CUT, UNSEEN, Rewrites, missed, unknown
from marker_sim.worlds.http.local_world import LocalWorld
from marker_sim.worlds.http.servers import Command, Fleet
from marker_sim.worlds.http.stage import ForeignSystem, RunStage
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

pytest.importorskip("inotify_simple", reason="needs inotify_simple: pip install '.[foreign]'")

from marker_sim.worlds.file_watch import Watch, signals

ENDS_S = 10.0
HELD_S = 1.0
LINE = b"0123456789\n"
TIMES = 40
# Each rewrites MARKERS0 repeatedly after a start message, one line longer each time.
WRITERS = {
    "rewrites": """
with open(path, "wb", buffering=0) as out:
    time.sleep(pause)
    out.write(line * n)
""",
    "rewrites-by-truncate": """
with open(path, "r+b" if os.path.exists(path) else "wb", buffering=0) as out:
    out.truncate(0)
    time.sleep(pause)
    out.write(line * n)
""",
    "replaces": """
with open(path + ".tmp", "wb") as out:
    out.write(line * n)
os.rename(path + ".tmp", path)
""",
    "appends": """
with open(path, "ab", buffering=0) as out:
    out.write(line)
""",
    "makes-anew": """
if os.path.exists(path):
    os.unlink(path)
with open(path, "wb", buffering=0) as out:
    out.write(line * (n if n % 2 else 1))
""",
}
PROGRAM = """
import os, sys, time
path, pause, line = sys.argv[1], float(sys.argv[2]), {line!r}
sys.stdin.readline()
for n in range(1, {times} + 1):
    {body}
"""
Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts a writer of tmp_path/t/MARKERS0, which waits for a start message."""
    (tmp_path / "t").mkdir()
    begun: list[subprocess.Popen[bytes]] = []

    def start(kind: str, pause_s: float = 0.0) -> subprocess.Popen[bytes]:
        body = WRITERS[kind].strip().replace("\n", "\n    ")
        program = PROGRAM.format(line=LINE, times=TIMES, body=body)
        words = [sys.executable, "-S", "-c", program, str(tmp_path / "t" / "MARKERS0"), str(pause_s)]
        begun.append(subprocess.Popen(words, stdin=subprocess.PIPE))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def go(writer: subprocess.Popen[bytes]) -> None:
    assert writer.stdin is not None
    writer.stdin.write(b"\n")
    writer.stdin.flush()


@pytest.fixture(params=["held", "told afterwards"])
def how(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the kernel's permission events where they are granted, and as if they were not."""
    if request.param == "held":
        needs(CUT, tmp_path)
    else:
        monkeypatch.setattr(file_permissions, "_MASKS", {})
    return str(request.param)


def needs(operation: str, folder: Path) -> None:
    operations, refused = granted(folder)
    if operation not in operations:
        pytest.skip(f"the kernel grants no permission events here: {refused}")


def aimed(writer: subprocess.Popen[bytes], operation: str, nth: int) -> tuple[Interceptor, ArmedFault, Recorder]:
    recorder = Recorder()
    armed = ArmedFault(Fault.of(FaultKind.KILL, "", Call(r"MARKERS0$", (operation,), nth)))
    return Interceptor(recorder, signals(recorder, lambda: [writer.pid])), armed, recorder


@pytest.mark.parametrize("kind", ["rewrites", "rewrites-by-truncate"])
@pytest.mark.parametrize("nth", [1, 7])
def test_a_writer_is_killed_while_the_file_that_it_cut_is_short(
    tmp_path: Path, begin: Begin, how: str, kind: str, nth: int
) -> None:
    writer = begin(kind, 0.02)
    interceptor, armed, recorder = aimed(writer, CUT, nth)
    with Watch(tmp_path, interceptor, process=lambda: "writer", moments=("cut",)) as watch:
        interceptor.arm(armed)
        go(writer)
        assert writer.wait(ENDS_S) == -signal.SIGKILL
        assert watch.exact == (how == "held")
        assert watch.stayed_short("t/MARKERS0")
        interceptor.disarm()
    assert (tmp_path / "t" / "MARKERS0").read_bytes() == b"", "it held lines, and they are lost"
    (fault,) = (event for event in recorder.events if event.kind == "fault")
    assert (fault.operation, fault.process, fault.path, armed.fired) == ("kill", "writer", "t/MARKERS0", 1)


def test_no_cut_is_too_short_for_a_writer_that_is_held(tmp_path: Path, begin: Begin) -> None:
    needs(CUT, tmp_path)
    writer = begin("rewrites")
    interceptor, armed, _ = aimed(writer, CUT, 17)
    with Watch(tmp_path, interceptor, moments=("cut",)) as watch:
        interceptor.arm(armed)
        go(writer)
        assert writer.wait(ENDS_S) == -signal.SIGKILL
        assert watch.stayed_short("t/MARKERS0")
    assert (tmp_path / "t" / "MARKERS0").read_bytes() == b""


@pytest.mark.parametrize("kind", ["replaces", "appends", "makes-anew"])
def test_what_is_replaced_appended_to_or_made_anew_is_never_cut(
    tmp_path: Path, begin: Begin, how: str, kind: str
) -> None:
    writer = begin(kind)
    interceptor, armed, _ = aimed(writer, CUT, 1)
    with Watch(tmp_path, interceptor, moments=("cut", "close-write")) as watch:
        interceptor.arm(armed)
        go(writer)
        assert writer.wait(ENDS_S) == 0
        assert not watch.stayed_short("t/MARKERS0")
    assert (armed.seen, armed.fired) == (0, 0)


def test_a_writer_that_came_to_its_end_left_nothing_short(tmp_path: Path, begin: Begin, how: str) -> None:
    writer = begin("rewrites", 0.005)
    told: list[StorageCall] = []
    interceptor, armed, _ = aimed(writer, CUT, 1)
    with Watch(tmp_path, told.append, moments=("cut",), interceptor=interceptor) as watch:
        interceptor.arm(armed)
        go(writer)
        assert writer.wait(ENDS_S) == 0
        assert not watch.stayed_short("t/MARKERS0")
    assert {call.operation for call in told} >= {CUT}
    assert (tmp_path / "t" / "MARKERS0").read_bytes() == LINE * TIMES


@pytest.mark.parametrize("nth", [2, 9])
def test_a_writer_is_killed_before_it_opens_a_file_which_is_as_it_was(tmp_path: Path, begin: Begin, nth: int) -> None:
    needs(OPEN, tmp_path)
    writer = begin("rewrites")
    interceptor, armed, _ = aimed(writer, OPEN, nth)
    with Watch(tmp_path, interceptor, moments=("cut",)):
        interceptor.arm(armed)
        go(writer)
        assert writer.wait(ENDS_S) == -signal.SIGKILL
    assert (tmp_path / "t" / "MARKERS0").read_bytes() == LINE * (nth - 1)


def test_files_in_directories_made_after_the_aim_are_held_too(tmp_path: Path, begin: Begin) -> None:
    needs(OPEN, tmp_path)
    writer = begin("rewrites")
    interceptor, armed, _ = aimed(writer, OPEN, 3)
    (tmp_path / "t").rmdir()
    with Watch(tmp_path, interceptor, moments=("cut", "close-write")) as watch:
        interceptor.arm(armed)
        (tmp_path / "t").mkdir()
        (tmp_path / "t" / "first").write_text("x")
        while not watch.told:  # The directory is known now.
            assert writer.poll() is None
        go(writer)
        assert writer.wait(ENDS_S) == -signal.SIGKILL


def test_who_is_not_aimed_at_is_not_held(tmp_path: Path, begin: Begin) -> None:
    needs(CUT, tmp_path)
    writer = begin("rewrites")
    told: list[StorageCall] = []
    interceptor, armed, _ = aimed(writer, CUT, 1)
    with Watch(tmp_path, told.append, moments=("cut",), interceptor=interceptor):
        interceptor.arm(armed)
        (tmp_path / "t" / "MARKERS0").write_bytes(LINE)
        (tmp_path / "t" / "MARKERS0").write_bytes(LINE)  # The kit's own process.
        interceptor.disarm()
        go(writer)
        assert writer.wait(ENDS_S) == 0
    assert told == []


def test_a_writer_goes_on_when_who_looks_fails(tmp_path: Path, begin: Begin) -> None:
    needs(CUT, tmp_path)
    writer = begin("rewrites")

    def broken(call: StorageCall) -> bool:
        raise ValueError(f"no {call.path}")

    interceptor, armed, _ = aimed(writer, CUT, 1)
    with (
        pytest.raises(HarnessError, match="ended early: no t/MARKERS0"),
        Watch(tmp_path, broken, moments=("cut",), interceptor=interceptor),
    ):
        interceptor.arm(armed)
        go(writer)
        assert writer.wait(ENDS_S) == 0


def test_a_writer_goes_on_when_the_watch_is_closed_while_it_is_held(tmp_path: Path, begin: Begin) -> None:
    needs(OPEN, tmp_path)
    writer = begin("rewrites")
    held, over = threading.Event(), threading.Event()

    def hold(operation: str, path: str) -> bool:
        held.set()
        return over.wait(ENDS_S) and False

    events = PermissionEvents(tmp_path / "t", hold)
    events.hold([OPEN], [str(tmp_path / "t")])
    go(writer)
    assert held.wait(ENDS_S)
    assert writer.poll() is None, "it is held"
    events.close()  # Which waits a little for the thread, and then closes the descriptor over it.
    assert writer.wait(ENDS_S) == 0
    over.set()


def test_a_call_is_let_go_while_whoever_looks_at_an_answer_reads_a_file_of_the_same_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where opens can be held and cuts cannot, as on the small file system of a run with a full disk."""
    needs(OPEN, tmp_path)
    monkeypatch.setattr(file_permissions, "_MASKS", {OPEN: file_permissions._MASKS[OPEN]})
    system = ForeignSystem(
        name="a", version="", profile=load_profile("http"),
        world=partial(LocalWorld, root=tmp_path, form="path", command=""),
    )  # fmt: skip
    fleet, place = Fleet(Command(text="none"), tmp_path, tmp_path), MarkerDirectory("run/t", "001")
    stage = RunStage(system, fleet, "run", (place,), 2, 50, "a", 0.0)
    file = tmp_path / "run" / place.path / "MARKERS0"
    file.parent.mkdir(parents=True)
    file.write_bytes(LINE)
    interceptor, looks = stage.world.interceptor, list[bool]()
    assert interceptor is not None
    interceptor.arm(ArmedFault(Fault.of(FaultKind.KILL, "", Call("MARKERS0$", (OPEN,), 100))))
    look = threading.Thread(target=lambda: looks.append(stage.world.reader.look_at_stopped(place, ())), daemon=True)
    try:
        with stage.injector.hands:  # As a read of storage at an answer has them.
            opener = subprocess.Popen(["cat", str(file)], stdout=subprocess.DEVNULL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                opener.wait(HELD_S)  # Long enough to be held.
            look.start()
            look.join(ENDS_S)
            assert looks == [True], "it waits for the thread that waits for it"
        assert opener.wait(ENDS_S) == 0
    finally:
        stage.world.close()


# A kit that stops each process that opens a file in a directory, reports it, and does nothing more.
KIT = """
import sys, time
from pathlib import Path
from marker_sim.worlds.file_permissions import OPEN, PermissionEvents

def hold(operation, path):
    print("held", flush=True)
    time.sleep(600)

events = PermissionEvents(Path(sys.argv[1]), hold)
events.hold([OPEN], [sys.argv[1]])
print("ready", flush=True)
time.sleep(600)
"""


def test_a_writer_goes_on_when_the_kit_is_killed_while_it_is_held(tmp_path: Path, begin: Begin) -> None:
    needs(OPEN, tmp_path)
    writer = begin("rewrites")
    kit = subprocess.Popen([sys.executable, "-c", KIT, str(tmp_path / "t")], stdout=subprocess.PIPE)
    try:
        assert kit.stdout is not None
        assert kit.stdout.readline() == b"ready\n"
        go(writer)
        assert kit.stdout.readline() == b"held\n"
        assert writer.poll() is None
        kit.kill()
        assert writer.wait(ENDS_S) == 0
    finally:
        kit.kill()
        kit.communicate()


def test_what_is_refused_is_said_and_holds_nobody(tmp_path: Path) -> None:
    events = PermissionEvents(tmp_path / "nothing", lambda operation, path: False)
    assert events.operations == ()
    assert events.refused
    events.hold([OPEN, CUT], [str(tmp_path)])
    events.release()
    events.close()


@pytest.mark.parametrize(
    ("reached", "not_met", "not_known"),
    [
        ({}, False, False),
        ({CUT_KILL: 2, CUT_SEEN: 3}, False, False),
        ({CUT_KILL: 0}, True, False),
        ({CUT_KILL: 0, CUT_SEEN: 4}, True, False),
        ({CUT_KILL: 0, CUT_SEEN: 4, NEVER_CUT: 1}, True, False),
        ({CUT_KILL: 0, CUT_SEEN: 1, NEVER_CUT: 20}, False, True),  # Only what a dead server left torn is cut.
        ({CUT_KILL: 0, NEVER_CUT: 1}, False, False),
        ({CUT_KILL: 0, UNSEEN: 1}, False, True),
        ({CUT_KILL: 1, UNSEEN: 1}, False, False),
    ],
)
def test_a_place_that_is_not_there_is_not_missed_and_one_that_nobody_could_see_is_said(
    reached: dict[str, int], not_met: bool, not_known: bool
) -> None:
    assert bool(missed(reached)) == not_met
    assert bool(unknown(reached)) == not_known


def test_how_marker_files_change_is_told_by_their_inodes(tmp_path: Path) -> None:
    path = tmp_path / "t" / "MARKERS0"
    path.parent.mkdir()
    with Watch(tmp_path, lambda call: False, moments=("cut",)) as watch:
        rewrites = Rewrites(tmp_path, watch)
        assert not rewrites.put("t/MARKERS0"), "it is not there"
        path.touch()
        assert not rewrites.put("t/MARKERS0"), "there is nothing in it"
        path.write_bytes(LINE)
        assert rewrites.put("t/MARKERS0")
        assert dict(rewrites.seen) == {}, "nobody changed it"
        path.write_bytes(LINE * 2)
        assert rewrites.put("t/MARKERS0")
        (tmp_path / "t" / "new").write_bytes(LINE * 3)
        assert rewrites.put("t/new")
        (tmp_path / "t" / "new").rename(path)
        assert rewrites.put("t/MARKERS0")
    assert dict(rewrites.seen) == {"in place": 1, "replaced": 1}
