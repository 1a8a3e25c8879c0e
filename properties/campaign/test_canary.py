"""A campaign that cannot see a planted defect is believed nothing; one that can says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.campaign import planned_runs
from marker_sim.campaign.coverage import canary
from marker_sim.errors import EXIT_INCONCLUSIVE
from marker_sim.faults import FAULT_CLASSES
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.names import encode_names
from marker_sim.plan import MODES, STORAGES
from marker_sim.system import reference
from properties.faces.campaign import PLANTS, execute, find_false_statement, run_campaign
from properties.faces.judges import load_profile
from properties.faces.mutants import find_mutant
from properties.faces.outcome import Campaign, Canary
from properties.faces.report import judge_campaign
from properties.faces.search import make_plan
from properties.faces.targets import CampaignRequest, parse_target
from properties.judges.build import DIRECTORY, Story, marker

PROFILE = load_profile("reference")


def run(seed: int, **changes: object) -> Campaign:
    asked: dict[str, object] = {
        "target": parse_target("reference"), "modes": ("timeline",), "storages": ("s3",), "budget_s": 60.0,
        "seed": seed, "runs": 40, "profile": PROFILE, "shrinking": False,
    }  # fmt: skip
    return run_campaign(CampaignRequest(**(asked | changes)), lambda line: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name, _ in canary.CANARIES])
def test_a_canary_is_caught_wherever_the_table_says(name: str) -> None:
    mutant = find_mutant(name)
    homes = next(homes for known, homes in canary.CANARIES if known == name)
    for number, home in enumerate(homes):
        mode, storage = home.split("/")
        place = (mode, storage)
        caught = planned_runs.hunt_canary(mutant, place, 5_000 + number, PROFILE, float("inf"))
        assert caught.caught, f"{name} lived in {home}"


def test_every_place_has_canaries_and_the_seed_draws_one() -> None:
    for mode in MODES:
        for storage in STORAGES:
            drawn = {canary.draw(seed, ((mode, storage),), None, PROFILE) for seed in range(20)}
            assert None not in drawn and len(drawn) >= 4, (mode, storage)
            again = canary.draw(3, ((mode, storage),), None, PROFILE)
            assert again == canary.draw(3, ((mode, storage),), None, PROFILE)


def test_a_canary_is_of_a_guarantee_that_is_judged_where_there_is_one() -> None:
    for seed in range(10):
        drawn = canary.draw(seed, (("timeline", "s3"), ("direct", "s3")), frozenset({"G17"}), PROFILE)
        assert drawn is not None and drawn[0].kills == "G17"
    other = canary.draw(1, (("timeline", "s3"),), frozenset({"G20"}), PROFILE)
    assert other is not None, "nobody promises G20, but the kit has to see something all the same"


def test_a_campaign_says_which_canary_it_caught() -> None:
    outcome = run(7)
    assert outcome.canary is not None and outcome.canary.caught and 1 <= outcome.canary.plans <= canary.PLANS_MAX
    stored = judge_campaign(outcome, PROFILE, None, Path("report"), ()).to_dict()["canary"]
    assert stored == json.loads(json.dumps(stored))
    assert stored == {
        "mutant": outcome.canary.mutant, "caught_by": find_mutant(outcome.canary.mutant).kills,
        "plans": outcome.canary.plans,
    }  # fmt: skip
    assert run(7).canary == outcome.canary


def test_a_kit_that_is_blind_is_never_green(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judges see nothing any more: every other part of the campaign looks well."""
    monkeypatch.setattr(canary, "PLANS_MAX", 60)  # None of them is caught.
    asked = frozenset({"G17"})  # Something that enough runs judge.
    seeing = run(11, guarantees=asked, runs=60)
    assert judge_campaign(seeing, PROFILE, None, Path("report"), (), asked).verdict == "holds"

    def blind(history: History, guarantees: frozenset[str] | None) -> tuple[object, ...]:
        return tuple(replace(finding, breaches=()) for finding in judge(history, guarantees))

    monkeypatch.setattr("marker_sim.campaign.pieces.judge", blind)
    outcome = judge_campaign(run(11, guarantees=asked, runs=60), PROFILE, None, Path("report"), (), asked)
    assert outcome.campaign.canary is not None and not outcome.campaign.canary.caught
    assert outcome.verdict == "inconclusive" and outcome.exit_code() == EXIT_INCONCLUSIVE
    assert "did not detect a planted defect" in outcome.campaign.canary.failing
    assert outcome.to_dict()["canary"]["caught_by"] is None


def test_a_lie_is_planted_in_a_history_that_was_recorded() -> None:
    plan = make_plan(3, "timeline", "s3")
    history, _ = execute(plan, reference())
    seen = find_false_statement(history)
    assert seen == Canary(mutant=PLANTS[0].name, guarantee="G4", plans=1, caught=True)
    assert find_false_statement(None) is None
    quiet = History(history.header, tuple(event for event in history.events if event.kind == "fault"))
    assert find_false_statement(quiet) is None


@pytest.mark.parametrize("in_place", [False, True])
def test_a_lie_about_a_file_is_told_by_its_effects_and_by_the_kit_s_look(in_place: bool) -> None:
    story = Story(witness="effects")
    story.start()
    story.create(marker("a"))
    if in_place:
        path = f"{DIRECTORY}/MARKERS0"
        story.put(path, b"", how="overwrite-begin")
        story.put(path, encode_names((marker("a"),)), how="overwrite-end")
    story.look(marker("a"))
    seen = find_false_statement(story.history())
    assert seen is not None and seen.caught and seen.mutant == PLANTS[1].name


def test_what_a_profile_promises_nowhere_is_no_canary() -> None:
    for name, homes in canary.CANARIES:
        for home in homes:
            mode, storage = home.split("/")
            # Of a loss of power the reference promises nothing, whatever the guarantee.
            classes = [under for under in FAULT_CLASSES if under != "power-loss"]
            told = [PROFILE.promise(find_mutant(name).kills, mode, storage, under) for under in classes]
            if not all(promise.promised for promise in told):
                drawn = {canary.draw(seed, ((mode, storage),), None, PROFILE) for seed in range(60)}
                assert name not in {each[0].name for each in drawn if each is not None}
