"""G21 on pairs of histories, and the modes of single writes, on histories written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.judges import Finding, judge, modes_agree
from marker_sim.names import encode_names
from marker_sim.plan import Plan, Task, Write
from properties.breaking import raise_first
from properties.faces.judges import VIOLATIONS, load_profile
from properties.faces.outcome import Statistics
from properties.judges.build import Story
from properties.judges.jobs import DRIVER, Job, base

ROWS = ("k=0", "l=1")
PLAN = Plan(writes=(Write(tasks=(Task(),)), Write(tasks=(Task(),))))


def told(mode: str, instants: tuple[str, str], plan: Plan = PLAN, rows: Any = ROWS, token: str = "0-0-0") -> Job:
    """Two writes of one file each, and what a reader finds in the end."""
    story = Job(mode=mode, plan=Plan.to_dict(plan) | {"mode": mode})
    for instant in instants:
        story.begin(instant)
        path = story.attempt(base("a", instant, token), instant)
        story.finalize(instant, path)
        story.commit(instant, path)
    story.observe("phase", value="healed")
    story.observe("rows", table="t", value=rows)
    return story


def compared(first: Job, second: Job) -> Finding:
    return modes_agree(first.history(), second.history())


DIRECT, TIMELINE = ("001", "005"), ("002", "004")


def test_the_same_table_by_both_modes_holds_whatever_the_instants_are() -> None:
    finding = compared(told("direct", DIRECT), told("timeline", TIMELINE))
    assert finding.applicable and finding.judged == 3 and not finding.breaches


def test_other_paths_without_a_fault_break_it() -> None:
    finding = compared(told("direct", DIRECT), told("timeline", TIMELINE, token="0-0-1"))
    assert [breach.under for breach in finding.breaches] == ["none", "none"], "markers and commits"
    second = told("timeline", TIMELINE).history()
    with pytest.raises(VIOLATIONS["G21"], match="mode only"):
        raise_first(second, [finding])


def test_a_marker_that_only_one_mode_made_breaks_it() -> None:
    second = told("timeline", TIMELINE)
    second.mark(base("b", TIMELINE[1]), TIMELINE[1])
    (breach,) = compared(told("direct", DIRECT), second).breaches
    assert "markers" in breach.message and "timeline" in breach.message


def test_after_a_create_that_failed_the_commits_alone_are_compared() -> None:
    """A correct class that refuses a create and asks for another try was accused: a stray marker is not tried again."""
    second = told("timeline", TIMELINE)
    refused = second.step("create", TIMELINE[1], path="p/b.parquet.marker.CREATE", process="executor#1")
    second.end(refused, "info", error="ask again")
    second.mark(base("c", TIMELINE[1]), TIMELINE[1])
    finding = compared(told("direct", DIRECT), second)
    assert not finding.breaches and dict(finding.excused) == {"create-failed": 1}
    assert compared(told("direct", DIRECT), told("timeline", TIMELINE, rows=("k=0",))).breaches


def test_a_marker_that_one_mode_stores_under_another_name_breaks_it() -> None:
    first, second = told("direct", DIRECT), told("timeline", TIMELINE)
    first.put(f"{first.home(DIRECT[0])}/q/{base('a', DIRECT[0])}.marker.CREATE", b"", "executor#1")
    (breach,) = compared(first, second).breaches
    assert "q/p" in breach.message and "direct" in breach.message


def test_other_rows_break_it_with_faults_or_without() -> None:
    first = told("direct", DIRECT)
    second = told("timeline", TIMELINE, rows=("k=0",))
    (breach,) = compared(first, second).breaches
    assert "'l=1'" in breach.message and breach.under == "none" and breach.evidence
    second.fault("throttled", DRIVER, path="t/p")
    (breach,) = compared(first, second).breaches
    assert breach.under == "storage"


def test_with_a_fault_paths_may_differ() -> None:
    second = told("timeline", TIMELINE, token="0-0-1")
    second.fault("attempt-killed", "executor#1")
    finding = compared(told("direct", DIRECT), second)
    assert finding.judged == 1 and not finding.breaches


def test_the_end_of_a_server_with_its_driver_is_no_fault() -> None:
    second = told("timeline", TIMELINE)
    second.start()
    second.fault("kill", value="with-its-driver")
    second.fault("kill", DRIVER, value="end-of-run")
    assert compared(told("direct", DIRECT), second).judged == 3


def test_rows_say_nothing_when_a_write_did_not_complete() -> None:
    plan = Plan(writes=(*PLAN.writes, Write(tasks=(Task(),))))
    first, second = told("direct", DIRECT, plan), told("timeline", TIMELINE, plan, rows=("k=0",))
    second.fault("kill", DRIVER)
    assert compared(first, second).judged == 0
    abandoned = Plan(writes=(*PLAN.writes, Write(tasks=(Task(),), abandon=True)))
    first, second = told("direct", DIRECT, abandoned), told("timeline", TIMELINE, abandoned, rows=("k=0",))
    second.fault("kill", DRIVER)
    assert len(compared(first, second).breaches) == 1


def test_a_write_after_the_faults_is_none_of_the_plan() -> None:
    plan = Plan(writes=PLAN.writes[:1])
    first, second = told("direct", ("001", "002"), plan), told("timeline", ("001", "002"), plan, rows=())
    for story in (first, second):
        story.fault("kill", DRIVER)
    assert compared(first, second).judged == 0, "two have completed and the plan has one"
    probed = told("direct", DIRECT)
    probed.begin("009")
    probed.commit("009")
    probed.fault("kill", DRIVER)
    assert compared(probed, told("timeline", TIMELINE)).judged == 1


def test_rows_that_could_not_be_read_decide_nothing() -> None:
    first, second = told("direct", DIRECT), told("timeline", TIMELINE, rows=None)
    second.fault("kill", DRIVER)
    assert compared(first, second).judged == 0


def test_with_copies_of_a_task_any_attempt_may_be_the_accepted_one() -> None:
    plan = Plan(writes=(Write(tasks=(Task(copies=2),)), Write(tasks=(Task(),))))
    first, second = told("direct", DIRECT, plan), told("timeline", TIMELINE, plan, token="0-0-1")
    assert compared(first, second).judged == 2 and not compared(first, second).breaches
    other = told("timeline", TIMELINE, plan, token="1-0-0")
    assert len(compared(first, other).breaches) == 1


def test_pairs_that_are_none_say_nothing() -> None:
    first = told("direct", DIRECT)
    other = told("timeline", TIMELINE, Plan(writes=PLAN.writes, seed=1))
    assert "different plans" in compared(first, other).undecided
    assert not modes_agree(Story().history(), Story(mode="direct").history()).applicable
    read = told("timeline", TIMELINE)
    read.header = Job(mode="timeline", witness="reads", plan=first.header.plan).header
    assert compared(first, read).undecided


def test_a_pair_is_counted_under_both_modes() -> None:
    first, second = told("direct", DIRECT), told("timeline", TIMELINE, rows=("k=0",))
    statistics = Statistics()
    statistics.add(first.history(), judge(first.history()))
    statistics.add_pair(first.history(), second.history(), compared(first, second))
    (row,) = [row for row in statistics.rows(load_profile("reference")) if row.id == "G21"]
    assert (row.mode, row.verdict, row.violations, row.judged) == ("both", "violated", 1, 3)
    assert statistics.runs == 1 and statistics.reached["pair of modes"] == 1
    (row,) = [row for row in statistics.rows(load_profile("http")) if row.id == "G21"]
    assert row.verdict == "not-applicable"


def test_what_each_profile_says_of_writes() -> None:
    for name, expected in (("reference", "not-promised"), ("python", "not-promised"), ("http", "not-applicable")):
        story = Job()
        story.begin()
        story.finalize("001")
        story.attempt(base("a"))
        statistics = Statistics()
        statistics.add(story.history(), judge(story.history()))
        rows = {row.id: row for row in statistics.rows(load_profile(name))}
        assert (rows["G20"].verdict, rows["G20"].violations) == (expected, 1)
        assert rows["G13"].verdict == ("not-applicable" if name == "http" else "holds")


# Modes of single writes.


def test_a_direct_write_among_batched_ones_is_judged_as_direct() -> None:
    story = Job(mode="timeline")
    story.start()
    story.begin()
    story.add("observe", "mode", table="t", instant="001", value="direct")
    story.mark(base("a"), "001")
    for guarantee in ("G8", "G9"):
        assert not story.finding(guarantee).breaches
    story.mark(base("a"), "002")
    story.breaks("G8")


def test_a_batched_write_among_direct_ones_is_judged_as_batched() -> None:
    story = Job(mode="direct")
    story.add("observe", "mode", table="t", instant="001", value="timeline")
    story.invoke("exists")
    story.put(f"{story.home('001')}/MARKERS0", encode_names([f"{base('a')}.marker.CREATE"]))
    story.breaks("G9")
    story = Job(mode="direct")
    story.invoke("exists")
    story.put(f"{story.home('001')}/MARKERS0", encode_names([f"{base('a')}.marker.CREATE"]))
    assert not story.finding("G9").applicable
    story.breaks("G8")


def test_the_mode_of_one_write_is_not_that_of_the_run() -> None:
    story = Job(mode="timeline")
    story.add("observe", "mode", table="t", instant="001", value="direct")
    assert story.finding("G6").applicable


def test_on_hdfs_a_write_that_asks_for_direct_markers_needs_no_reason() -> None:
    for markers in ("", "direct"):
        plan = Plan(storage="hdfs", writes=(Write(markers=markers),))
        story = Job(mode="timeline", storage="hdfs", plan=Plan.to_dict(plan))
        story.observe("mode", value="direct", error="HDFS")
        story.add("observe", "mode", table="t", instant="001", path=markers or None, value="direct")
        assert bool(story.finding("G22").breaches) is (markers == "")


def test_on_hdfs_a_single_write_that_asks_for_batched_markers_falls_back_too() -> None:
    plan = Plan(mode="direct", storage="hdfs", writes=(Write(markers="timeline"),))
    story = Job(mode="direct", storage="hdfs", plan=Plan.to_dict(plan))
    story.add("observe", "mode", table="t", instant="001", path="timeline", value="direct", error="HDFS")
    story.holds("G22")
    story.add("observe", "mode", table="t", instant="002", path="timeline", value="timeline")
    story.breaks("G22")


def test_faults_of_tasks_count_as_those_of_clients() -> None:
    plan = Plan(faults=(Fault.of(FaultKind.ZOMBIE, "executor-0", Step(1)),))
    story = Job(plan=Plan.to_dict(plan))
    story.begin()
    story.fault("zombie", "executor#1", path=base("a"))
    story.attempt(base("a"), marker=False)
    story.breaks("G13", under="client")


def test_a_run_of_writes_without_directories_of_its_own_needs_no_probe_creates() -> None:
    for directories in ((), ("t/.hoodie/.temp/001",)):
        plan = Plan(directories=directories, writes=(Write(),))
        story = Job(mode="timeline", plan=Plan.to_dict(plan))
        started = story.start()
        story.begin()
        story.end(story.step("create", "001", path=f"{base('a')}.marker.CREATE", caused_by=started), "ok", "created")
        story.observe("phase", value="probe")
        finding = story.finding("G6")
        assert finding.applicable and bool(finding.undecided) is bool(directories) and not finding.breaches


def test_an_executor_that_left_with_its_driver_may_leave_a_request_open() -> None:
    for left in (True, False):
        story = Job(mode="timeline")
        started = story.start()
        create = story.step("create", "001", path=f"{base('a')}.marker.CREATE", process="executor#1", caused_by=started)
        story.arrive(create)
        if left:
            story.observe("exited", process="executor#1")
        story.wait(60_000)
        story.observe("phase", value="probe")
        story.observe("phase", value="end")
        assert bool(story.finding("G6").breaches) is not left
