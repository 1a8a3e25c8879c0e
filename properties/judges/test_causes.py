"""Causes: what tells two defects apart that break the same guarantee in the same place."""

from __future__ import annotations

from typing import Any

import pytest

from marker_sim.names import checksum_file, encode_names
from properties.judges.build import DIRECTORY, INSTANT, Story, marker

A, B, C = marker("a"), marker("b"), marker("c")
FILE = f"{DIRECTORY}/MARKERS0"


def story(**header: Any) -> Story:
    made = Story(**header)
    made.start()
    return made


def causes(made: Story, guarantee: str) -> set[str]:
    return {breach.cause for breach in made.finding(guarantee).breaches}


def test_a_name_inside_a_longer_one_is_glued_wherever_it_is_missed() -> None:
    made = story()
    made.create(A)
    made.kill()
    made.start()
    made.put(FILE, encode_names([A + B]))
    again = made.ask(A)
    made.put(FILE, encode_names([A + B, A]))
    made.end(again, "ok", "created")
    made.put(FILE, encode_names([A + B]))
    made.list(A + B)
    for guarantee in ("G3", "G4", "G5", "G11"):
        assert causes(made, guarantee) == {"glued"}, guarantee


def test_a_name_that_somebody_asked_for_glues_nothing() -> None:
    made = story()
    made.create(A)
    made.create(f"x/{A}")
    made.put(FILE, encode_names([f"x/{A}"]))
    assert causes(made, "G3") == {"rewritten-without"}


@pytest.mark.parametrize("left", [b"", encode_names([A])[:-5], encode_names([A])])
def test_a_file_that_ends_early_after_a_kill_was_cut(left: bytes) -> None:
    made = story()
    made.create(A)
    made.create(B)
    made.create(C)
    made.kill()
    made.put(FILE, left)
    assert causes(made, "G3") == {"file-cut"}


def test_a_name_that_was_glued_and_then_cut_away_was_in_the_file_that_was_cut() -> None:
    made = story()
    made.create(A)
    made.kill()
    made.start()
    made.put(FILE, encode_names([A + B]))
    made.kill()
    made.put(FILE, b"")
    made.start()
    made.create(A)
    assert causes(made, "G5") == {"file-cut"}


def test_a_file_that_was_cut_and_written_again_lost_its_names_when_it_was_cut() -> None:
    made = story()
    made.create(A)
    made.kill()
    made.put(FILE, b"")
    made.start()
    made.put(FILE, encode_names([B]))
    again = made.ask(A)
    made.put(FILE, encode_names([B, C]))
    made.end(again, "ok", "created")
    assert causes(made, "G5") == {"file-cut"}


def test_a_file_whose_writer_died_before_it_had_written_it_again_was_cut() -> None:
    for killed in (True, False):
        made = story(storage="local")
        made.create(A)
        made.put(FILE, b"", how="overwrite-begin")
        if killed:
            made.kill()
        else:
            made.put(FILE, encode_names([B]), how="overwrite-end")
            made.kill()
        assert causes(made, "G3") == {"file-cut" if killed else "rewritten-without"}


@pytest.mark.parametrize(("failed", "cause"), [
    (FILE, "file-cut"), (checksum_file(FILE), "file-cut"), (f"{DIRECTORY}/MARKERS1", "rewritten-without"),
])  # fmt: skip
def test_a_file_that_stays_empty_since_storage_failed_it_or_its_checksums_was_cut(failed: str, cause: str) -> None:
    made = story(storage="local")
    made.create(A)
    made.put(FILE, b"", how="overwrite-begin")
    made.fault("io-error", path=failed)
    made.fault("kill", value="end-of-run")
    assert causes(made, "G3") == {cause}


def test_what_another_program_removed_counts_under_that_as_long_as_the_server_remembers_it() -> None:
    for remembered in (True, False):
        made = story()
        made.create(A)
        made.fault("directory-removed", "outside-1", value="begin", path=DIRECTORY)
        made.put(FILE, None, "outside-1", how="delete")
        made.fault("directory-removed", "outside-1", value="end", path=DIRECTORY)
        if not remembered:
            made.kill()
            made.start()
        made.end(made.ask(A), "ok", "exists")
        made.kill()
        made.start()
        under = {breach.under for breach in made.finding("G4").breaches if "'exists'" in breach.message}
        assert under == {"outside" if remembered else "restart"}


def test_a_file_that_is_emptied_with_nobody_killed_was_not_cut() -> None:
    made = story()
    made.create(A)
    made.put(FILE, b"")
    assert causes(made, "G3") == {"rewritten-without"}


def test_the_end_of_a_name_alone_comes_from_two_writes_at_a_time() -> None:
    made = story(storage="local")
    made.create(A)
    made.put(FILE, encode_names([A, "TE"]), how="overwrite-begin")
    made.put(FILE, encode_names([A, "TE"]), how="overwrite-end")
    assert causes(made, "G4") == {"mixed"}


def test_a_listing_lacks_what_was_lost_before_by_the_cause_of_that_loss() -> None:
    made = story(witness="reads", storage="local")
    made.create(A)
    made.look(A)
    made.kill()
    made.observe("file", path=FILE, value=b"")
    made.observe("snapshot", path=DIRECTORY, caused_by=made.last - 1)
    made.start()
    made.list()
    assert causes(made, "G11") == causes(made, "G3") == {"file-cut"}


def test_a_kill_while_a_file_was_read_that_was_cut_is_why_it_is_empty_next_time() -> None:
    made = story(witness="reads", storage="local")
    made.create(A)
    began = made.last
    made.kill()
    made.look(A, began=began)
    made.observe("file", path=FILE, value=b"")
    made.observe("snapshot", path=DIRECTORY, caused_by=made.last - 1)
    assert causes(made, "G3") == {"file-cut"}


def test_a_file_that_is_written_again_as_a_whole_was_not_cut() -> None:
    made = story()
    made.create(A)
    made.create(B)
    made.put(FILE, encode_names([B]))
    assert causes(made, "G3") == {"rewritten-without"}
    made.put(FILE, None)
    assert causes(made, "G4") == {"rewritten-without", "file-gone"}


def test_two_defects_under_one_fault_are_told_apart_in_one_run() -> None:
    made = story()
    made.create(A, file=0)
    made.create(B, file=1)
    made.kill()
    made.start()
    made.put(FILE, encode_names([A + C]))
    made.put(f"{DIRECTORY}/MARKERS1", b"")
    finding = made.finding("G3")
    assert [(breach.under, breach.cause) for breach in finding.breaches] == [
        ("restart", "glued"),
        ("restart", "file-cut"),
    ]


def test_a_put_that_failed_is_the_cause_also_when_the_name_exists_by_memory() -> None:
    made = story()
    made.create(B)
    first = made.ask(A)
    made.fault("throttled", path=FILE)
    made.end(first, "ok", "created")
    assert causes(made, "G1") == {"put-failed"}
    made.end(made.ask(A), "ok", "exists")
    assert causes(made, "G2") == {"put-failed"}


def test_exists_while_the_first_create_is_open_is_not_exists_after_its_flush_failed() -> None:
    for fault, cause in (("", "exists-while-open"), ("io-error", "exists-after-failed-flush")):
        made = story()
        made.create(B)
        made.ask(A)
        if fault:
            made.fault(fault, path=FILE)
        made.end(made.ask(A), "ok", "exists")
        assert causes(made, "G2") == causes(made, "G4") == {cause}


def test_exists_is_explained_by_an_open_create_after_a_deletion_although_an_older_one_is_open_too() -> None:
    made = story()
    made.create(B)
    made.ask(A)
    made.delete()
    first = made.ask(A)
    made.end(made.ask(A), "ok", "exists")
    made.put(FILE, encode_names([A]))
    made.end(first, "ok", "created")
    assert causes(made, "G2") == {"exists-while-open"}


def test_storage_that_failed_elsewhere_explains_nothing_here() -> None:
    made = story()
    made.create(B)
    first = made.ask(A)
    made.fault("throttled", path=FILE.replace(INSTANT, "002"))
    made.end(first, "ok", "created")
    assert causes(made, "G1") == {"never-stored"}


def test_a_marker_that_the_first_look_after_a_kill_does_not_show() -> None:
    made = story(witness="reads")
    made.end(made.ask(A), "ok", "created")
    made.kill()
    made.look()
    assert causes(made, "G3") == {"lost-at-kill"}


def test_what_a_deletion_left_behind_is_told_from_what_comes_back() -> None:
    made = story()
    made.create(A)
    made.delete()
    made.put(FILE, encode_names([A]))
    assert causes(made, "G10") == {"back-after-deletion"}
    made = story()
    made.create(A)
    deletion = made.invoke("delete")
    made.end(deletion, "ok", True)
    assert causes(made, "G10") == {"not-deleted"}
    made = story()
    made.create(A)
    deletion = made.invoke("delete")
    made.remove()
    made.put(FILE, encode_names([A]))
    made.end(deletion, "ok", True)
    assert causes(made, "G10") == {"back-during-deletion"}


def test_a_marker_overwritten_by_what_was_before_a_deletion() -> None:
    made = story()
    made.create(A)
    made.delete()
    made.create(B)
    made.put(FILE, encode_names([C]))
    assert causes(made, "G3") == {"after-deletion"}


@pytest.mark.parametrize(("name", "shown", "cause"), [
    ("größe=大/x.parquet.marker.CREATE", "größe=?/x.parquet.marker.CREATE", "garbled"),
    ("a\nb.parquet.marker.CREATE", "b.parquet.marker.CREATE", "split-at-line-break"),
    ("a\rb.parquet.marker.CREATE", "b.parquet.marker.CREATE", "split-at-carriage-return"),
    (A, "other.parquet.marker.CREATE", "unasked"),
])  # fmt: skip
def test_what_a_listing_shows_instead_of_a_name(name: str, shown: str, cause: str) -> None:
    made = story()
    made.create(name)
    made.list(shown)
    assert cause in causes(made, "G4")
    missed = {"unasked": {"stored-and-not-listed"}}.get(cause, {cause})
    assert causes(made, "G11") == missed


@pytest.mark.parametrize(
    ("asked", "stored"),
    [("\udcff", "\ufffd"), ("\udced\udca0\udc80", "\ufffd"), ("\udced\udca0\udc80", "\ufffd\ufffd\ufffd")],
)
def test_a_name_that_is_no_text_and_is_stored_as_another_is_missed_for_that(asked: str, stored: str) -> None:
    made = story()
    made.put(FILE, encode_names([f"a{stored}b.parquet.marker.CREATE"]))
    made.end(made.ask(f"a{asked}b.parquet.marker.CREATE"), "ok", "created")
    assert causes(made, "G1") == causes(made, "G4") == {"no-text"}


def test_requests_that_hang_are_told_apart_by_what_came_before_them() -> None:
    def hung(fault: str = "", path: str = FILE, deleted: str = "") -> set[str]:
        made = story(answer_bound_ms=50)
        if deleted:
            made.invoke("delete", instant=deleted)
        if fault:
            made.fault(fault, path=path)
        made.ask(A)
        made.wait(200)
        made.observe("phase", value="end")
        return causes(made, "G6")

    assert hung() == {"unanswered"}
    assert hung("io-error") == {"after-failed-flush"}
    assert hung("io-error", FILE.replace(INSTANT, "002")) == {"after-trouble-elsewhere"}
    assert "met-deletion" in hung(deleted=INSTANT)
    assert "after-trouble-elsewhere" in hung(deleted="002")


def test_a_listing_that_shows_one_question_mark_for_a_lone_surrogate_is_garbled() -> None:
    made = story()
    made.end(made.ask("a\udced\udca0\udc80b.parquet.marker.CREATE"), "ok", "created")
    made.list("a?b.parquet.marker.CREATE")
    assert "garbled" in causes(made, "G4")
