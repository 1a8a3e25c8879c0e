"""Which places decide which guarantee: each has a row, nothing holds before they were met, a budget is said first."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from marker_sim.worlds.spark.hudi.steps import PHASES
from properties.cli.campaigns import campaign, history
from properties.faces.judges import JUDGES, Breach, Finding, VerdictRow, load_profile
from properties.faces.outcome import Campaign, Deciding, Statistics
from properties.faces.report import VerdictOutcome, judge_campaign, notes
from properties.faces.targets import PLANS_DECIDE
from properties.faces.worlds import (
    EXECUTOR_STEPS,
    TABLE,
    Choices,
    deciding,
    executor_troubles,
    forecast,
    places_of,
    storage_troubles,
)

DOCS = Path(__file__).parents[2] / "docs" / "hudi-spark.md"
FOREIGN = DOCS.with_name("foreign-servers.md")
MODES: tuple[Literal["direct", "timeline"], ...] = ("direct", "timeline")


def outcome(*places: Deciding, violated: bool = False) -> VerdictOutcome:
    """A campaign in timeline and direct mode in which G15 and G25 were judged."""
    statistics = Statistics()
    for mode in MODES:
        run = history()
        run = replace(run, header=replace(run.header, mode=mode))
        breach = Breach(message="a file is left", evidence=(1,), under="restart")
        statistics.add(
            run, (Finding(guarantee="G15", applicable=True, judged=3, breaches=(breach,) if violated else ()),)
        )
    made: Campaign = replace(campaign(violated=False), statistics=statistics, deciding=places)
    return judge_campaign(made, load_profile("reference"), None, Path("r"), ("verify",))


def rows(found: VerdictOutcome) -> Mapping[str, VerdictRow]:
    return {row.mode: row for row in found.rows}


def test_a_row_holds_when_every_place_that_decides_it_was_met() -> None:
    found = outcome(
        Deciding(name="flush", guarantees=("G15",), mode="timeline", tried=2, met=1),
        Deciding(name="requested", guarantees=("G19",), mode="timeline"),
    )
    row = rows(found)["timeline"]
    assert (row.verdict, row.met, row.not_met, row.not_tried) == ("holds", {"flush": 1}, (), ())


def test_a_row_whose_places_were_not_met_is_inconclusive_and_names_them_and_modes_are_judged_apart() -> None:
    found = outcome(
        Deciding(name="flush", guarantees=("G15",), mode="timeline", tried=3),
        Deciding(name="data-file", guarantees=("G15",), mode="timeline"),
        Deciding(name="data-file", guarantees=("G15",), mode="direct", tried=1, met=1),
    )
    timeline, direct = rows(found)["timeline"], rows(found)["direct"]
    assert timeline.verdict == "inconclusive" and direct.verdict == "holds"
    assert timeline.message == "0 of 2 places met; not met: flush; not tried: data-file"
    assert (timeline.not_met, timeline.not_tried) == (("flush",), ("data-file",))
    assert found.verdict == "inconclusive"
    lines = [line for note in notes(found) for line in note.lines]
    assert any("G15" in line and "not tried: data-file" in line for line in lines)


def test_a_violation_stays_one_whatever_was_not_met() -> None:
    found = outcome(Deciding(name="flush", guarantees=("G15",), mode="timeline"), violated=True)
    assert rows(found)["timeline"].verdict == "violated" and rows(found)["timeline"].not_tried == ("flush",)


def test_every_place_and_trouble_has_a_row_and_every_row_is_one() -> None:
    rng = random.Random(0)
    steps = {step.name for step in (*executor_troubles(rng, 4, "s3"), *storage_troubles(rng))}
    assert {each.step for each in TABLE} == {phase.name for phase in PHASES} | steps
    for phase in PHASES:
        assert [each.mode for each in TABLE if each.step == phase.name] == [phase.mode]
    assert {step.name for step in executor_troubles(rng, 4, "s3")} == EXECUTOR_STEPS
    judged = set(JUDGES) - {f"G{number}" for number in range(25, 30)}
    assert {name for each in TABLE for name in each.guarantees} == judged
    for mode in MODES:
        for storage in ("local", "s3"):
            assert {name for each in places_of(mode, storage) for name in each.guarantees} == judged


def test_the_documents_table_is_that_of_the_code() -> None:
    told = re.findall(r"^\| ([^|]+) \| (\w+) \| (\w+) \| ([^|]+) \|$", DOCS.read_text(encoding="utf-8"), re.M)
    expected = [
        (each.step, each.mode or "both", each.storage or "both", ", ".join(each.guarantees) or "none") for each in TABLE
    ]
    assert told == [("step", "mode", "storage", "decides"), *expected]


def test_what_decides_in_plans_for_servers_is_in_the_document() -> None:
    told = re.findall(r"^\| `([^`]+)`[^|]* \| (G[^|]+) \|$", FOREIGN.read_text(encoding="utf-8"), re.M)
    assert told == [(name, ", ".join(guarantees)) for name, guarantees in PLANS_DECIDE.items()]


def test_an_inconclusive_row_says_what_was_not_tried_as_well() -> None:
    statistics = Statistics()
    statistics.add(history(), (Finding(guarantee="G7", applicable=True),))
    kind = Deciding(name="in plans: wire", guarantees=("G7",))
    made = replace(campaign(violated=False), statistics=statistics, deciding=(kind,))
    (row,) = judge_campaign(made, load_profile("reference"), None, Path("r"), ("verify",)).rows
    assert row.verdict == "inconclusive" and row.message.endswith("not tried: in plans: wire")
    assert "no run had anything to judge" in row.message


def test_each_step_is_asked_for_with_how_often_it_was_tried_and_met() -> None:
    name = "driver killed at data-file"
    asked = deciding(("timeline",), "local", {("timeline", name): 2}, {("timeline", name): 1})
    assert [each.name for each in asked] == [each.step for each in places_of("timeline", "local")]
    assert {(each.name, each.tried, each.met) for each in asked if each.tried or each.met} == {(name, 2, 1)}


@pytest.mark.parametrize("storage", ["local", "s3"])
@pytest.mark.parametrize("modes", [MODES, ("timeline",)])
def test_a_budget_that_is_enough_leaves_nothing_out_and_a_short_one_says_what(
    storage: str, modes: tuple[str, ...]
) -> None:
    for seed in range(4):
        short = forecast("1.0.2", modes, storage, seed, 120.0)
        assert short.places == sum(len(places_of(mode, storage)) for mode in modes)
        assert short.left_out and short.enough_s < 1_500
        assert "120 s leaves out" in short.sentence and f"about {short.enough_s:.0f} s" in short.sentence
        enough = forecast("1.0.2", modes, storage, seed, 1_800.0)
        assert not enough.left_out and "should do" in enough.sentence


def test_rounds_go_where_most_is_due_and_leave_alone_what_is_aimed_at_in_vain() -> None:
    """Direct mode is through but for a place that nothing meets, so that rounds go to timeline mode."""
    met = Counter({("direct", each.step): 1 for each in places_of("direct", "local")})
    never = ("direct", "driver killed at metadata")
    del met[never]
    armed = met | Counter({never: 4})
    choices = Choices("1.0.2", MODES, "local", 3, 600.0, met, armed)
    for _ in range(2):
        drawn = choices.next(1e6)
        assert drawn is not None and drawn.plan.mode == "timeline"
        for step in drawn.steps:
            assert ("timeline", step.name) not in met, "what was met already is left for later"
            met["timeline", step.name] = armed["timeline", step.name] = 1
