"""Every mutant dies by its guarantee judged alone, and what is left of its plan is short."""

from __future__ import annotations

import pytest

from marker_sim.errors import UsageError
from marker_sim.judges import judge
from marker_sim.judges.profiles import load_profile
from marker_sim.mutants.catalogue import MUTANTS, Mutant
from marker_sim.mutants.kill import kill
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.search.campaign import execute, promised_breach
from marker_sim.system import reference

ENTRIES_MAX = 12


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_killed_by_its_guarantee_and_its_plan_shrinks(mutant: Mutant) -> None:
    result = kill(mutant, seeds_max=6_000, shrink_s=20.0)
    assert result.plan is not None, f"{mutant.name} survived {result.seeds} plans"
    assert result.plan.entries <= ENTRIES_MAX, result.plan
    # The plan blames the mutant, not the reference: there it holds.
    history, _ = execute(result.plan, reference())
    profile = load_profile("reference")
    findings = judge(history, frozenset({mutant.kills}))
    assert not any(promised_breach(finding, result.plan, profile) for finding in findings)


def test_mutants_have_different_names_and_change_something() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 12
    for mutant in MUTANTS:
        assert mutant.before != mutant.after
        load_mutant(mutant)


def test_an_unknown_mutant_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match="leading-slash"):
        find_mutant("nope")
