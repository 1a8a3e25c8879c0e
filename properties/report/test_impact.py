"""What is said of a finding begins with whom it harms and when: on the page, in a terminal, in a text for a tracker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from marker_sim.history import History
from marker_sim.judges import judge
from properties.cli.campaigns import campaign
from properties.faces.campaign import StoredPlan
from properties.faces.judges import load_profile, split_impact
from properties.faces.outcome import Failure, failures_in, stories
from properties.faces.report import issue_text, judge_campaign, print_outcome, render_page
from properties.faces.targets import ServerOptions, table_of
from properties.faces.worlds import FUTURES, TableStep, with_future, with_steps
from properties.judges.test_futures import begun

PROFILE = load_profile("hudi-spark")
STEP = TableStep(name="a rollback", stage="rollback", faults=())
PLAN = with_future(with_steps(table_of("direct", 1), [STEP]), FUTURES["archived"])


@pytest.fixture(scope="module")
def found() -> dict[str, Failure]:
    """Failures by guarantee: G15, and others of the same history."""
    story = begun()
    story.commit(5, "q5=w5")
    story.step("archive", hudi=("k1=w1", "k2=w2", "q5=w5"))
    history = History(story.header, tuple(story.events))
    failures = failures_in(history, judge(history), PROFILE).values()
    return {each.guarantee: replace(each, plan=PLAN) for each in failures}


def test_page_and_terminal_begin_with_the_impact(found: dict[str, Failure], capsys: pytest.CaptureFixture[str]) -> None:
    made = replace(campaign(), failures=(found["G15"],))
    outcome = judge_campaign(made, PROFILE, None, Path("r"), ("verify",))
    impact, rest = split_impact(found["G15"].message)
    assert impact.startswith("hudi finds 1 wrong rows") and impact.endswith("after step 2 (archive)")
    page = render_page(outcome).replace("&#39;", "'")
    assert page.index(f">{impact}<") < page.index("<b>Promised</b>") < page.index(rest.partition("; ")[0])
    print_outcome(outcome, Console(width=140), "r")
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"impact: {impact}")
    assert lines[at + 1].startswith("G15 rollback-complete") and lines[at + 2].strip() == rest


def test_a_text_for_a_tracker_has_the_impact_before_what_happened(found: dict[str, Failure]) -> None:
    stored = StoredPlan(
        guarantee="G15", plan=PLAN, sut="hudi-java:1.2.0", server=ServerOptions(), message=found["G15"].message
    )
    impact, rest = split_impact(stored.message)
    text = issue_text(stored)
    title, _, told, *_ = text.splitlines()
    assert title.startswith("# ") and len(title) <= 82 and "impact" not in title and "G15" not in title
    assert impact[1:] in told and "impact: " not in text, "it begins with a capital letter"
    assert text.index(told) < text.index(rest.partition(" (fault")[0].partition(" (event")[0].removeprefix("t0/")[-60:])


def test_findings_of_one_impact_are_not_one_story_for_that(found: dict[str, Failure]) -> None:
    first = found["G15"]
    impact, rest = split_impact(first.message)

    def told(message: str) -> Failure:
        breach = replace(first.breach, message=message)
        return replace(first, breach=breach, number=first.number + 1, kind=first.kind._replace(mode=message[:9]))

    assert len(stories((first, told(f"impact: {impact}; another thing is broken")))) == 2
    assert len(stories((first, told(f"impact: harmless so far; {rest}")))) == 1
