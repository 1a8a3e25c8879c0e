"""G10, G11 and G12 on histories written by hand."""

from __future__ import annotations

import pytest

from marker_sim.names import data_path, encode_names
from properties.judges.build import DIRECTORY, Story, marker

A, B, C = marker("a"), marker("b"), marker("c")
LOG = marker("l", "APPEND")
MARKERS0 = f"{DIRECTORY}/MARKERS0"


def test_an_empty_history_says_nothing_about_listings_and_deletions() -> None:
    story = Story()
    story.delete()
    story.list()
    for guarantee in ("G10", "G11", "G12"):
        story.says_nothing(guarantee)


def test_what_is_deleted_stays_away_until_it_is_created_again() -> None:
    story = Story()
    story.create(A)
    story.delete()
    story.list()
    story.create(A)
    story.list(A)
    story.holds("G10")
    story.holds("G11")


def test_what_a_deletion_leaves_behind_or_comes_back_breaks_it() -> None:
    story = Story()
    stored = story.create(A) - 1
    delete = story.invoke("delete")
    done = story.end(delete, "ok", True)
    assert story.breaks("G10").evidence == (stored, delete, done)
    story = Story()
    story.create(A)
    story.delete()
    story.put(MARKERS0, encode_names([A]))
    story.breaks("G10")


def test_a_name_asked_for_after_it_came_back_was_back_before() -> None:
    story = Story()
    story.create(A)
    story.delete()
    story.put(MARKERS0, encode_names([A]))
    story.create(A, "exists")
    story.breaks("G10")


@pytest.mark.parametrize("late", ["open", "info", "answered later", "duplicated"])
def test_a_create_that_was_open_may_show_after_the_deletion(late: str) -> None:
    story = Story()
    story.start()
    story.create(B)
    invoke = story.ask(A)
    if late == "info":
        story.end(invoke, "info", error="no answer")
    elif late == "duplicated":
        story.fault("duplicated", "client", caused_by=invoke)
        story.end(invoke, "ok", "created")
    story.delete()
    story.flush(A)
    if late == "answered later":
        story.end(invoke, "ok", "created")
    story.list(A)
    story.holds("G10")


def test_a_listing_that_remembers_deleted_names_breaks_it() -> None:
    for operation, name in (("list", A), ("list-data", data_path(A)), ("list-log", data_path(LOG))):
        story = Story()
        story.start()
        story.create(A)
        story.create(LOG)
        story.delete()
        story.list(name, operation=operation)
        story.breaks("G10")


def test_a_listing_that_began_before_the_deletion_ended_may_show_anything() -> None:
    story = Story()
    story.create(A)
    listing = story.invoke("list")
    story.delete()
    story.end(listing, "ok", (A,))
    story.holds("G10")


def test_a_deletion_of_unknown_outcome_promises_nothing() -> None:
    story = Story()
    story.create(A)
    story.delete("info")
    story.list(A)
    story.says_nothing("G10")


def test_the_server_that_did_not_delete_is_judged_only_when_alone() -> None:
    for deleter_lists in (True, False):
        story = Story()
        first = story.start()
        story.create(A)
        second = story.start("second#1")
        story.server = first
        story.delete()
        listing = story.invoke("list", caused_by=first if deleter_lists else second)
        story.end(listing, "ok", (A,))
        assert len(story.finding("G10").breaches) == deleter_lists
        if deleter_lists:
            story.breaks("G10", under="second-server")


def test_a_listing_owes_what_was_answered_before_it_was_invoked() -> None:
    story = Story()
    story.start()
    story.create(A)
    story.create(LOG)
    listing = story.invoke("list")
    story.create(B)
    story.end(listing, "ok", (A, LOG))
    story.list(data_path(A), data_path(B), operation="list-data")
    story.list(data_path(LOG), operation="list-log")
    story.holds("G11")


@pytest.mark.parametrize(
    ("operation", "shown"),
    [("list", (A,)), ("list-data", ()), ("list-log", ())],
)
def test_a_short_listing_breaks_it(operation: str, shown: tuple[str, ...]) -> None:
    story = Story()
    story.start()
    story.create(A)
    story.create(LOG)
    story.list(*shown, operation=operation)
    story.breaks("G11")


@pytest.mark.parametrize("outcome", ["ok", "info"])
def test_a_listing_owes_nothing_that_a_deletion_may_have_removed(outcome: str) -> None:
    story = Story()
    story.start()
    story.create(A)
    story.delete(outcome)
    story.list()
    assert not story.finding("G11").breaches


def test_an_unknown_deletion_is_over_when_its_server_is_dead() -> None:
    for dead in (True, False):
        story = Story()
        story.start()
        delete = story.invoke("delete")
        story.arrive(delete)
        if dead:
            story.kill()
        story.end(delete, "info", error="connection reset")
        story.wait(5_000)
        story.start("server#2")
        story.create(A)
        story.list()
        assert len(story.finding("G11").breaches) == dead


def test_an_unknown_deletion_is_over_when_its_server_reported_an_error_and_storage_is_quiet() -> None:
    story = Story(late_effect_ms=2_000)
    story.start()
    delete = story.invoke("delete")
    story.end(delete, "info", error="500 storage failed")
    story.wait(2_000).create(A)
    story.list()
    assert not story.finding("G11").breaches, "what timed out may still be applied"
    story.wait(2_000).create(B)
    story.list(A)
    story.breaks("G11")


def test_a_second_server_excuses_what_the_first_did_not_see() -> None:
    story = Story()
    first = story.start()
    second = story.start("second#1")
    story.server = second
    story.create(A)
    story.server = first
    story.list()
    assert not story.finding("G11").breaches
    story.kill("second#1")
    story.create(B)
    story.list(A)
    story.breaks("G11", under="second-server")


def test_a_server_that_began_after_the_crowd_owes_everything() -> None:
    story = Story()
    story.start()
    story.start("second#1")
    story.create(A)
    story.kill("second#1")
    story.kill()
    story.start("server#2")
    story.list()
    story.breaks("G11", under="second-server")


@pytest.mark.parametrize("outcome", ["fail", "info"])
def test_a_listing_that_fails_without_a_fault_breaks_it(outcome: str) -> None:
    story = Story()
    story.start()
    story.create(A)
    story.end(story.invoke("list"), outcome, error="500 ConcurrentModificationException")
    story.breaks("G11")


@pytest.mark.parametrize("excuse", ["storage", "earlier storage", "wire", "pause", "kill", "time-out"])
def test_a_listing_may_fail_under_a_fault(excuse: str) -> None:
    story = Story()
    story.start()
    story.create(A)
    if excuse == "earlier storage":
        story.fault("timeout-applied", path=MARKERS0)
        story.wait(900)
    listing = story.invoke("list")
    match excuse:
        case "storage":
            story.fault("throttled", path=MARKERS0)
        case "wire":
            story.fault("reply-lost", "client", caused_by=listing)
        case "pause" | "kill":
            story.fault(excuse, value="begin" if excuse == "pause" else None)
    story.end(listing, "info", error="no answer" if excuse == "time-out" else "500")
    story.says_nothing("G11")


def test_a_fault_in_another_directory_is_no_reason_for_a_listing_to_fail() -> None:
    for path, broken in (("t/.hoodie/.temp/002/MARKERS0", True), ("t/.hoodie/x.commit", False), (MARKERS0, False)):
        story = Story()
        story.start()
        listing = story.invoke("list")
        story.fault("throttled", path=path)
        story.end(listing, "info", error="500")
        assert len(story.finding("G11").breaches) == broken


def test_the_end_of_the_run_does_not_keep_a_deletion_that_reported_an_error_open() -> None:
    for error, over in (("500 storage failed", True), ("connection reset", False)):
        story = Story()
        story.start()
        story.end(story.invoke("delete"), "info", error=error)
        story.wait(2_000).create(B)
        story.list()
        story.observe("phase", value="end")
        story.fault("kill", value="end-of-run")
        assert len(story.finding("G11").breaches) == over


def test_a_storage_fault_long_ago_is_no_excuse() -> None:
    story = Story()
    story.start()
    story.fault("throttled", path=MARKERS0)
    story.wait(10_000)
    story.end(story.invoke("list"), "info", error="500")
    story.breaks("G11", under="storage")


def hostile(outcome: str, error: str | None = "400 no") -> Story:
    story = Story()
    story.start()
    story.create(A)
    invoke = story.invoke("hostile", DIRECTORY, value="/create?markerdirpath=")
    story.end(invoke, outcome, None, error)
    return story


def test_a_refused_request_holds_and_an_accepted_one_breaks_it() -> None:
    hostile("fail").holds("G12")
    hostile("ok", None).breaks("G12")
    hostile("info", "500 oops").breaks("G12")
    hostile("info", "no answer").says_nothing("G12")


@pytest.mark.parametrize("spoil", ["nothing", "fault", "kill", "echo"])
@pytest.mark.parametrize("end", ["no answer", "open"])
def test_a_hostile_request_that_a_server_which_is_well_never_answers_breaks_it(spoil: str, end: str) -> None:
    story = Story()
    story.start()
    story.create(A)
    invoke = story.invoke("hostile", DIRECTORY, value="line\nbreak.parquet.marker.CREATE")
    story.wait(9_000)
    if spoil == "echo":
        story.observe("echo-late")
    elif spoil != "nothing":
        story.fault("kill" if spoil == "kill" else "throttled", path=MARKERS0)
    story.wait(2_000)
    if end == "no answer":
        story.end(invoke, "info", error="no answer in 11 s")
    story.observe("phase", value="end")
    story.fault("kill", value="end-of-run")
    assert len(story.finding("G12").breaches) == (spoil == "nothing")


@pytest.mark.parametrize("witness", ["effects", "reads"])
def test_a_change_is_not_laid_at_the_door_of_a_refused_request_when_another_was_accepted(witness: str) -> None:
    story = Story(witness=witness, storage="local")
    story.start()
    odd = "return\rhere.parquet.marker.CREATE"
    accepted = story.invoke("hostile", DIRECTORY, value=odd)
    story.end(accepted, "ok", "created")
    refused = story.invoke("hostile", DIRECTORY, value="")
    if witness == "effects":
        story.flush(odd)
    story.end(refused, "fail", error="400")
    if witness == "reads":
        story.look(odd)
    breach = story.breaks("G12")
    assert {accepted, accepted + 1} <= set(breach.evidence) and refused not in breach.evidence
    story.holds("G4")


def test_what_another_program_removed_is_not_the_hostile_request_s_and_what_changed_before_is() -> None:
    for removed in (True, False):
        story = Story(witness="reads", storage="local")
        story.start()
        story.observe("file", path=MARKERS0, value=b"1")
        story.end(story.invoke("hostile", DIRECTORY, value="x"), "fail", error="400")
        if removed:
            for moment in ("begin", "end"):
                story.fault("directory-removed", "outside-1", value=moment, path=DIRECTORY)
        story.observe("file", path=MARKERS0, value=None)
        story.holds("G12") if removed else story.breaks("G12")


def test_a_create_that_was_over_before_the_last_look_is_no_reason_for_a_change() -> None:
    story = Story(witness="reads", storage="local")
    story.start()
    story.create(A)
    story.look(A)
    refused = story.invoke("hostile", DIRECTORY, value="x")
    story.end(refused, "fail", error="400")
    story.look(A, "x")
    assert refused in story.breaks("G12").evidence


def test_a_refused_request_that_changes_storage_breaks_it() -> None:
    story = Story()
    story.start()
    story.create(A)
    invoke = story.invoke("hostile", DIRECTORY, value="/dir/delete?markerdirpath=t/../t")
    story.put(MARKERS0, None)
    story.end(invoke, "fail", error="400")
    story.breaks("G12")


def test_a_change_that_somebody_else_asked_for_is_not_the_hostile_request_s() -> None:
    story = Story()
    story.start()
    create = story.ask(A)
    invoke = story.invoke("hostile", DIRECTORY, value="x")
    story.flush(A)
    story.end(invoke, "fail", error="400")
    story.end(create, "ok", "created")
    story.holds("G12")


def test_a_change_between_two_reads_counts_when_nobody_asked_for_it() -> None:
    story = Story(witness="reads", storage="local")
    story.start()
    secret = "t/secret"
    story.observe("file", path=secret, value=b"1")
    story.end(story.invoke("hostile", secret, value="/dir/delete?markerdirpath=t/secret"), "fail", error="400")
    story.observe("file", path=secret, value=b"1")
    story.holds("G12")
    story.observe("file", path=secret, value=None)
    story.breaks("G12")
