"""Links of report.html to its guarantees, and pictures of a curve only where it moves."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from properties.cli.campaigns import campaign, changed
from properties.faces.judges import load_profile
from properties.faces.outcome import CurvePoint, LikelihoodCurve
from properties.faces.report import judge_campaign, lane_picture, render_page


def curve(*broken: int) -> LikelihoodCurve:
    points = tuple(CurvePoint(events, violated, 20) for events, violated in enumerate(broken, 1))
    before, after = max(pairwise(points), key=lambda two: two[1].share - two[0].share)
    return LikelihoodCurve(
        guarantee="G1", seed=1, total=7, points=points, before=before, after=after, moment="[2] an event"
    )


def page(tmp_path: Path, measured: LikelihoodCurve) -> str:
    made = campaign()
    shown = replace(changed(made.failures[0]), curve=measured)
    return render_page(judge_campaign(replace(made, failures=(shown,)), load_profile("reference"), None, tmp_path, ()))


def test_every_guarantee_that_is_a_link_has_its_row(tmp_path: Path) -> None:
    text = page(tmp_path, curve(0, 20))
    assert set(re.findall(r'href="#(G\d+)"', text)) == {"G1"}
    assert text.count('<details id="G1">') == 1 and "GuaranteeG1" not in text


@pytest.mark.parametrize(("broken", "drawn"), [((0, 20), True), ((1, 2, 4), True), ((20, 20), False), ((9, 9), False)])
def test_a_curve_is_drawn_where_it_moves_and_said_everywhere(
    broken: tuple[int, ...], drawn: bool, tmp_path: Path
) -> None:
    measured = curve(*broken)
    text = page(tmp_path, measured)
    assert measured.moves is drawn and ("lanes-of-run" in text) is drawn
    assert text.count("P(G1 violated)") >= 1
    run = campaign().failures[0]
    assert lane_picture(run.history, run.evidence, measured).curve == (measured if drawn else None)
