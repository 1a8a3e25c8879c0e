"""Two histories that differ in one thing, of which a judge tells another cause or accuses one: markers and storage."""

from __future__ import annotations

import pytest

from marker_sim.names import encode_names
from properties.judges.build import DIRECTORY, Story, excused, marker
from properties.judges.test_answers import OTHER
from properties.judges.test_causes import FILE, causes, story

A, B, C = marker("a"), marker("b"), marker("c")
SECOND = f"{DIRECTORY}/MARKERS1"


def test_a_marker_that_came_too_late_was_not_stored_and_then_lost() -> None:
    made = story()
    made.end(made.ask(A), "ok", "created")
    made.flush(A)
    assert causes(made, "G1") == {"stored-late"}


def test_a_request_that_came_later_is_no_reason_to_say_exists() -> None:
    made = story()
    made.create(B)
    made.end(made.ask(A), "ok", "exists")
    made.ask(A)
    assert causes(made, "G2") == {"never-stored"}


@pytest.mark.parametrize(
    ("asked", "stored", "cause"),
    [
        ("q\nr", "r", "split-at-line-break"),
        ("q\rr", "q", "split-at-carriage-return"),
        ("q\nr", "zz", "unasked"),
        ("q\nr\rs", "r\rs", "split-at-line-break"),
        ("longer", "nger", "shortened"),
        ("longer", "long", "shortened"),
        ("longer", "very-longer-one", "glued"),
        ("ü", "?", "garbled"),
        ("ü", "\ufffd", "unasked"),
    ],
)
def test_a_stored_name_that_nobody_requested_is_told_by_how_it_is_like_one(asked: str, stored: str, cause: str) -> None:
    made = story()
    made.end(made.ask(asked), "info", error="500 no")
    made.put(FILE, stored.encode() + b"\n")
    assert {b.cause for b in made.finding("G4").breaches if repr(stored) in b.message} == {cause}


def test_a_name_that_is_empty_has_a_cause_of_its_own() -> None:
    made = story()
    made.end(made.ask(""), "ok", "created")
    assert causes(made, "G1") == {"empty-name"}


@pytest.mark.parametrize("own", [True, False])
def test_only_the_file_that_held_a_name_can_have_lost_it_by_being_cut(own: bool) -> None:
    made = story()
    made.create(A)
    made.create(B, file=1)
    made.kill()
    made.put(FILE if own else SECOND, b"")
    if not own:
        made.put(FILE, encode_names([C]))
    assert {b.cause for b in made.finding("G3").breaches if repr(A) in b.message} == {
        "file-cut" if own else "rewritten-without"
    }


def test_a_deletion_after_a_loss_is_not_its_cause_and_one_before_it_is() -> None:
    for before in (False, True):
        made = story()
        if before:
            made.create(B)
            made.delete()
        made.end(made.ask(A), "ok", "created")
        if not before:
            made.wait(5_000)
            made.delete()
        assert causes(made, "G1") == {"after-deletion" if before else "never-stored"}


def test_a_direct_marker_that_is_removed_is_gone_with_its_file() -> None:
    made = Story(mode="direct")
    made.create(A)
    made.put(f"{DIRECTORY}/{A}", None, "client", how="delete")
    assert causes(made, "G3") == {"file-gone"}


@pytest.mark.parametrize("kind", ["slow-storage", "damage", "io-error"])
def test_a_fault_that_fails_no_call_explains_no_loss(kind: str) -> None:
    made = story()
    made.create(B)
    asked = made.ask(A)
    made.fault(kind, path=f"{DIRECTORY}/MARKERS.type")
    made.end(asked, "ok", "created")
    assert causes(made, "G1") == {"put-failed" if kind == "io-error" else "never-stored"}


def test_a_stray_name_shows_the_request_that_it_is_like_and_else_the_next_answer() -> None:
    made = story()
    made.create(A)
    like = made.end(made.ask(B), "info", error="500 no")
    at = made.put(FILE, encode_names([A, f"x{B}", "-"]))
    later = made.create(C)
    shown = {b.message.partition(" is stored")[0]: b.evidence for b in made.finding("G4").breaches}
    assert {at, like} <= set(shown[repr(f"x{B}")]) and later not in shown[repr(f"x{B}")]
    assert {at, later} <= set(shown[repr("-")]) and like not in shown[repr("-")]


def raw(made: Story, *names: str, began: int | None = None) -> int:
    return made.add("observe", "raw-file", path=FILE, value=encode_names(names), caused_by=began)


@pytest.mark.parametrize("deleted", ["", "open", "after"])
def test_a_name_that_a_single_read_of_its_file_misses_was_seen_before(deleted: str) -> None:
    made = story(witness="reads")
    if deleted == "open":
        made.invoke("delete")
    made.create(A)
    made.look(A)
    if deleted == "after":
        made.invoke("delete")
    raw(made)
    finding = made.finding("G23")
    assert finding.judged == 1
    assert [breach.cause for breach in finding.breaches] == ([] if deleted else ["not-atomic"])
    assert dict(finding.excused) == ({"deletion-open": 1} if deleted == "open" else {})


def test_a_read_that_began_before_the_answer_owes_it_nothing() -> None:
    made = story(witness="reads")
    asked = made.ask(A)
    raw(made, A)
    began = made.last
    made.flush(A)
    made.end(asked, "ok", "created")
    raw(made, began=began)
    assert not made.finding("G23").breaches
    raw(made, began=made.last)
    assert len(made.finding("G23").breaches) == 1, "a raw read without the name forgets nothing"


def test_a_name_that_another_file_shows_is_not_missed() -> None:
    made = story(witness="reads")
    made.create(A)
    made.look(A)
    made.add("observe", "raw-file", path=SECOND, value=encode_names([A]))
    raw(made)
    assert not made.finding("G23").breaches and made.finding("G23").judged == 1


@pytest.mark.parametrize(
    ("operation", "path", "seen"), [("file", FILE, True), ("raw-file", FILE, False), ("file", "t/x", False)]
)
def test_a_refused_request_changed_what_two_whole_reads_below_its_target_show(
    operation: str, path: str, seen: bool
) -> None:
    made = story(witness="reads")
    made.add("observe", operation, path=path, value=b"1")
    made.end(made.invoke("hostile", DIRECTORY, value="x"), "fail", error="400")
    made.add("observe", operation, path=path, value=b"2")
    assert len(made.finding("G12").breaches) == seen


@pytest.mark.parametrize("other", ["fail", "info", "ok"])
def test_another_hostile_request_explains_a_change_unless_it_was_refused(other: str) -> None:
    made = story()
    made.create(A)
    made.end(made.invoke("hostile", DIRECTORY, value="y"), other, error="400" if other == "fail" else None)
    refused = made.invoke("hostile", DIRECTORY, value="x")
    made.put(FILE, b"")
    made.end(refused, "fail", error="400")
    blamed = [breach for breach in made.finding("G12").breaches if "request 'x'" in breach.message]
    assert len(blamed) == (other == "fail")
    assert excused(made, "G12") == ({} if other == "fail" else {"other-request": 1})


def test_a_create_that_was_open_when_its_directory_was_deleted_needs_no_excuse() -> None:
    made = story()
    made.create(B)
    invoke = made.ask(A)
    made.delete()
    made.flush(A)
    made.end(invoke, "ok", "created")
    made.list(A)
    made.holds("G10")
    assert excused(made, "G10") == {}


def test_a_create_that_is_answered_while_another_one_is_open_was_never_stored() -> None:
    made = story()
    made.create(B)
    made.ask(A)
    made.end(made.ask(A), "ok", "created")
    assert causes(made, "G1") == {"never-stored"}


def test_a_listing_that_glues_what_is_stored_rightly_says_so() -> None:
    for shown, cause in ((f"{A}x", "glued"), ("x", "stored-and-not-listed")):
        made = story()
        made.create(A)
        made.list(shown)
        assert causes(made, "G11") == {cause}


def test_a_file_that_a_killed_server_had_written_as_a_whole_was_not_cut() -> None:
    made = story()
    made.create(A)
    made.kill()
    made.put(FILE, encode_names([B]))
    assert causes(made, "G3") == {"rewritten-without"}


@pytest.mark.parametrize(
    ("kind", "path", "excuse"),
    [
        ("disk-full", None, ""),
        ("kill", f"{DIRECTORY}/x", ""),
        ("throttled", f"{OTHER}/x", ""),
        ("throttled", FILE, "x"),
    ],
)
def test_only_a_storage_fault_below_a_deleted_directory_may_keep_it(kind: str, path: str | None, excuse: str) -> None:
    made = story()
    made.create(A)
    made.delete()
    made.put(f"{OTHER}/MARKERS0", b"")
    made.fault(kind, "client" if kind == "kill" else "server#1", path=path)
    made.end(made.invoke("exists", process="client#2"), "ok", True)
    assert excused(made, "G10") == ({"storage-fault": 1} if excuse else {})
    assert len(made.finding("G10").breaches) == (not excuse)


def test_a_resend_of_a_name_that_was_stored_before_the_request_may_be_told_that_it_exists() -> None:
    for before in (False, True):
        made = story()
        if before:
            made.flush(A)
        made.ask(A, "r1")
        resend = made.ask(A, "r1")
        made.flush(A)
        made.end(resend, "ok", "exists")
        assert len(made.finding("G5").breaches) == (not before)


def test_a_listing_is_accused_once_however_often_its_directory_was_deleted() -> None:
    made = story()
    made.create(A)
    made.delete()
    made.delete()
    made.list(A)
    assert causes(made, "G10") == {"listed-after-deletion"}
    made.breaks("G10")


def test_a_stray_name_shows_a_request_that_failed_where_none_was_answered() -> None:
    made = story()
    asked = made.ask(B)
    made.end(asked, "fail", error="400")
    at = made.put(FILE, encode_names(["x"]))
    assert {asked, at} <= set(made.breaks("G4").evidence)


def test_a_file_that_comes_while_it_is_asked_for_may_be_why_a_directory_exists() -> None:
    made = story()
    made.create(A)
    made.delete()
    asked = made.invoke("exists")
    made.put(f"{DIRECTORY}/.crc", b"")
    made.put(f"{DIRECTORY}/.crc", None)
    made.end(asked, "ok", True)
    assert excused(made, "G10") == {"something-there": 1}


def test_a_direct_marker_that_a_single_read_misses_is_seen() -> None:
    made = Story(mode="direct", witness="reads")
    path = f"{DIRECTORY}/{A}"
    made.end(made.ask(A), "ok", "created")
    made.observe("file", path=path, value=b"")
    made.observe("snapshot", path=DIRECTORY, caused_by=made.last - 1)
    made.observe("raw-file", path=path, value=b"", caused_by=made.last)
    made.holds("G23")
    made.observe("raw-file", path=path, value=None, caused_by=made.last)
    made.breaks("G23")


def test_two_creators_are_seen_where_storage_was_never_read() -> None:
    made = story(witness="reads")
    made.end(made.ask(A, "r1"), "ok", "created")
    made.end(made.ask(A, "r2"), "ok", "created")
    made.breaks("G5")


def test_the_type_file_of_direct_markers_is_nobodys_business() -> None:
    for direct in (False, True):
        made = story()
        if direct:
            made.add("observe", "mode", table="t", instant="001", value="direct")
        made.invoke("exists")
        made.put(FILE, b"")
        finding = made.finding("G9")
        assert finding.applicable and finding.judged == len(finding.breaches) == (not direct)


def test_a_torn_rewrite_that_a_reader_sees_needs_no_excuse() -> None:
    made = story()
    made.create(A)
    made.put(FILE, b"", how="overwrite-begin")
    made.put(FILE, encode_names([A])[:5], how="overwrite-piece")
    made.end(made.ask(A), "ok", "exists")
    made.put(FILE, encode_names([A]), how="overwrite-end")
    assert made.finding("G23").breaches and excused(made, "G23") == {}


def test_a_stray_name_shows_the_answered_request_that_it_is_like() -> None:
    made = story()
    like = made.create(B)
    made.put(FILE, encode_names([B, f"x{B}"]))
    later = made.create(C)
    (evidence,) = (b.evidence for b in made.finding("G4").breaches if repr(f"x{B}") in b.message)
    assert like in evidence and later not in evidence


def test_what_was_there_after_a_deletion_all_the_same_needs_no_excuse() -> None:
    made = story()
    made.create(B)
    delete = made.invoke("delete")
    asked = made.ask(A)
    made.flush(A)
    made.end(asked, "ok", "created")
    made.end(delete, "info", error="500 no")
    for guarantee in ("G1", "G3", "G23"):
        assert excused(made, guarantee) == {}, guarantee


def test_whole_reads_alone_say_nothing_of_rewrites() -> None:
    made = story(witness="reads")
    made.create(A)
    made.look(A)
    made.look(A)
    made.says_nothing("G23")


@pytest.mark.parametrize("end", ["fail", "ok"])
def test_a_name_of_a_hostile_request_that_was_refused_must_not_be_stored(end: str) -> None:
    made = story()
    made.create(A)
    made.end(made.invoke("hostile", DIRECTORY, value="odd"), end, None, "400" if end == "fail" else None)
    made.put(FILE, encode_names([A, "odd"]))
    assert len(made.finding("G4").breaches) == (end == "fail")


def test_many_direct_markers_that_are_not_empty_are_one_breach() -> None:
    made = Story(mode="direct")
    made.invoke("exists")
    first = made.put(f"{DIRECTORY}/{A}", b"x", "client")
    made.put(f"{DIRECTORY}/{B}", b"x", "client")
    assert first in made.breaks("G8").evidence


def test_a_fault_of_the_type_file_is_no_damage_to_it_for_the_server_that_was_asked() -> None:
    made = story()
    made.ask(A)
    made.fault("throttled", path=f"{DIRECTORY}/MARKERS.type")
    made.put(FILE, encode_names([A]))
    assert causes(made, "G9") == {"put-failed"}


def test_what_is_stored_again_is_accused_once_however_often_it_was_deleted() -> None:
    made = story()
    made.create(A)
    made.delete()
    made.delete()
    made.flush(A)
    made.breaks("G10")


def test_damage_long_before_a_deletion_excuses_nothing_after_it() -> None:
    made = story()
    made.create(A)
    made.fault("damage", "kit", path=FILE)
    made.wait(60_000)
    made.create(B)
    made.delete()
    made.flush(B)
    assert causes(made, "G10") == {"back-after-deletion"} and excused(made, "G10") == {}
