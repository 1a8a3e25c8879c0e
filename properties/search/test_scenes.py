"""Every scene brings together what one mutant dies of, within a few dozen plans, and the reference lives through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from marker_sim.plan import PLACES, Plan
from marker_sim.system import System, reference
from properties.faces.campaign import findings_of, promised_breach
from properties.faces.judges import load_profile
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.search import OF_OPERATIONS, OF_WRITES, Draws, Scenario, make_plan, make_write_plan

PLANS = 60
DIES = {
    "two_hands": "replace-not-locked",
    "deleted_by_the_other": "delete-not-locked",
    "silent_directory": "one-pool-for-all",
    "stored_by_the_dead": "known-names-written",
    "longer_than_patience": "patience-counts-nothing",
    "server_refused": "throttled-without-reply",
    "deleted_by_the_dead": "type-file-trusted-at-once",
    "asked_again_after_a_deletion": "exists-from-memory",
    "reading_again_refused": "failed-load-is-empty",
    "crowd": "long-file-cut",
    "overtaken": "conflict-taken-for-own",
    "restarted_and_asked_again": "files-of-today-recovered",
    "slow_deletion": "deletion-answered-by-its-first-worker",
    "answered_late": "older-flush-answers",
    "deleted_before_it_lands": "ghost-put",
    "asked_while_flushed": "flying-name-fresh",
    "damaged_and_restarted": "damage-never-repaired",
    "refused_deletions": "errors-of-workers-lost",
    "written_by_the_dead": "stage-numbers-from-zero",
    "many_versions": "old-logs-kept",
    "unreadable_when_left": "read-error-is-empty",
    "odd_partitions_in_peace": "direct-names-decoded",
    "ended_by_the_dead": "no-wait-for-the-dead",
    "left_to_the_sweep": "sweep-leaves-files",
    "left_untyped": "untyped-files-kept",
    "deleted_after_long_service": "type-file-remembered",
    "unlisted_until_the_last_try": "last-listing-unasked",
}
SCENARIOS = {scenario.make.__name__: scenario for scenario in (*OF_OPERATIONS, *OF_WRITES)}


def plans_of(scenario: Scenario) -> Iterator[Plan]:
    """Plans of a scene, round the places that it fits."""
    make = make_plan if scenario in OF_OPERATIONS else make_write_plan
    places = [place for place in PLACES if scenario.fits(*place)]
    for seed in range(PLANS):
        plan = scenario.make(Draws(seed), make(seed, *places[seed % len(places)]))
        plan.check()
        yield plan


def broken(plan: Plan, system: System, guarantee: str) -> bool:
    """Whether a promise of the reference's profile is broken."""
    findings = findings_of(plan, system, guarantee)[1]
    return any(promised_breach(finding, plan, load_profile("reference")) for finding in findings)


def test_every_scene_has_a_mutant_that_it_is_for() -> None:
    assert SCENARIOS.keys() == DIES.keys()


@pytest.mark.parametrize("name", DIES)
def test_a_scene_kills_its_mutant_and_not_the_reference(name: str) -> None:
    mutant = find_mutant(DIES[name])
    system, sound = load_mutant(mutant), reference()
    killing = next((plan for plan in plans_of(SCENARIOS[name]) if broken(plan, system, mutant.kills)), None)
    assert killing is not None, f"{mutant.name} lives through {PLANS} plans of {name}"
    assert not broken(killing, sound, mutant.kills)
