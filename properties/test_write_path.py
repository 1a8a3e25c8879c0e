"""The write path of the reference: whoever dies at whichever step, the next write puts it right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marker_sim.faults import FaultKind
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.profiles import load_profile
from marker_sim.plan import Fault, Plan, Task, Write
from marker_sim.search.campaign import execute, promised_breach
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference

PLACES = [(mode, storage) for mode in ("direct", "timeline") for storage in ("s3", "local", "hdfs")]
FIRST = Write(tasks=(Task(), Task(group="f1", partition="dt=2020-01-01", copies=2)))
SECOND = Write(tasks=(Task(kind="MERGE"), Task(group="f1", partition="dt=2020-01-01", kind="APPEND"), Task(group="f2")))


def plan_of(mode: str, storage: str, *faults: Fault, **changes: object) -> Plan:
    plan = Plan(mode=mode, storage=storage, directories=(), writes=(FIRST, SECOND), merge_on_read=True, faults=faults)
    return replace(plan, **changes)  # type: ignore[arg-type]


def holds(plan: Plan) -> History:
    """Run a plan; no promised guarantee may be broken, and every row can be read in the end."""
    history, _ = execute(plan, reference())
    profile = load_profile("reference")
    for finding in judge(history):
        breach = promised_breach(finding, plan, profile)
        assert breach is None, f"{finding.guarantee} {breach.message}\n{plan.to_dict()}"
    assert [event.error for event in history.events if event.operation == "rows"] == [None] * len(plan.tables)
    return history


def count(history: History, kind: str, operation: str) -> int:
    return sum(event.kind == kind and event.operation == operation for event in history.events)


def steps_of(plan: Plan, actor: str) -> int:
    """How many steps an actor makes before everything heals."""
    last = 0
    for step in range(8, 400, 8):
        fault = Fault(kind=FaultKind.PAUSE, actor=actor, step=step, duration_ms=1)
        history, _ = execute(replace(plan, faults=(fault,)), reference())
        if not count(history, "fault", "pause"):
            return last + 8
        last = step
    return last


@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_two_writes_without_faults_leave_their_files_and_nothing_else(mode: str, storage: str) -> None:
    history = holds(plan_of(mode, storage, writes=(replace(FIRST, tasks=(Task(), Task(group="f1"))), SECOND)))
    last = {event.path: event.value for event in history.events if event.operation == "file"}
    assert not [path for path in last if path and "/.temp/" in path]
    assert count(history, "ok", "commit") == 3, "two writes and the probe"
    data = [path for path in last if path and not path.startswith("t/.hoodie")]
    assert len(data) == 6, data
    rows = next(event.value for event in history.events if event.operation == "rows")
    assert "/f0/all=2" in rows and "/f0/1=1" in rows  # type: ignore[operator]


@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_a_driver_may_die_at_every_step(mode: str, storage: str) -> None:
    reached = {"rollback": 0, "sweep": 0}
    steps = steps_of(plan_of(mode, storage), "driver")
    assert steps >= 40
    for step in range(1, steps + 1):
        history = holds(plan_of(mode, storage, Fault(kind=FaultKind.KILL, actor="driver", step=step, value=1)))
        for operation in reached:
            reached[operation] += count(history, "ok", operation)
    assert all(reached.values()), reached


@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_a_rollback_may_be_cut_short_at_every_step(mode: str, storage: str) -> None:
    """The first driver leaves a stage behind; the second dies at each step of what it does about that."""
    interrupted = 0
    abandoned = replace(FIRST, abandon=True)
    plan = plan_of(mode, storage, writes=(abandoned, SECOND, SECOND))
    first = steps_of(replace(plan, writes=(abandoned,)), "driver")
    for step in range(max(1, first - 8), first + 40):
        kill = Fault(kind=FaultKind.KILL, actor="driver", step=step, duration_ms=10, value=0)
        history = holds(replace(plan, faults=(kill,)))
        interrupted += count(history, "invoke", "rollback") > count(history, "ok", "rollback")
    assert interrupted >= 5


@pytest.mark.parametrize("kind", [FaultKind.ATTEMPT_KILLED, FaultKind.ZOMBIE, FaultKind.STAGE_RETRIED, FaultKind.KILL])
@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_an_attempt_may_be_hit_at_every_step(mode: str, storage: str, kind: FaultKind) -> None:
    fired = 0
    for step in range(1, 24):
        fault = Fault(kind=kind, actor="executor-0", step=step, duration_ms=40)
        history = holds(plan_of(mode, storage, fault))
        fired += count(history, "fault", kind.value)
    assert fired >= 10


def test_a_write_of_two_thousand_files_commits_them_all() -> None:
    tasks = tuple(Task(group=f"f{number}", partition=f"p{number % 7}") for number in range(2000))
    history = holds(plan_of("timeline", "s3", writes=(Write(tasks=tasks),), num_threads=20, executors=4))
    rows = next(event.value for event in history.events if event.operation == "rows")
    assert isinstance(rows, tuple) and len(rows) == 2 * 2001


def test_the_format_of_the_failed_write_does_not_matter() -> None:
    """Hudi HUDI-2305: the mode changed between the failed write and its rollback."""
    for first, second in (("direct", "timeline"), ("timeline", "direct")):
        writes = (replace(FIRST, abandon=True, markers=first), replace(SECOND, markers=second))
        history = holds(plan_of("timeline", "s3", writes=writes))
        assert count(history, "ok", "rollback") == 1


@pytest.mark.parametrize(("mode", "storage"), [*PLACES, ("timeline", "s3-unconditional")])
def test_the_swarm_of_writes_finds_nothing(mode: str, storage: str, chaos_seed: int) -> None:
    for seed in range(chaos_seed, chaos_seed + 60):
        holds(make_write_plan(seed, mode, storage))
