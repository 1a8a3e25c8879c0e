"""What judges of deletions, listings and refusals let pass, by name, and what their breaches show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from marker_sim.history import IN_CHUNKS, SPELLED
from properties.judges.build import DIRECTORY, Story, begun, excused, marker, only

A, B, LOG = marker("a"), marker("b"), marker("a", "APPEND")
MARKERS0 = f"{DIRECTORY}/MARKERS0"


# G10 and G11.


@pytest.mark.parametrize(
    ("failed_ms", "path", "held"),
    [
        ((), DIRECTORY, False),
        ((8_000, 8_000), DIRECTORY, True),
        ((8_000, 8_000), "t/.hoodie/.temp/002", False),
        ((8_000, 30_000), DIRECTORY, False),  # The copy had its time before storage failed again.
    ],
)
def test_a_copy_of_a_create_waits_as_long_as_storage_keeps_failing_in_its_directory(
    failed_ms: tuple[int, ...], path: str, held: bool
) -> None:
    story = begun(answer_bound_ms=10_000, storage_timeout_ms=3_000, late_effect_ms=500)
    copied = story.ask(A)
    story.fault("duplicated", "client", caused_by=copied)
    story.flush(A)
    story.end(copied, "ok", "created")
    for apart_ms in failed_ms or (16_000,):
        story.wait(apart_ms)
        if failed_ms:
            story.fault("timeout-lost", path=f"{path}/MARKERS0")
    story.delete()
    story.flush(A)
    assert bool(story.finding("G10").breaches) is not held
    assert not held or excused(story, "G10") == {"create-unknown": 1}


@pytest.mark.parametrize("arrives", [True, False])
def test_a_create_that_waits_in_the_network_may_reach_a_later_server_after_a_deletion(arrives: bool) -> None:
    story = Story()
    story.start()
    story.create(B)
    delayed = story.invoke("create", A, process="executor-0#1")
    story.add("fault", "cut-link", "executor-0#1", caused_by=delayed)
    story.add("observe", "exited", "executor-0#1", error="its driver is gone")
    story.kill()
    story.start("server#2")
    story.wait(40_000)
    story.delete()
    story.wait(40_000)
    if arrives:
        story.arrive(delayed)
    story.flush(A)
    story.list(A)
    if arrives:
        story.holds("G10")
    else:
        assert story.finding("G10").breaches


def test_what_a_create_of_unknown_outcome_may_have_stored_after_a_deletion_is_counted() -> None:
    story = begun()
    story.create(B)
    story.end(story.ask(A), "info", error="no answer")
    story.delete()
    story.flush(A)
    assert excused(story, "G10") == {"create-unknown": 1} and story.finding("G10").judged == 1


def test_what_the_kit_damaged_after_a_deletion_is_counted_by_both_ways_to_see_it() -> None:
    for meddled in (False, True):
        story = begun()
        story.create(A)
        story.delete()
        if meddled:
            story.fault("damage", "kit", path=MARKERS0)
        story.flush(A)
        story.list(A)
        finding = story.finding("G10")
        assert dict(finding.excused) == ({"kit-damage": 2} if meddled else {})
        assert [breach.cause for breach in finding.breaches] == (
            [] if meddled else ["back-after-deletion", "listed-after-deletion"]
        )


def test_what_comes_back_after_a_deletion_says_since_when_and_shows_the_deletion() -> None:
    story = begun()
    story.create(A)
    story.create(B, file=1)
    invoke = story.invoke("delete")
    story.put(MARKERS0, None, how="delete")
    answered = story.end(invoke, "ok", True)
    breach = only(story, "G10")
    assert breach.cause == "not-deleted" and {invoke, answered} <= set(breach.evidence)
    assert breach.message.startswith(f"{B!r} is still stored at event {answered}")


@pytest.mark.parametrize(
    ("written", "error", "excuses"),
    [
        (IN_CHUNKS, "411 no chunks", {"in-chunks": 1}),
        (SPELLED, "400 no marker directory", {"other-spelling": 1}),
        (IN_CHUNKS, "500 no chunks", {}),
        (SPELLED, "500 no marker directory", {}),
        (None, "411 no chunks", {}),
    ],
)
@pytest.mark.parametrize(("operation", "guarantee"), [("delete", "G10"), ("list", "G11"), ("exists", "G11")])
def test_a_request_in_chunks_or_in_another_spelling_may_be_refused(
    operation: str, guarantee: str, written: str | None, error: str, excuses: dict[str, int]
) -> None:
    story = begun()
    story.create(A)
    story.end(story.invoke(operation, value=written), "fail", error=error)
    finding = story.finding(guarantee)
    assert dict(finding.excused) == excuses
    assert len(finding.breaches) == 1 - len(excuses)


def _second(story: Story) -> None:
    story.start("second#1")
    story.server = 0


LISTED: dict[str, tuple[Callable[[Story, int], object], str]] = {
    "wire": (lambda story, listing: story.fault("reply-lost", "client", caused_by=listing), "wire-fault"),
    "pause": (lambda story, listing: story.fault("pause", value="begin"), "server-unwell"),
    "storage": (lambda story, listing: story.fault("throttled", path=MARKERS0), "storage-fault"),
    "patience": (lambda story, listing: None, "no-answer"),
}


@pytest.mark.parametrize("why", LISTED)
def test_a_listing_that_may_fail_is_counted_by_its_reason(why: str) -> None:
    story = begun()
    story.create(A)
    listing = story.invoke("list")
    spoil, excuse = LISTED[why]
    spoil(story, listing)
    story.end(listing, "info", error="no answer" if why == "patience" else "500")
    assert excused(story, "G11") == {excuse: 1}


@pytest.mark.parametrize("late_ms", [0, 1])
def test_a_listing_may_fail_until_the_storage_time_out_and_late_effects_are_over(late_ms: int) -> None:
    story = begun(late_effect_ms=300)
    story.create(A)
    fault = story.fault("throttled", path=MARKERS0)
    story.now_ms = story.events[fault].time_ns // 1_000_000 + 1_300 + late_ms - 1
    story.end(story.invoke("list"), "info", error="500")
    assert len(story.finding("G11").breaches) == late_ms


def test_a_name_that_a_listing_owes_no_more_is_counted_where_nothing_else_took_it() -> None:
    story = begun()
    story.invoke("delete")
    story.create(A)
    story.list()
    story.end(story.invoke("exists"), "ok", False)
    assert excused(story, "G11") == {"deletion-open": 2}
    crowd = begun()
    _second(crowd)
    crowd.server = 1
    crowd.create(A)
    crowd.server = 0
    crowd.list()
    crowd.end(crowd.invoke("exists"), "ok", False)
    assert excused(crowd, "G11") == {"second-server": 2}


def test_a_listing_that_fails_while_creates_are_open_has_another_cause_than_one_alone() -> None:
    for busy in (False, True):
        story = begun()
        story.create(A)
        create = story.ask(B)
        if not busy:
            story.flush(B)
            story.end(create, "ok", "created")
        story.end(story.invoke("list"), "info", error="500 ConcurrentModificationException")
        breach = only(story, "G11")
        assert breach.cause == ("failed-during-creates" if busy else "failed")
        assert breach.message.endswith("ended info without a fault: 500 ConcurrentModificationException")


def test_a_short_listing_shows_the_create_that_it_lacks_and_why() -> None:
    story = begun()
    answer = story.create(A)
    story.create(LOG)
    listing = story.list(LOG)
    breach = only(story, "G11")
    assert {answer, listing - 1, listing} <= set(breach.evidence) and breach.cause == "stored-and-not-listed"
    again = begun()
    again.create(A)
    again.delete()
    again.create(A)
    again.list()
    assert only(again, "G11").cause == "after-deletion"


# `exists`: parts of G10 and G11.


@pytest.mark.parametrize(
    ("why", "excuse"),
    [
        ("", ""),
        ("reads", "reads-only"),
        ("second", "second-server"),
        ("open", "create-open"),
        ("unknown", "create-unknown"),
        ("hostile", "create-unknown"),
        ("storage", "storage-fault"),
        ("damage", "storage-fault"),
        ("side", "something-there"),
    ],
)
def test_a_directory_that_exists_after_its_deletion_is_counted_by_its_reason(why: str, excuse: str) -> None:
    story = begun(witness="reads" if why == "reads" else "effects")
    story.create(A)
    if why == "damage":
        story.fault("damage", "kit", path=f"{DIRECTORY}/x")
    if why == "second":
        _second(story)
    if why == "unknown":
        story.end(story.ask(B), "info", error="no answer")
    if why == "hostile":
        story.end(story.invoke("hostile", DIRECTORY, value="x"), "info", error="no answer")
    create = story.ask(B) if why == "open" else -1
    story.delete()
    if why == "storage":
        story.fault("throttled", path=MARKERS0)
    if why == "side":
        story.put(f"{DIRECTORY}/.crc", b"")
    if why == "open":
        story.end(create, "fail", error="400")
    at = next(i for i, e in enumerate(story.events) if e.process == "second#1") if why == "second" else story.server
    asked = story.invoke("exists", caused_by=at)
    answer = story.end(asked, "ok", True)
    finding = story.finding("G10")
    assert dict(finding.excused) == ({excuse: 1} if excuse else {})
    assert [breach.cause for breach in finding.breaches] == ([] if excuse else ["said-to-exist"])
    if not excuse:
        assert {asked, answer} <= set(finding.breaches[0].evidence)


def test_a_denied_directory_shows_the_newest_answer_in_it() -> None:
    story = begun()
    story.create(A)
    newest = story.create(B)
    answer = story.end(story.invoke("exists"), "ok", False)
    breach = only(story, "G11")
    assert {newest, answer} <= set(breach.evidence) and repr(B) in breach.message and breach.cause == "denied"


# G12.


@pytest.mark.parametrize(
    ("why", "excuse"),
    [("wire", "wire-fault"), ("pause", "server-unwell"), ("client", "client-died"), ("", "no-answer")],
)
def test_a_hostile_request_without_a_refusal_is_counted_by_its_reason(why: str, excuse: str) -> None:
    story = begun()
    story.create(A)
    invoke = story.invoke("hostile", DIRECTORY, value="x")
    if why == "wire":
        story.fault("reply-lost", "client", caused_by=invoke)
    if why == "pause":
        story.fault("pause", value="begin")
    if why == "client":
        story.fault("kill", "client")
    finding = story.finding("G12")
    assert dict(finding.excused) == {excuse: 1} and not finding.judged


@pytest.mark.parametrize(
    ("end", "error", "how", "cause"),
    [
        ("ok", None, "accepted ('created')", "accepted"),
        ("info", "500 oops", "not refused clearly (500 oops)", "no-clear-answer"),
        ("info", "no answer", "not answered in 20.0 s", "no-clear-answer"),
    ],
)
def test_a_hostile_request_says_how_it_ended(end: str, error: str | None, how: str, cause: str) -> None:
    story = begun()
    story.create(A)
    invoke = story.invoke("hostile", DIRECTORY, value="x")
    story.now_ms += 19_999
    done = story.end(invoke, end, "created" if end == "ok" else None, error)
    breach = only(story, "G12")
    assert breach.message == f"expected a refusal of the hostile request 'x', it was {how}"
    assert breach.cause == cause and {invoke, done} <= set(breach.evidence)


def test_a_refused_request_that_changes_something_says_what_whenever_it_does() -> None:
    for late in (False, True):
        story = begun()
        story.create(A)
        invoke = story.invoke("hostile", DIRECTORY, value="x")
        if late:
            story.end(invoke, "fail", error="400 no")
        at = story.add("effect", "put", "server#1", path="t/elsewhere", value=b"", caused_by=invoke)
        if not late:
            story.end(invoke, "fail", error="400 no")
        breach = only(story, "G12")
        assert breach.message.endswith(f"changed 't/elsewhere' at event {at}; server#1 wrote elsewhere at event {at}")
        assert breach.cause == "refused-and-done" and at in breach.evidence
