"""What `exists` owes, on histories written by hand: its halves of G10 and G11."""

from __future__ import annotations

from typing import Any

import pytest

from properties.judges.build import DIRECTORY, Story, marker

A, B = marker("a"), marker("b")
MARKERS0, CRC = f"{DIRECTORY}/MARKERS0", f"{DIRECTORY}/.MARKERS0.crc"


def begun() -> Story:
    """A server with one answered marker."""
    story = Story()
    story.start()
    story.create(A)
    return story


def exists(story: Story, value: bool, **columns: Any) -> Story:
    story.end(story.invoke("exists", **columns), "ok", value)
    return story


def test_a_directory_with_an_answered_marker_exists() -> None:
    exists(begun(), True).holds("G11")
    breach = exists(begun(), False).breaks("G11")
    assert "answered False" in breach.message and "expected True" in breach.message


def test_a_directory_that_nobody_wrote_to_does_not_exist() -> None:
    for value in (True, False):
        story = Story()
        story.start()
        story.delete()
        exists(story, value)
        story.says_nothing("G11")
        if value:
            story.breaks("G10")
        else:
            story.holds("G10")


def test_a_create_that_was_not_answered_when_it_was_asked_owes_nothing() -> None:
    story = Story()
    story.start()
    invoke = story.ask(A)
    asked = story.invoke("exists")
    story.flush(A)
    story.end(invoke, "ok", "created")
    story.end(asked, "ok", False)
    story.says_nothing("G11")


@pytest.mark.parametrize("outcome", ["ok", "info", "open"])
def test_a_deletion_that_may_have_acted_excuses_a_false(outcome: str) -> None:
    story = begun()
    asked = story.invoke("exists")
    delete = story.invoke("delete")
    if outcome != "open":
        story.end(delete, outcome, True if outcome == "ok" else None)
    story.end(asked, "ok", False)
    story.says_nothing("G11")


def test_a_refused_deletion_excuses_nothing() -> None:
    story = begun()
    story.delete("fail")
    exists(story, False).breaks("G11")


def test_a_second_server_excuses_a_false_of_the_first_and_nothing_after_its_death() -> None:
    story = Story()
    first = story.start()
    story.server = story.start("second#1")
    story.create(A)
    story.server = first
    exists(story, False).says_nothing("G11")
    story.kill("second#1")
    story.create(B)
    exists(story, False).breaks("G11", under="second-server")


@pytest.mark.parametrize(
    ("outcome", "error"), [("info", "500 no"), ("info", "malformed body: b''"), ("fail", "409 not now"), ("fail", None)]
)
def test_an_answer_that_failed_for_no_reason_is_none(outcome: str, error: str | None) -> None:
    story = begun()
    story.end(story.invoke("exists"), outcome, error=error)
    breach = story.breaks("G11")
    assert f"ended {outcome} without a fault ({error or 'no reason given'})" in breach.message


def test_where_nothing_has_to_be_there_exists_may_fail() -> None:
    story = Story()
    story.start()
    story.end(story.invoke("exists"), "fail", error="404 no such directory")
    story.says_nothing("G11")


def spoiled(story: Story, reason: str, operation: str) -> Story:
    """A call that fails, for that reason."""
    if reason == "storage":
        story.fault("timeout-lost", path=MARKERS0)
    asked = story.invoke(operation)
    if reason == "wire":
        story.fault("connection-reset", "client", caused_by=asked)
    elif reason == "killed":
        story.kill()
    elif reason == "paused":
        story.fault("pause", value="begin")
        story.fault("pause", value="end")
    elif reason == "another server":
        story.fault("second-server", "second", value="begin")
        story.start("server#2")
    error = {"time": "no answer in 30 s", "another server": "503 not mine"}.get(reason, "500 no")
    story.end(asked, "info", error=error)
    return story


@pytest.mark.parametrize("reason", ["storage", "wire", "killed", "paused", "another server", "time"])
def test_under_a_fault_a_directory_with_markers_need_not_be_found_or_deleted(reason: str) -> None:
    spoiled(begun(), reason, "exists").says_nothing("G11")
    assert not spoiled(begun(), reason, "delete").finding("G10").breaches


@pytest.mark.parametrize(("outcome", "error"), [("info", "500 no"), ("fail", "409 not now"), ("fail", None)])
def test_a_deletion_that_fails_for_no_reason_breaks_it(outcome: str, error: str | None) -> None:
    story = begun()
    story.end(story.invoke("delete"), outcome, error=error)
    assert story.breaks("G10").cause == "not-deleted"
    story.wait(60_000)
    story.delete()
    story.breaks("G10")


def test_a_directory_without_answered_markers_may_be_refused_to_be_deleted() -> None:
    story = Story()
    story.start()
    story.end(story.invoke("delete"), "fail", error="404 no such directory")
    story.create(A)
    story.delete()
    story.end(story.invoke("delete"), "fail", error="404 no such directory")
    story.holds("G10")


@pytest.mark.parametrize("other", ["create", "hostile", "delete", "unknown", "removed"])
def test_a_deletion_that_meets_another_change_of_its_directory_may_fail(other: str) -> None:
    story = begun()
    beside = -1
    if other == "unknown":
        story.end(story.ask(B), "info", error="500 no")
    elif other == "removed":
        story.fault("directory-removed", "kit", path=DIRECTORY, value="begin")
    elif other == "hostile":
        beside = story.invoke("hostile", DIRECTORY, value="x")
    else:
        beside = story.ask(B) if other == "create" else story.invoke("delete")
    asked = story.invoke("delete")
    story.end(asked, "fail", error="409 busy")
    if beside >= 0:
        story.end(beside, "ok" if other == "delete" else "fail", other == "delete", error="400 no")
    elif other == "removed":
        story.fault("directory-removed", "kit", path=DIRECTORY, value="end")
    assert not [breach for breach in story.finding("G10").breaches if asked in breach.evidence]


def test_a_deleted_directory_does_not_exist() -> None:
    story = begun()
    story.delete()
    exists(story, False).holds("G10")
    story = begun()
    story.delete()
    assert exists(story, True).breaks("G10").evidence[-1] == story.last


def test_a_directory_that_was_written_to_again_may_exist() -> None:
    story = begun()
    story.delete()
    story.create(B)
    beside = story.ask(A)
    story.delete("fail")
    story.end(beside, "fail", error="400 no")
    exists(story, True).holds("G11")
    assert not story.finding("G10").breaches
    story.delete()
    exists(story, True).breaks("G10")


@pytest.mark.parametrize("late", ["open", "info", "fail", "duplicated", "hostile"])
def test_a_request_that_was_open_at_the_deletion_may_have_left_something(late: str) -> None:
    story = begun()
    invoke = story.invoke("hostile", DIRECTORY) if late == "hostile" else story.ask(B)
    if late == "info":
        story.end(invoke, "info", error="no answer")
    elif late == "duplicated":
        story.fault("duplicated", "client", caused_by=invoke)
        story.end(invoke, "ok", "created")
    story.delete()
    if late in ("fail", "hostile"):
        story.end(invoke, "fail", error="400 no")
    assert not exists(story, True).finding("G10").breaches


def test_an_answer_asked_for_before_the_deletion_was_may_be_true() -> None:
    story = begun()
    asked = story.invoke("exists")
    story.delete()
    story.end(asked, "ok", True)
    assert not story.finding("G10").breaches


def test_a_deletion_of_unknown_outcome_promises_no_false() -> None:
    story = begun()
    story.end(story.invoke("delete"), "info", error="no answer")
    exists(story, True).says_nothing("G10")


@pytest.mark.parametrize("path", [CRC, f"{DIRECTORY}/", f"{DIRECTORY}/MARKERS.type"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whatever_else_lies_there_may_keep_a_directory(path: str, when: str) -> None:
    story = begun()
    if when == "before":
        story.put(path, b"")
    delete = story.invoke("delete")
    story.put(MARKERS0, None, how="delete")
    if not path.endswith("type"):
        story.put(f"{DIRECTORY}/MARKERS.type", None, how="delete")
    story.end(delete, "ok", True)
    if when == "after":
        story.put(path, b"")
    assert not exists(story, True).finding("G10").breaches
    asked = story.invoke("exists")
    story.put(path, None, how="delete")
    story.end(asked, "ok", True)
    assert not story.finding("G10").breaches, "it was there when that was asked"
    exists(story, True).breaks("G10")


@pytest.mark.parametrize(("kind", "path"), [("damage", f"{DIRECTORY}/MARKERS.type"), ("server-error", MARKERS0)])
def test_what_the_kit_put_there_may_keep_a_directory(kind: str, path: str) -> None:
    for ours in (True, False):
        story = begun()
        story.fault(kind, "storage", value="begin", path=path if ours else path.replace("001", "002"))
        story.delete()
        assert len(exists(story, True).finding("G10").breaches) == (not ours)


def test_a_fault_that_was_over_before_the_deletion_excuses_no_true() -> None:
    story = begun()
    story.fault("server-error", "storage", value="begin", path=MARKERS0)
    story.fault("server-error", "storage", value="end", path=MARKERS0)
    story.delete()
    exists(story, True).breaks("G10", under="storage")


def test_where_storage_is_only_read_an_empty_directory_may_be_there() -> None:
    for witness in ("reads", "effects"):
        story = Story(witness=witness)
        story.start()
        story.create(A)
        story.delete()
        exists(story, True)
        assert len(story.finding("G10").breaches) == (witness == "effects")
    exists(Story(witness="reads"), False).says_nothing("G10")


def test_the_server_that_did_not_delete_may_still_say_true() -> None:
    for same in (True, False):
        story = Story()
        first = story.start()
        story.create(A)
        second = story.start("second#1")
        story.server = first
        story.delete()
        exists(story, True, caused_by=first if same else second)
        assert len(story.finding("G10").breaches) == same
