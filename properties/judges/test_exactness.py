"""G4 and G5 on histories written by hand."""

from __future__ import annotations

import pytest

from marker_sim.names import data_path, encode_names
from properties.judges.build import DIRECTORY, Story, marker

A, B, C = marker("a"), marker("b"), marker("c")
MARKERS0 = f"{DIRECTORY}/MARKERS0"


def test_an_empty_history_says_nothing_about_names() -> None:
    Story().says_nothing("G4")
    Story().says_nothing("G5")


def test_what_was_asked_for_and_nothing_else_holds() -> None:
    story = Story()
    story.create(A)
    story.end(story.ask(B), "info", error="no answer")
    story.flush(B)
    story.invoke("create", C)
    story.flush(C, file=1)
    story.list(A, B)
    story.holds("G4")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"/{A}\n".encode(), id="leading slash"),
        pytest.param(f"{A},{B}\n".encode(), id="merged"),
        pytest.param(A.replace("/", "\n").encode() + b"\n", id="split"),
        pytest.param(A.encode() + b"\xff\n", id="other bytes"),
    ],
)
def test_a_name_that_is_stored_differently_breaks_it_both_ways(content: bytes) -> None:
    story = Story()
    story.ask(B)
    invoke = story.ask(A)
    story.type_file()
    story.put(MARKERS0, content)
    story.end(invoke, "ok", "created")
    story.breaks("G4", count=1 + len(content.strip().split(b"\n")))


def test_a_name_stored_before_it_was_asked_for_breaks_it() -> None:
    story = Story()
    story.flush(A)
    story.create(A, "exists")
    story.breaks("G4")


def test_a_name_asked_for_in_another_directory_breaks_it() -> None:
    story = Story()
    story.create(B)
    invoke = story.ask(A, instant="002")
    story.flush(A)
    story.end(invoke, "info", error="no answer")
    story.breaks("G4")


def test_what_a_deletion_moved_into_a_sibling_that_nobody_named_is_its_server_s_own() -> None:
    story = Story()
    for name in (A, B):
        story.create(name, file=int(name == B))
    deletion = story.invoke("delete")
    story.put(f"{DIRECTORY}.deleting/MARKERS0", encode_names([A]))
    story.put(f"{DIRECTORY}.deleting/p/x.marker.CREATE", b"")
    story.remove()
    story.end(deletion, "ok", "true")
    story.create(C)
    for guarantee in ("G4", "G8", "G9"):
        story.holds(guarantee)
    story.invoke("exists", instant="001.deleting")  # Now it is a directory like any other.
    for guarantee in ("G4", "G8", "G9"):
        story.breaks(guarantee, count=2 if guarantee == "G4" else 1)


def test_a_failed_create_asks_for_nothing_unless_a_copy_was_under_way() -> None:
    story = Story()
    story.start()
    story.end(story.ask(A), "fail", error="400")
    story.flush(A)
    story.breaks("G4")
    story = Story()
    story.start()
    invoke = story.ask(A)
    story.fault("duplicated", "client", caused_by=invoke)
    story.end(invoke, "fail", error="refused")
    story.flush(A)
    story.holds("G4")


@pytest.mark.parametrize("operation", ["list", "list-data", "list-log"])
def test_a_listing_shows_only_what_was_asked_for(operation: str) -> None:
    log = marker("l", "APPEND")
    story = Story()
    story.create(A)
    story.create(log)
    right = {"list": (A, log), "list-data": (data_path(A),), "list-log": (data_path(log),)}[operation]
    story.list(*right, operation=operation)
    story.holds("G4")
    story.list(*right, "p/ghost", operation=operation)
    story.breaks("G4")


def test_a_marker_missing_in_the_end_breaks_it_and_a_deletion_excuses() -> None:
    story = Story()
    story.create(A)
    story.put(MARKERS0, b"")
    story.breaks("G4")
    story = Story()
    story.create(A)
    story.delete("info")
    story.put(MARKERS0, b"")
    assert not story.finding("G4").breaches


def test_a_hostile_name_that_was_accepted_may_be_stored_as_it_is_and_not_otherwise() -> None:
    name = "x" * 300 + ".parquet.marker.CREATE"
    story = Story()
    invoke = story.invoke("hostile", DIRECTORY, value=f"/create?markerdirpath=d&markername={name}")
    story.flush(name)
    story.end(invoke, "ok", True)
    story.holds("G4")
    story.put(MARKERS0, encode_names([name[:200]]))
    story.breaks("G4")


def test_an_accepted_hostile_name_is_kept_and_its_pieces_are_laid_at_its_door() -> None:
    name = "line\nbreak.parquet.marker.CREATE"
    story = Story()
    invoke = story.invoke("hostile", DIRECTORY, value=name)
    story.flush(name)
    done = story.end(invoke, "ok", "created")
    stored, lost = story.finding("G4").breaches[0], story.finding("G4").breaches[-1]
    assert {invoke, done} < set(stored.evidence) and "accepted" in stored.message
    assert repr(name) in lost.message and "in the end" in lost.message


@pytest.mark.parametrize(
    ("asked", "stored", "cause"),
    [
        (b"a\xffb.parquet.marker.CREATE", "a\ufffdb.parquet.marker.CREATE", "no-text"),
        ("a\r\nb.parquet.marker.CREATE", "a\r", "split-at-line-break"),
        ("a\rb.parquet.marker.CREATE", "b.parquet.marker.CREATE", "split-at-carriage-return"),
        ("", "x.parquet.marker.CREATE", "unasked"),
    ],
)
def test_what_became_of_a_hostile_name_is_its_cause(asked: str | bytes, stored: str, cause: str) -> None:
    story = Story()
    invoke = story.invoke("hostile", DIRECTORY, value=asked)
    story.flush(stored)
    story.end(invoke, "ok", "created")
    assert {breach.cause for breach in story.finding("G4").breaches if repr(stored) in breach.message} == {cause}


def test_what_a_climbing_directory_was_asked_for_is_held_against_the_request_and_not_the_place_it_leads_to() -> None:
    name, target = "a.parquet.marker.CREATE", "aside/.hoodie/.temp/001"
    story = Story()
    climbing = f"?markerdirpath=t/.hoodie/.temp/../../../{target}&markername={name}"
    invoke = story.invoke("hostile", target, value=climbing)
    story.put(f"{target}/MARKERS0", encode_names([name]))
    story.end(invoke, "ok", "created")
    story.holds("G4")
    story.put(f"{target}/MARKERS0", encode_names([name, "b.parquet.marker.CREATE"]))
    story.breaks("G4")


def test_bytes_that_are_no_text_are_kept_as_they_are() -> None:
    asked = b"a\xffb.parquet.marker.CREATE"
    story = Story()
    invoke = story.invoke("hostile", DIRECTORY, value=asked)
    story.type_file()
    story.put(MARKERS0, asked + b"\n")
    story.end(invoke, "ok", "created")
    story.holds("G4")


def test_one_creator_and_many_who_found_it_hold() -> None:
    story = Story()
    story.start()
    story.create(A, identity="r1")
    story.create(A, "exists", identity="r2")
    story.create(A, "created", identity="r1")
    story.holds("G5")


def test_whoever_asks_alone_created_the_name() -> None:
    story = Story()
    story.create(A)
    story.create(B)
    story.holds("G5")
    story.end(story.ask(C), "ok", "exists")
    story.breaks("G5")


@pytest.mark.parametrize("why", ["stored", "asked", "deletion", "fault", "wire"])
def test_a_name_that_may_have_been_there_exists(why: str) -> None:
    story = Story()
    story.start()
    if why == "stored":
        story.flush(A)
    if why == "fault":
        story.fault("throttled", value="begin")
    if why == "deletion":
        story.invoke("delete")
    asked = [story.ask(A) for _ in range(1 + (why == "asked"))]
    if why == "wire":
        story.fault("duplicated", caused_by=asked[-1])
    story.flush(A)
    for invoke in asked:
        story.end(invoke, "ok", "exists")
    assert not story.finding("G5").breaches


@pytest.mark.parametrize(("first", "second"), [("r1", "r2"), (None, None), ("r1", None)])
def test_two_creators_break_it(first: str | None, second: str | None) -> None:
    story = Story()
    story.start()
    story.create(A, identity=first)
    story.create(A, identity=second)
    story.breaks("G5")


def test_two_creators_over_a_restart_break_it() -> None:
    story = Story()
    story.start()
    story.create(A, identity="r1")
    story.kill()
    story.start("server#2")
    story.create(A, identity="r2")
    story.breaks("G5", under="restart")


@pytest.mark.parametrize("outcome", ["ok", "info", "open"])
def test_a_deletion_in_between_allows_a_second_creator(outcome: str) -> None:
    story = Story()
    story.create(A, identity="r1")
    delete = story.invoke("delete")
    if outcome != "open":
        story.end(delete, outcome, True)
    story.create(A, identity="r2")
    assert not story.finding("G5").breaches


def test_two_live_servers_excuse_a_second_creator() -> None:
    story = Story()
    story.start()
    story.create(A, identity="r1")
    story.start("second#1")
    story.kill("second#1")
    story.create(A, identity="r2")
    assert not story.finding("G5").breaches


def test_a_resend_that_is_told_exists_breaks_it_in_the_same_life_only() -> None:
    story = Story()
    story.start()
    story.create(A, identity="r1")
    story.create(A, "exists", identity="r1")
    story.breaks("G5")
    story = Story()
    story.start()
    story.create(A, identity="r1")
    story.kill()
    story.start("server#2")
    story.create(A, "exists", identity="r1")
    story.holds("G5")


def test_a_resend_does_not_count_where_the_protocol_has_no_identity() -> None:
    story = Story(identity=False)
    story.start()
    story.create(A, identity="r1")
    story.create(A, "exists", identity="r1")
    story.create(A, identity="r1")
    story.holds("G5")


def lost_reply(error: str = "no answer before the deadline") -> Story:
    story = Story()
    story.start()
    invoke = story.ask(A, "r1")
    story.fault("reply-lost", "client", caused_by=invoke)
    story.flush(A)
    story.end(invoke, "info", error=error)
    return story


def test_a_resend_after_a_lost_reply_is_told_created() -> None:
    story = lost_reply()
    story.create(A, "exists", identity="r1")
    story.breaks("G5", under="wire")


def test_a_resend_after_an_error_or_beside_another_request_may_be_told_exists() -> None:
    for story in (lost_reply("500 storage failed"), lost_reply(), lost_reply()):
        if story.events[-1].error == "no answer before the deadline":
            story.end(story.ask(A, "r2"), "info", error="no answer")
        story.create(A, "exists", identity="r1")
        assert not story.finding("G5").breaches


def test_a_storage_fault_of_the_same_directory_excuses_a_resend() -> None:
    for path, excused in ((MARKERS0, True), ("t/.hoodie/.temp/002/MARKERS0", False)):
        story = Story()
        story.start()
        invoke = story.ask(A, "r1")
        story.fault("timeout-applied", path=path)
        story.flush(A)
        story.end(invoke, "info", error="no answer")
        story.create(A, "exists", identity="r1")
        assert bool(story.finding("G5").breaches) is not excused


def test_direct_mode_has_one_creator_where_storage_can_put_if_absent() -> None:
    for able in (True, False):
        story = Story(mode="direct", capabilities={"put_if_absent": able})
        story.create(A, identity="r1")
        story.create(A, identity="r2")
        assert story.finding("G5").applicable is able
        assert len(story.finding("G5").breaches) == able
