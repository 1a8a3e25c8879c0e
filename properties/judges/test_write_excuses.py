"""What judges of writes let pass, by name; what their breaches show; and when a step may fail."""

from __future__ import annotations

from typing import Any

import pytest

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.timeline import State, WriteStat, encode_commit
from properties.faces.judges import Finding
from properties.judges.build import excused
from properties.judges.jobs import DRIVER, EXECUTOR, Job, base

A, STRAY = base("a"), base("a", token="0-0-1")
LATE = "raised KeyError('p')"


def rows_finding(job: Job, *rows: str, error: str | None = None, table: str = "t") -> Finding:
    job.add("observe", "rows", table=table, value=None if error else rows, error=error)
    return judge(History(job.header, tuple(job.events)), frozenset({"G24"}))[0]


# When a step may fail (G14; rollbacks in G16).


def failing(error: str | None = "503", kind: str = "info", **header: Any) -> tuple[Job, int]:
    """A good write, the probe phase, and a finalize that is under way."""
    job = Job(**header)
    job.write("001", "a")
    job.observe("phase", value="probe")
    return job, job.step("finalize", "001")


def judged(job: Job) -> Finding:
    job.observe("phase", value="end")
    return job.finding("G14")


def test_a_step_that_fails_after_the_last_fault_breaks_it_and_says_how() -> None:
    job, step = failing()
    done = job.done(step, "info", "503 SlowDown")
    (breach,) = judged(job).breaches
    assert breach.message == "t/001: the finalize after the last fault ended info (503 SlowDown)"
    assert breach.evidence == (step, done)
    job, step = failing()
    job.wait(20_000)
    (breach,) = judged(job).breaches
    assert breach.message == "t/001: the finalize after the last fault never ended" and step in breach.evidence


@pytest.mark.parametrize("wait_ms", [9_000, 10_000, 11_000])
def test_a_step_that_never_ended_is_late_after_the_bound(wait_ms: int) -> None:
    job, step = failing()
    job.now_ms = job.events[step].time_ns // 1_000_000 + wait_ms - 1
    finding = judged(job)
    assert bool(finding.breaches) == (wait_ms >= 10_000)
    assert dict(finding.excused) == ({} if wait_ms >= 10_000 else {"run-ended": 1})


def test_a_step_that_fails_while_faults_go_on_is_counted() -> None:
    job = Job()
    job.write("001", "a")
    job.done(job.step("finalize", "001"), "info", "503")
    job.observe("phase", value="probe")
    finding = judged(job)
    assert not finding.breaches and dict(finding.excused) == {"faults-not-over": 1}


@pytest.mark.parametrize(("when", "broken"), [("before", True), ("during", False), ("after", True), ("lasting", False)])
def test_a_fault_in_the_probe_explains_a_step_that_it_met(when: str, broken: bool) -> None:
    job = Job()
    job.write("001", "a")
    job.observe("phase", value="probe")
    if when == "before":
        job.fault("throttled", EXECUTOR, path="t/p")
    if when == "lasting":
        job.fault("pause", EXECUTOR, value="begin")
    step = job.step("finalize", "001")
    if when == "during":
        job.fault("throttled", EXECUTOR, path="t/p")
    job.done(step, "info", "503")
    if when == "after":
        job.fault("throttled", EXECUTOR, path="t/p")
    finding = judged(job)
    assert bool(finding.breaches) == broken
    assert dict(finding.excused) == ({} if broken else {"fault-in-probe": 1})


@pytest.mark.parametrize(("process", "kind", "broken"), [(DRIVER, "kill", False), ("other", "kill", True)])
def test_only_the_death_of_its_own_driver_excuses_a_step_that_never_ended(
    process: str, kind: str, broken: bool
) -> None:
    job = Job()
    job.write("001", "a")
    job.fault(kind, process)
    job.observe("phase", value="probe")
    job.step("finalize", "001")
    job.wait(20_000)
    finding = judged(job)
    assert bool(finding.breaches) == broken
    assert dict(finding.excused) == ({} if broken else {"driver-died": 1})


@pytest.mark.parametrize(
    ("servers", "broken"),
    [
        ("none", True),
        ("well", True),
        ("dead", False),
        ("paused", False),
        ("paused before", True),
        ("a second one", True),
    ],
)
def test_a_step_that_needs_a_server_may_fail_without_one(servers: str, broken: bool) -> None:
    job = Job(mode="timeline")
    job.write("001", "a")
    if servers != "none":
        job.start()
    if servers == "paused before":
        job.fault("pause", value="begin")
        job.fault("pause", value="end")
    if servers == "paused":
        job.fault("pause", value="begin")
    if servers in ("dead", "a second one"):
        job.kill()
    if servers == "a second one":
        job.start("server#2")
    job.observe("phase", value="probe")
    step = job.step("finalize", "001", process=DRIVER)
    job.done(step, "info", "503")
    finding = judged(job)
    assert bool(finding.breaches) == broken, finding
    assert broken or dict(finding.excused) == {"server-unwell": 1}


def test_a_direct_step_needs_no_server() -> None:
    job, step = failing()
    job.start()
    job.kill()
    job.done(step, "info", "503")
    assert judged(job).excused == (("fault-in-probe", 1),)
    job = Job()
    job.write("001", "a")
    job.start()
    job.kill()
    job.observe("phase", value="probe")
    job.done(job.step("finalize", "001"), "info", "503")
    assert judged(job).breaches


def test_a_failed_attempt_is_made_again_and_is_nobodys_breach() -> None:
    job = Job()
    job.write("001", "a")
    job.observe("phase", value="probe")
    job.done(job.step("attempt", "001", path=A, process=EXECUTOR), "info", "503")
    finding = judged(job)
    assert not finding.breaches and dict(finding.excused) == {"another-attempt": 1}


def test_a_step_that_failed_with_one_inside_it_is_judged_once() -> None:
    job, outer = failing()
    inner = job.step("sweep", "001")
    job.done(inner, "info", "503")
    job.done(outer, "info", "503")
    (breach,) = judged(job).breaches
    assert "sweep" in breach.message
    job, outer = failing()
    other = job.step("sweep", "001", process="driver#2")
    job.done(other, "info", "503")
    job.done(outer, "info", "503")
    assert len(judged(job).breaches) == 2, "one inside it is its own process's"


@pytest.mark.parametrize(
    ("where", "own"), [("inside", False), ("before", True), ("another error", True), ("another process", True)]
)
def test_an_error_of_its_own_is_one_that_no_call_inside_the_step_ended_with(where: str, own: bool) -> None:
    job = Job()
    job.begin()
    if where == "before":
        job.listing("001", "list-data", "info", LATE)
    step = job.step("finalize", "001")
    if where != "before":
        driver, job.driver = job.driver, "driver#2" if where == "another process" else job.driver
        job.listing("001", "list-data", "info", "raised ValueError('x')" if where == "another error" else LATE)
        job.driver = driver
    job.done(step, "info", LATE)
    finding = job.finding("G14")
    assert len(finding.breaches) == own
    assert dict(finding.excused).get("store-error", 0) == (not own)
    for breach in finding.breaches:
        assert breach.message.endswith(f"the finalize failed with an error of its own: {LATE}")


# What is counted, and what is shown.


def test_files_that_came_after_a_listing_are_counted_as_late_writes() -> None:
    job = Job()
    job.begin()
    job.attempt(A)
    job.finalize("001", A)
    job.attempt(STRAY)
    job.commit("001", A)
    assert excused(job, "G14") == {"late-write": 1}
    rolled = Job()
    rolled.failed("001", "a")
    rolled.driver = "driver#2"
    step = rolled.step("rollback", "001")
    rolled.listing("001")
    rolled.data(STRAY)
    rolled.data(A, None, "driver#2")
    rolled.done(step)
    assert excused(rolled, "G15") == {"late-write": 1} and not rolled.finding("G15").breaches
    assert excused(rolled, "G17") == {}


def test_a_rollback_of_a_write_whose_driver_lives_is_counted() -> None:
    for dead in (False, True):
        job = Job()
        job.begin("001")
        path = job.attempt(A)
        if dead:
            job.kill(DRIVER)
        job.driver = "driver#2"
        job.roll_back("001", tidy=False)
        job.driver = DRIVER
        job.data(path)
        job.complete("001", path)
        finding = job.finding("G15")
        late = [breach for breach in finding.breaches if "completes at event" in breach.message]
        assert len(late) == dead and dict(finding.excused).get("driver-alive", 0) == (not dead)


def test_an_interrupted_rollback_that_no_write_follows_is_counted() -> None:
    job = Job()
    job.failed("001", "a")
    job.driver = "driver#2"
    job.step("rollback", "001")
    job.kill("driver#2")
    assert excused(job, "G16")["no-later-write"] == 1
    assert not job.finding("G16").judged


def test_an_unfinished_write_of_a_living_driver_is_counted() -> None:
    job = Job()
    job.begin("001")
    job.attempt(A)
    job.begin("002", driver="driver#2")
    job.attempt(base("b", "002"), "002")
    assert excused(job, "G19") == {"driver-alive": 1} and not job.finding("G19").judged


def test_a_breach_of_a_commit_shows_effect_and_answer() -> None:
    job = Job()
    (path,) = job.write("001", "a")
    completed = next(e.index for e in job.events if (e.path or "").endswith("/001.commit"))
    answered = next(e.index for e in job.events if e.operation == "commit" and e.kind == "ok")
    changed = job.data(path, b"other")
    breach = job.breaks("G14")
    assert breach.evidence == (completed, answered, changed)
    what = f"t/001: the committed file 't/{path}' was removed or changed at event {changed}"
    assert breach.message == f"{what}; executor#1 wrote {path.rpartition('/')[2]} at event {changed}"


def test_a_commit_that_names_what_is_not_stored_shows_its_answer() -> None:
    job = Job()
    job.begin()
    job.attempt(A)
    job.finalize("001", A)
    at = job.commit("001", A, base("b"))
    breach = job.breaks("G14")
    done = next(e.index for e in job.events if e.operation == "commit" and e.kind == "ok")
    assert {at, done} <= set(breach.evidence) or at in breach.evidence
    assert repr(base("b")) in breach.message


def test_a_file_before_its_marker_shows_both_and_the_answer_to_its_create() -> None:
    job = Job()
    job.begin()
    put = job.data(A)
    create = job.mark(A, "001")
    breach = job.breaks("G13")
    stored = next(e.index for e in job.events if e.kind == "effect" and (e.path or "").endswith("marker.CREATE"))
    assert {put, stored, create} <= set(breach.evidence)
    assert f"the first was stored at event {stored}" in breach.message
    bare = Job()
    bare.begin()
    bare.attempt(A, marker=False)
    breach = bare.breaks("G13")
    attempt = next(e.index for e in bare.events if e.operation == "attempt" and e.kind == "invoke")
    assert "none named it later" in breach.message and attempt in breach.evidence


# G24.


PLAN = {"writes": [{"tasks": [{}]}, {"tasks": [{"partition": "q", "group": "g"}]}]}


def committed(*ordinals: int) -> Job:
    """A commit for each ordinal, with 0 for one that does not say which write of its plan it is."""
    job = Job(plan=PLAN)
    for number, ordinal in enumerate(ordinals, start=1):
        instant = f"00{number}"
        job.begin(instant)
        extra = {"write": str(ordinal)} if ordinal else {}
        step = job.step("commit", instant, (A,))
        job.entry(instant, State.COMPLETED, encode_commit([WriteStat("p", "a", A, 1, "")], extra))
        job.done(step)
    return job


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (("/f0/1=1", "/f0/all=1", "q/g/2=2", "q/g/all=2"), 0),
        (("/f0/1=2", "/f0/all=2", "q/g/2=2", "q/g/all=2"), 0),
        (("/f0/1=0", "/f0/all=1", "q/g/2=2", "q/g/all=2"), 1),
        (("/f0/1=x", "/f0/all=1", "q/g/2=2", "q/g/all=2"), 1),
        (("/f0/all=1", "q/g/2=2", "q/g/all=1"), 2),
        ((), 4),
    ],
)
def test_a_row_shows_the_write_that_made_it_or_a_later_one(rows: tuple[str, ...], wrong: int) -> None:
    finding = rows_finding(committed(1, 2), *rows)
    assert finding.judged == 4 and len(finding.breaches) == wrong


def test_the_third_row_of_a_group_is_expected_as_soon_as_any_group_has_one() -> None:
    rows = ("/f0/1=1", "/f0/all=1", "/f0/odd=1", "q/g/2=2", "q/g/all=2")
    (breach,) = rows_finding(committed(1, 2), *rows).breaches
    assert "the row 'q/g/even' of write 2 of t, completed at event" in breach.message
    assert breach.message.endswith("is not found; its commit names no file of its group")
    assert rows_finding(committed(1, 2), *rows, "q/g/even=2").judged == 6


def test_a_row_that_is_lost_shows_its_commit_and_the_commits_answer() -> None:
    job = committed(1)
    answer = job.last
    finding = rows_finding(job, "/f0/1=1", "/f0/all=0")
    (breach,) = finding.breaches
    assert breach.evidence == (answer - 1, answer, job.last) and "shows '0'; its commit" in breach.message


@pytest.mark.parametrize("ordinal", [0, 3])
def test_a_commit_of_no_write_of_the_plan_is_counted(ordinal: int) -> None:
    finding = rows_finding(committed(1, ordinal), "/f0/1=1", "/f0/all=1")
    assert finding.judged == 2 and not finding.breaches and dict(finding.excused) == {"not-in-plan": 1}


def test_rows_of_another_table_prove_nothing() -> None:
    assert rows_finding(committed(1), table="u").judged == 0


def test_a_table_that_cannot_be_read_shows_the_last_commits_answer() -> None:
    job = committed(1, 2)
    answers = [event.index for event in job.events if event.operation == "commit" and event.kind == "ok"]
    finding = rows_finding(job, error="torn")
    assert finding.judged == 1 and finding.breaches[0].evidence == (answers[1], job.last)
    assert finding.breaches[0].message == "t cannot be read: torn"
