"""Plans that once accused the reference wrongly or rightly: each holds now, and still does what it is about.

A file in `regressions/` is a shrunk plan; its name says what it showed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.judges import judge
from marker_sim.plan import read_plan
from marker_sim.system import reference
from properties.faces.campaign import execute

PLANS = sorted((Path(__file__).parents[1] / "regressions").glob("*.json"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_that_once_failed_holds(path: Path) -> None:
    plan = read_plan(path)
    history, _ = execute(plan, reference())
    assert not [finding for finding in judge(history) if finding.breaches]
    happened = {event.operation for event in history.events if event.kind == "fault"}
    assert {fault.kind.value for fault in plan.faults} <= happened, "its faults do not fire any more"


def test_there_are_regressions() -> None:
    assert PLANS
