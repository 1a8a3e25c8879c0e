"""Processes that the supervisor starts and ends, children included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

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


def test_a_program_is_killed_with_what_left_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = supervisor.signal_session

    def at_once(process: subprocess.Popen[Any], number: signal.Signals) -> None:
        usual(process, number)
        while number is signal.SIGKILL and not _is_gone(process.pid):
            time.sleep(0.01)  # What it started is no descendant any more.

    monkeypatch.setattr(supervisor, "signal_session", at_once)
    leaves = _PARENT.replace("'600']", "'600'], start_new_session=True") + "; import time; time.sleep(600)"
    program = supervisor.start_program([sys.executable, "-c", leaves], {}, process="it")
    child = _child_of(program.popen)
    assert program.pids() == [program.pid, child]
    program.kill()
    supervisor.end(program.popen)
    deadline = time.monotonic() + 10
    while not _is_gone(child):
        assert time.monotonic() < deadline, "it went on"
        time.sleep(0.01)


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
