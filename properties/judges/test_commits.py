"""G13 and G14 on histories written by hand."""

from __future__ import annotations

import pytest

from marker_sim.names import MarkerType, encode_names, marker_name
from marker_sim.timeline import State
from properties.judges.build import Story
from properties.judges.jobs import DRIVER, EXECUTOR, Job, base, log

A, B = base("a"), base("b", token="1-0-0")
WRITES = ("G13", "G14", "G15", "G16", "G17", "G18", "G19", "G20")


@pytest.mark.parametrize("guarantee", WRITES)
def test_without_a_write_nothing_is_said_of_writes(guarantee: str) -> None:
    assert not Story().finding(guarantee).applicable
    story = Story()
    story.start()
    story.create("p/a.parquet.marker.CREATE")
    assert not story.finding(guarantee).applicable


@pytest.mark.parametrize("guarantee", WRITES)
def test_a_write_that_only_began_says_nothing(guarantee: str) -> None:
    story = Job()
    story.step("begin", None)
    assert story.says_nothing(guarantee).applicable


@pytest.mark.parametrize("guarantee", WRITES)
def test_where_storage_was_read_now_and_then_the_order_is_not_known(guarantee: str) -> None:
    story = Job(witness="reads")
    story.write("001", "a")
    assert "order" in story.says_nothing(guarantee).undecided


# G13.


def test_a_marker_before_each_file_holds() -> None:
    story = Job()
    story.write("001", "a", "b")
    story.holds("G13")
    assert story.finding("G13").judged == 2


def test_a_file_without_a_marker_breaks_it() -> None:
    story = Job()
    story.begin()
    story.attempt(A, marker=False)
    story.breaks("G13")


def test_a_marker_that_comes_after_its_file_breaks_it() -> None:
    story = Job()
    story.begin()
    at = story.data(A)
    story.mark(A, "001")
    breach = story.breaks("G13")
    assert at in breach.evidence and "first was stored at event" in breach.message


def test_a_marker_of_another_instant_or_file_does_not_count() -> None:
    story = Job()
    story.begin()
    story.mark(A, "002")
    story.mark(B, "001")
    story.attempt(A, marker=False)
    story.breaks("G13")


def test_a_marker_that_was_answered_and_never_stored_does_not_count() -> None:
    story = Job()
    story.begin()
    partition, _, name = A.rpartition("/")
    create = story.step("create", "001", path=marker_name(partition, name, MarkerType.CREATE), process=EXECUTOR)
    story.end(create, "ok", "created")
    story.data(A)
    story.breaks("G13")


def test_in_a_foreign_format_the_answer_counts() -> None:
    story = Job(layout="names")
    story.write("001", "a")
    story.holds("G13")
    story.begin("002")
    story.attempt(base("a", "002"), "002", marker=False)
    story.breaks("G13")


def test_a_log_file_counts_for_the_instant_of_its_attempt_and_not_of_its_name() -> None:
    story = Job()
    story.write("001", "a")
    story.begin("002")
    story.attempt(log("a", "001"), "002")
    story.holds("G13")
    story = Job()
    story.write("001", "a")
    story.begin("002")
    story.mark(log("a", "001"), "001", MarkerType.APPEND)
    story.attempt(log("a", "001"), "002", marker=False)
    story.breaks("G13")


def test_a_log_file_without_an_attempt_belongs_to_whoever_asked_for_its_marker() -> None:
    story = Job()
    story.begin()
    story.mark(log("a", "000"), "001", MarkerType.APPEND)
    story.data(log("a", "000"))
    story.holds("G13")
    story.data(log("b", "000"))
    story.breaks("G13")


def test_side_files_are_no_data_files() -> None:
    story = Job()
    story.write("001", "a")
    for path in ("p/.hoodie_partition_metadata", ".hoodie/hoodie.properties", ".hoodie/x/y.parquet"):
        story.data(path)
    story.data(f"{A}.{story.last + 1}.tmp")  # What a torn put leaves is called after its own event.
    story.put("elsewhere/a_0-0-0_001.parquet", b"x")
    story.holds("G13")
    assert story.finding("G13").judged == 1
    story.data(f"{A}.inprogress.tmp")
    story.breaks("G13")


def test_a_zombie_whose_marker_was_deleted_meanwhile_still_had_one() -> None:
    story = Job()
    story.begin()
    story.mark(A, "001")
    story.finalize("001")
    story.commit("001")
    story.data(A)
    story.holds("G13")


def test_batched_markers_name_files_too() -> None:
    story = Job(mode="timeline")
    story.begin()
    story.type_file()
    story.put(f"{story.home('001')}/MARKERS0", encode_names([f"{A}.marker.CREATE"]))
    story.attempt(A, marker=False)
    story.holds("G13")


def test_odd_partitions_and_a_second_table_with_the_same_instant_are_told_apart() -> None:
    story = Job()
    odd = base("a", partition="dt=2020-01-01/größe/.hoodie x")
    bare = base("b", token="1-0-0", partition="")
    story.begin()
    story.attempt(odd)
    story.attempt(bare)
    story.holds("G13")
    other = Job(table="t/nested")
    other.events, other.invoked = story.events, story.invoked
    other.begin()
    other.attempt(A, marker=False)
    assert "t/nested/001" in other.breaks("G13").message


# G14.


def test_a_commit_of_what_is_there_after_reconciling_holds() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    lost = story.attempt(base("a", token="0-0-1"), process="executor#2")
    story.finalize("001", A, stray=[lost])
    story.commit("001", A)
    story.holds("G14")
    assert story.finding("G14").judged == 1


def test_a_stray_file_that_was_listed_breaks_it() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    stray = base("a", token="0-0-1")
    story.attempt(stray)
    story.finalize("001", A)
    story.commit("001", A)
    assert stray in story.breaks("G14").message


def test_a_stray_log_file_breaks_it() -> None:
    story = Job()
    story.write("001", "a")
    story.begin("002")
    accepted = story.attempt(log("a", "001"), "002")
    story.attempt(log("a", "001", "0-0-1"), "002")
    story.finalize("002", accepted)
    story.commit("002", accepted)
    story.breaks("G14")


def test_a_named_file_that_is_not_there_breaks_it() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.finalize("001", A, B)
    story.commit("001", A, B)
    assert B in story.breaks("G14").message
    story = Job()
    story.begin()
    story.attempt(A)
    story.finalize("001", A, stray=[A])
    story.commit("001", A)
    story.breaks("G14")


def test_two_attempts_of_one_task_in_one_commit_break_it() -> None:
    for token in ("0-0-1", "0-1-0"):
        story = Job()
        story.begin()
        paths = [story.attempt(A), story.attempt(base("a", token=token))]
        story.finalize("001", *paths)
        story.commit("001", *paths)
        assert "two attempts" in story.breaks("G14").message


def test_two_files_of_a_group_by_two_tasks_or_partitions_are_no_duplicates() -> None:
    story = Job()
    story.begin()
    paths = [story.attempt(base("a", token="0-0-0")), story.attempt(base("a", token="1-0-0"))]
    paths.append(story.attempt(base("a", token="0-0-0", partition="q")))
    story.finalize("001", *paths)
    story.commit("001", *paths)
    story.holds("G14")


def test_a_file_that_came_after_the_listing_is_a_late_write_and_no_stray() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    late = base("a", token="0-0-1")
    story.mark(late, "001")
    story.finalize("001", A)
    story.data(late)
    story.commit("001", A)
    story.holds("G14")
    story.breaks("G20")


def test_a_deleted_stray_that_a_late_put_brings_back_is_a_late_write() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    stray = story.attempt(base("a", token="0-0-1"))
    story.finalize("001", A, stray=[stray])
    story.data(stray)
    story.commit("001", A)
    story.holds("G14")
    story.breaks("G20")


def test_a_listing_that_was_made_again_counts_from_its_last_round() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    stray = base("a", token="0-0-1")
    finalize = story.step("finalize", "001", (A,))
    story.listing("001", "list-data", "info", "503")
    story.attempt(stray)
    story.listing("001", "list-data")
    story.listing("001", "list-log")
    story.done(finalize)
    story.commit("001", A)
    story.breaks("G14")


def test_what_counts_is_the_effect_and_not_what_the_driver_heard() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.attempt(base("a", token="0-0-1"))
    story.finalize("001", A)
    commit = story.step("commit", "001", (A,))
    story.kill(DRIVER)
    assert not story.finding("G14").breaches
    story.complete("001", A)
    assert commit < story.breaks("G14", under="client").evidence[-1]


def test_a_commit_without_finalize_reconciles_nothing() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.attempt(base("a", token="0-0-1"))
    story.commit("001", A)
    story.breaks("G14")


def test_the_same_commit_written_twice_is_one_commit() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.finalize("001", A)
    story.complete("001", A)
    story.commit("001", A)
    story.holds("G14")
    assert story.finding("G14").judged == 1


def test_a_commit_that_nobody_can_read_breaks_it() -> None:
    story = Job()
    story.begin()
    story.entry("001", State.COMPLETED, b"{")
    story.breaks("G14")


def test_committed_files_stay_as_they_are() -> None:
    story = Job()
    (path,) = story.write("001", "a")
    story.data(path)
    story.holds("G14")
    story.data(path, b"other")
    story.breaks("G14")
    story.data(path, None)
    story.breaks("G14", count=2)


def test_a_step_that_fails_for_a_reason_of_its_own_breaks_it() -> None:
    for operation in ("finalize", "commit", "begin", "sweep"):
        story = Job()
        story.begin()
        story.done(story.step(operation, "001"), "info", "raised KeyError('p')")
        story.breaks("G14")
        story = Job()
        story.begin()
        story.done(story.step(operation, "001"), "info", "no answer within 1000 ms")
        story.says_nothing("G14")


def test_an_error_of_the_marker_store_is_not_the_write_clients() -> None:
    story = Job()
    story.begin()
    finalize = story.step("finalize", "001")
    story.listing("001", "list-data", "info", "raised ValueError('x')")
    story.done(finalize, "info", "raised ValueError('x')")
    story.says_nothing("G14")


@pytest.mark.parametrize("operation", ["begin", "finalize", "commit"])
def test_when_all_faults_are_over_every_step_ends_well(operation: str) -> None:
    story = Job()
    story.write("001", "a")
    story.fault("throttled", EXECUTOR, path="t/p")
    story.observe("phase", value="probe")
    step = story.step(operation, "002")
    assert not story.finding("G14").breaches, "the run ended before anybody could be called late"
    story.wait(20_000).observe("phase", value="end")
    story.breaks("G14", under="storage")
    story.done(step, "info", "503")
    story.breaks("G14", under="storage")
    story.fault("kill", "driver#9", value="end-of-run")
    story.breaks("G14", under="storage")


def test_a_probe_that_met_a_fault_or_lost_its_process_decides_nothing() -> None:
    story = Job()
    story.write("001", "a")
    story.observe("phase", value="probe")
    story.step("begin", None)
    story.kill(DRIVER)
    story.holds("G14")
    story = Job(mode="timeline")
    story.write("001", "a")
    story.start()
    story.kill()
    story.observe("phase", value="probe")
    finalize = story.step("finalize", "001")
    story.done(finalize, "info", "connection refused")
    story.holds("G14")
