"""G25, G26, G28 and G29 over histories of several writers that are legal in an odd order, or wrong behind an excuse."""

from __future__ import annotations

import pytest

from properties.judges.writers import REFUSED, TABLE, TIMELINE, Shared, data_file, instant

G = "a/f"


# G26.


def older_than_what_it_read(second: str = G, *, base: bool = True) -> Shared:
    """Writer 1 stops between its request and its look at the timeline; writer 2 writes the group meanwhile.

    Hudi 1.2.0 does so after one short pause: the conflict check asks only for instants after the newest that was read.
    """
    story = Shared()
    story.request(1)
    story.whole(2, second)
    story.inflight(1)
    if base:
        story.data(1, G)
    else:
        story.put(1, f"a/.f-0_{instant(1)}.log.1_0-1-0")
    story.complete(1)
    story.end(1)
    return story


def test_the_later_of_two_must_not_have_the_older_base_file_whatever_it_read() -> None:
    older_than_what_it_read().breaks("G26", "wrote the file group ('a', 'f-0')", "of which readers see the first")
    older_than_what_it_read("a/g").holds("G26", judged=2)
    older_than_what_it_read(base=False).undecided("G26", "may-have-read-it")


def test_a_file_was_taken_by_a_clean_only_where_one_began_after_what_replaced_it() -> None:
    for before in (False, True):
        story = Shared()
        if before:
            story.put(2, f"{TIMELINE}/{instant(3)}.clean.requested")
        story.whole(1, G)
        story.whole(2, G)
        story.data(1, G, None, by=2)
        story.breaks("G26", "writer-2 deleted")


@pytest.mark.parametrize(
    "entry", ["compaction.requested", "clustering.inflight", "logcompaction.requested", "replacecommit.requested"]
)
def test_a_clean_after_a_service_takes_files_that_no_later_write_replaced(entry: str) -> None:
    story = Shared()
    story.whole(1, G)
    story.put(2, f"{TIMELINE}/{instant(3)}.{entry}")
    story.put(2, f"{TIMELINE}/{instant(4)}.clean.requested")
    story.data(1, G, None, by=2)
    story.undecided("G26", "clean-took-it")


def test_archiving_that_one_writer_began_is_finished_by_another() -> None:
    """LSMTimelineWriter does not write an archive again that its manifest names."""
    story = Shared()
    story.whole(1, G)
    story.put(3, f"{TIMELINE}/history/1.parquet")
    story.complete(1, None, by=2)
    story.undecided("G26", "archive-took-it")
    story = Shared()
    story.put(2, f"{TIMELINE}/history/1.parquet")
    story.whole(1, G)
    story.complete(1, None, by=2)
    story.breaks("G26", f"{instant(1)}_{instant(501)}.commit")


@pytest.mark.parametrize("named", [True, False])
def test_what_a_commit_names_is_known_from_an_audit(named: bool) -> None:
    """The effects of a real commit do not have its content."""
    story = Shared()
    story.start(1, G, "a/stray")
    story.complete(1, b"")
    story.end(1)
    story.data(1, "a/stray", None, by=2)
    audit = story.add("kit", "observe", "audit", "kit", table=TABLE, value="begin")
    names = (data_file(G, 1), *([data_file("a/stray", 1)] if named else []))
    facts = ("action commit", "state completed", *(f"wrote {name}" for name in names))
    path = f"{TABLE}/{TIMELINE}/{instant(1)}_{instant(501)}.commit"
    story.add(
        "kit", "observe", "entry", "kit", table=TABLE, instant=instant(1), path=path, value=facts, caused_by=audit
    )
    story.add("kit", "observe", "audit", "kit", table=TABLE, value="end", caused_by=audit)
    if named:
        story.breaks("G26", "a/stray")
    else:
        story.holds("G26")


# G28.


def test_what_replaces_file_groups_may_be_the_other_side_of_a_conflict() -> None:
    story = Shared()
    story.put(3, f".hoodie/{instant(3)}.replacecommit.requested", b"")
    story.start(2, G)
    story.end(2, REFUSED)
    story.undecided("G28", "service-at-work")


def test_a_writer_that_is_rolled_back_is_no_proof_that_none_survives() -> None:
    story = Shared()
    story.start(1, G)
    story.start(2, G)
    story.end(2, REFUSED)
    story.expire(1)
    story.plan(7, 1, by=3)
    story.end(1, REFUSED)
    found = story.finding("G28")
    assert not found.breaches and dict(found.excused) == {"rolled-back": 2}


def test_a_writer_that_was_being_rolled_back_is_judged_by_its_rival_all_the_same() -> None:
    story = Shared()
    story.start(1, G)
    story.start(2, G)
    story.complete(1)
    story.end(1)
    story.expire(2)
    story.plan(7, 2, by=3)
    story.end(2, REFUSED)
    story.holds("G28")


# G29.


def rolled_back_again(*entries: str) -> Shared:
    """Two whole rollbacks of an instant, with entries of it put between."""
    story = Shared()
    story.request(1)
    story.expire(1)
    for number in (7, 8):
        story.ask(number)
        story.plan(number, 1, by=2)
        story.undo(number, by=2)
        story.undone(number, by=2)
        if number == 7:
            for entry in entries:
                story.put(1, f"{TIMELINE}/{instant(1)}.{entry}")
    return story


def test_an_instant_whose_writer_went_on_is_rolled_back_again() -> None:
    """Seen with Hudi 1.2.0: a writer that is paused inside the put of its inflight entry."""
    rolled_back_again("inflight").holds("G29", judged=3)
    rolled_back_again().breaks("G29", "are both completed")


def test_a_compaction_that_fails_twice_is_rolled_back_twice() -> None:
    for again in (True, False):
        story = Shared()
        story.ask(2)
        story.put(2, f"{TIMELINE}/{instant(1)}.compaction.requested")
        for number in (7, 8):
            if again or number == 7:
                story.put(2, f"{TIMELINE}/{instant(1)}.compaction.inflight")
            story.plan(number, 1, by=2)
            story.undone(number, by=2)
        assert bool(story.finding("G29").breaches) != again


def test_a_writer_whose_own_heartbeat_is_gone_did_not_fail_in_a_rollback() -> None:
    for number in (1, 2):
        story = Shared()
        story.request(1)
        story.request(2)
        story.expire(1)
        story.plan(7, 1, by=2)
        story.end(1, f"java.io.FileNotFoundException: File /s/t/.hoodie/.heartbeat/{instant(number)} does not exist")
        assert [breach.message.startswith("t: writer-1 failed") for breach in story.finding("G29").breaches] == (
            [] if number == 1 else [True]
        )


# G25.


@pytest.mark.parametrize("kind", ["pause", "kill"])
@pytest.mark.parametrize("beside", [False, True])
def test_a_pause_explains_no_failure_of_a_write_that_began_when_the_race_was_over(kind: str, beside: bool) -> None:
    story = Shared()
    story.whole(1, G)
    story.ask(2)
    at = story.add("writer-2", "fault", kind, "nemesis", value="begin")
    story.add("writer-2", "fault", kind, "nemesis", value="end", caused_by=at)
    if not beside:
        story.end(2, "IllegalArgumentException: does not exist")
    story.ask(3)
    story.end(3, "HoodieIOException: nothing works")
    if beside:
        story.end(2, "IllegalArgumentException: does not exist")
    found = story.finding("G25")
    assert bool(found.breaches) == (kind == "pause" and not beside), found
