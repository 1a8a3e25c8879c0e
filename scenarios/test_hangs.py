"""A command that hangs ends within its time, says where, is trouble of the kit, and leaves nothing that it started."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from marker_sim.cli import main
from marker_sim.plan import Op, Plan
from scenarios.test_http import START

ROOT = Path(__file__).parent.parent
REST_S = 3.0
ENDS_S = 120.0
# The command with a shorter rest, after something was done to the kit or to the system that it runs.
KIT = """
import sys, threading, time
import marker_sim.cli.replay, marker_sim.cli.verify
from marker_sim.worlds.http.fault_injector import ServerFaultInjector
marker_sim.cli.verify.REST_S = marker_sim.cli.replay.REST_S = {rest_s}
marker_sim.cli.replay.LONG_S = 0.0
{spoiled}
from marker_sim.cli import main
sys.exit(main(sys.argv[1:]))
"""
# Whoever gets an answer keeps the lock that faults of servers need.
KEEPS_THE_LOCK = "ServerFaultInjector.on_ack = lambda self, place: self.stopping.acquire() and threading.Event().wait()"
STANDS_STILL = """
import ctypes
import marker_sim.markers.direct
MUTEX, LIBC = ctypes.create_string_buffer(64), ctypes.{library}(None)
def stands_still(*words):
    for _ in range(2):
        LIBC.pthread_mutex_lock(MUTEX)  # No signal ends it; in a PyDLL Python's own lock is not given back either.
marker_sim.markers.direct.DirectMarkers.create = stands_still
"""


QUIET = "import marker_sim.surroundings.time_limit; marker_sim.surroundings.time_limit.QUIET_S = 3.0"


def run(spoiled: str, folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], float]:
    program = KIT.format(rest_s=REST_S, spoiled=spoiled)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder, capture_output=True, text=True, timeout=ENDS_S, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
    )  # fmt: skip
    return done, time.monotonic() - began


def left(folder: Path) -> list[str]:
    """What still runs of a command that worked below a directory, after the time that ending it takes."""
    deadline = time.monotonic() + 60
    while True:
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = " ".join(process.info["cmdline"] or ())
            found += [words] if f"{folder}/" in words else []
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def test_a_campaign_against_servers_whose_threads_wait_for_each_other_ends_and_says_where(tmp_path: Path) -> None:
    words = ("verify", "--sut", "http", "--start", START, "--budget", "4s", "--seed", "1", "--report", "r")
    done, took_s = run(KEEPS_THE_LOCK, tmp_path, *words)
    assert done.returncode == 4, done.stdout + done.stderr
    assert took_s < 4 + REST_S + 60
    (sentence,) = re.findall("marker-sim: (.*)", done.stderr)
    assert sentence.startswith("a campaign with a budget of 4 s did not end within 7 s, which is trouble of the kit")
    assert "in <lambda>" not in done.stdout and re.search(r"in <lambda>", done.stderr)
    assert re.search(r"played_runs\.py.* in _ended", done.stderr), "where the campaign itself stands"
    assert done.stdout == "" and not (tmp_path / "r" / "verdict.json").exists(), "nothing is judged"
    assert not left(tmp_path)


@pytest.mark.parametrize("extent", [("--budget", "3s"), ("--runs", "5")])
def test_a_campaign_in_which_a_system_never_returns_ends(tmp_path: Path, extent: tuple[str, str]) -> None:
    spoiled = STANDS_STILL.format(library="CDLL") + QUIET
    done, _ = run(spoiled, tmp_path, "verify", "--mode", "direct", *extent, "--jobs", "1", "--report", "r")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "in stands_still" in done.stderr
    assert not (tmp_path / "r" / "verdict.json").exists()


def test_a_system_that_never_gives_back_the_interpreter_is_named_and_ended_by_an_alarm(tmp_path: Path) -> None:
    words = ("verify", "--mode", "direct", "--budget", "3s", "--jobs", "1", "--report", "r")
    done, _ = run(STANDS_STILL.format(library="PyDLL") + QUIET, tmp_path, *words)
    assert done.returncode == -signal.SIGVTALRM and "in stands_still" in done.stderr, done.stderr
    assert not (tmp_path / "r" / "verdict.json").exists()
    assert not left(tmp_path)


def test_a_replay_in_which_a_run_hangs_ends(tmp_path: Path) -> None:
    op = Op(actor="executor-0", kind="create", name="p/a.marker.CREATE")
    (tmp_path / "plan.json").write_text(json.dumps(Plan(mode="direct", storage="local", ops=(op,)).to_dict()))
    done, _ = run(STANDS_STILL.format(library="CDLL"), tmp_path, "replay", "plan.json")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "the replay of plan.json did not end within 3 s" in done.stderr and "in stands_still" in done.stderr


def test_a_test_that_hangs_is_ended_and_named_and_the_session_is_red(tmp_path: Path) -> None:
    code = "import threading\ndef test_one():\n    threading.Event().wait()\ndef test_two(): pass\n"
    (tmp_path / "test_it.py").write_text(code, encoding="utf-8")
    words = shlex.split("--rootdir . -n 1 --timeout 3 -o faulthandler_timeout=1 -p no:cacheprovider test_it.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-c", str(ROOT / "pyproject.toml"), *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=ENDS_S, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode != 0 and "1 failed" in done.stdout, done.stdout
    assert re.search("crashed while running '.*test_one'", done.stdout)
    assert re.search(r'test_it\.py", line 3 in test_one', done.stderr), "where its thread stood"


def test_a_command_that_ends_by_itself_leaves_no_clock(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    assert main(["verify", "--runs", "5", "--report", str(tmp_path / "r")]) == 3
    assert {child.pid for child in psutil.Process().children()} <= before
    deadline = time.monotonic() + 5
    while any(thread.name == "time limit" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
