"""G27 and G28: conflicts between writers of one table that are found, missed, or only said to be there."""

from __future__ import annotations

import pytest

from properties.judges.writers import REFUSED, REFUSED_EARLY, TABLE, TIMELINE, UNREAD, Shared, data_file, instant

G = "a/f"


def both_hold(early: str = "transaction", other: str = G) -> Shared:
    """Two live instants have a marker each."""
    story = Shared(early=early)
    story.request(1)
    story.request(2)
    story.mark(1, G)
    story.mark(2, other)
    return story


# G27.


def test_two_markers_of_one_group_at_a_time() -> None:
    both_hold().breaks("G27", "both had a marker of ('a', 'f-0')", "neither was refused for it")
    assert not both_hold(early="").finding("G27").judged
    both_hold(early="simple").undecided("G27", "strategy-may-miss")
    assert not both_hold(other="a/g").finding("G27").judged and not both_hold(other="a/g").finding("G27").breaches


def test_a_writer_that_is_refused_early_is_a_conflict_that_was_detected() -> None:
    story = both_hold()
    story.end(2, REFUSED_EARLY)
    story.holds("G27")
    story = both_hold()
    story.end(2, REFUSED)
    story.breaks("G27", "neither was refused for it")


@pytest.mark.parametrize("early", ["transaction", "simple"])
def test_a_conflict_is_refused_at_the_latest_at_commit(early: str) -> None:
    story = both_hold(early)
    story.complete(1)
    story.complete(2)
    story.breaks("G27", "and both are completed")


def test_a_marker_of_one_that_has_ended_or_expired_is_no_conflict() -> None:
    story = Shared(early="transaction")
    story.request(1)
    story.mark(1, G)
    story.complete(1)
    story.request(2)
    story.mark(2, G)
    assert not story.finding("G27").judged and not story.finding("G27").breaches
    story = Shared(early="transaction")
    story.request(1)
    story.mark(1, G)
    story.expire(1)
    story.request(2)
    story.mark(2, G)
    story.undecided("G27", "holder-expired")
    story = Shared(early="transaction")
    story.request(1)
    story.request(2)
    story.mark(1, G)
    story.mark(1, G, None)
    story.mark(2, G)
    assert not story.finding("G27").judged and not story.finding("G27").breaches


@pytest.mark.parametrize("names", [(G, G), (G, "a/g")])
def test_markers_of_a_timeline_server_are_read_from_its_files(names: tuple[str, str]) -> None:
    story = Shared(early="transaction")
    for number, group in enumerate(names, start=1):
        story.request(number)
        home = f".hoodie/.temp/{instant(number)}"
        story.put(number, f"{home}/MARKERS.type", b"TIMELINE_SERVER_BASED")
        story.put(number, f"{home}/MARKERS0", f"{data_file(group, number)}.marker.MERGE\n".encode())
    assert len(story.finding("G27").breaches) == (names[0] == names[1])


# G28.


def refused(theirs: str, mine: str = G, error: str = REFUSED) -> Shared:
    """Writer 1 completes, writer 2 is refused."""
    story = Shared()
    story.start(1, theirs)
    story.start(2, mine)
    story.complete(1)
    story.end(1)
    story.end(2, error)
    return story


def test_a_writer_is_refused_for_a_conflict_and_only_for_one() -> None:
    refused(G).holds("G28")
    refused("b/f").breaks("G28", "writer-2 was refused", "no instant")
    assert not refused("b/f", error="java.io.IOException").finding("G28").judged
    later = Shared()
    later.whole(1, G)
    later.start(2, G)
    later.end(2, REFUSED)
    later.breaks("G28", "no instant")


def early(*rows: str, theirs: str = G, error: str = REFUSED_EARLY, fault: str = "") -> Shared:
    """Writer 4 is refused before it has a marker, while writer 3 has one; both keys were written before."""
    story = Shared()
    story.whole(1, "a/f", rows=("k1=a",))
    story.whole(2, "b/f", rows=("k2=b",))
    story.request(3)
    story.mark(3, theirs)
    story.request(4, *rows)
    if fault:
        story.add("writer-4", "fault", fault, "nemesis", path=f"{TABLE}/.hoodie/.temp")
    story.end(4, error)
    return story


def test_a_writer_that_could_not_read_the_markers_of_another_was_refused() -> None:
    early("k1=d", error=UNREAD).holds("G28")
    early("k2=d", error=UNREAD).breaks("G28", "writer-4 was refused", "no instant")
    early("k2=d", error=UNREAD, fault="io-error").undecided("G28", "fault-in-writer")
    early("k2=d", error=UNREAD, fault="heartbeat-expired").breaks("G28", "no instant")


def test_what_a_writer_wants_that_was_refused_early_is_known_by_its_rows() -> None:
    early("k1=d").holds("G28")
    early("k2=d").breaks("G28", "writer-4 was refused", "no instant")
    early("k2=d", "k9=d").undecided("G28", "group-unknown")
    deleted = Shared()
    deleted.whole(1, "b/f", rows=("k2=",))
    deleted.request(3)
    deleted.mark(3, G)
    deleted.request(4, "k2=d")
    deleted.end(4, REFUSED_EARLY)
    deleted.undecided("G28", "group-unknown")


def test_one_of_the_writers_in_conflict_survives() -> None:
    story = Shared()
    story.start(1, G)
    story.start(2, G)
    story.end(1, REFUSED)
    story.end(2, REFUSED)
    story.breaks("G28", "all writers that were in conflict were refused")
    story = Shared()
    for number, groups in ((1, (G,)), (2, (G, "b/f")), (3, ("b/f",))):
        story.start(number, *groups)
    story.complete(1)
    for number in (2, 3):
        story.end(number, REFUSED)
    story.holds("G28", judged=2)


def test_a_writer_that_has_died_is_no_survivor_and_no_refused_one() -> None:
    story = Shared()
    story.start(1, G)
    story.start(2, G)
    story.add("writer-1", "fault", "kill", "nemesis")
    story.end(1, "the driver died")
    story.end(2, REFUSED)
    story.holds("G28")


def blocked(when: str) -> Shared:
    """Writer 2 is refused for writer 1, whose heartbeat expires."""
    story = Shared()
    story.start(1, G)
    if when == "before":
        story.expire(1)
    story.start(2, G)
    if when == "meanwhile":
        story.expire(1)
    story.end(2, REFUSED)
    return story


def test_a_writer_whose_heartbeat_has_ended_blocks_nobody() -> None:
    blocked("before").breaks("G28", "whose heartbeat had ended before it began")
    blocked("meanwhile").undecided("G28", "expired-meanwhile")
    blocked("never").holds("G28")


def test_a_rollback_or_a_service_may_be_the_reason() -> None:
    story = Shared()
    story.start(2, G)
    story.expire(2)
    story.plan(7, 2, by=1)
    story.end(2, REFUSED)
    story.undecided("G28", "rolled-back")
    story = refused("b/f")
    story.events.pop()
    story.plan(7, 2, by=2)
    story.end(2, REFUSED)
    story.breaks("G28", "no instant")
    story = Shared()
    story.put(3, f"{TIMELINE}/{instant(3)}.clustering.requested", b"")
    story.start(2, G)
    story.end(2, REFUSED)
    story.undecided("G28", "service-at-work")


def test_either_of_two_may_be_refused_or_expired() -> None:
    story = both_hold()
    story.end(1, REFUSED_EARLY)
    story.holds("G27")
    story = Shared(early="transaction")
    story.request(1)
    story.request(2)
    story.mark(1, G)
    story.expire(2)
    story.mark(2, G)
    story.undecided("G27", "holder-expired")


def test_a_marker_that_comes_again_is_held_again() -> None:
    for number in (1, 2):
        story = Shared(early="transaction")
        story.request(1)
        story.request(2)
        story.mark(number, G)
        story.mark(number, G, None)
        story.mark(3 - number, G)
        story.mark(3 - number, "a/g")
        assert not story.finding("G27").breaches
        at = story.mark(number, G)
        story.breaks("G27", f"at event {at}")


def test_only_what_came_before_a_refusal_is_a_reason_for_it() -> None:
    story = Shared()
    story.start(2, G)
    story.end(2, REFUSED)
    story.start(3, G)
    story.breaks("G28", "no instant")
    story = refused("b/f")
    story.plan(7, 2, by=1)
    story.breaks("G28", "no instant")


def test_a_completed_rival_needs_no_heartbeat() -> None:
    story = Shared()
    story.start(1, G)
    story.stop(1)
    story.start(2, G)
    story.complete(1)
    story.end(2, REFUSED)
    story.holds("G28")


def all_refused(*others: str) -> Shared:
    story = Shared()
    for number, group in enumerate((G, G, *others), start=1):
        story.start(number, group)
    for number in range(1, 3 + len(others)):
        story.end(number, REFUSED)
    return story


def test_refused_writers_in_conflict_are_told_once_and_others_are_left_out() -> None:
    message = all_refused().breaks("G28", "all writers that were in conflict were refused")
    assert instant(1) in message and instant(2) in message
    evidence = all_refused().finding("G28").breaches[0].evidence
    assert {index for index, event in enumerate(all_refused().events) if event.kind == "info"} <= set(evidence)
    two = all_refused("b/f").finding("G28")
    assert [instant(3) in breach.message for breach in two.breaches] == [False, True]


def test_a_writer_whose_wishes_are_unknown_may_be_the_survivor() -> None:
    story = Shared()
    story.request(3, "k=1")
    story.start(1, G)
    story.start(2, G)
    for number, error in ((1, REFUSED), (2, REFUSED), (3, REFUSED_EARLY)):
        story.end(number, error)
    found = story.finding("G28")
    assert not found.breaches and dict(found.excused) == {"group-unknown": 3}


def test_a_key_whose_write_was_rolled_back_is_of_no_known_group() -> None:
    story = Shared()
    story.whole(1, "b/f", rows=("k=1",))
    story.plan(7, 1, by=2)
    story.request(3)
    story.mark(3, G)
    story.request(4, "k=2")
    story.end(4, REFUSED_EARLY)
    story.undecided("G28", "group-unknown")


def test_a_clean_is_no_conflict_and_an_instant_has_the_write_that_it_began_in() -> None:
    story = Shared()
    story.put(3, f"{TIMELINE}/{instant(3)}.clean.requested", b"")
    story.start(2, G)
    story.end(2, REFUSED)
    story.breaks("G28", "no instant")
    story = Shared()
    story.whole(1, G)
    story.ask(1)
    story.end(1, REFUSED)
    assert not story.finding("G28").judged and not story.finding("G28").breaches
