"""G15, G16 and G19 on histories written by hand."""

from __future__ import annotations

from marker_sim.names import MarkerType
from marker_sim.timeline import COMMIT, ROLLBACK, Entry, State, encode_rollback
from properties.judges.jobs import DRIVER, EXECUTOR, Job, base, log

A, B = base("a"), base("b", token="1-0-0")
SECOND = base("a", "002")


def finish(story: Job, instant: str, driver: str = "", *rolled_back: str) -> None:
    """A whole write that first rolls back the given instants."""
    story.begin(instant, *rolled_back, driver=driver)
    path = story.attempt(base("a", instant), instant)
    story.finalize(instant, path)
    story.commit(instant, path)


# G15.


def test_a_rollback_that_deletes_what_the_markers_name_holds() -> None:
    story = Job()
    story.failed("001", "a", "b")
    finish(story, "002", "driver#2", "001")
    for guarantee in ("G13", "G14", "G15", "G17", "G19"):
        story.holds(guarantee)
    assert story.finding("G15").judged == 1


def test_without_a_rollback_nothing_is_said_of_rollbacks() -> None:
    story = Job()
    story.write("001", "a")
    story.says_nothing("G15")
    story.says_nothing("G16")
    story.says_nothing("G19")


def test_a_file_that_is_left_breaks_it() -> None:
    story = Job()
    story.failed("001", "a", "b")
    story.driver = "driver#2"
    story.roll_back("001", B)
    assert B in story.breaks("G15", under="client").message


def test_a_failed_listing_that_is_taken_for_an_empty_one_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    story.roll_back("001", A, listing="info")
    story.breaks("G15", under="client")


def test_a_rollback_that_lists_nothing_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    rollback = story.step("rollback", "001")
    story.entry("0019", State.COMPLETED, encode_rollback("001", COMMIT), ROLLBACK)
    story.done(rollback)
    story.breaks("G15", under="client")


def test_a_rollback_that_records_nothing_is_judged_when_it_ends() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    rollback = story.step("rollback", "001")
    story.listing("001")
    story.done(rollback)
    story.breaks("G15", under="client")


def test_a_log_file_that_is_left_breaks_it() -> None:
    story = Job()
    story.write("001", "a")
    story.begin("002")
    path = story.attempt(log("a", "001"), "002")
    story.kill(DRIVER)
    story.begin("003", driver="driver#2")
    story.roll_back("002", path)
    story.breaks("G15", under="client")


def test_a_zombie_that_writes_after_the_listing_is_not_the_rollbacks() -> None:
    story = Job()
    story.begin()
    story.mark(A, "001")
    story.kill(DRIVER)
    story.driver = "driver#2"
    rollback = story.step("rollback", "001")
    story.listing("001")
    story.data(A)
    story.entry("0019", State.COMPLETED, encode_rollback("001", COMMIT), ROLLBACK)
    story.done(rollback)
    story.holds("G15")
    story.breaks("G20", under="client")


def test_a_rollback_of_another_table_with_the_same_instant_takes_nothing_back_here() -> None:
    story = Job()
    story.failed("001", "a")
    other = Job(table="u")
    other.events, other.invoked = story.events, story.invoked
    other.failed("001", "b")
    other.driver = "driver#2"
    other.roll_back("001")
    other.holds("G15")
    story.says_nothing("G16")


def test_committed_files_of_others_survive_a_rollback_and_a_sweep() -> None:
    for operation in ("rollback", "sweep"):
        story = Job()
        (path,) = story.write("001", "a")
        story.failed("002", "b")
        story.driver = "driver#2"
        step = story.step(operation, "002")
        story.listing("002")
        story.data(path, None, "driver#2")
        story.done(step)
        breach = next(b for b in story.finding("G15").breaches if path in b.message)
        assert step in breach.evidence
        assert not story.finding("G14").breaches


def test_a_sweep_keeps_what_its_own_instant_committed() -> None:
    story = Job()
    (path,) = story.write("001", "a")
    sweep = story.step("sweep", "001")
    story.data(path, b"changed", DRIVER)
    story.done(sweep)
    story.breaks("G15")


def test_a_late_delete_of_a_rollback_that_ended_unknown_is_still_its_own() -> None:
    story = Job()
    (path,) = story.write("001", "a")
    story.failed("002", "b")
    story.driver = "driver#2"
    rollback = story.step("rollback", "002")
    story.done(rollback, "info", "no answer")
    story.data(path, None, "driver#2")
    assert rollback in story.breaks("G15", under="client").evidence


def test_a_committed_instant_is_not_rolled_back() -> None:
    story = Job()
    story.write("001", "a")
    story.step("rollback", "001")
    story.breaks("G15")


def test_a_commit_that_arrives_while_its_instant_is_rolled_back_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    rollback = story.step("rollback", "001")
    story.listing("001")
    story.driver = DRIVER
    story.complete("001", A)
    story.driver = "driver#2"
    story.data(A, None, "driver#2")
    story.entry("0019", State.COMPLETED, encode_rollback("001", COMMIT), ROLLBACK)
    story.done(rollback)
    assert len(story.finding("G15").breaches) == 2, "it is committed and rolled back, and a committed file was deleted"


def test_a_commit_of_a_dead_driver_that_arrives_after_the_rollback_breaks_it() -> None:
    story = Job()
    story.failed("001")
    story.driver = "driver#2"
    story.roll_back("001")
    story.holds("G15")
    story.driver = DRIVER
    story.complete("001")
    story.breaks("G15", under="client")


def test_a_commit_that_arrives_before_anybody_rolls_back_is_a_commit() -> None:
    story = Job()
    story.begin()
    story.attempt(A)
    story.finalize("001", A)
    story.step("commit", "001", (A,))
    story.kill(DRIVER)
    story.complete("001", A)
    finish(story, "002", "driver#2")
    for guarantee in ("G14", "G17"):
        story.holds(guarantee)
    story.says_nothing("G19")
    story.says_nothing("G15")


def interrupted(story: Job) -> int:
    """A rollback of 001 whose driver dies after it has listed the markers."""
    story.failed("001", "a")
    story.driver = "driver#2"
    story.step("begin", None)
    rollback = story.step("rollback", "001")
    story.entry("0019", State.REQUESTED, encode_rollback("001", COMMIT), ROLLBACK)
    story.listing("001")
    story.kill("driver#2")
    return rollback


def test_a_rollback_that_is_run_again_to_its_end_holds() -> None:
    story = Job()
    interrupted(story)
    story.says_nothing("G16")
    finish(story, "002", "driver#3", "001")
    for guarantee in ("G15", "G16", "G17", "G19"):
        story.holds(guarantee)


def test_a_third_driver_may_be_the_one_that_ends_it() -> None:
    story = Job()
    interrupted(story)
    story.begin("002", driver="driver#3")
    story.done(story.step("rollback", "001"), "info", "503")
    story.kill("driver#3")
    finish(story, "003", "driver#4", "001", "002")
    story.holds("G16")


def test_an_interrupted_rollback_that_leaves_its_instant_pending_breaks_it() -> None:
    story = Job()
    interrupted(story)
    finish(story, "002", "driver#3")
    assert len(story.finding("G16").breaches) == 2, "the instant is pending and its file is there"


def test_an_interrupted_rollback_that_leaves_files_breaks_it() -> None:
    story = Job()
    interrupted(story)
    story.begin("002", driver="driver#3")
    story.roll_back("001", A)
    story.complete("002")
    story.done(story.step("commit", "002"))
    assert A in story.breaks("G16", under="client").message


def test_a_zombie_after_the_last_listing_is_not_left_by_the_rollback() -> None:
    story = Job()
    interrupted(story)
    story.begin("002", "001", driver="driver#3")
    story.data(A)
    story.commit("002")
    story.holds("G16")


def test_a_rollback_that_fails_for_a_reason_of_its_own_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    begin = story.step("begin", None)
    story.done(story.step("rollback", "001"), "info", "raised FileNotFoundError('x')")
    story.done(begin, "info", "raised FileNotFoundError('x')")
    story.breaks("G16", under="client")
    assert not story.finding("G14").breaches, "the begin failed because its rollback did"


def test_after_the_faults_every_rollback_ends_well() -> None:
    story = Job()
    story.failed("001", "a")
    story.driver = "driver#2"
    story.observe("phase", value="probe")
    story.step("begin", None)
    rollback = story.step("rollback", "001")
    story.wait(20_000).observe("phase", value="end")
    story.breaks("G16", under="client")
    story.done(rollback, "info", "the type file says nothing")
    story.breaks("G16", under="client")
    assert not story.finding("G14").breaches


def test_an_interrupted_rollback_without_a_later_write_decides_nothing() -> None:
    story = Job()
    interrupted(story)
    story.begin("002", driver="driver#3")
    story.says_nothing("G16")


# G19.


def test_a_write_that_leaves_a_dead_drivers_instant_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    finish(story, "002", "driver#2")
    story.breaks("G19", under="client")


def test_a_rollback_after_the_first_file_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.begin("002", driver="driver#2")
    story.attempt(SECOND, "002")
    story.roll_back("001")
    story.breaks("G19", under="client")


def test_an_instant_taken_off_the_timeline_without_a_rollback_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.begin("002", driver="driver#2")
    story.entry("001", State.INFLIGHT, None)
    story.entry("001", State.REQUESTED, None)
    story.attempt(SECOND, "002")
    story.breaks("G19", under="client")


def test_a_rollback_that_does_not_say_what_it_takes_back_breaks_it() -> None:
    story = Job()
    story.failed("001", "a")
    story.begin("002", driver="driver#2")
    story.entry("0019", State.COMPLETED, b"{}", ROLLBACK)
    story.attempt(SECOND, "002")
    story.breaks("G19", under="client")


def test_drivers_that_exited_or_failed_are_gone_too() -> None:
    story = Job()
    story.begin()
    story.observe("exited", process=DRIVER)
    story.begin("002", driver="driver#2")
    story.attempt(SECOND, "002")
    story.breaks("G19")
    story = Job()
    story.begin()
    story.done(story.step("finalize", "001"), "info", "no answer")
    story.begin("002", driver="driver#2")
    story.attempt(SECOND, "002")
    story.breaks("G19")


def test_a_driver_that_begins_another_write_has_left_its_last_one_behind() -> None:
    story = Job()
    story.begin()
    story.begin("002")
    story.attempt(SECOND, "002")
    story.breaks("G19")
    story = Job()
    story.begin()
    finish(story, "002", DRIVER, "001")
    story.holds("G19")


def test_a_live_driver_of_another_write_is_out_of_scope() -> None:
    story = Job()
    story.begin()
    story.begin("002", driver="driver#2")
    story.attempt(SECOND, "002")
    story.says_nothing("G19")


def test_a_request_that_is_applied_after_the_write_began_was_not_there_then() -> None:
    story = Job()
    story.driver = DRIVER
    story.step("begin", None)
    story.kill(DRIVER)
    story.driver = "driver#2"
    begin = story.step("begin", None)
    story.put(Entry("001", COMMIT, State.REQUESTED).path("t"), b"", DRIVER)
    story.entry("002", State.REQUESTED)
    story.entry("002", State.INFLIGHT)
    story.done(begin, instant="002")
    story.attempt(SECOND, "002")
    story.says_nothing("G19")


def test_an_instant_on_the_timeline_of_a_driver_that_died_in_its_begin_counts() -> None:
    story = Job()
    story.step("begin", None)
    story.entry("001", State.REQUESTED)
    story.kill(DRIVER)
    story.begin("002", driver="driver#2")
    story.attempt(SECOND, "002")
    story.breaks("G19", under="client")


def test_a_commit_that_arrives_late_needs_no_rollback() -> None:
    story = Job()
    story.begin()
    story.step("commit", "001")
    story.kill(DRIVER)
    story.driver = "driver#2"
    begin = story.step("begin", None)
    story.driver = DRIVER
    story.complete("001")
    story.driver = "driver#2"
    story.entry("002", State.REQUESTED)
    story.entry("002", State.INFLIGHT)
    story.done(begin, instant="002")
    story.mark(SECOND, "002", MarkerType.CREATE, EXECUTOR)
    story.attempt(SECOND, "002", marker=False)
    story.holds("G19")
