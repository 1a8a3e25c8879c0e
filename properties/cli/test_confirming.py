"""A violation of the simulated world is played with real processes once, and what came of it is said in a sentence."""

from __future__ import annotations

import sys

import pytest

from marker_sim.cli.confirming import CONFIRMED, NOT_REPRODUCED, SIMULATED_ONLY, confirm
from marker_sim.judges.profiles import load_profile
from marker_sim.plan import Plan, Task, Write

PROFILE = load_profile("reference")
LEFT_BEHIND = Plan(mode="timeline", storage="local", directories=(), writes=(Write(tasks=(Task(),), abandon=True),))


def test_a_defect_that_real_processes_show_is_confirmed() -> None:
    assert confirm(LEFT_BEHIND, "mutant:markers-deleted-first", "G17", PROFILE) == CONFIRMED


def test_a_plan_that_shows_nothing_there_is_not_reproduced() -> None:
    assert confirm(LEFT_BEHIND, "reference", "G17", PROFILE) == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("storage", "guarantee", "why"),
    [
        ("hdfs", "G22", "there is no real hdfs here; local and s3 have real processes"),
        ("local", "G21", "its guarantee is judged over a pair of runs"),
    ],
)
def test_what_real_processes_cannot_play_is_said(storage: str, guarantee: str, why: str) -> None:
    plan = Plan(storage=storage, directories=(), writes=LEFT_BEHIND.writes)
    assert confirm(plan, "reference", guarantee, PROFILE) == f"{SIMULATED_ONLY} {why}"


def test_a_missing_extra_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("marker_sim.real.jobs")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.setitem(sys.modules, "marker_sim.real.jobs.cluster", None)
    said = confirm(LEFT_BEHIND, "reference", "G17", PROFILE)
    assert said.startswith(f"{SIMULATED_ONLY} the Python package ") and said.endswith(" is not installed")
