"""Ctrl-C: no traceback at any time, a word about what goes on, and an end at once at the second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120
MUTANT = "mutant:ack-before-flush"


def _interrupted(cwd: Path, wait_s: float, *times_s: float) -> subprocess.CompletedProcess[str]:
    """A campaign that gets Ctrl-C as from a terminal: after a while, and again after each of these times."""
    words = [sys.executable, "-m", "marker_sim", "verify", "--sut", MUTANT, "--budget", "60s", "--jobs", "2"]
    process = subprocess.Popen(
        words, cwd=cwd, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for after_s in (wait_s, *times_s):
        time.sleep(after_s)
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.mark.parametrize("module", ["marker_sim.cli.app", "typer", "marker_sim.cli.verify", "marker_sim.search.swarm"])
def test_ctrl_c_while_the_kit_is_being_loaded_is_a_sentence_and_no_traceback(module: str, tmp_path: Path) -> None:
    code = f"""
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

from marker_sim.cli import main
sys.meta_path.insert(0, Interrupting())
sys.exit(main(["verify", "--runs", "4", "--jobs", "1"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr
    assert "marker-sim: interrupted" in done.stderr


def test_ctrl_c_says_what_it_still_does_and_a_second_one_ends_it_at_once(tmp_path: Path) -> None:
    first, second = _interrupted(tmp_path, 10.0), _interrupted(tmp_path, 10.0, 0.1)
    assert (first.returncode, second.returncode) == (130, 130)
    assert "what was found is kept" in first.stderr and "ended at once" not in first.stderr
    assert "runs in" in first.stdout and second.stdout == ""
    assert second.stderr.rstrip().endswith("ended at once") and "Traceback" not in first.stderr + second.stderr
