"""Processes that the supervisor starts and ends, children included."""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor

_PARENT = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"


def _child_of(process: object) -> int:
    return int(process.stdout.readline())  # type: ignore[attr-defined]


def _is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("leader", ["waits", "has ended"])
def test_when_a_session_is_ended_what_its_leader_started_is_gone_too(leader: str) -> None:
    waits = "; import time; time.sleep(600)" if leader == "waits" else ""
    process = supervisor.start([sys.executable, "-c", _PARENT + waits], {})
    child = _child_of(process)
    if leader == "has ended":
        process.wait(30)
    assert not _is_gone(child)
    supervisor.end(process)
    assert _is_gone(child) and process.returncode is not None


def test_a_marked_process_is_found_and_ended_when_it_left_its_session() -> None:
    mark = uuid.uuid4().hex
    leaves = _PARENT.replace("'600']", "'600'], start_new_session=True")
    process = supervisor.start([sys.executable, "-c", leaves], {"MARKER_SIM_TEST": mark})
    child = _child_of(process)
    supervisor.end(process)
    assert [found.pid for found in supervisor.marked("MARKER_SIM_TEST", mark)] == [child]
    supervisor.end_marked("MARKER_SIM_TEST", mark)
    assert _is_gone(child)


# Holds a small file system at the path given, and says so.
_HOLDS = """
import sys, time
from pathlib import Path
from marker_sim.worlds.http.small_disk import SmallDisk
disk = SmallDisk(Path(sys.argv[1]))
print(disk.mounted, flush=True)
time.sleep(600)
"""


def test_who_ends_what_is_marked_unmounts_what_it_had_mounted_and_nothing_of_those_who_live(tmp_path: Path) -> None:
    mark, paths = uuid.uuid4().hex, [tmp_path / "of the dead", tmp_path / "of the living"]
    processes = []
    try:
        for path, value in zip(paths, (mark, ""), strict=True):
            path.mkdir()
            words = [sys.executable, "-c", _HOLDS, str(path)]
            processes.append(supervisor.start(words, {"MARKER_SIM_TEST": value}))
            if processes[-1].stdout.readline() != b"True\n":  # type: ignore[union-attr]
                pytest.skip("only root may mount a file system: run the tests as root")
        for child in psutil.Process(processes[0].pid).children(recursive=True):
            child.kill()  # The process that unmounts it may be the first to be ended.
        supervisor.end_marked("MARKER_SIM_TEST", mark)
        assert [path.is_mount() for path in paths] == [False, True]
    finally:
        for process in processes:
            supervisor.end(process)
        supervisor.end_marked("MARKER_SIM_TEST", mark)
    assert not paths[1].is_mount()


def test_a_program_that_takes_too_long_is_ended_and_one_that_ends_is_heard(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(HarnessError, match="it did not end within 0 s"):
        supervisor.run_to_end(["sleep", "600"], deadline_s=0.2, late="it did not end within", environment={})
    assert time.monotonic() - began < 60
    words = ["sh", "-c", "pwd; echo $WORD; exit 3"]
    heard = supervisor.run_to_end(words, deadline_s=60, late="", environment={"WORD": "hello"}, folder=tmp_path)
    assert heard == (3, f"{os.path.realpath(tmp_path)}\nhello\n")


def test_a_program_that_is_not_there_cannot_be_started() -> None:
    with pytest.raises(HarnessError, match="/nowhere/program cannot be started: No such file or directory"):
        supervisor.start(["/nowhere/program"], {})
