"""G25: writes that do not come to their end, with a reason among their faults and without one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from marker_sim.history import APPLICATION_ENDED, NOT_GETTING_ON
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from marker_sim.system import reference
from properties.faces.worlds import run
from properties.faces.writer import Backend, Stage
from properties.judges.jobs import EXECUTOR, Job, base

GIVEN_UP = "task 0 failed 6 times"


def exits(job: Job, error: str = "StorageTimeout('t')") -> int:
    at = job.observe("exited", process=job.driver, error=error)
    job.events[at] = job.events[at]._replace(role="driver")
    return at


def answer_to(job: Job, invoke: int) -> int:
    return next(event.index for event in job.events if event.caused_by == invoke and event.kind == "ok")


def fails(job: Job, operation: str = "commit", error: str = "t/x", **fault: Any) -> int:
    """A step of the driver that ends unknown; fault: what happens in it."""
    step = job.step(operation, "001")
    if fault:
        job.fault(fault.pop("kind"), **{"process": job.driver, **fault})
    job.done(step, "info", error)
    return step


def test_writes_that_complete_and_an_application_that_ends_hold() -> None:
    job = Job()
    job.write("001", "a")
    job.write("002", "b")
    exits(job, APPLICATION_ENDED)
    job.holds("G25")
    assert job.finding("G25").judged == 2


def test_a_history_without_a_write_says_nothing() -> None:
    assert not Job().finding("G25").applicable


def test_a_driver_that_ends_with_an_error_of_its_own_breaks_it_whatever_its_faults_are() -> None:
    job = Job()
    begun = job.begin("001")
    fault = job.fault("io-error", process=job.driver, path="t/x")
    gone = exits(job, "RuntimeError('a stage is under way already')")
    breach = job.breaks("G25", under="storage")
    assert (
        breach.evidence == (answer_to(job, begun), fault, gone) and "no step of its write had failed" in breach.message
    )
    raised = Job()
    raised.begin("001")
    fails(raised, error="raised ValueError('x')", kind="io-error", path="t/x")
    exits(raised, "ValueError('x')")
    raised.breaks("G25", under="storage")


def test_a_driver_that_dies_before_any_of_its_writes_begins_breaks_it() -> None:
    job = Job()
    job.write("001", "a")
    job.driver = "driver#2"
    gone = exits(job, "TypeError('x')")
    assert job.breaks("G25").evidence == (gone,)


@pytest.mark.parametrize(
    ("fault", "held"),
    (
        ({"kind": "timeout-lost", "path": "t/x"}, True),
        ({}, False),
        ({"kind": "timeout-lost", "path": "t/x", "process": "executor#9"}, False),
        ({"kind": "disk-full", "path": "other/x", "process": "client#9", "value": "begin"}, True),
        ({"kind": "clock-jump"}, False),
    ),
)
def test_a_step_that_failed_needs_a_fault_of_its_driver_or_of_what_all_share(fault: Any, held: bool) -> None:
    job = Job()
    job.begin("001")
    fails(job, **fault)
    exits(job)
    if held:
        job.says_nothing("G25")
    else:
        assert "ended by itself" in job.breaks("G25", under=_under(job)).message


def _under(job: Job) -> str:
    return job.finding("G25").breaches[0].under


@pytest.mark.parametrize(("wait_ms", "held"), ((1_000, True), (10_000, False)))
def test_a_fault_is_a_reason_for_as_long_as_the_storage_time_out_and_late_effects_last(
    wait_ms: int, held: bool
) -> None:
    job = Job(storage_timeout_ms=1_000, late_effect_ms=2_000)
    job.begin("001")
    job.fault("timeout-lost", process=job.driver, path="t/x")
    job.wait(wait_ms)
    fails(job)
    exits(job)
    if held:
        job.says_nothing("G25")
    else:
        job.breaks("G25", under="storage")


@pytest.mark.parametrize("value", (None, "abandoned"))
def test_a_write_that_is_given_up_with_nothing_wrong_breaks_it_and_one_that_was_meant_to_does_not(value: Any) -> None:
    job = Job()
    begun = job.begin("001")
    job.attempt(base("a"))
    event = job.observe("job-failed", process=job.driver, value=value, error=GIVEN_UP)
    if value is None:
        breach = job.breaks("G25")
        assert breach.evidence == (begun, answer_to(job, begun), event) and "no fault explains it" in breach.message
    else:
        job.says_nothing("G25")


@pytest.mark.parametrize("touched", (True, False))
def test_every_attempt_that_failed_needs_a_reason(touched: bool) -> None:
    job = Job()
    job.begin("001")
    for number in range(6):
        job.wait(60_000)
        attempt = job.step("attempt", "001", path=base("a", "001", f"0-0-{number}"), process=EXECUTOR)
        if touched or number != 3:
            job.fault("throttled", process=EXECUTOR, path="t/x")
        job.done(attempt, "info", "t/x")
    job.observe("job-failed", process=job.driver, error=GIVEN_UP)
    if touched:
        job.says_nothing("G25")
    else:
        assert "no fault touched an attempt" in job.breaks("G25", under="storage").message


def fails_once(job: Job, number: int, name: str = "a", lasts_ms: int = 0) -> None:
    """An attempt that fails under a fault of storage."""
    attempt = job.step("attempt", "001", path=base(name, "001", f"0-0-{number}"), process=EXECUTOR)
    job.fault("throttled", process=EXECUTOR, path="t/x")
    job.wait(lasts_ms)
    job.done(attempt, "info", "t/x")


@pytest.mark.parametrize(
    ("tries", "idle_ms", "lasts_ms", "held"),
    (
        (1, 6_000, 0, False),
        (1, 10, 6_000, True),  # It waits while the only executor works on other tasks.
        (1, 10, 0, True),
        (4, 6_000, 0, True),
    ),
)
def test_a_task_that_failed_is_tried_again_once_an_executor_is_idle(
    tries: int, idle_ms: int, lasts_ms: int, held: bool
) -> None:
    job = Job()
    job.begin("001")
    for number in range(tries):
        fails_once(job, number)
    for number in range(6):
        job.wait(idle_ms)
        fails_once(job, number, "b", lasts_ms)
    job.observe("job-failed", process=job.driver, error=GIVEN_UP)
    if held:
        job.says_nothing("G25")
    else:
        assert "never tried again" in job.breaks("G25", under="storage").message


@pytest.mark.parametrize(
    ("spent", "held"),
    (
        ("idle", False),
        ("briefly", True),
        ("busy", True),
        ("dead", True),
        ("paused", True),
        ("driver-paused", True),
        ("killed-alone", False),
        ("waits-for-a-lost-answer", True),
        ("waits-for-nothing", False),
        ("waited-until-its-death", False),
    ),
)
def test_a_write_that_is_given_up_because_nothing_happens_breaks_it_unless_no_executor_could_work(
    spent: str, held: bool
) -> None:
    job = Job()
    job.begin("001")
    job.attempt(base("a"), process="executor#8")
    fails_once(job, 0, "b")
    job.fault("kill", process="executor#8")  # A reason to give up, but not with another executor at hand.
    match spent:
        case "busy" | "killed-alone":
            work = job.step("attempt", "001", path=base("b", "001", "0-0-1"), process=EXECUTOR)
            if spent == "killed-alone":
                job.fault("attempt-killed", process=EXECUTOR, path=job.events[work].path)
        case "dead":
            job.fault("kill", process=EXECUTOR)
        case "waits-for-a-lost-answer" | "waits-for-nothing" | "waited-until-its-death":
            token = base("c", "001", "2-0-0")
            job.step("attempt", "001", path=token, process="executor#2")
            create = job.invoke("create", f"{token}.marker.CREATE", process="executor#2")
            if spent != "waits-for-nothing":
                job.fault("request-lost", process="executor#2", caused_by=create)
            if spent == "waited-until-its-death":
                job.fault("kill", process="executor#2")
        case "paused" | "driver-paused":
            job.fault("pause", process=EXECUTOR if spent == "paused" else job.driver, value="begin")
    job.wait(100 if spent == "briefly" else 60_000)
    job.observe("job-failed", process=job.driver, error="nothing was heard of 1 tasks")
    if held:
        job.says_nothing("G25")
    else:
        under = {"waits-for-nothing": "storage", "waited-until-its-death": "wire"}.get(spent, "client")
        assert "while an executor was idle" in job.breaks("G25", under=under).message


def test_executors_that_died_are_a_reason_to_give_up_and_those_of_another_driver_are_none() -> None:
    for mine in (True, False):
        job = Job()
        job.begin("001", driver="driver#1")
        job.attempt(base("a"), process="executor#1")
        if not mine:
            exits(job, APPLICATION_ENDED)
            job.begin("002", "001", driver="driver#2")
            job.attempt(base("a", "002"), "002", process="executor#2")
        job.fault("kill", process="executor#1")
        job.observe("job-failed", process=job.driver, error="nothing was heard of 1 tasks")
        found = job.finding("G25")
        assert bool(found.breaches) is not mine


@pytest.mark.parametrize("served", (True, False))
def test_a_server_that_is_gone_is_a_reason(served: bool) -> None:
    job = Job(mode="timeline")
    job.start()
    job.begin("001")
    if not served:
        job.kill()
        job.wait(60_000)
    attempt = job.step("attempt", "001", path=base("a"), process=EXECUTOR)
    job.done(attempt, "info", "no server")
    job.observe("job-failed", process=job.driver, error=GIVEN_UP)
    if served:
        job.breaks("G25")
    else:
        job.says_nothing("G25")


def test_a_write_that_hangs_breaks_it_and_one_that_is_merely_long_does_not() -> None:
    hung = Job()
    hung.begin("001")
    last = hung.last
    hung.wait(900_000)
    gone = exits(hung, NOT_GETTING_ON)
    breach = hung.breaks("G25")
    assert breach.evidence == (last, gone) and "hangs" in breach.message


@pytest.mark.parametrize(("world", "touched"), (("simulated", True), ("real", False), ("simulated", False)))
def test_a_write_that_is_merely_long_breaks_it_only_where_nothing_was_wrong_and_no_machine_is_slow(
    world: str, touched: bool
) -> None:
    job = Job(world=world)
    job.begin("001")
    if touched:
        job.fault("throttled", process=job.driver, path="t/x")
    job.wait(899_000)
    job.attempt(base("a"))
    exits(job, NOT_GETTING_ON)
    if touched or world == "real":
        job.says_nothing("G25")
    else:
        assert "after 899 s without a fault" in job.breaks("G25").message


@pytest.mark.parametrize("circles", (True, False))
def test_a_slow_write_whose_tasks_are_done_one_after_the_other_does_not_hang_and_one_that_goes_in_circles_does(
    circles: bool,
) -> None:
    job = Job(world="simulated")
    job.begin("001")
    for number in range(90):
        job.wait(10_000)
        job.attempt(base("a" if circles else f"a{number}", token=f"{0 if circles else number}-0-{number}"))
    exits(job, NOT_GETTING_ON)
    if circles:
        assert "s without a fault" in job.breaks("G25").message
    else:
        job.says_nothing("G25")
        assert job.finding("G25").excused == (("still-working", 1),)


@pytest.mark.parametrize(("markers", "hangs"), ((2, True), (60, False)))
def test_a_write_may_be_silent_for_a_call_of_storage_for_each_marker_also_of_the_write_before(
    markers: int, hangs: bool
) -> None:
    job = Job()
    job.begin("001", driver="driver#1")
    for number in range(markers):
        job.attempt(base(f"a{number}"))
    job.observe("job-failed", process=job.driver, value="abandoned", error="the application gave up")
    job.begin("002", driver="driver#1")
    job.wait(60_000)
    exits(job, NOT_GETTING_ON)
    assert bool(job.finding("G25").breaches) is hangs


def test_what_a_server_does_in_another_table_is_no_sign_of_life_of_a_write() -> None:
    for table, hangs in (("t", False), ("other", True)):
        job = Job(mode="timeline", world="real")
        job.start()
        job.begin("001")
        for _ in range(90):
            job.wait(10_000).put(f"{table}/.hoodie/.temp/001/MARKERS0", b"")
        exits(job, NOT_GETTING_ON)
        assert bool(job.finding("G25").breaches) is hangs


def test_a_driver_that_forgets_a_write_breaks_it_the_last_one_too() -> None:
    job = Job()
    job.begin("001")
    job.write("002", "b")
    assert "had neither committed nor given up" in job.breaks("G25").message
    last = Job()
    begun = last.begin("001")
    gone = exits(last, APPLICATION_ENDED)
    assert last.breaks("G25").evidence == (begun, answer_to(last, begun), gone)


@pytest.mark.parametrize(("wait_ms", "held"), ((9_000, True), (60_000, False)))
def test_a_write_that_is_open_when_the_run_is_over_breaks_it_once_it_is_quiet_for_too_long(
    wait_ms: int, held: bool
) -> None:
    job = Job()
    job.begin("001")
    job.wait(wait_ms)
    job.observe("phase", value="end")
    if held:
        job.says_nothing("G25")
    else:
        assert "hangs" in job.breaks("G25").message


def test_a_write_whose_driver_was_killed_has_its_reason() -> None:
    job = Job()
    job.failed("001", "a")
    job.says_nothing("G25")


class _Dies(Stage):
    def run(self, backend: Backend) -> Any:
        if self._ordinal % 2 == 0:
            raise RuntimeError("a stage is under way already")
        return super().run(backend)


class _Hangs(Stage):
    def run(self, backend: Backend) -> Any:
        while self._ordinal % 2 == 0:
            backend.receive()
        return super().run(backend)


@pytest.mark.parametrize("stage", (_Dies, _Hangs))
@pytest.mark.parametrize("mode", ("direct", "timeline"))
def test_a_stage_in_which_every_second_write_dies_or_hangs_is_seen_without_any_fault(
    stage: type[Stage], mode: str
) -> None:
    writes = tuple(Write(tasks=(Task(group=f"f{number}"),)) for number in range(2))
    plan = Plan(mode=mode, storage="s3", directories=(), ops=(), writes=writes)
    well, broken = reference(), replace(reference(), stage=stage)
    assert not judge(run(plan, well), frozenset({"G25"}))[0].breaches
    (found,) = judge(run(plan, broken), frozenset({"G25"}))
    assert found.breaches and found.breaches[0].under == "none"


def test_a_write_that_hangs_before_it_has_an_instant_is_named_by_its_table() -> None:
    job = Job()
    job.step("begin", None)
    job.wait(900_000)
    exits(job, NOT_GETTING_ON)
    assert job.breaks("G25").message.startswith("t: driver#1 hangs")
