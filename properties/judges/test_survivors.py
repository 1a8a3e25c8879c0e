"""Histories that distinguish mutants of judges that no other test detects (docs/honesty.md)."""

from __future__ import annotations

import pytest

from marker_sim.names import encode_names
from marker_sim.timeline import State
from properties.judges.build import DIRECTORY, Story, marker
from properties.judges.jobs import EXECUTOR, Job, base

A, B, C = marker("a"), marker("b"), marker("c")


def test_a_commit_that_ends_well_and_is_on_no_timeline_breaks_it() -> None:
    job = Job()
    job.begin("001")
    path = job.attempt(base("a"))
    job.finalize("001", path)
    invoke = job.step("commit", "001", (path,))
    job.complete("001", path)
    job.done(invoke)
    job.holds("G14")
    broken = Job()
    broken.begin("001")
    path = broken.attempt(base("a"))
    broken.finalize("001", path)
    invoke = broken.step("commit", "001", (path,))
    done = broken.done(invoke)
    breach = broken.breaks("G14")
    assert breach.evidence == (invoke, done) and "no completed instant" in breach.message


def test_a_whole_write_after_all_faults_were_over_holds() -> None:
    job = Job()
    job.observe("phase", value="faults")
    job.observe("phase", value="probe")
    job.write("001", "a")
    job.holds("G14")


def test_a_write_that_made_nothing_before_it_died_must_be_rolled_back_as_well() -> None:
    job = Job()
    job.begin("001")
    job.kill(job.driver)
    job.begin("002", driver="driver#2")
    job.attempt(base("a", "002"), "002")
    assert "001" in job.breaks("G19", under="client").message


@pytest.mark.parametrize("left", ["nothing", "marker", "file"])
def test_a_beginning_that_never_reached_the_timeline_needs_a_rollback_only_for_what_it_left(left: str) -> None:
    job = Job()
    begun = job.step("begin", None)
    job.done(begun, instant="001")
    if left == "marker":
        job.mark(base("a"), "001")
    elif left == "file":
        job.attempt(base("a"), marker=False)
    job.kill(job.driver)
    job.begin("002", driver="driver#2")
    job.attempt(base("b", "002"), "002")
    if left == "nothing":
        job.holds("G19")
    else:
        found = job.finding("G19").breaches  # A file also says that its write was not on the timeline.
        assert len(found) == (2 if left == "file" else 1) and found[-1].under == "client"


@pytest.mark.parametrize("stated", [(), (State.REQUESTED,), (State.INFLIGHT,)])
def test_a_write_that_is_not_on_the_timeline_in_both_states_touches_no_data(stated: tuple[State, ...]) -> None:
    job = Job()
    begin = job.step("begin", None)
    for state in stated:
        job.entry("001", state)
    job.done(begin, instant="001")
    job.says_nothing("G19")
    job.attempt(base("a"))
    said = job.breaks("G19").message
    assert all((state.value in said) == (state not in stated) for state in (State.REQUESTED, State.INFLIGHT))


def test_a_marker_that_vanished_before_the_commit_counts_though_a_good_deletion_follows() -> None:
    job = Job()
    job.begin("001")
    path = job.attempt(base("a"))
    name = job.markers["001"][0]
    gone = job.put(f"{job.home('001')}/{name}", None, EXECUTOR, how="delete")
    job.markers["001"].remove(name)
    job.finalize("001", path)
    job.commit("001", path)
    assert gone in job.breaks("G17").evidence


def test_a_resend_belongs_to_the_server_life_that_it_reached_and_not_to_the_one_it_was_sent_to() -> None:
    story = Story()
    addressed = story.start()
    story.create(A, identity="r1")
    story.kill()
    story.start("server#2")
    resend = story.invoke("create", A, "r1", caused_by=addressed)
    story.arrive(resend)
    story.end(resend, "ok", "exists")
    assert not story.finding("G5").breaches
    same = Story()
    same.start()
    same.create(A, identity="r1")
    same.create(A, "exists", identity="r1")
    same.breaks("G5")


def test_a_fault_of_the_type_file_is_no_damage_to_it() -> None:
    story = Story()
    story.start()
    story.fault("throttled", path=f"{DIRECTORY}/MARKERS.type")
    story.invoke("exists")
    story.put(f"{DIRECTORY}/MARKERS0", encode_names([A]))
    story.breaks("G9", under="storage")
    damaged = Story()
    damaged.start()
    damaged.create(A)
    damaged.fault("damage", "kit", path=f"{DIRECTORY}/MARKERS.type")
    damaged.type_file(None)
    assert not damaged.finding("G9").breaches


def test_trouble_next_door_is_judged_call_by_call() -> None:
    story = Story()
    story.start()
    story.ask(B, instant="002")
    story.fault("throttled", path="t/.hoodie/.temp/002/MARKERS0")
    story.create(A)
    listing = story.invoke("list")
    story.end(listing, "info", error="500 no")
    story.holds("G7")
    deletion = story.invoke("delete")
    story.arrive(deletion)
    story.end(deletion, "info", error="500 no")
    story.breaks("G7", under="storage")
    assert story.finding("G7").judged == 2


def test_a_deletion_next_to_trouble_may_take_long_as_long_as_it_gets_on() -> None:
    for pauses, late in (((9_000, 9_000), False), ((18_000,), True)):
        story = Story()
        story.start()
        story.create(A)
        story.create(C, file=1)
        story.ask(B, instant="002")
        story.fault("throttled", path="t/.hoodie/.temp/002/MARKERS0")
        deletion = story.invoke("delete")
        story.arrive(deletion)
        for number, pause_ms in enumerate(pauses):
            story.wait(pause_ms)
            story.put(f"{DIRECTORY}/MARKERS{number}", None, how="delete")
        story.end(deletion, "ok", True)
        assert bool(story.finding("G7").breaches) is late
