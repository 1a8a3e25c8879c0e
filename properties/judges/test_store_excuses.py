"""What judges of a marker store let pass, by name, and what their breaches show."""

from __future__ import annotations

import pytest

from properties.faces.history import HistoryIndex
from properties.faces.report import steps_of
from properties.judges.build import DIRECTORY, Story, begun, excused, marker, only

A, B, LOG = marker("a"), marker("b"), marker("a", "APPEND")
MARKERS0 = f"{DIRECTORY}/MARKERS0"


# G1 to G4 and G23: markers after an answer.


@pytest.mark.parametrize("answer", ["created", "exists"])
def test_an_answer_without_a_marker_says_when_it_was_there(answer: str) -> None:
    guarantee = "G1" if answer == "created" else "G2"
    never = begun()
    never.end(never.ask(A), "ok", answer)
    assert only(never, guarantee).message.endswith(f"is not stored in {DIRECTORY}, nor at any other time")
    late = begun()
    late.end(late.ask(A), "ok", answer)
    came = late.flush(A)
    assert only(late, guarantee).message.endswith(
        f"; it was stored at event {came}; server#1 wrote MARKERS0 at event {came}"
    )
    early = begun()
    early.flush(A)
    gone = early.put(MARKERS0, b"")
    early.end(early.ask(A), "ok", answer)
    assert only(early, guarantee).message.endswith(
        f"; it was gone from event {gone} on; server#1 wrote MARKERS0 without this name at event {gone}"
    )


@pytest.mark.parametrize("spoil", ["", "deletion", "kill", "never"])
def test_where_storage_is_read_an_answer_is_judged_at_the_next_look_unless_something_came_before_it(spoil: str) -> None:
    story = begun(witness="reads")
    answer = story.end(story.ask(A), "ok", "created")
    if spoil == "deletion":
        story.delete("info")
    if spoil == "kill":
        story.kill()
    if spoil != "never":
        looked = story.look()
    finding = story.finding("G1")
    assert finding.eligible == 1
    if spoil:
        assert not finding.judged and dict(finding.excused) == {"read-too-late": 1}
    else:
        assert {answer, looked} <= set(finding.breaches[0].evidence)
        assert f"at event {answer} and is not stored in {DIRECTORY} at event {looked}" in finding.breaches[0].message


def test_a_marker_that_was_never_looked_for_is_counted_by_every_judge_of_it() -> None:
    story = begun(witness="reads")
    story.create(A)
    story.create(B)
    for guarantee in ("G3", "G4"):
        assert excused(story, guarantee) == {"read-too-late": 2}, guarantee


def test_a_marker_answered_after_the_last_look_began_is_counted() -> None:
    story = begun(witness="reads")
    story.create(A)
    before = story.last
    story.create(B)
    story.look(A, began=before)
    assert not story.finding("G4").breaches and excused(story, "G4")["read-too-late"] == 1


def test_an_answer_that_an_open_deletion_may_have_undone_is_counted_by_every_judge_of_it() -> None:
    story = begun()
    story.create(B)
    story.invoke("delete")
    invoke = story.ask(A)
    story.flush(A)
    story.remove()
    story.end(invoke, "ok", "created")
    for guarantee in ("G1", "G3", "G4", "G23"):
        assert not story.finding(guarantee).breaches
        assert excused(story, guarantee).get("deletion-open", 0) >= 1, guarantee


def test_a_marker_lost_after_a_kill_says_which_and_shows_it() -> None:
    story = begun(witness="reads")
    answer = story.end(story.ask(A), "ok", "created")
    kill = story.kill()
    story.start("server#2")
    looked = story.look()
    breach = only(story, "G3")
    assert {answer, kill, looked} <= set(breach.evidence) and breach.cause == "lost-at-kill"
    assert f"first reading of storage after it, at event {looked}, does not show it" in breach.message
    assert f"was killed at event {kill}, in between" in breach.message


def test_a_marker_that_vanishes_says_from_when_on() -> None:
    story = begun()
    answer = story.create(A)
    gone = story.put(MARKERS0, None, how="delete")
    breach = only(story, "G3")
    assert f"answered 'created' at event {answer} and is no longer stored" in breach.message
    assert f"from event {gone} on, with no deletion invoked" in breach.message and breach.cause == "file-gone"


def test_a_missing_name_is_reported_once_in_the_end_with_its_last_sight() -> None:
    story = begun()
    answered = story.create(A)
    story.create(A, "exists")
    gone = story.put(MARKERS0, b"")
    breach = only(story, "G4")
    lost = f"{A!r} was answered 'created' at event {answered} and is not stored in {DIRECTORY} in the end"
    by = f"server#1 wrote MARKERS0 without this name at event {gone}"
    assert breach.message == f"{lost}; it was gone from event {gone} on; {by}"
    assert breach.evidence[-1] == story.last


# G5.


@pytest.mark.parametrize(
    ("why", "excuse"),
    [
        ("wire", "wire-fault"),
        ("storage", "storage-fault"),
        ("full", "storage-fault"),
        ("deletion", "deletion-open"),
        ("second-server", "second-server"),
        ("elsewhere", ""),
        ("earlier", ""),
    ],
)
def test_exists_for_the_only_request_is_counted_by_what_may_have_been_first(why: str, excuse: str) -> None:
    story = begun()
    if why == "earlier":
        story.fault("throttled", path=MARKERS0)
    invoke = story.ask(A)
    match why:
        case "wire":
            story.fault("duplicated", "client", caused_by=invoke)
        case "storage":
            story.fault("throttled", path=MARKERS0)
        case "full":
            story.fault("disk-full", path="t/p")
        case "elsewhere":
            story.fault("throttled", path="t/.hoodie/.temp/002/MARKERS0")
        case "deletion":
            story.invoke("delete")
        case "second-server":
            story.add("observe", "started", "server#2")
    story.flush(A)
    story.end(invoke, "ok", "exists")
    finding = story.finding("G5")
    assert dict(finding.excused) == ({excuse: 1} if excuse else {})
    assert [breach.cause for breach in finding.breaches] == ([] if excuse else ["created-by-nobody"])
    assert finding.judged == (not excuse)


@pytest.mark.parametrize(
    ("why", "excuse"),
    [
        ("500 no", "answered-with-an-error"),
        ("storage", "storage-fault"),
        ("second", "second-server"),
        ("no answer in 3 s", ""),
        ("no reply: connection-reset", ""),
        ("no reply: reply-lost", ""),
    ],
)
def test_a_resend_that_exists_is_counted_by_what_else_may_have_stored_it(why: str, excuse: str) -> None:
    story = begun()
    if why == "second":
        story.start("second#1")
        story.kill("second#1")
        story.server = 0
    first = story.ask(A, "r1")
    if why == "storage":
        story.fault("throttled", path=MARKERS0)
    story.end(first, "info", error=why if why.startswith(("500", "no ")) else "no answer")
    resend = story.ask(A, "r1")
    story.flush(A)
    story.end(resend, "ok", "exists")
    finding = story.finding("G5")
    assert excuse in dict(finding.excused) or not excuse
    assert [breach.cause for breach in finding.breaches] == ([] if excuse else ["resend-forgotten"])


@pytest.mark.parametrize("again", ["r1", "r2"])
def test_an_answer_that_is_repeated_to_its_request_is_no_second_creation(again: str) -> None:
    """Another process deleted and created meanwhile: who keeps its answers as asked says "created" twice."""
    story = begun()
    story.create(A, identity="r1")
    story.delete()
    story.put(MARKERS0, None)
    story.create(A, identity="r3")
    story.create(A, identity=again)
    finding = story.finding("G5")
    assert (dict(finding.excused).get("answer-repeated"), len(finding.breaches)) == (
        (1, 0) if again == "r1" else (None, 1)
    )


def test_two_creators_are_told_by_event_and_request_and_by_whether_the_marker_was_lost() -> None:
    for lost in (False, True):
        story = begun()
        first = story.create(A, identity="r1")
        if lost:
            story.put(MARKERS0, b"")
        second = story.create(A, identity="r2")
        breach = only(story, "G5")
        told = [event.index for event in story.events if event.kind == "ok" and event.operation == "create"]
        assert f"event {told[0]} (request 'r1') and event {told[1]} (request 'r2'); it " in breach.message
        steps = steps_of(HistoryIndex(story.history()), breach.evidence, breach.message)
        harmed = [story.events[step.index].kind for step in steps if step.harm]
        assert harmed == ["effect" if lost else "ok"], "what took the name away, else the second answer"
        assert {first, second} <= set(breach.evidence)
        assert (breach.cause == "forgotten") is not lost


# G8, G9, G22.


def test_layout_breaches_name_the_file_and_the_first_event() -> None:
    story = begun(num_threads=1)
    story.create(A)
    at = story.flush(B, file=1)
    story.flush(B, file=2)
    breach = only(story, "G8")
    assert "holds 3 marker files, expected at most num_threads=1" in breach.message or at in breach.evidence
    assert breach.cause == "too-many-files"


@pytest.mark.parametrize(("name", "cause"), [("MARKERS.type2", ""), (A, "direct-marker-file")])
def test_files_of_other_kinds_have_causes_of_their_own(name: str, cause: str) -> None:
    story = begun()
    story.create(B)
    story.put(f"{DIRECTORY}/{name}", b"")
    assert [breach.cause for breach in story.finding("G8").breaches] == [cause] * bool(cause)


@pytest.mark.parametrize(
    ("why", "cause"),
    [("", "never-typed"), ("kill", "after-kill"), ("deletion", "after-deletion"), ("put", "put-failed")],
)
def test_a_missing_type_file_has_a_cause(why: str, cause: str) -> None:
    story = begun()
    if why == "deletion":
        story.create(A)
        story.delete()
        story.wait(5_000)
    if why == "kill":
        story.kill()
        story.start("server#2")
    if why == "put":
        story.fault("throttled", path=f"{DIRECTORY}/MARKERS.type")
    story.invoke("exists")
    story.put(MARKERS0, b"")
    assert only(story, "G9").cause == cause


def test_a_type_file_that_a_deletion_took_is_counted_as_long_as_it_may_act() -> None:
    for open_ in (True, False):
        story = begun()
        story.create(A)
        deletion = story.invoke("delete")
        story.remove()
        if not open_:
            story.end(deletion, "ok", True)
        story.put(MARKERS0, b"")
        finding = story.finding("G9")
        assert bool(finding.breaches) is not open_
        assert dict(finding.excused) == ({"deletion-open": 1} if open_ else {})


def test_what_a_deletion_left_is_counted_where_storage_is_read_until_a_marker_comes_after_it() -> None:
    for written in (False, True):
        story = begun(witness="reads")
        story.create(A)
        story.look(A)
        story.delete()
        story.wait(5_000)
        if written:
            story.create(B)
        story.observe("file", path=f"{DIRECTORY}/MARKERS.type", value=None)
        story.observe("file", path=MARKERS0, value=b"x\n")
        story.observe("snapshot", path=DIRECTORY, caused_by=story.last - 2)
        finding = story.finding("G9")
        assert bool(finding.breaches) == written
        assert dict(finding.excused) == ({} if written else {"left-by-deletion": 1})


def test_a_fallback_without_a_reason_and_none_at_all_have_causes() -> None:
    story = Story(storage="hdfs")
    story.add("observe", "mode", value="direct")
    assert only(story, "G22").cause == "no-reason"
    story = Story(storage="hdfs")
    story.add("observe", "mode", value="timeline", error="x")
    assert only(story, "G22").cause == "no-fallback"
    assert Story(storage="hdfs").finding("G22").undecided == "the run recorded no choice of mode"
