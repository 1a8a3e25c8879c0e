"""G30 to G32 against histories that try to mislead them: correct ones that look wrong, and harm that looks right."""

from __future__ import annotations

import pytest

from properties.judges.test_futures import FAILED, KEPT, Later, begun, listed
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
            story.breach("G31", "was deleted after step 2 (commit), and no record says so")
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


def test_a_savepoint_over_a_failed_write_keeps_what_is_not_known_of_it() -> None:
    story = begun(stray=False)
    story.commit(5, "k1=w5", kind="info")
    story.step("savepoint")
    story.commit(6, "k1=w6")
    story.rows["k1"] = "w1"
    story.step("restore", hudi=("k1=w5",))
    story.holding("G30", step_failed=1)


def test_a_row_that_is_back_and_deleted_again_was_back_and_hudi_rs_alone_may_find_it_twice() -> None:
    story = begun()
    story.step("archive", hudi=("k1=w1", "k2=w2"))
    story.step("clean")
    story.breach("G30", "1 of no completed write", "after step 1 (archive)")
    story = begun()
    story.step("archive", hudi_rs=("k1=w1", "k1=w1"))
    assert "hudi-rs finds 1 wrong rows (1 more than once" in story.breach("G30")
    assert story.breach("G15").startswith("impact: hudi-rs finds 1 wrong rows (1 more than once")
