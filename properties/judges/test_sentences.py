"""What is said of breaches, of all mutants and of stores that lose what they stored, against what happened."""

from __future__ import annotations

import pytest

from marker_sim.campaign.runs import execute, findings_of
from marker_sim.history import History
from marker_sim.judges import Breach, judge
from marker_sim.loading import load_system
from marker_sim.mutants.catalogue import MUTANTS, Mutant
from marker_sim.mutants.hunts import swarm_plan
from marker_sim.mutants.load import load_mutant
from marker_sim.names import legible
from marker_sim.plan import Op, Plan
from properties.judges.build import DIRECTORY, Story, marker
from properties.judges.sentences import untrue
from properties.mutant_turns import FIRST_TURNS, SEARCH

LONG, ACCENT = f"p/{'x' * 900}.parquet.marker.CREATE", "p/gro\u0308\xdfe.parquet.marker.CREATE"


def all_true(history: History, breaches: list[Breach]) -> None:
    told = [f"{breach.message} ({breach.cause}): {untrue(history, breach)}" for breach in breaches]
    assert not [each for each, breach in zip(told, breaches, strict=True) if untrue(history, breach)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_is_said_of_a_mutant_is_true(mutant: Mutant) -> None:
    """Of the plan that kills it, judged by every guarantee."""
    system, plan = load_mutant(mutant), swarm_plan(mutant, SEARCH, FIRST_TURNS.get(mutant.name, 0))
    history, findings = findings_of(plan, system, mutant.kills)
    all_true(history, [breach for finding in (*findings, *judge(history)) for breach in finding.breaches])


STORES = "properties.judges.forgetful_stores"
CREATE = Op(actor="executor-0", kind="create", directory=1, name=marker("a"))


@pytest.mark.parametrize("mode", ["direct", "timeline"])
@pytest.mark.parametrize("store", ["TakesNeighbours", "Forgets", "NeverStores"])
def test_a_marker_that_was_stored_and_taken_is_lost_and_never_said_to_have_been_missing(store: str, mode: str) -> None:
    """One loss breaks G3 and not G1, and shows what took the marker; one that never was breaks G1 and not G3."""
    ops = {
        "TakesNeighbours": (CREATE, Op(actor="executor-0", kind="delete", directory=0)),
        "Forgets": tuple(Op(actor="executor-0", kind="create", directory=1, name=marker(each)) for each in "bcad"),
        "NeverStores": (CREATE,),
    }[store]
    plan = Plan(mode=mode, directories=("t/.hoodie/.temp/001", "t/.hoodie/.temp/0010"), ops=ops)
    history, _ = execute(plan, load_system(f"{STORES}:{store}"))
    found = {f.guarantee: [b for b in f.breaches if repr(marker("a")) in b.message] for f in judge(history)}
    all_true(history, [breach for breaches in found.values() for breach in breaches])
    taken = [e.index for e in history.events if e.operation == "delete" and (e.path or "").endswith(marker("a"))]
    assert bool(taken) == (store != "NeverStores")
    if not taken:
        assert found["G1"] and not found["G3"]
        return
    (lost,) = found["G3"]
    assert not found["G1"] and taken[0] in lost.evidence and f"from event {taken[0]} on" in lost.message
    assert ("during the deletion of t/.hoodie/.temp/001, event" in lost.message) == (store == "TakesNeighbours")


def test_a_name_is_spelt_in_one_way_and_a_long_one_has_lost_its_middle() -> None:
    made = Story()
    made.start()
    for name in (LONG, ACCENT):
        made.end(made.ask(name), "ok", "created")
    long, accent = (breach.message for breach in made.finding("G1").breaches)
    assert len(long) < 400 and "xx…(" in long and "letters" in long
    assert "gro\\u0308\xdfe" in accent and legible(repr(ACCENT)) in accent
    assert made.events[1].path == LONG  # It stays whole in the history.


def test_two_long_names_with_the_same_ends_are_told_apart() -> None:
    one, other = (f"p/{'x' * 200}{middle}{'x' * 200}.marker.CREATE" for middle in "ab")
    assert legible(one) != legible(other)


def test_every_event_that_a_sentence_names_is_evidence() -> None:
    made = Story()
    made.start()
    made.create(marker("a"))
    gone = made.put(f"{DIRECTORY}/MARKERS0", b"")
    made.list()
    for guarantee in ("G3", "G4", "G11"):
        (breach,) = made.finding(guarantee).breaches
        assert f"event {gone} on" in breach.message and gone in breach.evidence, guarantee
