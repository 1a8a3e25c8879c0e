"""G26 and G29: what several writers of one table do to each other's instants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from marker_sim.judges import judge
from properties.faces.judges import load_profile
from properties.judges.writers import REFUSED, TABLE, TIMELINE, Shared, data_file, instant

G = "a/f"


def paused_and_rolled_back(*, deleted: bool = True, told: bool = True) -> Shared:
    """Story 1: A pauses past its heartbeat, B plans its rollback, A comes back and commits, B deletes A's file."""
    story = Shared()
    story.start(1, G)
    story.expire(1)
    story.ask(2)
    story.plan(7, 1, data_file(G, 1), by=2)
    story.beat(1)
    story.complete(1)
    if told:
        story.end(1)
    if deleted:
        story.data(1, G, None, by=2)
    return story


@pytest.mark.parametrize("options", [{"writers": "1"}, {"writers": "3"}])
def test_only_histories_of_several_writers_are_judged(options: dict[str, str]) -> None:
    story = Shared(**options)
    story.whole(1, G)
    for guarantee in ("G26", "G27", "G28", "G29"):
        assert story.finding(guarantee).applicable == (options["writers"] == "3")


@pytest.mark.parametrize("other", [{"world": "spark"}, {"witness": "reads"}, {"options": {}}])
def test_other_histories_are_not_judged(other: dict[str, Any]) -> None:
    story = Shared()
    story.whole(1, G)
    story.header = replace(story.header, **other)
    assert not story.finding("G26").applicable


def test_what_a_profile_of_a_system_without_several_writers_says() -> None:
    for name in ("reference", "python", "http", "hudi", "reference-spark"):
        for guarantee in ("G26", "G27", "G28", "G29"):
            promise = load_profile(name).promise(guarantee, "direct", "local", "none")
            assert promise.source and not promise.applicable and not promise.promised, (name, guarantee)
    promises = [load_profile("hudi-spark").promise(f"G{n}", "direct", "local", "pause") for n in range(26, 30)]
    assert [promise.promised for promise in promises] == [True] * 4


# G26.


def test_two_writers_of_different_groups_both_commit() -> None:
    story = Shared()
    story.start(1, G)
    story.start(2, "a/other")
    story.complete(1)
    story.complete(2)
    story.end(1)
    story.end(2)
    story.holds("G26", judged=2)


@pytest.mark.parametrize("told", [True, False])
def test_a_rollback_deletes_the_file_of_a_completed_commit(told: bool) -> None:
    message = paused_and_rolled_back(told=told).breaks("G26", "writer-2 deleted", f"in the rollback {instant(7)}")
    assert ("its writer was told so" in message) == told
    paused_and_rolled_back(deleted=False).holds("G26")


def test_a_file_that_was_deleted_just_before_its_commit_is_lost_as_well() -> None:
    story = Shared()
    story.start(1, G)
    story.data(1, G, None, by=2)
    assert not story.finding("G26").breaches
    story.complete(1)
    story.breaks("G26", data_file(G, 1))


def test_a_completed_entry_is_deleted_by_another_writer() -> None:
    """Story 2; an archive that the same writer wrote before takes entries away as it should."""
    story = Shared()
    story.whole(1, G)
    story.complete(1, None, by=2)
    story.breaks("G26", f"{instant(1)}_{instant(501)}.commit")
    story = Shared()
    story.whole(1, G)
    story.put(2, f"{TIMELINE}/history/1.parquet")
    story.complete(1, None, by=2)
    story.undecided("G26", "archive-took-it")


def test_a_clean_deletes_what_a_later_commit_replaced() -> None:
    story = Shared()
    story.whole(1, G)
    story.whole(2, G)
    story.put(2, f"{TIMELINE}/{instant(3)}.clean.requested")
    story.data(1, G, None, by=2)
    story.undecided("G26", "clean-took-it")
    story = Shared()
    story.whole(1, G)
    story.whole(2, "a/other")
    story.data(1, G, None, by=2)
    story.breaks("G26", "writer-2 deleted")


def test_a_writer_deletes_its_own_files() -> None:
    story = Shared()
    story.start(1, G)
    story.data(1, G, None)
    story.complete(1)
    story.holds("G26")


def both_wrote(*, seen: bool) -> Shared:
    story = Shared()
    story.start(1, G)
    story.request(2)
    if seen:
        story.complete(1)
    story.inflight(2)
    story.data(2, G)
    if not seen:
        story.complete(1)
    story.complete(2)
    return story


@pytest.mark.parametrize("released", ["", "unlock", "died"])
def test_a_lock_that_both_had_is_evidence(released: str) -> None:
    story = Shared()
    story.start(1, G)
    story.request(2)
    story.inflight(2)
    story.data(2, G)
    story.add("writer-1", "effect", "lock")
    if released == "unlock":
        story.add("writer-1", "effect", "unlock")
    story.complete(1)
    if released == "died":
        story.end(1, "driver-died")
    both = story.add("writer-2", "effect", "lock")
    story.complete(2)
    said = story.breaks("G26", "and both are completed")
    assert (f"both had the lock of the table at event {both}" in said) == (not released)
    assert (both in story.finding("G26").breaches[0].evidence) == (not released)


def test_two_that_wrote_one_group_at_the_same_time_are_both_completed() -> None:
    both_wrote(seen=False).breaks("G26", "wrote the file group ('a', 'f-0') at the same time")
    both_wrote(seen=True).undecided("G26", "may-have-read-it")
    one = Shared()
    one.whole(1, G)
    one.whole(2, G)
    one.holds("G26", judged=2)


def test_a_log_file_of_the_first_layout_has_no_known_owner() -> None:
    story = Shared()
    story.ask(1)
    story.put(1, f".hoodie/{instant(1)}.deltacommit.requested", b"")
    log = f"a/.f-0_{instant(1)}.log.1_0-1-0"
    story.put(1, log)
    story.put(2, log, None)
    story.put(1, f".hoodie/{instant(1)}.deltacommit")
    story.undecided("G26", "owner-unknown")


def test_a_rollback_is_neither_a_clean_nor_archiving() -> None:
    story = Shared()
    story.whole(1, G)
    story.whole(2, G)
    story.plan(7, 1, by=2)
    story.data(1, G, None, by=2)
    story.breaks("G26", "in the rollback")
    story = Shared()
    story.whole(1, G)
    story.put(2, f"{TIMELINE}/history/1.parquet")
    story.plan(7, 1, by=2)
    story.complete(1, None, by=2)
    story.breaks("G26", "in the rollback")


def test_a_log_file_of_the_second_layout_is_of_its_instant() -> None:
    story = Shared()
    story.start(1)
    log = f"a/.f-0_{instant(1)}.log.1_0-1-0"
    story.put(1, log)
    story.put(2, log, None)
    story.complete(1)
    story.breaks("G26", log)


def test_other_entries_own_files_and_other_tables_do_not_count() -> None:
    story = Shared()
    story.start(1, G)
    story.start(2, G)
    story.data(2, G, None)
    story.put(1, f"{TIMELINE}/{instant(1)}.inflight", None, by=2)
    story.add("writer-1", "effect", "lock", value="")
    story.complete(1)
    story.add("writer-1", "effect", "unlock", value="")
    story.complete(2)
    story.complete(1, None)
    story.add("writer-3", "effect", "delete", path=f"u/{data_file(G, 1)}")
    story.holds("G26", judged=2)


# G29.


def test_two_rollbacks_by_one_plan_may_be_under_way() -> None:
    story = rolled_back(files=2)
    story.plan(8, 1, *[data_file(f"a/g{n}", 1) for n in range(2)], by=3)
    story.undo(7, by=2)
    story.holds("G29", judged=3)


def test_a_fault_of_another_writer_excuses_no_failure() -> None:
    story = rolled_back()
    story.add("writer-3", "fault", "io-error", "nemesis", path=f"{TABLE}/x")
    story.end(2, "HoodieRollbackException")
    story.breaks("G29", "failed in a rollback")


def rolled_back(*, expired: bool = True, beat: bool = True, files: int = 1) -> Shared:
    story = Shared()
    story.request(1, beat=beat)
    story.data(1, G)
    if expired:
        story.expire(1)
    story.ask(2)
    story.plan(7, 1, *[data_file(f"a/g{n}", 1) for n in range(files)], by=2)
    return story


def test_the_rollback_of_an_instant_begins_when_its_heartbeat_has_ended() -> None:
    rolled_back().holds("G29")
    rolled_back(expired=False).breaks("G29", "while the heartbeat of writer-1 was alive")
    rolled_back(expired=False, beat=False).undecided("G29", "no-heartbeat")
    again = Shared()
    again.start(1, G)
    again.expire(1)
    again.beat(1)
    again.plan(7, 1, by=2)
    again.breaks("G29", "was alive")


def test_a_write_that_has_ended_may_be_rolled_back_at_once() -> None:
    story = Shared()
    story.start(1, G)
    story.end(1, "java.io.IOException")
    story.plan(7, 1, by=2)
    story.holds("G29")


def test_a_completed_instant_is_not_rolled_back() -> None:
    story = Shared()
    story.whole(1, G)
    story.plan(7, 1, by=2)
    story.breaks("G29", "goes on at event", "was completed at event")
    story = paused_and_rolled_back()
    story.holds("G29")
    story.undo(7, by=2)
    story.breaks("G29", "goes on at event")


def test_a_rollback_whose_plan_or_instant_is_unknown_is_undecided() -> None:
    story = rolled_back()
    story.put(7, f"{TIMELINE}/{instant(7)}.rollback.requested", b"{", by=2)
    story.holds("G29")
    story = Shared()
    story.ask(2)
    story.put(7, f"{TIMELINE}/{instant(7)}.rollback.requested", b"{", by=2)
    story.undecided("G29", "plan-unknown")
    story = Shared()
    story.ask(2)
    story.plan(7, 1, by=2)
    story.undecided("G29", "began-before-the-run")


def test_two_rollbacks_of_one_instant() -> None:
    story = rolled_back()
    story.undone(7, by=2)
    story.plan(8, 1, by=3)
    story.holds("G29", judged=3)
    story.undone(8, by=3)
    story.breaks("G29", "two rollbacks", "are both completed")
    story = rolled_back(files=2)
    story.plan(8, 1, by=3)
    finding = story.finding("G29")
    assert dict(finding.excused) == {"first-plan-abandoned": 1} and not finding.breaches
    story.undo(7, by=2)
    story.breaks("G29", "under way at the same time with different plans")


@pytest.mark.parametrize(
    "error",
    [
        "HoodieIOException: Could not delete instant [x]",
        "HoodieRollbackException",
        "java.io.FileNotFoundException: File t/.hoodie/.heartbeat/1 does not exist",
    ],
)
def test_a_writer_that_rolls_back_does_not_fail(error: str) -> None:
    story = rolled_back()
    story.end(2, error)
    story.breaks("G29", "writer-2 failed in a rollback", error)
    story = rolled_back()
    story.add("writer-2", "fault", "pause", "nemesis")
    story.end(2, error)
    assert story.finding("G29").breaches
    story = rolled_back()
    story.add("writer-2", "fault", "io-error", "nemesis", path=f"{TABLE}/x")
    story.end(2, error)
    story.undecided("G29", "fault-in-writer")
    story = rolled_back()
    story.end(2, "java.io.IOException")
    story.holds("G29")


# Planted defects: a history that holds, without the event that protects it.


def test_without_the_event_that_protects_it_a_history_breaks() -> None:
    kept = Shared()
    kept.start(1, G)
    kept.data(1, G, None, by=2)
    again = kept.data(1, G)
    kept.complete(1)
    kept.holds("G26")
    kept.without(again).breaks("G26", "writer-2 deleted")
    found = Shared(early="simple")
    found.start(1, G)
    found.request(2)
    gone = found.mark(1, G, None)
    found.mark(2, G)
    found.complete(1)
    found.complete(2)
    assert not found.finding("G27").breaches
    found.without(gone).breaks("G27", "and both are completed")
    real = Shared()
    real.start(1)
    held = real.data(1, G)
    real.start(2, G)
    real.end(2, REFUSED)
    real.holds("G28")
    real.without(held).breaks("G28", "no instant")
    over = Shared()
    over.start(1, G)
    expired = over.expire(1)
    over.plan(7, 1, by=2)
    over.holds("G29")
    over.without(expired).breaks("G29", "was alive")


# The guarantees of one writer.


def test_what_is_asked_of_one_writer_is_not_asked_of_several() -> None:
    story = Shared()
    story.whole(1, G)
    story.start(2, G)
    story.end(2, REFUSED)
    findings = {finding.guarantee: finding for finding in judge(story.history())}
    assert not findings["G16"].applicable and not findings["G19"].applicable
    assert dict(findings["G25"].excused) == {"refused-for-a-conflict": 1} and not findings["G25"].breaches


def test_of_several_writers_the_last_to_end_wrote_last() -> None:
    """The first to be asked waited, and read what the other had completed."""
    story = Shared()
    story.ask(1, "k=first")
    story.whole(2, G, rows=("k=second",))
    story.end(1)
    story.add("hudi", "observe", "rows", "kit", table=TABLE, instant="", value=("k=first",))
    story.holds("G24")
