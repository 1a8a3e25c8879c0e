"""Histories of servers whose storage is read now and then: what lies between two readings, and what only seems to."""

from __future__ import annotations

from pathlib import Path

from marker_sim.cli.judge import read_history
from marker_sim.judges import judge

ACCUSED = Path(__file__).parents[2] / "scenarios" / "strangers" / "plans" / "falsely-accused.jsonl"


def test_a_create_that_ended_before_a_reading_was_over_may_be_what_the_next_reading_shows() -> None:
    (finding,) = (each for each in judge(read_history(ACCUSED)) if each.guarantee == "G12")
    assert finding.judged == 1 and not finding.breaches
    assert dict(finding.excused) == {"other-request": 1}
