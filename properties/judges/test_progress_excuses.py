"""G25: each reason for a write that did not complete, by name, and what a breach shows. G21: the same of pairs."""

from __future__ import annotations

from typing import Any

import pytest

from marker_sim.history import APPLICATION_ENDED, NOT_GETTING_ON
from marker_sim.plan import Plan, Task, Write
from properties.faces.judges import Breach
from properties.judges.jobs import DRIVER, EXECUTOR, Job, base
from properties.judges.test_pairs import DIRECT, PLAN, TIMELINE, compared, told
from properties.judges.test_progress import GIVEN_UP, answer_to, exits, fails


def excused(job: Job) -> dict[str, int]:
    return dict(job.finding("G25").excused)


def only(job: Job) -> Breach:
    (breach,) = job.finding("G25").breaches
    return breach


def gives_up(job: Job, **columns: Any) -> int:
    return job.observe("job-failed", **{"process": job.driver, "error": GIVEN_UP, **columns})


# G25.


@pytest.mark.parametrize(
    ("kind", "process", "path", "excuse"),
    [
        ("throttled", DRIVER, "t/x", "driver-fault"),
        ("pause", DRIVER, None, "driver-fault"),
        ("disk-full", "other", "u/x", "shared-storage"),
        ("power-loss", "other", None, "shared-storage"),
        ("throttled", "server#1", "t/x", "server-fault"),
        ("pause", "server#1", None, "server-fault"),
        ("throttled", "server#1", "u/x", ""),
        ("throttled", "other", "t/x", ""),
        ("clock-jump", DRIVER, None, ""),
        ("damage", "kit", "t/x", ""),
    ],
)
@pytest.mark.parametrize("mode", ["timeline", "direct"])
def test_a_failed_step_is_counted_by_the_fault_that_may_have_touched_it(
    kind: str, process: str, path: str | None, excuse: str, mode: str
) -> None:
    job = Job(mode=mode)
    job.start()
    job.begin("001")
    job.wait(60_000)
    fails(job, kind=kind, process=process, path=path, value="begin" if kind in ("pause", "disk-full") else None)
    exits(job)
    finding = job.finding("G25")
    if excuse == "server-fault" and mode == "direct":
        excuse = ""
    assert dict(finding.excused) == ({excuse: 1} if excuse else {}) and bool(finding.breaches) is not bool(excuse)


@pytest.mark.parametrize("late_ms", [0, 1])
def test_a_fault_explains_a_step_until_the_storage_time_out_and_late_effects_are_over(late_ms: int) -> None:
    job = Job(late_effect_ms=2_000)
    job.begin("001")
    fault = job.fault("timeout-lost", process=job.driver, path="t/x")
    job.now_ms = job.events[fault].time_ns // 1_000_000 + 3_000 + late_ms - 1
    fails(job)
    exits(job)
    assert len(job.finding("G25").breaches) == late_ms


@pytest.mark.parametrize(
    ("process", "kind", "died"), [(DRIVER, "kill", True), (DRIVER, "clock-jump", False), ("x", "kill", False)]
)
def test_only_the_death_of_its_driver_excuses_a_write_that_is_forgotten(process: str, kind: str, died: bool) -> None:
    job = Job()
    job.begin("001")
    job.fault(kind, process)
    job.write("002", "b")
    assert excused(job) == ({"driver-died": 1} if died else {})
    assert len(job.finding("G25").breaches) == (not died)


def test_a_death_counts_for_the_write_that_it_met_and_for_no_other() -> None:
    job = Job()
    job.begin("001")
    job.begin("002")
    job.kill(DRIVER)
    assert excused(job) == {"driver-died": 1}
    assert "began its next write" in only(job).message


def test_a_write_that_its_driver_forgot_says_how_and_shows_its_begin_and_where_it_ended() -> None:
    for ended in (False, True):
        job = Job()
        begun = job.begin("001")
        at = exits(job, APPLICATION_ENDED) if ended else job.begin("002")
        breach = next(iter(job.finding("G25").breaches))
        how = "ended its application" if ended else "began its next write"
        assert breach.message == f"t/001: {DRIVER} {how} and had neither committed nor given up this one"
        assert {begun, answer_to(job, begun), at} <= set(breach.evidence)


def test_a_write_that_was_given_up_as_planned_is_counted_and_only_by_its_own_driver() -> None:
    job = Job()
    job.begin("001")
    gives_up(job, value="abandoned")
    assert excused(job) == {"abandoned-as-planned": 1}
    other = Job()
    other.begin("001")
    gives_up(other, value="abandoned", process="driver#7")
    other.write("002", "b")
    assert len(other.finding("G25").breaches) == 1 and excused(other) == {"abandoned-as-planned": 1}


def test_a_write_that_hangs_shows_its_last_event_and_for_how_long() -> None:
    job = Job()
    job.begin("001")
    last = job.last
    job.wait(59_999)
    job.fault("throttled", "somebody", path="u/x")
    job.wait(39_998)
    at = exits(job, NOT_GETTING_ON)
    breach = only(job)
    assert {last, at} <= set(breach.evidence)
    assert breach.message.startswith(f"t/001: {DRIVER} hangs: its write had no event after event {last} for 100 s (")


@pytest.mark.parametrize("late_ms", [-1, 0])
def test_a_write_may_be_quiet_for_the_bound_and_what_storage_takes(late_ms: int) -> None:
    job = Job()
    job.begin("001")
    last = job.last
    job.now_ms = job.events[last].time_ns // 1_000_000 + 10_000 + 1_000 + late_ms - 1
    job.observe("phase", value="end")
    assert len(job.finding("G25").breaches) == late_ms + 1
    assert excused(job) == ({} if late_ms + 1 else {"run-ended": 1})


@pytest.mark.parametrize("sign", ["executor", "server", "other executor"])
def test_what_its_executors_and_servers_do_is_a_sign_of_life(sign: str) -> None:
    job = Job(mode="timeline", world="real")
    job.start()
    job.begin("001")
    job.attempt(base("a"), process="executor#1")
    for _ in range(9):
        job.wait(10_000)
        if sign == "server":
            job.put("t/.hoodie/.temp/001/MARKERS0", b"")
        else:
            job.observe("alive", process="executor#1" if sign == "executor" else "executor#2")
    exits(job, NOT_GETTING_ON)
    assert excused(job) == ({} if sign == "other executor" else {"still-working": 1})


@pytest.mark.parametrize(
    ("step", "error", "held"),
    [("commit", "t/x", True), ("commit", "raised ValueError('x')", False), ("finalize", "t/x", True)],
)
def test_a_driver_that_ends_after_a_step_failed_is_judged_by_that_step(step: str, error: str, held: bool) -> None:
    job = Job()
    begun = job.begin("001")
    failed = fails(job, step, error, kind="throttled", path="t/x")
    gone = exits(job, "StorageTimeout('t')")
    if held:
        assert excused(job) == {"driver-fault": 1}
    else:
        assert {failed, gone} <= set(only(job).evidence) and begun not in only(job).evidence
        assert only(job).message.startswith(f"t/001: {DRIVER} ended by itself: StorageTimeout('t')")


@pytest.mark.parametrize(
    "whose", ["mine", "another's", "retried", "earlier and back", "earlier and gone", "paused earlier"]
)
def test_a_stage_that_was_given_up_is_counted_by_the_executors_that_died(whose: str) -> None:
    job = Job()
    job.begin("001", driver="driver#1")
    job.attempt(base("a"), process="executor#1")
    if "earlier" in whose:
        job.fault("pause" if "paused" in whose else "kill", "executor#1", value="begin" if "paused" in whose else None)
        if "paused" in whose:
            job.fault("pause", "executor#1", value="end")
        gives_up(job, value="abandoned")
        job.wait(60_000)
        job.begin("002", driver="driver#1")
        if "back" in whose:
            job.attempt(base("a", "002"), "002", process="executor#2")
    if whose == "another's":
        job.begin("009", driver="driver#9")
        job.attempt(base("z", "009"), "009", process="executor#9")
        job.driver = "driver#1"
        job.fault("kill", "executor#9")
    if whose == "mine":
        job.fault("kill", "executor#1")
    if whose == "retried":
        job.fault("stage-retried", "driver#1")
    gives_up(job)
    held = whose in ("mine", "retried", "earlier and gone")
    told_ = excused(job)
    assert ("executor-fault" in told_ or "driver-fault" in told_) is held, told_


def test_an_attempt_that_failed_without_a_reason_is_shown() -> None:
    job = Job()
    job.begin("001")
    attempt = job.step("attempt", "001", path=base("a"), process=EXECUTOR)
    job.done(attempt, "info", "t/x")
    at = gives_up(job)
    assert {attempt, at} <= set(only(job).evidence)
    assert only(job).message.endswith(f"gave up a write: {GIVEN_UP}, and no fault touched an attempt that failed")


def test_an_attempt_that_was_under_way_when_a_write_was_given_up_explains_it_if_it_was_touched() -> None:
    for touched in (False, True):
        job = Job()
        job.begin("001")
        job.step("attempt", "001", path=base("a"), process=EXECUTOR)
        if touched:
            job.fault("throttled", EXECUTOR, path="t/x")
        gives_up(job)
        assert excused(job) == ({"executor-fault": 1} if touched else {})
        assert touched or only(job).message.endswith("although no fault explains it")


def test_a_history_whose_plan_has_writes_is_judged_though_none_began() -> None:
    job = Job(plan={"writes": [{}]})
    finding = job.finding("G25")
    assert finding.applicable and not finding.judged
    gives_up(job)
    assert len(job.finding("G25").breaches) == 1
    assert not Job(plan={"writes": []}).finding("G25").applicable


# G21.


def shown(first: Job, second: Job) -> Breach:
    (breach,) = compared(first, second).breaches
    return breach


def last_answer(job: Job) -> int:
    return max(event.index for event in job.events if event.operation == "commit" and event.kind == "ok")


def test_a_pair_shows_rows_answer_and_fault_of_the_second_run_alone() -> None:
    first, second = told("direct", DIRECT), told("timeline", TIMELINE, rows=("k=0",))
    rows = second.last
    assert shown(first, second).evidence == (last_answer(second), rows)
    assert shown(first, second).message == "t has the row 'l=1' in direct mode only (1 row(s) differ)"
    fault = second.fault("throttled", DRIVER, path="t/p")
    assert shown(first, second).evidence == (last_answer(second), rows, fault)
    first, second = told("direct", DIRECT), told("timeline", TIMELINE, rows=(*ROWS, "m=2"))
    first.fault("throttled", DRIVER, path="t/p")
    assert shown(first, second).evidence == (last_answer(second), second.last)
    assert shown(first, second).under == "storage"
    assert shown(first, second).message == "t has the row 'm=2' in timeline mode only (1 row(s) differ)"


ROWS = ("k=0", "l=1")


def test_other_paths_show_the_last_commit_and_the_rows_of_their_table() -> None:
    second = told("timeline", TIMELINE)
    rows = second.last
    answer = last_answer(second)
    second.mark(base("b", TIMELINE[1]), TIMELINE[1])
    breach = shown(told("direct", DIRECT), second)
    assert breach.evidence == (answer, rows)
    assert breach.message == "the markers of t name 'p/b_0-0_#1' in timeline mode only (1 path(s) differ)"


@pytest.mark.parametrize(
    ("rows", "complete", "excuse"), [(None, True, "rows-unread"), (ROWS, False, "write-incomplete"), (ROWS, True, "")]
)
def test_a_table_that_is_not_compared_is_counted(rows: Any, complete: bool, excuse: str) -> None:
    plan = PLAN if complete else Plan(writes=(*PLAN.writes, Write(tasks=(Task(),))))
    first, second = told("direct", DIRECT, plan), told("timeline", TIMELINE, plan, rows=rows)
    second.fault("kill", DRIVER)
    assert dict(compared(first, second).excused) == ({excuse: 1} if excuse else {})


@pytest.mark.parametrize("lost", ["", "t", "u"])
def test_every_write_of_every_table_must_have_completed_when_there_was_a_fault(lost: str) -> None:
    plan = Plan(tables=("t", "u"), writes=(Write(tasks=(Task(),)), Write(tasks=(Task(),), table=1)))

    def both(mode: str, lost: str = "") -> Job:
        job = Job(mode=mode, plan=plan.to_dict() | {"mode": mode})
        for job.table in ("t", "u"):
            job.begin("001")
            path = job.attempt(base("a"))
            job.finalize("001", path)
            if job.table != lost:
                job.commit("001", path)
        job.observe("phase", value="healed")
        for table in ("t", "u"):
            job.observe("rows", table=table, value=ROWS if mode == "direct" or table == "t" else ("k=0",))
        return job

    second = both("timeline", lost)
    second.fault("kill", DRIVER)
    finding = compared(both("direct"), second)
    assert finding.judged == (0 if lost else 2)
    assert [breach.message[:9] for breach in finding.breaches] == ([] if lost else ["u has the"])
    if not lost:
        committed = [e.index for e in second.events if e.operation == "commit" and e.kind == "ok"]
        assert committed[1] in finding.breaches[0].evidence and committed[0] not in finding.breaches[0].evidence


def test_two_runs_that_were_only_read_are_undecided() -> None:
    first, read = told("direct", DIRECT), told("timeline", TIMELINE)
    read.header = Job(mode="timeline", witness="reads", plan=first.header.plan).header
    finding = compared(first, read)
    assert finding.guarantee == "G21" and "now and then" in finding.undecided and finding.applicable


def test_a_plan_whose_writes_are_all_abandoned_says_nothing_of_rows_under_a_fault() -> None:
    plan = Plan(writes=(Write(tasks=(Task(),), abandon=True),))
    first, second = told("direct", DIRECT, plan), told("timeline", TIMELINE, plan, rows=("k=0",))
    second.fault("kill", DRIVER)
    assert compared(first, second).judged == 0 and not compared(first, second).breaches


@pytest.mark.parametrize(
    ("then", "held"), [("it-waits", True), ("it-is-killed-alone", False), ("another-attempt-is-under-way", False)]
)
def test_a_lost_answer_is_a_reason_to_wait_as_long_as_its_attempt_is_under_way(then: str, held: bool) -> None:
    job = Job()
    job.begin("001")
    job.attempt(base("a"), process="executor#8")
    job.attempt(base("b"))
    job.fault("kill", process="executor#8")  # A reason to give up, but not with another executor at hand.
    waiting = base("c", "001", "2-0-0")
    attempt = job.step("attempt", "001", path=waiting, process="executor#2")
    create = job.invoke("create", f"{waiting}.marker.CREATE", process="executor#2")
    job.fault("request-lost", process="executor#2", caused_by=create)
    if then == "it-is-killed-alone":
        job.fault("attempt-killed", process="executor#2", path=waiting)
    elif then == "another-attempt-is-under-way":
        job.done(attempt)
        job.step("attempt", "001", path=base("d", "001", "3-0-0"), process="executor#2")
    job.wait(60_000)
    job.observe("job-failed", process=job.driver, error="nothing was heard of 1 tasks")
    breaches = job.finding("G25").breaches
    assert bool(breaches) is not held and all("while an executor was idle" in breach.message for breach in breaches)
