"""Histories that mutation testing of the judges asked for: what no other test of them told apart (docs/honesty.md)."""

from __future__ import annotations

from properties.judges.jobs import Job, base


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


def test_a_write_that_is_given_up_with_nothing_wrong_breaks_it_and_one_that_was_meant_to_does_not() -> None:
    for value, batched, served in ((None, False, False), (None, True, True), ("abandoned", False, False)):
        job = Job(mode="timeline") if batched else Job()
        if served:
            job.start()
        job.write("001", "a")
        event = job.observe("job-failed", process=job.driver, value=value, error="a task failed 6 times")
        if value is None:
            breach = job.breaks("G14")
            assert breach.evidence == (event,) and "gave up" in breach.message
        else:
            job.holds("G14")
    unserved = Job(mode="timeline")
    unserved.start()
    unserved.write("001", "a")
    unserved.kill()
    unserved.observe("job-failed", process=unserved.driver, error="no server")
    unserved.holds("G14")
