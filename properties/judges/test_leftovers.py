"""G17, G18 and G20 on histories written by hand."""

from __future__ import annotations

import pytest

from marker_sim.names import encode_names
from properties.judges.jobs import DRIVER, EXECUTOR, Job, base

A, B = base("a"), base("b", token="1-0-0")


def late_marker(story: Job, path: str = B) -> None:
    """An attempt of 001 that does not count any more creates its marker."""
    story.mark(path, "001", process="executor#2")


# G17.


def test_markers_deleted_after_the_commit_hold() -> None:
    story = Job()
    story.write("001", "a")
    story.holds("G17")


def test_markers_deleted_after_the_rollback_deleted_their_files_hold() -> None:
    story = Job()
    story.failed("001", "a", "b")
    story.begin("002", "001", driver="driver#2")
    story.holds("G17")


def test_markers_deleted_before_the_commit_break_it() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.finalize("001", A)
    delete = story.delete_markers("001")
    story.commit("001", A)
    assert delete in story.breaks("G17").evidence


def test_markers_deleted_before_the_rollback_that_needs_them_break_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    story.delete_markers("001")
    story.roll_back("001")
    story.breaks("G17", under="client")


def test_markers_deleted_though_the_rollback_left_a_file_they_name_break_it() -> None:
    story = Job()
    story.failed("001", "a", "b")
    story.driver = "driver#2"
    story.roll_back("001", B)
    story.breaks("G17", under="client")


def test_the_invocation_counts_even_when_the_commit_comes_before_its_effect() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    delete = story.step("delete", "001")
    story.complete("001", A)
    story.done(delete, "info", "no answer")
    story.breaks("G17")


def test_a_marker_that_is_removed_with_no_deletion_invoked_breaks_it() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.put(f"{story.home('001')}/{A}.marker.CREATE", None, DRIVER, how="delete")
    story.breaks("G17")
    story = Job(mode="timeline")
    story.begin()
    story.put(f"{story.home('001')}/MARKERS0", encode_names([f"{A}.marker.CREATE"]))
    story.attempt(A, marker=False)
    story.put(f"{story.home('001')}/MARKERS0", None, how="delete")
    story.breaks("G17")


def test_what_a_zombie_adds_after_the_listing_is_not_known_to_the_deletion() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    story.roll_back("001", tidy=False)
    late_marker(story)
    story.data(B, process="executor#2")
    story.data(A, process=EXECUTOR)
    story.delete_markers("001")
    story.holds("G17")


def test_a_sweep_lists_again() -> None:
    for deletes in (True, False):
        story = Job()
        story.failed("001", "a")
        story.driver = "driver#2"
        story.roll_back("001")
        late_marker(story)
        story.data(B, process="executor#2")
        sweep = story.step("sweep", "001")
        story.listing("001")
        if deletes:
            story.data(B, None, "driver#2")
        story.delete_markers("001")
        story.done(sweep)
        assert bool(story.finding("G17").breaches) is not deletes


def test_a_marker_that_an_earlier_deletion_removed_names_nothing_any_more() -> None:
    for layout in ("hudi", "names"):
        story = Job(layout=layout)
        story.failed("001", "a")
        story.driver = "driver#2"
        story.roll_back("001")
        story.data(A)
        late_marker(story)
        sweep = story.step("sweep", "001")
        story.listing("001")
        story.delete_markers("001")
        story.done(sweep)
        story.holds("G17")


def test_a_sweep_of_a_committed_instant_may_delete_its_markers() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.finalize("001", A)
    story.commit("001", A, tidy=False)
    sweep = story.step("sweep", "001")
    story.listing("001")
    story.delete_markers("001")
    story.done(sweep)
    story.holds("G17")


def test_in_a_foreign_format_answered_markers_count() -> None:
    story = Job(layout="names")
    story.begin()
    story.attempt(A)
    story.delete_markers("001")
    story.breaks("G17")


def test_directories_that_no_write_uses_are_left_alone() -> None:
    story = Job()
    story.begin("002")
    story.mark(A, "001")
    story.data(A)
    story.delete_markers("001")
    story.says_nothing("G17")


# G18.


@pytest.mark.parametrize("rolled_back", [True, False])
def test_an_empty_marker_directory_holds(rolled_back: bool) -> None:
    story = Job()
    story.failed("001", "a") if rolled_back else story.write("001", "a")
    story.wait(60_000)
    story.begin("002", *(["001"] if rolled_back else []), driver="driver#2")
    story.commit("002")
    story.holds("G18")


def test_markers_that_a_later_write_leaves_break_it() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.fault("throttled", DRIVER, path=story.home("001"))
    story.commit("001", A, tidy=False)
    story.says_nothing("G18")
    story.wait(60_000)
    story.begin("002")
    story.says_nothing("G18")
    story.commit("002")
    assert "marker.CREATE" in story.breaks("G18", under="storage").message


def test_a_write_without_a_fault_leaves_none_of_its_own_markers() -> None:
    for tidy in (True, False):
        story = Job()
        story.begin()
        story.attempt(A)
        story.commit("001", A, tidy=tidy)
        story.says_nothing("G18")  # It may still be deleting them.
        story.begin("002")
        if tidy:
            story.holds("G18")
        else:
            assert "after its commit" in story.breaks("G18").message


def test_an_attempt_that_ends_after_the_commit_leaves_its_marker_to_the_next_write() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.mark(B, "001")
    late = story.step("attempt", "001", process=EXECUTOR, path=B)
    story.commit("001", A, tidy=False)
    story.done(late)
    story.begin("002")
    story.says_nothing("G18")


def test_what_comes_back_by_itself_is_residue_too() -> None:
    story = Job()
    story.write("001", "a")
    story.write("002", "a")
    story.write("003", "a")
    story.put(f"{story.home('001')}/MARKERS.type", b"x")
    story.write("004", "a")
    story.breaks("G18")


def test_any_file_below_the_directory_is_residue_but_no_directory_key() -> None:
    story = Job()
    story.write("001", "a")
    story.put(f"{story.home('001')}/", b"")
    story.write("002", "a")
    story.holds("G18")
    story.put(f"{story.home('001')}/p/.x.crc", b"x")
    story.write("003", "a")
    story.breaks("G18")


def test_a_type_file_that_stays_breaks_it() -> None:
    story = Job(mode="timeline")
    story.start()
    story.begin()
    story.type_file(directory=story.home("001"))
    story.mark(A, "001")
    story.commit("001")
    story.write("002", "a")
    story.breaks("G18")


def test_a_zombies_marker_is_the_next_writes_to_sweep() -> None:
    story = Job()
    story.write("001", "a")
    story.begin("002")
    late_marker(story)
    story.commit("002")
    story.says_nothing("G18")
    story.write("003", "a")
    assert "001" in story.breaks("G18").message


def test_a_put_of_a_create_that_nobody_heard_of_is_an_act_too() -> None:
    story = Job()
    story.begin()
    create = story.step("create", "001", path=f"{A}.marker.CREATE", process=EXECUTOR)
    story.end(create, "info", None, "no answer")
    story.commit("001")
    story.begin("002")
    story.put(f"{story.home('001')}/{A}.marker.CREATE", b"", EXECUTOR)
    story.commit("002")
    story.says_nothing("G18")


def test_a_write_under_a_fault_may_leave_markers_and_the_next_calm_one_may_not() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.fault("throttled", DRIVER, path=story.home("001"))
    story.commit("001", A, tidy=False)
    story.begin("002")
    story.fault("throttled", DRIVER, path=story.home("001"))
    story.commit("002")
    story.says_nothing("G18")
    story.wait(60_000)
    story.write("003", "a")
    story.breaks("G18", under="storage")


@pytest.mark.parametrize("gets_on", [True, False])
def test_a_deletion_that_outlasts_its_clients_patience_is_excused_as_long_as_it_gets_on(gets_on: bool) -> None:
    paths = [base(f"f{number}") for number in range(5)]
    story = Job(mode="timeline")
    story.start()
    story.begin()
    for path in paths:
        story.mark(path, "001")
    story.fault("throttled", DRIVER, path=story.home("001"))
    story.commit("001", tidy=False)
    story.wait(60_000)
    story.begin("002")
    sweep = story.step("delete", "001")
    story.arrive(sweep)
    for path in paths[:4]:
        story.wait(7_000 if gets_on else 0).put(f"{story.home('001')}/{path}.marker.CREATE", None, how="delete")
    story.wait(2_000 if gets_on else 30_000).end(sweep, "info", None, "no answer before the deadline")
    story.commit("002")
    if gets_on:
        story.says_nothing("G18")
        assert dict(story.finding("G18").excused)["still-deleting"] == 1
        story.write("003", "a")
    assert "left in its marker directory (1 file(s) in all)" in story.breaks("G18", under="storage").message


def test_instants_that_are_not_over_are_not_judged() -> None:
    story = Job()
    story.begin()
    story.mark(A, "001")
    story.begin("002", driver="driver#2")
    story.commit("002")
    story.says_nothing("G18")


def test_in_a_foreign_format_what_a_reader_finds_in_the_end_counts() -> None:
    for names in ((), (f"{A}.marker.CREATE",)):
        story = Job(layout="names")
        story.write("001", "a")
        story.write("002", "a")
        story.says_nothing("G18")
        story.observe("snapshot", path=story.home("001"), value=names, caused_by=story.last)
        assert story.finding("G18").judged == 1
        assert len(story.finding("G18").breaches) == len(names)


# G20.


def test_files_before_the_listing_hold() -> None:
    story = Job()
    story.write("001", "a", "b")
    story.failed("002", "c")
    story.begin("003", "002", driver="driver#2")
    story.holds("G20")


@pytest.mark.parametrize("rolled_back", [True, False])
def test_a_file_after_the_listing_breaks_it(rolled_back: bool) -> None:
    story = Job()
    if rolled_back:
        story.failed("001", "a")
        story.driver = "driver#2"
        story.roll_back("001")
    else:
        story.begin()
        story.finalize("001")
    story.attempt(B, process="executor#2")
    story.breaks("G20", under="client" if rolled_back else "none")


def test_the_first_listing_that_was_over_counts() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.finalize("001", A)
    story.attempt(B)
    story.kill(DRIVER)
    story.driver = "driver#2"
    story.roll_back("001")
    story.breaks("G20", under="none")


def test_an_instant_that_nobody_listed_says_nothing() -> None:
    story = Job()
    story.failed("001", "a")
    story.says_nothing("G20")


def test_a_completed_instant_used_again_for_data_breaks_it() -> None:
    story = Job()
    story.write("001", "a")
    story.begin("001")
    story.attempt(B)
    story.breaks("G20")


@pytest.mark.parametrize(("rounds", "late"), [("o", True), ("f", False), ("of", True), ("fo", True), ("ff", False)])
def test_of_several_listings_those_that_were_answered_count(rounds: str, late: bool) -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    step = story.step("finalize", "001")
    for operation, ending in zip(("list", "list-data"), rounds, strict=False):
        story.listing("001", operation, *(("ok",) if ending == "o" else ("fail", "500 x")))
    story.done(step)
    story.data(B)
    assert bool(story.finding("G20").breaches) is late
