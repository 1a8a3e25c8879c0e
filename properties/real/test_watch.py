"""A watch tells what a real process does to files, in order and in new directories, and a signal aimed at the n-th file
meets its writer soon after it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

pytest.importorskip("inotify_simple", reason="needs inotify_simple: pip install '.[foreign]'")

from marker_sim.worlds.file_watch import Moment, Watch, signals

FILES = 100
TOLD_S = 10.0
# Writes files one by one after a start message, with a short wait after each, as a server waits for requests.
WRITER = f"""
import sys, time
sys.stdin.readline()
for number in range({FILES}):
    with open(sys.argv[1] + f"/f{{number:03}}", "wb") as out:
        out.write(b"x" * 64)
    time.sleep(0.004)
"""


class Told:
    """Collects calls; `until` waits for so many of them, and fails when they do not come."""

    def __init__(self) -> None:
        self.calls: list[StorageCall] = []
        self._more = threading.Condition()

    def __call__(self, call: StorageCall) -> None:
        with self._more:
            self.calls.append(call)
            self._more.notify_all()

    def until(self, fits: Callable[[list[StorageCall]], bool]) -> list[StorageCall]:
        with self._more:
            assert self._more.wait_for(lambda: fits(self.calls), TOLD_S), self.calls
            return list(self.calls)


def seen(calls: list[StorageCall]) -> list[tuple[str, str]]:
    return [(call.operation, call.path) for call in calls]


def test_whole_files_new_names_and_deletions_are_told_in_order(tmp_path: Path) -> None:
    (tmp_path / "before").write_text("not told")
    told = Told()
    with Watch(tmp_path, told, process=lambda: "server-1"):
        (tmp_path / "a").write_text("1")
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "b").unlink()
        calls = told.until(lambda calls: len(calls) >= 4)
    assert seen(calls) == [("put", "a"), ("delete", "a"), ("put", "b"), ("delete", "b")]
    assert {(call.process, call.role) for call in calls} == {("server-1", "timeline-server")}


@pytest.mark.parametrize(("moment", "content"), [("create", b""), ("modify", b"12"), ("close-write", b"1234")])
def test_each_moment_of_a_file_can_be_told_by_itself(tmp_path: Path, moment: Moment, content: bytes) -> None:
    told = Told()
    with Watch(tmp_path, told, moments=(moment,)), (tmp_path / "a").open("wb", buffering=0) as out:
        if moment != "create":
            out.write(b"12")
        if moment == "close-write":
            out.write(b"34")
            out.close()
        assert seen(told.until(lambda calls: len(calls) == 1)) == [("put", "a")]
        assert (tmp_path / "a").read_bytes() == content


def test_files_in_directories_as_new_as_they_are_told_each_once(tmp_path: Path) -> None:
    told = Told()
    names = [f"t/d{number}/e/f{file}" for number in range(40) for file in range(2)]
    with Watch(tmp_path, told):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / f"{name}.tmp").write_text("x")
            (tmp_path / f"{name}.tmp").rename(tmp_path / name)
        told.until(lambda calls: {call.path for call in calls if not call.path.endswith(".tmp")} == set(names))
        (tmp_path / "last").write_text("x")
        calls = told.until(lambda calls: calls[-1].path == "last")
    whole = [call.path for call in calls if call.operation == "put" and not call.path.endswith(".tmp")]
    assert sorted(whole) == sorted([*names, "last"])


def test_a_file_is_told_again_when_it_is_written_again(tmp_path: Path) -> None:
    told = Told()
    with Watch(tmp_path, told):
        (tmp_path / "d").mkdir()
        for number in range(3):
            (tmp_path / "d" / "f").write_text("x" * number)
            told.until(lambda calls, number=number: len(calls) > number)  # type: ignore[misc]


def test_a_directory_that_went_elsewhere_is_told_under_its_new_name_alone(tmp_path: Path) -> None:
    told = Told()
    (tmp_path / "old").mkdir()
    with Watch(tmp_path, told):
        (tmp_path / "old").rename(tmp_path / "new")
        (tmp_path / "new" / "f").write_text("x")
        assert set(seen(told.until(lambda calls: len(calls) >= 1))) == {("put", "new/f")}


def test_what_is_no_directory_or_no_moment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="cannot be watched"), Watch(tmp_path / "nothing", Told()):
        raise AssertionError
    with pytest.raises(UsageError, match="are not moments of a file; there are create, modify"):
        Watch(tmp_path, Told(), moments=("open",))  # type: ignore[arg-type]


def test_trouble_of_who_is_told_is_not_lost(tmp_path: Path) -> None:
    called = threading.Event()

    def broken(call: StorageCall) -> None:
        called.set()
        raise ValueError(f"no {call.path}")

    with pytest.raises(HarnessError, match="ended early: no a"), Watch(tmp_path, broken):
        (tmp_path / "a").write_text("x")
        assert called.wait(TOLD_S)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "out").mkdir()
    words = [sys.executable, "-S", "-c", WRITER, str(tmp_path / "out")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def go(writer: subprocess.Popen[bytes]) -> None:
    assert writer.stdin is not None
    writer.stdin.write(b"\n")
    writer.stdin.flush()


@pytest.mark.parametrize("nth", [1, 2, 17, 50])
def test_a_writer_is_killed_soon_after_its_nth_file(tmp_path: Path, writer: subprocess.Popen[bytes], nth: int) -> None:
    recorder = Recorder()
    interceptor = Interceptor(recorder, signals(recorder, lambda: [writer.pid]))
    armed = ArmedFault(Fault.of(FaultKind.KILL, "", Call(r"^f\d+$", ("put",), nth, "after")))
    interceptor.arm(armed)
    with Watch(tmp_path / "out", interceptor, process=lambda: "writer"):
        go(writer)
        assert writer.wait(TOLD_S) == -signal.SIGKILL
    names = sorted(os.listdir(tmp_path / "out"))
    assert names == [f"f{number:03}" for number in range(len(names))]
    assert nth <= len(names) < FILES, "it died after the n-th file, and long before it was done"
    (fault,) = (event for event in recorder.events if event.kind == "fault")
    assert (fault.operation, fault.process, fault.path, armed.fired) == ("kill", "writer", f"f{nth - 1:03}", 1)


def test_a_writer_stands_still_soon_after_its_nth_file_and_goes_on(
    tmp_path: Path, writer: subprocess.Popen[bytes]
) -> None:
    recorder = Recorder()
    struck = threading.Event()
    inject = signals(recorder, lambda: [writer.pid])

    def hurt_and_tell(armed: ArmedFault, call: StorageCall) -> None:
        inject(armed, call)
        struck.set()

    interceptor = Interceptor(recorder, hurt_and_tell)
    interceptor.arm(ArmedFault(Fault.of(FaultKind.PAUSE, "", Call("", ("put",), 20, "after"))))
    with Watch(tmp_path / "out", interceptor):
        go(writer)
        assert struck.wait(TOLD_S)
        process = psutil.Process(writer.pid)
        deadline = time.monotonic() + TOLD_S
        while process.status() != psutil.STATUS_STOPPED:  # The signal was sent; the writer gets it when it runs.
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert 20 <= len(os.listdir(tmp_path / "out")) < FILES
        process.resume()
        assert writer.wait(TOLD_S) == 0
    assert len(os.listdir(tmp_path / "out")) == FILES
