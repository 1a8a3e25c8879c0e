"""What a judge lets pass is counted by name when the excuse decided, and a brief cause excuses no lasting harm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marker_sim.judges import judge
from marker_sim.names import encode_names
from marker_sim.plan import PLACES
from marker_sim.system import reference
from properties.faces.judges import Finding, load_profile
from properties.faces.outcome import Statistics
from properties.faces.search import make_plan, make_write_plan
from properties.faces.worlds import Cluster
from properties.judges.build import DIRECTORY, Story, marker
from properties.judges.jobs import Job

A, B = marker("a"), marker("b")
MARKERS0 = f"{DIRECTORY}/MARKERS0"


def excused(story: Story, guarantee: str) -> dict[str, int]:
    (finding,) = judge(story.history(), frozenset({guarantee}))
    return dict(finding.excused)


def torn_by_a_deletion(*, gone: bool) -> Story:
    """A create is answered while a deletion is open, which removed its marker before the answer, or did not."""
    story = Story()
    story.start()
    story.create(B)
    delete = story.invoke("delete")
    invoke = story.ask(A)
    story.flush(A)
    if gone:
        story.remove()
    story.end(invoke, "ok", "created")
    story.end(delete, "ok", True)
    return story


def test_an_excuse_is_counted_when_it_decided_and_not_when_the_answer_was_right_anyway() -> None:
    assert excused(torn_by_a_deletion(gone=True), "G1") == {"deletion-open": 1}
    assert excused(torn_by_a_deletion(gone=False), "G1") == {}


def test_the_excuses_of_two_runs_add_up_in_a_tally_and_in_two_that_are_merged() -> None:
    history = torn_by_a_deletion(gone=True).history()
    one, other = Statistics(), Statistics()
    for statistics in (one, one, other):
        statistics.add(history, judge(history))
    one.merge(other)
    (row,) = (row for row in one.rows(load_profile("reference")) if row.id == "G1")
    assert row.excused == {"deletion-open": 3}
    assert row.to_dict()["excused"] == {"deletion-open": 3}


def test_an_excuse_of_one_judge_is_not_counted_for_the_next() -> None:
    findings = {f.guarantee: f for f in judge(torn_by_a_deletion(gone=True).history())}
    assert findings["G1"].excused and not findings["G2"].excused


def damaged(*, mended: bool) -> Story:
    """The kit damages the type file; if it is mended, it is gone again later without any reason."""
    story = Story()
    story.start()
    story.create(A)
    story.fault("damage", "kit", path=f"{DIRECTORY}/MARKERS.type")
    story.type_file(None)
    if mended:
        story.type_file()
        story.type_file(None)
    return story


def test_a_damaged_type_file_is_excused_until_somebody_mends_it_and_not_for_good() -> None:
    assert not damaged(mended=False).finding("G9").breaches
    assert excused(damaged(mended=False), "G9") == {"kit-damage": 1}
    assert damaged(mended=True).finding("G9").breaches


@pytest.mark.parametrize(("wait_ms", "lost"), [(1, False), (60_000, True)])
def test_damage_to_a_marker_file_excuses_what_it_removed_and_no_loss_long_after(wait_ms: int, lost: bool) -> None:
    story = Story()
    story.start()
    story.create(A)
    story.create(B, file=1)
    story.fault("damage", "kit", path=f"{DIRECTORY}/MARKERS1")
    story.put(f"{DIRECTORY}/MARKERS1", None, "kit")
    story.wait(wait_ms)
    story.observe("phase", value="end")
    story.put(MARKERS0, None)
    story.wait(60_000)
    story.observe("phase", value="over")
    breaches = story.finding("G3").breaches
    assert [A in breach.message for breach in breaches] == [True] * lost


def answered_while_a_deletion_was_open(*, lost: bool) -> Story:
    story = Story()
    story.start()
    story.create(B)
    delete = story.invoke("delete")
    story.remove()
    story.create(A)
    story.end(delete, "ok", True)
    story.kill()
    if lost:
        story.put(MARKERS0, None)
    return story


def test_what_outlasted_an_open_deletion_is_protected_from_its_end_on() -> None:
    answered_while_a_deletion_was_open(lost=False).holds("G3")
    assert answered_while_a_deletion_was_open(lost=True).finding("G3").breaches


def left_after_a_deletion(*, waited_ms: int) -> Story:
    """An unanswered create is stored, and a deletion long or shortly after it leaves its marker."""
    story = Story()
    story.start()
    story.create(B)
    invoke = story.ask(A)
    story.flush(A)
    story.end(invoke, "info", error="no answer")
    story.wait(waited_ms)
    delete = story.invoke("delete")
    story.put(MARKERS0, encode_names([A]))
    story.end(delete, "ok", True)
    return story


def test_a_create_of_unknown_outcome_excuses_what_a_deletion_leaves_only_as_long_as_it_may_act() -> None:
    assert excused(left_after_a_deletion(waited_ms=100), "G10") == {"create-unknown": 1}
    assert not left_after_a_deletion(waited_ms=100).finding("G10").breaches
    assert left_after_a_deletion(waited_ms=120_000).finding("G10").breaches


def failing_listing(fault_in: str) -> Story:
    story = Story()
    story.start()
    story.create(A)
    story.fault("throttled", path=f"t/.hoodie/.temp/{fault_in}/MARKERS0")
    story.end(story.invoke("list"), "info", error="500 the breaker is open")
    return story


def test_a_storage_fault_excuses_failing_listings_of_its_own_directory_only() -> None:
    assert excused(failing_listing("001"), "G11") == {"storage-fault": 1}
    assert not failing_listing("001").finding("G11").breaches
    failing_listing("002").breaks("G11", under="storage")


@pytest.mark.parametrize("ended", [False, True])
def test_what_a_second_server_stored_is_owed_by_the_first_as_soon_as_it_is_alone(ended: bool) -> None:
    story = Story()
    first = story.start()
    story.fault("second-server", "second", value="begin")
    story.start("second")
    story.create(A)
    if ended:
        story.fault("second-server", "second", value="end")
    story.end(story.invoke("list", caused_by=first), "ok", ())
    if ended:
        story.breaks("G11", under="second-server")
    else:
        assert excused(story, "G11") == {"second-server": 1}
        assert not story.finding("G11").breaches


def test_a_second_server_excuses_no_listing_that_lacks_what_its_own_server_answered() -> None:
    story = Story()
    first = story.start()
    story.create(A)
    story.fault("second-server", "second", value="begin")
    story.start("second")
    story.end(story.invoke("list", caused_by=first), "ok", ())
    story.breaks("G11", under="second-server")


@pytest.mark.parametrize(("outcome", "error"), [("ok", None), ("info", "500 oops")])
def test_a_paused_server_may_fail_to_refuse_a_hostile_request_but_not_accept_it(
    outcome: str, error: str | None
) -> None:
    story = Story()
    story.start()
    invoke = story.invoke("hostile", DIRECTORY, value="/create?markerdirpath=")
    story.fault("pause", value="begin")
    story.fault("pause", value="end")
    story.end(invoke, outcome, error=error)
    assert len(story.finding("G12").breaches) == (outcome == "ok")
    assert excused(story, "G12") == ({} if outcome == "ok" else {"server-unwell": 1})


@pytest.mark.parametrize("killed", ["client", "other"])
def test_a_client_that_was_killed_hears_no_refusal_of_its_hostile_request(killed: str) -> None:
    story = Story()
    story.start()
    story.arrive(story.invoke("hostile", DIRECTORY, value="/leading"))
    story.fault("kill", killed)
    story.wait(60_000)
    story.create(A)
    assert len(story.finding("G12").breaches) == (killed == "other")
    assert excused(story, "G12") == ({} if killed == "other" else {"client-died": 1})


@pytest.mark.parametrize(
    ("judged", "excuses", "verdict"), [(2, 38, "holds"), (2, 39, "inconclusive"), (20, 999, "holds")]
)
def test_a_row_that_judged_little_and_excused_nearly_all_is_inconclusive_and_says_why(
    judged: int, excuses: int, verdict: str
) -> None:
    statistics = Statistics()
    found = Finding(guarantee="G1", applicable=True, judged=judged, excused=(("deletion-open", excuses),))
    statistics.add(torn_by_a_deletion(gone=False).history(), (found,))
    (row,) = statistics.rows(load_profile("reference"))
    assert row.verdict == verdict
    assert ("deletion-open" in row.message) == (verdict == "inconclusive")


@pytest.mark.parametrize("completed", [True, False])
def test_residue_is_excused_when_the_write_after_it_never_completes_and_not_by_the_end_of_the_table(
    completed: bool,
) -> None:
    job = Job()
    job.write("001", "a")
    if not completed:
        job.begin("002")
    (finding,) = judge(job.history(), frozenset({"G18"}))
    assert dict(finding.excused) == ({} if completed else {"no-later-write": 1})


def test_changes_that_others_may_have_made_are_one_excuse_of_one_hostile_request() -> None:
    story = Story()
    story.start()
    invoke = story.invoke("hostile", DIRECTORY, value="x")
    story.create(A)
    story.create(B)
    story.end(invoke, "fail", error="400 no")
    assert excused(story, "G12") == {"other-request": 1}
    story.holds("G12")


def test_excuses_that_decide_in_runs_are_documented_for_their_guarantee() -> None:
    text = (Path(__file__).parents[2] / "docs" / "honesty.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (G[^|]*) \|", text, flags=re.MULTILINE)
    known = {(guarantee, name) for name, guarantees in rows for guarantee in guarantees.split(", ")}
    seen: set[tuple[str, str]] = set()
    for number in range(80):
        mode, storage = PLACES[number % len(PLACES)]
        make = make_write_plan if number % 2 else make_plan
        for finding in judge(Cluster(make(number, mode, storage), reference()).run()):
            seen |= {(finding.guarantee, name) for name, _ in finding.excused}
    assert len(seen) > 10 and seen <= known, seen - known
