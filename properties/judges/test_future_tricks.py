"""G30 to G32 against histories that try to mislead them: correct ones that look wrong, and harm that looks right."""

from __future__ import annotations

import pytest

from properties.judges.test_futures import FAILED, KEPT, PLACE, Later, begun, listed
from properties.judges.writers import TIMELINE, data_file, instant


def test_a_rollback_record_is_judged_when_it_is_older_than_the_future() -> None:
    def told(*facts: str) -> Later:
        story = Later(stray=False)
        story.entries[f"{TIMELINE}/{instant(3)}.rollback.requested"] = (
            "action rollback",
            f"rolled-back {instant(2)}",
            "state requested",
            f"will-delete {data_file(FAILED, 2)}",
        )
        story.numbers[f"{TIMELINE}/{instant(3)}.rollback.requested"] = 3
        story.record(3, "rollback", f"rolled-back {instant(2)}", *facts)
        return story

    story = told(f"deleted {data_file(FAILED, 2)}")
    story.step("")
    story.holding("G31")
    story = told(f"deleted {data_file(FAILED, 2)}")
    story.stored.add(data_file(FAILED, 2))
    story.step("")
    story.breach("G31", "its rollback says that it deleted", data_file(FAILED, 2))
    story = told()
    story.step("")
    story.breach("G31", "its rollback does not name", data_file(FAILED, 2), "which its plan says it deletes")


@pytest.mark.parametrize("again", [True, False])
def test_what_was_rolled_back_and_run_again_under_the_same_instant_may_have_the_same_names(again: bool) -> None:
    """A pending compaction or clustering, in one step of a service."""
    story, name = begun(stray=False), data_file("p/c", 5)
    story.stored.add(name)
    story.record(6, "rollback", f"rolled-back {instant(5)}", f"deleted {name}")
    if again:
        story.record(5, "commit", f"wrote {name}")
    story.step("compact")
    if again:
        story.holding("G31")
    else:
        story.breach("G31", "its rollback says that it deleted", name)


def test_a_clean_that_was_archived_within_the_step_says_what_it_deleted() -> None:
    for said, breaks in (((data_file(KEPT, 1),), False), ((), True)):
        story = begun(stray=False)
        story.commit(5, "k1=w5")
        story.stored.remove(data_file(KEPT, 1))
        story.archives[".hoodie/timeline/history/1_2_0.parquet"] = said
        story.step("commit")
        if breaks:
            story.breach("G31", "was deleted or changed after step 2 (commit), and no record says so")
        else:
            story.holding("G31")


def test_an_archive_with_a_record_that_cannot_be_read_is_a_breach_once() -> None:
    story = begun()
    story.commit(5, "q5=w5")
    story.archives[".hoodie/timeline/history/1_2_0.parquet"] = "commit of 1: it ends too early"
    story.step("archive")
    story.step("clean")
    story.breach("G31", "the archive cannot be read: commit of 1: it ends too early")


def test_a_restore_whose_record_lies_is_a_breach() -> None:
    story = begun(stray=False)
    story.step("savepoint")
    story.commit(5, "q5=w5")
    story.entries = {path: facts for path, facts in story.entries.items() if story.numbers[path] != 5}
    del story.rows["q5"]
    story.record(6, "restore", f"rolled-back {instant(5)}", f"deleted {data_file('q/5', 5)}")
    story.step("restore")
    story.breach("G31", "its restore says that it deleted", data_file("q/5", 5))


def test_what_a_restore_left_of_a_commit_need_not_be_listed() -> None:
    """The commit is no longer completed; that its file is left is a matter of G30, once a reader finds its row."""
    story = begun(stray=False)
    story.step("savepoint", listed(story))
    story.commit(5, "q5=w5")
    story.entries = {path: facts for path, facts in story.entries.items() if story.numbers[path] != 5}
    del story.rows["q5"]
    story.record(6, "restore", f"rolled-back {instant(5)}")
    story.step("restore", tuple(sorted(story.stored - {data_file("q/5", 5)})))
    story.holding("G32")
    story.step("archive", (), hudi=("k1=w1", "q5=w5"))
    story.breach("G30", "of no completed write", "after step 4 (archive)")
    story.breach("G32", "does not list", data_file(KEPT, 1))


def test_a_commit_that_ran_again_after_its_rollback_is_missed_in_a_listing() -> None:
    story, name = begun(stray=False), data_file("p/c", 5)
    story.stored.add(name)
    story.record(6, "rollback", f"rolled-back {instant(5)}", f"deleted {name}")
    story.record(5, "commit", f"wrote {name}")
    story.step("compact", (data_file(KEPT, 1),))
    story.breach("G32", "does not list", name)


@pytest.mark.parametrize("found", ["w1", "w5"])
def test_a_savepoint_over_a_failed_write_keeps_what_a_reading_before_it_showed_of_it(found: str) -> None:
    for back in ("w1", "w5", "w6"):
        story = begun(stray=False)
        story.commit(5, "k1=w5", kind="info", hudi=(f"k1={found}",))
        story.step("savepoint", hudi=(f"k1={found}",))
        story.commit(6, "k1=w6")
        story.step("restore", hudi=(f"k1={back}",))
        if back == found:
            story.holding("G30")
        else:
            story.breach("G30", "with other values", "after step 4 (restore)")


@pytest.mark.parametrize(("first", "later"), [("w1", "w5"), ("w5", "w1")])
def test_a_failed_write_of_the_future_neither_shows_later_nor_vanishes_later(first: str, later: str) -> None:
    story = begun(stray=False)
    story.commit(5, "k1=w5", kind="info", hudi=(f"k1={first}",))
    story.step("clean", hudi=(f"k1={first}",))
    story.holding("G30")
    story.step("archive", hudi=(f"k1={later}",))
    story.breach("G30", "with other values", "after step 3 (archive)")


def test_readers_agree_about_a_failed_write_of_the_future() -> None:
    story = begun(stray=False)
    story.commit(5, "k1=w5", kind="info", hudi=("k1=w1",), hudi_metadata=("k1=w5",))
    assert "hudi-metadata finds 1 wrong rows" in story.breach("G30", "after step 1 (commit)")


def test_what_a_first_restore_took_back_does_not_come_back_by_a_second_one_that_failed() -> None:
    story = begun(stray=False)
    story.step("savepoint")
    story.commit(5, "k1=w5")
    story.rows["k1"] = "w1"
    story.step("restore")
    story.commit(6, "q6=w6")
    story.step("restore", failed="it failed")
    story.holding("G30")
    story.step("clean", hudi=("k1=w5", "q6=w6"))
    story.breach("G30", "of 'k1' ['w5'] instead of ['w1']", "after step 6 (clean)")


def test_a_restore_that_failed_may_be_finished_by_a_later_step() -> None:
    story = begun(stray=False)
    story.step("savepoint")
    story.commit(5, "k1=w5")
    story.step("restore", failed="it failed", hudi=("k1=w5",))
    story.step("clean", hudi=("k1=w1",))
    story.holding("G30")


def test_a_write_that_never_ended_before_the_future_hides_no_harm_to_what_the_future_writes() -> None:
    story = Later(stray=False)
    story.add("driver-1", "invoke", "write", value=("k9=w9",), **PLACE)
    story.audit(story.events[-1].index)
    story.step("")
    story.commit(5, "q5=w5")
    story.holding("G30")
    story.step("clean", hudi=("k1=w1",))
    story.breach("G30", "1 lost", "of 'q5'")


def test_a_row_that_is_back_and_deleted_again_was_back_and_hudi_rs_alone_may_find_it_twice() -> None:
    story = begun()
    story.step("archive", hudi=("k1=w1", "k2=w2"))
    story.step("clean")
    story.breach("G30", "1 of no completed write", "after step 1 (archive)")
    story = begun()
    story.step("archive", hudi_rs=("k1=w1", "k1=w1"))
    assert "hudi-rs finds 1 wrong rows (1 more than once" in story.breach("G30")
    assert story.breach("G15").startswith("impact: hudi-rs finds 1 wrong rows (1 more than once")


def entry_of(number: int, action: str) -> str:
    return f"{TIMELINE}/{instant(number)}_{instant(number)}.{action}"


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (("commit", f"wrote {data_file(KEPT, 1)}", "sum 00000002"), "its completed commit was changed after step 2"),
        (("commit", "sum 00000001"), "its completed commit was changed after step 2 (clean)"),
        ("it is empty", "its completed commit cannot be read: it is empty"),
    ],
)
def test_a_record_that_was_true_and_is_damaged_later_is_a_breach_once(later: tuple[str, ...] | str, words: str) -> None:
    story = Later(stray=False)
    story.record(1, "commit", f"wrote {data_file(KEPT, 1)}", "sum 00000001")
    story.step("")
    story.step("archive")
    story.holding("G31")
    story.record(1, "commit", *later[1:]) if isinstance(later, tuple) else story.record(1, "commit", error=later)
    story.step("clean")
    story.step("archive")
    assert instant(1) in story.breach("G31", words)


def test_a_record_that_is_repaired_or_gone_and_made_anew_was_not_changed() -> None:
    story = Later(stray=False)
    story.record(1, "commit", error="it ends too early")
    story.step("")
    story.breach("G31", "its completed commit cannot be read")
    story.record(1, "commit", f"wrote {data_file(KEPT, 1)}")
    story.step("commit")
    story.breach("G31", "its completed commit cannot be read")
    story = begun(stray=False)
    for said in ("sum 00000001", "sum 00000002"):
        story.record(4, "savepoint", said)
        story.step("savepoint")
        del story.entries[entry_of(4, "savepoint")]
        story.step("drop-savepoint")
    story.holding("G31")


def test_a_record_that_is_repaired_and_says_what_is_not_so_is_a_breach_of_its_own() -> None:
    story = begun(stray=False)
    story.record(5, "clean", error="it ends too early")
    story.step("clean")
    story.record(5, "clean", f"deleted {data_file(KEPT, 1)}")
    story.step("clean")
    first, second = story.judged("G31").breaches
    assert "cannot be read" in first.message and f"deleted {data_file(KEPT, 1)!r}, which is stored" in second.message


def test_an_archive_that_could_be_read_and_is_damaged_later_is_a_breach() -> None:
    story = begun()
    path = ".hoodie/timeline/history/1_2_0.parquet"
    story.archives[path] = ()
    story.step("archive")
    story.holding("G31")
    story.archives[path] = "it is cut off"
    story.step("clean")
    story.step("clean")
    story.breach("G31", "the archive cannot be read: it is cut off")


def test_what_an_archive_says_of_deletions_counts_when_it_is_appended_to() -> None:
    """An archive of table version 6 is one file for many steps."""
    story = begun(stray=False)
    story.commit(5, "k1=w5")
    story.archives[".hoodie/archived/.commits_.archive.1"] = ()
    story.step("archive")
    story.stored.remove(data_file(KEPT, 1))
    story.archives[".hoodie/archived/.commits_.archive.1"] = (data_file(KEPT, 1),)
    story.step("archive")
    story.holding("G31")


def test_rows_that_were_wrong_before_the_future_are_no_measure_and_the_others_are() -> None:
    """G24 accuses the first; a step that mends them is right, and one that loses others is not."""
    story = Later(stray=False)
    story.write(5, "k3=w3")
    story.audit(story.events[-1].index, hudi=("k1=w1",))
    story.step("", hudi=("k1=w1",))
    story.step("rebuild", hudi=("k1=w1", "k3=w3"))
    story.holding("G30", wrong_before=2)  # Two readings.
    assert story.judged("G24").breaches
    story.step("clean", hudi=())
    story.breach("G30", "finds 1 wrong rows (1 lost", "of 'k1'", "after step 2 (clean)")


@pytest.mark.parametrize("shown", [(), ("k1=w1",), ("k1=w5",), ("k1=w0",)])
def test_what_a_failed_write_may_have_left_before_the_future_is_a_measure(shown: tuple[str, ...]) -> None:
    """An older value than the last completed write's is none, nor is a lost row."""
    story = Later(stray=False)
    story.write(5, "k1=w5", kind="info")
    story.audit(story.events[-1].index, hudi=shown)
    story.step("", hudi=shown)
    story.step("clean", hudi=("k1=w7",))
    if shown in (("k1=w1",), ("k1=w5",)):
        story.breach("G30", "with other values", f"of 'k1' ['w7'] instead of ['{shown[0][3:]}'], after step 1 (clean)")
    else:
        story.holding("G30", wrong_before=2)


def test_a_key_that_was_wrong_before_is_judged_from_the_next_write_of_it_on_and_not_after_its_restore() -> None:
    story = Later(stray=False)
    story.audit(story.events[-1].index, hudi=())
    story.step("", hudi=())
    story.step("savepoint", hudi=())
    story.holding("G30", wrong_before=2)
    story.commit(5, "k1=w5")
    story.step("restore", hudi=("k1=w0",))
    story.holding("G30", wrong_before=3)
    story.commit(6, "k1=w6", hudi=("k1=w5",))
    story.breach("G30", "with other values", "step 4 (commit)")


@pytest.mark.parametrize("found", [(), ("k1=w0",), ("k1=w1|twice|w5",), ("k1=w9",)])
def test_a_write_of_the_future_that_failed_hides_no_harm_to_its_rows(found: tuple[str, ...]) -> None:
    """It had an effect or none: the row before or its own."""
    for right in (("k1=w1",), ("k1=w5",)):
        story = begun(stray=False)
        story.commit(5, "k1=w5", kind="info", hudi=right)
        story.step("clean", hudi=right)
        story.holding("G30")
        story.step("archive", hudi=found)
        story.breach("G30", "finds 1 wrong rows", "after step 3 (archive)")


def test_a_restore_that_failed_hides_no_harm_to_rows_that_it_may_have_taken_back() -> None:
    for right in (("k1=w1",), ("k1=w5",)):
        story = begun(stray=False)
        story.step("savepoint")
        story.commit(5, "k1=w5")
        story.step("restore", failed="it failed", hudi=right)
        story.holding("G30")
        story.step("archive", hudi=("k1=w0",))
        story.breach("G30", "with other values", "after step 4 (archive)")


def test_a_restore_to_a_savepoint_that_nobody_knows_accuses_nobody_until_the_next_write() -> None:
    """That savepoint was made before the future, for its own one failed."""
    story = begun(stray=False)
    story.commit(5, "k1=w5")
    story.step("savepoint", failed="it failed")
    story.step("restore", hudi=("k1=w0",))
    story.holding("G30", wrong_before=2)
    story.commit(6, "k1=w6", hudi=("k1=w0",))
    story.breach("G30", "with other values", "after step 4 (commit)")


def test_a_reader_that_is_not_of_hudi_decides_for_no_other_what_became_of_a_failed_write() -> None:
    story = begun(stray=False)
    story.commit(5, "k1=w5", kind="info", **{"hudi-rs": ("k1=w1",)}, hudi=("k1=w5",))
    story.step("clean", hudi=("k1=w5",))
    assert story.breach("G30", "after step 1 (commit)").startswith("t: hudi-rs finds 1 wrong rows")


def test_a_restore_that_failed_may_have_taken_back_the_last_of_two_writes() -> None:
    story = begun(stray=False)
    story.step("savepoint")
    for number in (5, 6):
        story.commit(number, f"k1=w{number}")
    story.step("restore", failed="it failed", hudi=("k1=w5",))
    story.holding("G30")
    story.rows["k1"] = "w1"
    story.step("restore")
    story.holding("G30")
    story.step("clean", hudi=("k1=w5",))
    story.breach("G30", "with other values", "after step 6 (clean)")


def test_a_file_whose_size_changes_is_a_breach_but_for_a_log_file_that_grows() -> None:
    """Nobody reads the older versions of a group, but queries that are going on and restores."""

    def resized(name: str, size: int) -> Later:
        story = begun(stray=False)
        story.stored.add(name)
        story.step("commit")
        at = len(story.events)
        story.step("clean")
        sized = (e._replace(value=size) if e.path == name else e for e in story.events[at:])
        story.events[at:] = [*sized]
        return story

    log = f"p/.c_{instant(5)}.log.1_0-1-0"
    resized(log, 9).holding("G31")
    for name, size in ((data_file(KEPT, 1), 9), (data_file(KEPT, 1), 1), (log, 1)):
        resized(name, size).breach("G31", f"{name!r} was deleted or changed after step 2 (clean)")
