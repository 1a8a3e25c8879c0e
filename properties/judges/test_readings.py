"""Histories of servers whose storage is read now and then: what lies between two readings, and what only seems to."""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.history import Event
from marker_sim.judges import judge
from properties.faces.cli import read_history
from properties.faces.history import life_from_effects

ACCUSED = Path(__file__).parents[2] / "scenarios" / "strangers" / "plans" / "falsely-accused.jsonl"


def test_a_create_that_ended_before_a_reading_was_over_may_be_what_the_next_reading_shows() -> None:
    (finding,) = (each for each in judge(read_history(ACCUSED)) if each.guarantee == "G12")
    assert finding.judged == 1 and not finding.breaches
    assert dict(finding.excused) == {"other-request": 1}


@pytest.mark.parametrize(
    ("content", "held"),
    [
        (b"a.CREATE", True), (b"x\na.CREATE\n", True), (b'["a.CREATE"]', True), (b"n=a.CREATE;", True),
        (b"ba.CREATE", False), (b"a.CREATED", False), (b"a-CREATE", False), (b"", False),
        (b"ba.CREATE a.CREATE", True), (b"a.CREATEa.CREATE", False),
    ],
)  # fmt: skip
def test_a_file_of_any_format_holds_a_name_that_is_no_part_of_a_longer_one(content: bytes, held: bool) -> None:
    values = (content, None, content)
    effects = [Event(n, 0, "server", "server", "effect", "put", path="d/f", value=v) for n, v in enumerate(values)]
    life = life_from_effects(effects, "d", "a.CREATE")
    assert life.spans == ((0, 1, 2) if held else ())
