"""Which failures have one defect: what always breaks together is one story, what breaks alone begins one of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import marker_sim
from marker_sim.cli import main
from marker_sim.system import System
from properties.cli.campaigns import campaign, changed
from properties.faces.campaign import findings_of, promised_breach
from properties.faces.judges import load_profile
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.outcome import Failure, defects_least, stories

ONE = campaign().failures[0]
COLON = " "
RUNS = 150


def seen(
    signature: str, *beside: str, faulty: bool = False, size: int = 1, storage: str = "s3", mode: str = "direct"
) -> Failure:
    """A failure by guarantee and cause, with the signatures that its small plan breaks as well."""
    guarantee, _, cause = signature.partition(COLON)
    made = changed(ONE, guarantee, cause)
    plan = made.own_plan
    small = replace(plan, ops=plan.ops * size, faults=plan.faults if faulty else ())
    kind = made.kind._replace(storage=storage, mode=mode)
    return replace(made, kind=kind, plan=small, also=frozenset({signature, *beside}))


def grouped(failures: Iterable[Failure]) -> list[list[str]]:
    return [[f"{each.guarantee}{COLON}{each.kind.cause}" for each in story] for story in stories(failures)]


def test_what_breaks_only_beside_another_is_of_its_story_and_what_breaks_alone_is_not() -> None:
    late = seen("G1 stored-late")
    told = grouped([late, seen("G13 no-marker", "G1 stored-late"), seen("G8 too-many-files", faulty=True)])
    assert told == [["G1 stored-late", "G13 no-marker"], ["G8 too-many-files"]]


def test_a_plan_that_breaks_what_two_stories_are_about_does_not_join_them() -> None:
    failures = [seen("G1 glued"), seen("G8 too-many-files"), seen("G16 x", "G1 glued", "G8 too-many-files")]
    assert sorted(map(len, stories(failures))) == [1, 2]


def test_one_run_that_shows_it_alone_is_enough_for_a_story_of_its_own() -> None:
    together_in_a_run = [seen("G1 glued"), seen("G11 shown", "G1 glued")]
    assert len(stories(together_in_a_run)) == 1
    alone = seen("G11 shown", storage="local")
    assert grouped([*together_in_a_run, alone]) == [["G1 glued"], ["G11 shown", "G11 shown"]]


def test_what_two_defects_show_in_turn_begins_no_story() -> None:
    found = [seen("G1 glued"), seen("G4 unasked"), seen("G10 listed", "G1 glued")]
    assert grouped([*found, seen("G10 listed", "G4 unasked", storage="local")]) == [
        ["G1 glued", "G10 listed"],
        ["G4 unasked", "G10 listed"],
    ]


def test_a_cause_in_two_guarantees_does_not_join_what_breaks_alone() -> None:
    assert len(stories([seen("G1 put-failed"), seen("G11 put-failed", storage="local")])) == 2


NAMES = ("G1 a", "G3 b", "G4 a", "G8 c", "G11 d")


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES))), max_size=8))
def test_each_failure_is_in_one_story_whatever_the_order(drawn: list[tuple[str, set[str]]]) -> None:
    failures = [seen(name, *beside, size=number + 1) for number, (name, beside) in enumerate(drawn)]
    told = stories(failures)
    assert sorted(each.entries for story in told for each in story) == [each.entries for each in failures]

    def sets(found: Sequence[Sequence[Failure]]) -> set[frozenset[int]]:
        return {frozenset(each.entries for each in story) for story in found}

    assert sets(told) == sets(stories(failures[::-1]))
    assert not told or 1 <= defects_least(told)[0] <= len(told)


@pytest.mark.parametrize(
    ("failures", "least", "sure"),
    [
        ([seen("G1 glued"), seen("G1 glued", storage="local")], 1, True),
        ([seen("G1 glued"), seen("G3 cut", "G1 glued", faulty=True)], 1, False),
        ([seen("G1 a"), seen("G8 c", storage="local")], 2, True),
        ([seen("G1 a"), seen("G1 c", storage="local")], 1, False),
        ([seen("G1 a"), seen("G8 c"), seen("G8 c", storage="local")], 1, False),
        ([seen("G1 a", "G4 b"), seen("G8 c", "G4 b", storage="local")], 1, False),
        ([seen("G1 a"), seen("G21 d", mode="both", storage="local")], 1, False),
    ],
    ids=["one", "what only a fault shows", "two", "one guarantee", "places of the other", "both break a third", "pair"],
)
def test_a_number_of_defects_is_a_least_one_wherever_stories_may_share_or_hide_some(
    failures: list[Failure], least: int, sure: bool
) -> None:
    assert defects_least(stories(failures)) == (least, sure)


def test_two_planted_defects_of_one_class_are_both_told() -> None:
    mutants = [find_mutant(name) for name in ("exists-though-made-now", "file-for-every-batch")]
    outcome = marker_sim.verify(load_mutant(*mutants), runs=RUNS, seed=1).outcome

    def breaks(system: System, failure: Failure) -> bool:
        _, findings = findings_of(failure.own_plan, system, failure.guarantee)
        return any(promised_breach(each, failure.own_plan, load_profile("reference")) for each in findings)

    for alone in map(load_mutant, mutants):
        assert any(breaks(alone, story[0]) for story in outcome.stories), alone.name
    assert defects_least(outcome.stories)[0] <= 2


def test_a_baseline_that_was_written_knows_its_class_with_another_seed_and_no_other_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = f"verify --sut mutant:direct-marker-has-content --runs {RUNS} --jobs 1 --mode direct --guarantees G5,G8"
    verify = words.split()
    assert main((*verify, "--seed", "1", "--report", "r", "--write-baseline", "sub/known.json")) == 1
    entries = json.loads((tmp_path / "sub" / "known.json").read_text(encoding="utf-8"))["known"]
    (entry,) = (each for each in entries if each["guarantee"] == "G8")
    assert {name for name, value in entry.items() if value} == {"guarantee", "cause", "sometimes", "runs"}, (
        "wherever it shows"
    )
    for baseline in ("sub/known.json", "r/verdict.json"):
        assert main((*verify, "--seed", "2", "--report", "s", "--expect", baseline)) == 0, baseline
    assert "only violations that its baseline lists" in capsys.readouterr().out
    other = (*verify[:2], "mutant:exists-though-made-now", *verify[3:])
    assert main((*other, "--expect", "sub/known.json", "--write-baseline", "both.json")) == 1
    said = capsys.readouterr().out
    assert "not in the baseline: G5" in said and re.search(r"in the baseline, not seen this time: .*\bG8,", said)
    both = json.loads((tmp_path / "both.json").read_text(encoding="utf-8"))["known"]
    assert {each["guarantee"] for each in both} >= {"G5", "G8"}, "what was known before stays"
    assert main((*other, "--expect", "both.json")) == 0
