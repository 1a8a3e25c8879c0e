"""Every mutant dies by its guarantee judged alone, and what is left of a plan is short."""

from __future__ import annotations

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import FaultKind
from marker_sim.judges import judge
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.profiles import load_profile
from marker_sim.mutants.catalogue import MUTANTS, Mutant
from marker_sim.mutants.elusive import ELUSIVE
from marker_sim.mutants.hunts import swarm
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.plan import Fault, Op, Plan
from marker_sim.search.campaign import execute, fails_with, findings_of, promised_breach
from marker_sim.search.shrink import shrink
from marker_sim.system import reference

SECONDS_MAX = 60.0
ENTRIES_MAX = 4
# Of each part of the reference one.
SHRUNK = ("decoded-names", "index-kept-busy", "direct-without-condition", "reconcile-by-file-group", "nothing-swept")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_killed_by_its_guarantee(mutant: Mutant) -> None:
    found = swarm(mutant, load_mutant(mutant), 0, SECONDS_MAX)
    assert found.caught and found.plan is not None, f"{mutant.name} survived {found.plans} plans"
    # The plan blames the mutant, not the reference: there it holds.
    history, _ = execute(found.plan, reference())
    profile = load_profile("reference")
    findings = judge(history, frozenset({mutant.kills}))
    assert not any(promised_breach(finding, found.plan, profile) for finding in findings)


@pytest.mark.parametrize("name", SHRUNK)
def test_the_plan_that_kills_a_mutant_shrinks(name: str) -> None:
    mutant = find_mutant(name)
    system = load_mutant(mutant)
    found = swarm(mutant, system, 0, SECONDS_MAX)
    assert found.plan is not None
    small = shrink(found.plan, fails_with(mutant.kills, system, load_profile("reference")), budget_s=10.0)
    assert small.entries <= ENTRIES_MAX < found.plan.entries, small


def test_mutants_have_different_names_and_change_something() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 100
    assert len({(mutant.changes, mutant.kills) for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert all(before != after for _, before, after in mutant.changes)
        load_mutant(mutant)


def test_elusive_mutants_load_and_are_not_in_the_catalogue() -> None:
    assert not {mutant.name for mutant in ELUSIVE} & {mutant.name for mutant in MUTANTS}
    for mutant in ELUSIVE:
        load_mutant(mutant)


def test_a_deletion_without_the_lock_is_seen_when_a_server_stands_still_inside_it() -> None:
    """The plan that the search does not find: the first server is paused between its look and its put."""
    create = Op(actor="executor-0", kind="create", name="a.parquet.marker.CREATE", request="r1")
    plans = [
        Plan(
            mode="timeline",
            storage="local",
            num_threads=1,
            ops=(
                create,
                Op(actor="executor-0", kind="create", name="b.parquet.marker.CREATE", request="r2", after_ms=60),
                Op(actor="driver", kind="delete", after_ms=200, server=1),
            ),
            faults=(
                Fault(kind=FaultKind.SECOND_SERVER, actor="server", step=1, duration_ms=5000),
                Fault(kind=FaultKind.PAUSE, actor="server", step=step, duration_ms=1500),
            ),
        )
        for step in range(20, 36)
    ]
    mutant = find_mutant("delete-not-locked")
    for system, expected in ((load_mutant(mutant), True), (reference(), False)):
        seen = [finding.breaches for plan in plans for finding in findings_of(plan, system, mutant.kills)[1]]
        assert any(seen) is expected


def test_every_guarantee_that_the_reference_promises_has_a_mutant() -> None:
    promised = {guarantee.id for guarantee in GUARANTEES} - {"G20"}  # Nobody promises that one.
    assert {mutant.kills for mutant in MUTANTS} == promised


def test_an_unknown_mutant_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match="leading-slash"):
        find_mutant("nope")
