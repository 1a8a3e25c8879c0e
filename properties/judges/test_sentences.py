"""What is said of breaches, of all mutants and of stores that lose what they stored, against what happened."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from marker_sim.history import History
from marker_sim.judges import Breach, judge
from marker_sim.loading import load_system
from marker_sim.names import legible, most_like
from marker_sim.plan import Op, Plan
from marker_sim.timeline import State
from properties.faces.campaign import execute, findings_of, swarm_of
from properties.faces.mutants import MUTANTS, Mutant, load_mutant
from properties.judges.build import DIRECTORY, Story, marker
from properties.judges.jobs import Job, base
from properties.judges.sentences import untrue
from properties.mutant_turns import FIRST_TURNS, SEARCH
from properties.volume import part

LONG, ACCENT = f"p/{'x' * 900}.parquet.marker.CREATE", "p/gro\u0308\xdfe.parquet.marker.CREATE"


def all_true(history: History, breaches: list[Breach]) -> None:
    told = [f"{breach.message} ({breach.cause}): {untrue(history, breach)}" for breach in breaches]
    assert not [each for each, breach in zip(told, breaches, strict=True) if untrue(history, breach)]


@pytest.mark.parametrize("mutant", part(MUTANTS), ids=lambda mutant: mutant.name)
def test_what_is_said_of_a_mutant_is_true(mutant: Mutant) -> None:
    """Of the plan that kills it, judged by every guarantee."""
    system = load_mutant(mutant)
    plan = swarm_of(mutant, system, SEARCH).plan(FIRST_TURNS.get(mutant.name, 0))
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
    assert ("during the deletion of another directory, t/.hoodie/.temp/001 (event" in lost.message) == (
        store == "TakesNeighbours"
    )


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


def said(story: Story, guarantee: str) -> str:
    """The message of the only breach; every event that it names is evidence."""
    (breach,) = story.finding(guarantee).breaches
    all_true(story.history(), [breach])
    return breach.message


def test_what_is_stored_in_place_of_a_marker_is_named_and_so_is_what_was_requested_in_place_of_a_stranger() -> None:
    made = Story()
    made.start()
    asked, other = made.ask(marker("a")), made.ask(marker("b"))
    put = made.flush(f"/{marker('a')}", marker("b"))
    made.end(asked, "ok", "created")
    made.end(other, "ok", "created")
    made.list(f"/{marker('a')}", marker("b"))
    instead = f"'/{marker('a')}' is, from event {put} on, which was never requested"
    for guarantee in ("G1", "G11"):
        assert instead in said(made, guarantee), guarantee
    told = [breach.message for breach in made.finding("G4").breaches]
    assert sum(instead in each for each in told) == 1
    listed = f"shows '/{marker('a')}', which no create had requested; it is stored from event {put} on"
    assert sum(f"{listed}; event {asked} had requested {marker('a')!r}" in each for each in told) == 1
    assert sum(f"event {asked} had requested {marker('a')!r}" in each for each in told) == 2  # Stored and listed.


def test_a_name_in_a_last_line_without_its_end_is_said_to_be_there() -> None:
    made = Story()
    made.start()
    made.type_file()
    asked = made.ask(marker("a"))
    put = made.put(f"{DIRECTORY}/MARKERS0", marker("a").encode())
    made.end(asked, "ok", "created")
    for guarantee in ("G1", "G4"):
        assert f"event {put} leaves it in a last line that has no end" in said(made, guarantee), guarantee


def test_a_name_that_is_only_part_of_another_one_is_not_taken_for_it() -> None:
    """What came in place of `x/p/a` is not what came in place of `p/a`, which it contains."""
    made = Story()
    made.start()
    calls = [made.ask(name) for name in (marker("a"), f"x/{marker('a')}")]
    made.flush(f"x_{marker('a')}")
    for call in calls:
        made.end(call, "ok", "created")
    told = {breach.evidence[0]: breach.message for breach in made.finding("G1").breaches}
    assert "was never requested" in told[calls[1]] and "was never requested" not in told[calls[0]]


def test_a_name_of_two_creators_was_stored_or_says_since_when_it_was_not() -> None:
    for lost in (False, True):
        made = Story()
        made.start()
        made.create(marker("a"), identity="one")
        stored = made.last - 1
        gone = made.put(f"{DIRECTORY}/MARKERS0", b"") if lost else None
        again = made.ask(marker("a"), "other")
        made.end(again, "ok", "created")
        what = f"not stored at event {again}; it was gone from event {gone} on" if lost else f"from event {stored} on"
        assert what in said(made, "G5")


def test_the_only_request_that_is_answered_exists_says_that_it_stored_the_name() -> None:
    made = Story()
    made.start()
    asked = made.ask(marker("a"))
    stored = made.flush(marker("a"))
    made.end(asked, "ok", "exists")
    assert f"it was stored at event {stored}" in said(made, "G5")


def test_a_listing_says_since_when_storage_holds_what_it_lacks_or_should_not_show() -> None:
    made = Story()
    made.start()
    made.create(marker("a"))
    stored = made.last - 1
    made.list()
    assert f"it is stored from event {stored} on" in said(made, "G11")
    made.end(made.invoke("delete"), "ok", True)
    made.list(marker("a"))
    told = [breach.message for breach in made.finding("G10").breaches]
    assert any(f"after the directory was deleted; it is stored from event {stored} on" in each for each in told)


def test_a_hostile_name_is_read_without_the_quotes_in_which_it_is_recorded() -> None:
    """It is stored as it was asked for, so only its acceptance is a breach."""
    made = Story()
    made.start()
    asked = made.invoke("hostile", DIRECTORY, value=repr("p/a\u2028b.parquet.marker.CREATE"))
    made.flush("p/a\u2028b.parquet.marker.CREATE")
    made.end(asked, "ok", "created")
    made.holds("G4")
    assert "accepted" in said(made, "G12")


A = base("a")


def test_an_answered_marker_that_names_no_data_is_mentioned() -> None:
    job = Job()
    job.begin()
    create = job.step("create", "001", path=marker("a"), process="executor#1")
    answer = job.end(create, "ok", "created")
    job.data(data := marker("a").removesuffix(".marker.CREATE"))
    assert data in said(job, "G13") and f"a create of one was answered at event {answer}" in said(job, "G13")


def test_a_rollback_says_when_it_was_interrupted_what_was_committed_and_that_it_listed_too_late() -> None:
    job = Job()
    job.failed("001", "a")
    job.driver = "driver#2"
    job.step("begin", None)
    job.step("rollback", "001")
    killed = job.kill("driver#2")
    job.begin("002", driver="driver#3")
    job.roll_back("001", A)
    job.complete("002")
    job.done(job.step("commit", "002"))
    assert f"was interrupted at event {killed}, a later write has completed" in said(job, "G16")
    assert "was stored before its markers were listed at event" in said(job, "G15")
    job = Job()
    job.write("001", "a")
    job.roll_back("001", A)
    told = [breach.message for breach in job.finding("G15").breaches if "is left" in breach.message]
    committed = next(e.index for e in job.events if (e.path or "").endswith("001.commit"))
    ended = f"; its listing does not have the marker of this file; its instant was committed at event {committed}"
    assert len(told) == 1 and told[0].endswith(ended)


def test_data_before_the_timeline_knows_its_instant_is_not_said_to_be_never_on_it() -> None:
    job = Job()
    data = job.data(A)
    begin = job.step("begin", None)
    job.entry("001", State.REQUESTED)
    job.entry("001", State.INFLIGHT)
    job.done(begin, instant="001")
    what = f"data is put at event {data}, and it is not on the timeline by then as requested or inflight"
    assert f"{what}; the write begun at event {begin} takes an instant that has data already" in said(job, "G19")


@pytest.mark.parametrize("deleted", [True, False])
def test_markers_that_are_left_say_how_their_last_deletion_ended(deleted: bool) -> None:
    job = Job()
    job.begin()
    job.attempt(A)
    job.finalize("001", A)
    job.commit("001", A, tidy=False)
    invoke = job.step("delete", "001") if deleted else -1
    if deleted:
        job.end(invoke, "ok", True)
    job.write("002", "b")
    how = f"the last deletion of them, event {invoke}, ended ok" if deleted else "no deletion of them was invoked"
    assert how in said(job, "G18")


def test_a_marker_that_comes_back_is_missing_until_then() -> None:
    made = Story()
    made.start()
    made.create(marker("a"))
    gone = made.put(f"{DIRECTORY}/MARKERS0", None, how="delete")
    back = made.put(f"{DIRECTORY}/MARKERS0", f"{marker('a')}\n".encode())
    until = f"from event {gone} until event {back}, when it was stored again, with no deletion invoked"
    assert until in said(made, "G3")


def test_a_committed_file_that_is_missing_says_since_when() -> None:
    job = Job()
    job.begin()
    job.attempt(A)
    job.finalize("001", A)
    gone = job.data(A, None)
    job.commit("001", A)
    assert f"which is not stored; it was gone from event {gone} on" in said(job, "G14")


def test_an_attempt_that_asked_for_another_marker_says_for_which() -> None:
    job = Job()
    job.begin()
    attempt = job.step("attempt", "001", "0-0-0", path=A, process="executor#1")
    asked = job.mark(base("b"), "001")
    job.data(A)
    job.done(attempt)
    assert f"; its attempt asked for '{base('b')}.marker.CREATE' at event {asked}" in said(job, "G13")


def test_a_marker_that_a_deletion_removes_after_its_answer_says_when() -> None:
    made = Story()
    made.start()
    made.create(marker("a"))
    made.end(made.invoke("delete"), "ok", True)
    gone = made.put(f"{DIRECTORY}/MARKERS0", None, how="delete")
    assert f"with no create since; it was gone from event {gone} on; server#1 removed" in said(made, "G10")


def test_a_missing_type_file_says_what_became_of_it() -> None:
    made = Story()
    made.start()
    made.invoke("exists")
    made.put(f"{DIRECTORY}/MARKERS0", f"{marker('a')}\n".encode())
    assert "with its text, nor was there one before; server#1 wrote MARKERS0" in said(made, "G9")
    made = Story()
    made.start()
    made.create(marker("a"))
    gone = made.type_file(None)
    assert f"at event {gone}, and no MARKERS.type with its text; its last change was event {gone}" in said(made, "G9")


def test_a_name_that_was_never_seen_before_a_deletion_is_not_said_to_be_still_there() -> None:
    made = Story(witness="reads")
    made.start()
    made.create(marker("a"))
    made.look(marker("a"))
    made.delete()
    asked = made.ask(f" {marker('b')}")
    made.end(asked, "ok", "created")
    made.look(marker("b"))
    told = said(made, "G10")
    assert " is stored at event " in told and told.endswith(f"; event {asked} had requested {' ' + marker('b')!r}")


def test_a_stranger_is_compared_with_what_was_asked_once_and_not_for_each_marker_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story, compared, names = Story(), list[str](), [f"p/{n:03}.marker.CREATE" for n in range(40)]
    story.start()
    asked = [story.ask(name) for name in names]
    story.put(f"{DIRECTORY}/MARKERS0", "".join(f"/{name}\n" for name in names).encode())
    for ask in asked:
        story.end(ask, "ok", "created")

    def counted(stranger: str, others: Iterable[str]) -> str | None:
        compared.append(stranger)
        return most_like(stranger, others)

    monkeypatch.setattr("marker_sim.judges.causes.most_like", counted)
    assert len(story.finding("G1").breaches) == len(names)
    assert len(compared) <= len(names)
