"""Every mutant dies by its guarantee judged alone, and what is left of a plan is short."""

from __future__ import annotations

import warnings

import pytest

from marker_sim.campaign.hunts import swarm
from marker_sim.errors import UsageError
from marker_sim.judges import judge
from marker_sim.system import System, reference
from properties.breaking import fails_with
from properties.faces.campaign import Found, Limit, execute, findings_of, promised_breach
from properties.faces.judges import GUARANTEES, load_profile
from properties.faces.mutants import MUTANTS, Mutant, find_mutant, load_mutant
from properties.faces.search import shrink
from properties.judges.test_evidence import shows
from properties.mutant_turns import FIRST_TURNS, SEARCH
from properties.volume import NIGHTLY

SECONDS_MAX = 60.0
ENTRIES_MAX = 4
# Of each part of the reference one.
SHRUNK = ("decoded-names", "index-kept-busy", "direct-without-condition", "reconcile-by-file-group", "nothing-swept")


def hunted(mutant: Mutant, system: System) -> Found:
    """The search from the turn that last ended it, and from its beginning when that plan kills no more, or by night."""
    if not NIGHTLY:
        turn = FIRST_TURNS.get(mutant.name, 0)
        found = swarm(mutant, system, SEARCH, Limit(SECONDS_MAX, plans=1), turn)
        if found.failure:
            return found
        # The plans of turns change with the generators, and each search takes as long as many such plans.
        warnings.warn(f"{mutant.name} survives turn {turn}; run python -m properties.mutant_turns", stacklevel=2)
    return swarm(mutant, system, SEARCH, Limit(SECONDS_MAX))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_killed_by_its_guarantee(mutant: Mutant) -> None:
    system = load_mutant(mutant)
    found = hunted(mutant, system)
    assert found.plan is not None, f"{mutant.name} survived {found.plans} plans"
    history, findings = findings_of(found.plan, system, mutant.kills)
    for breach in (breach for finding in findings for breach in finding.breaches):
        shows(history, breach)
    # The plan blames the mutant, not the reference: there it holds.
    history, _ = execute(found.plan, reference())
    profile = load_profile("reference")
    findings = judge(history, frozenset({mutant.kills}))
    assert not any(promised_breach(finding, found.plan, profile) for finding in findings)


@pytest.mark.parametrize("name", SHRUNK)
def test_the_plan_that_kills_a_mutant_shrinks(name: str) -> None:
    mutant = find_mutant(name)
    system = load_mutant(mutant)
    found = hunted(mutant, system)
    assert found.plan is not None
    small = shrink(found.plan, fails_with(mutant.kills, system, load_profile("reference")), budget_s=10.0)
    assert small.entries <= ENTRIES_MAX < found.plan.entries, small


def test_mutants_have_different_names_and_change_something() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 100
    assert len({(mutant.changes, mutant.kills) for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert all(before != after for _, before, after in mutant.changes)
    assert {mutant.name for mutant in MUTANTS} >= FIRST_TURNS.keys()


def test_every_guarantee_that_the_reference_promises_has_a_mutant() -> None:
    promised = {guarantee.id for guarantee in GUARANTEES} - {"G20", *(f"G{number}" for number in range(26, 33))}
    assert {mutant.kills for mutant in MUTANTS} == promised


def test_an_unknown_mutant_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UsageError, match="leading-slash"):
        find_mutant("leading-slsh")
