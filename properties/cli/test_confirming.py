"""A violation of the simulated world is played with real processes once, and what came of it is said in a sentence."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from marker_sim.errors import HarnessError
from marker_sim.plan import Plan, Task, Write
from properties.faces.campaign import Processes, with_processes
from properties.faces.cli import CONFIRMED, HELD, NOT_REPRODUCED, SIMULATED_ONLY, UNDECIDED, confirm
from properties.faces.judges import load_profile
from properties.faces.worlds import FORK_TIMEOUT_S

PROFILE = load_profile("reference")
LEFT_BEHIND = Plan(mode="timeline", storage="local", directories=(), writes=(Write(tasks=(Task(),), abandon=True),))


def test_a_defect_that_real_processes_show_is_confirmed() -> None:
    assert confirm(LEFT_BEHIND, "mutant:markers-deleted-first", "G17", PROFILE) == f"{CONFIRMED}, in 1 of 1 run"


def test_a_plan_that_shows_nothing_there_is_not_reproduced() -> None:
    assert confirm(LEFT_BEHIND, "reference", "G17", PROFILE, 2) == f"{NOT_REPRODUCED}, in 0 of 2 runs; {HELD}"


def test_runs_that_judge_nothing_say_nothing_about_the_guarantee() -> None:
    """A write without faults shows nothing of the server's answers to hostile requests."""
    assert confirm(LEFT_BEHIND, "reference", "G12", PROFILE).endswith(UNDECIDED)


@pytest.mark.parametrize(
    ("storage", "guarantee", "why"),
    [
        ("hdfs", "G22", "real processes run on local and s3 only, not on hdfs"),
        ("local", "G21", "its guarantee compares two runs"),
    ],
)
def test_what_real_processes_cannot_play_is_said(storage: str, guarantee: str, why: str) -> None:
    plan = Plan(storage=storage, directories=(), writes=LEFT_BEHIND.writes)
    assert confirm(plan, "reference", guarantee, PROFILE) == f"{SIMULATED_ONLY} {why}"


@pytest.mark.parametrize(
    ("storage", "module", "extra"),
    [("local", "urllib3", "foreign"), ("local", "uvicorn", "serve"), ("s3", "moto", "s3")],
)
def test_a_missing_package_is_said_in_one_sentence_and_nothing_is_started(
    storage: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("a process was started whose imports are not there")

    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(subprocess, "Popen", started)
    plan = replace(LEFT_BEHIND, storage=storage)
    needs = f"the Python package {module}, which is not installed; pip install '.[{extra}]' in a clone of marker-sim"
    assert confirm(plan, "reference", "G17", PROFILE) == f"{SIMULATED_ONLY} real processes need {needs}"
    if storage == "local":
        with Processes("reference") as real, pytest.raises(HarnessError, match="need the Python package"):
            with_processes(real, plan, "G17", PROFILE, 1)


@pytest.mark.parametrize(
    ("storage", "said"),
    [("local", "cannot be watched here: .*; take storage s3"), ("s3", "no process could be forked")],
)
def test_a_template_that_ends_as_it_starts_is_noticed_at_once(
    storage: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    began = time.monotonic()
    with Processes("reference") as real, pytest.raises(HarnessError, match=said):
        with_processes(real, replace(LEFT_BEHIND, storage=storage), "G17", PROFILE, 1)
    assert time.monotonic() - began < FORK_TIMEOUT_S / 2
