"""Two histories that differ in one thing, of which a judge accuses one: writes."""

from __future__ import annotations

import pytest

from marker_sim.history import NOT_GETTING_ON
from properties.judges.build import excused
from properties.judges.jobs import DRIVER, EXECUTOR, Job, base
from properties.judges.test_progress import GIVEN_UP, exits
from properties.tables.frozen import Writes, frozen


def test_a_history_of_writes_without_its_plan_needs_probes_as_any_other() -> None:
    job = Job(mode="timeline")
    job.start()
    job.write("001", "a")
    job.observe("phase", value="probe")
    job.observe("phase", value="end")
    assert "3 are needed" in job.finding("G6").undecided
    planned = Job(mode="timeline", plan={"directories": []})
    planned.start()
    planned.write("001", "a")
    planned.observe("phase", value="probe")
    planned.observe("phase", value="end")
    assert not planned.finding("G6").undecided


def recovered() -> Job:
    """A write that failed, and the next one of another driver, which rolls it back and completes."""
    job = Job()
    job.failed("001", "a")
    job.begin("002", "001", driver="driver#2")
    path = job.attempt(base("a", "002"), "002")
    job.finalize("002", path)
    job.commit("002", path)
    return job


def test_a_write_that_recovers_well_needs_no_excuse() -> None:
    job = recovered()
    for guarantee in ("G13", "G14", "G15", "G17", "G18", "G19"):
        finding = job.finding(guarantee)
        assert finding.judged and not finding.breaches, guarantee
        assert not {"driver-alive", "late-write", "fault-in-write"} & dict(finding.excused).keys(), guarantee


@pytest.mark.parametrize(
    ("kind", "process", "when", "disturbed"),
    [
        ("kill", DRIVER, "in it", True),
        ("kill", "driver#2", "in it", True),
        ("kill", EXECUTOR, "in it", False),
        ("throttled", EXECUTOR, "in it", True),
        ("throttled", EXECUTOR, "just before", True),
        ("throttled", EXECUTOR, "long before", False),
        ("pause", EXECUTOR, "just before", False),
        ("throttled", EXECUTOR, "after", False),
    ],
)
def test_markers_that_a_write_leaves_are_excused_by_what_may_have_met_it(
    kind: str, process: str, when: str, disturbed: bool
) -> None:
    job = Job(late_effect_ms=500)
    job.begin("001")
    path = job.attempt(base("a"))
    job.finalize("001", path)
    job.fault("throttled", DRIVER, path=job.home("001"))  # So that the write is not asked for its own markers.
    job.commit("001", path, tidy=False)
    job.wait(60_000)

    def fault() -> None:
        job.fault(kind, process, path=None if kind == "pause" else "t/x")

    if when == "long before":
        fault()
        job.wait(1_600)
    if when == "just before":
        fault()
        job.wait(1_000)
    job.begin("002", driver="driver#2" if process == "driver#2" else DRIVER)
    if when == "in it":
        fault()
    path = job.attempt(base("b", "002"), "002")
    job.finalize("002", path)
    job.commit("002", path)
    if when == "after":
        fault()
    finding = job.finding("G18")
    assert bool(finding.breaches) is not disturbed
    own = process != "driver#2"  # The write's own markers are judged when its driver's next one begins.
    assert dict(finding.excused).get("fault-in-write", 0) == own + disturbed


def test_a_server_that_starts_after_a_write_was_given_up_is_not_why() -> None:
    for started in ("before", "after"):
        job = Job(mode="timeline")
        if started == "before":
            job.start()
            job.kill()
            job.wait(60_000)
        job.begin("001")
        attempt = job.step("attempt", "001", path=base("a"), process=EXECUTOR)
        job.done(attempt, "info", "t/x")
        job.observe("job-failed", process=job.driver, error=GIVEN_UP)
        if started == "after":
            job.start()
        assert excused(job, "G25") == ({"server-gone": 1} if started == "before" else {})


@pytest.mark.parametrize("kind", ["slow-task", "speculative", "stage-retried"])
def test_tasks_that_ran_again_in_this_write_are_why_it_was_given_up(kind: str) -> None:
    for earlier in (False, True):
        job = Job()
        if earlier:
            job.begin("001")
            job.fault(kind, job.driver)
            job.observe("job-failed", process=job.driver, value="abandoned", error="x")
            job.wait(60_000)
        job.begin("002")
        job.attempt(base("a", "002"), "002")
        if not earlier:
            job.wait(1).fault(kind, job.driver)
        job.wait(5_000)
        job.observe("job-failed", process=job.driver, error=GIVEN_UP)
        held = kind != "slow-task" and not earlier
        assert ("executor-fault" in excused(job, "G25")) is held, earlier


def test_an_application_may_end_while_another_driver_goes_on() -> None:
    job = Job()
    job.write("001", "a")
    exits(job, "its application ended")
    job.write("002", "b", driver="driver#2")
    job.holds("G25")


def test_what_a_black_box_was_never_asked_to_write_is_not_judged_as_a_write() -> None:
    told = Writes()
    told.audit(frozen("1.0.2-cow"), -1)
    for guarantee in ("G13", "G24", "G25"):
        finding = told.judged(guarantee)
        assert not finding.applicable and finding.guarantee == guarantee


def test_files_that_came_back_after_the_listing_are_counted_when_their_markers_go() -> None:
    job = Job()
    job.failed("001", "a")
    job.driver = "driver#2"
    step = job.step("rollback", "001")
    job.listing("001")
    job.data(base("a"), None, "driver#2")
    job.data(base("a"))
    job.delete_markers("001")
    job.done(step)
    assert excused(job, "G17") == {"late-write": 1} and not job.finding("G17").breaches


def test_a_file_that_came_after_the_last_listing_is_counted_where_a_rollback_is_made_again() -> None:
    job = Job()
    job.failed("001", "a")
    job.driver = "driver#2"
    job.step("rollback", "001")
    job.kill("driver#2")
    job.begin("002", "001", driver="driver#3")
    job.data(base("a"))
    path = job.attempt(base("a", "002"), "002")
    job.finalize("002", path)
    job.commit("002", path)
    finding = job.finding("G16")
    assert finding.judged == 1 and not finding.breaches and dict(finding.excused)["late-write"] == 1
    assert job.finding("G19").judged == 1


def test_servers_that_are_gone_are_no_reason_for_a_write_with_direct_markers() -> None:
    job = Job()
    job.start()
    job.kill()
    job.wait(60_000)
    job.begin("001")
    attempt = job.step("attempt", "001", path=base("a"), process=EXECUTOR)
    job.done(attempt, "info", "t/x")
    job.observe("job-failed", process=job.driver, error=GIVEN_UP)
    assert excused(job, "G25") == {} and len(job.finding("G25").breaches) == 1


def test_storage_that_failed_for_an_executor_whose_attempts_went_well_is_no_reason_to_give_up() -> None:
    job = Job()
    job.begin("001")
    job.attempt(base("a"))
    job.fault("throttled", EXECUTOR, path="t/x")
    job.observe("job-failed", process=job.driver, error=GIVEN_UP)
    assert excused(job, "G25") == {} and len(job.finding("G25").breaches) == 1


def test_a_step_that_fails_although_the_one_inside_it_went_well_breaks_it() -> None:
    job = Job()
    job.write("001", "a")
    job.observe("phase", value="probe")
    outer = job.step("finalize", "001")
    job.done(job.step("sweep", "001"))
    job.done(outer, "info", "503")
    job.observe("phase", value="end")
    assert len(job.finding("G14").breaches) == 1


@pytest.mark.parametrize("operation", ["rollback", "sweep", "begin"])
def test_a_committed_file_that_a_rollback_takes_is_a_matter_of_rollbacks(operation: str) -> None:
    job = Job()
    (path,) = job.write("001", "a")
    step = job.step(operation, "002")
    job.data(path, None, job.driver)
    job.done(step)
    assert len(job.finding("G14").breaches) == (operation == "begin")
    harmed = [breach for breach in job.finding("G15").breaches if "removed or changed the committed" in breach.message]
    assert len(harmed) == (operation != "begin")


def test_what_another_driver_commits_meanwhile_completes_no_write_of_this_one() -> None:
    job = Job()
    job.begin("001", driver="driver#1")
    job.write("002", "b", driver="driver#2")
    job.kill("driver#1")
    assert excused(job, "G25") == {"driver-died": 1} and job.finding("G25").judged == 1


@pytest.mark.parametrize("table", ["t", "u"])
def test_tasks_of_another_table_buy_a_write_no_time(table: str) -> None:
    job = Job()
    job.table = table
    job.begin("001")
    for number in range(60):
        job.attempt(base(f"a{number}"))
    job.observe("job-failed", process=job.driver, value="abandoned", error="x")
    job.table = "t"
    job.begin("002")
    job.wait(60_000)
    exits(job, NOT_GETTING_ON)
    assert bool(job.finding("G25").breaches) == (table == "u")


def test_a_rollback_before_the_commit_of_another_instant_is_none_of_its_business() -> None:
    job = recovered()
    assert excused(job, "G15") == {} and job.finding("G15").judged == 1


def test_an_attempt_without_a_marker_that_never_ends_is_shown_by_what_happened() -> None:
    job = Job()
    job.begin("001")
    attempt = job.step("attempt", "001", path=base("a"), process=EXECUTOR)
    put = job.data(base("a"))
    assert {attempt, put} <= set(job.breaks("G13").evidence)


def test_markers_that_went_too_early_show_the_create_of_the_one_that_is_missed() -> None:
    job = Job()
    job.begin("001")
    job.attempt(base("a"))
    answer = next(event.index for event in job.events if event.operation == "create" and event.kind == "ok")
    job.delete_markers("001")
    assert answer in job.breaks("G17").evidence


def test_what_is_left_of_markers_is_accused_once_however_many_writes_follow() -> None:
    job = Job()
    job.begin("001")
    path = job.attempt(base("a"))
    job.finalize("001", path)
    job.commit("001", path, tidy=False)
    job.write("002", "b")
    job.write("003", "c")
    job.breaks("G18")


def test_only_a_driver_that_ends_is_a_write_that_did_not_go_on() -> None:
    for role in ("executor", "driver"):
        job = Job(plan={"writes": [{}]})
        at = job.observe("exited", process="somebody", error="TypeError('x')")
        job.events[at] = job.events[at]._replace(role=role)
        assert job.finding("G25").judged == (role == "driver")


def test_a_commit_that_failed_completes_no_write() -> None:
    job = Job()
    job.begin("001")
    job.done(job.step("commit", "001"), "info", "t/x")
    job.kill(DRIVER)
    assert excused(job, "G25") == {"driver-died": 1}


def test_a_fault_of_a_driver_is_no_sign_of_its_life() -> None:
    job = Job()
    job.begin("001")
    for _ in range(5):
        job.wait(9_000).fault("clock-jump", job.driver)
    exits(job, NOT_GETTING_ON)
    assert len(job.finding("G25").breaches) == 1
