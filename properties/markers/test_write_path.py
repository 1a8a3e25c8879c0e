"""The write path of the reference: after any death at any step, the next write repairs the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from marker_sim.system import reference
from properties.faces.campaign import execute, promised_breach
from properties.faces.judges import load_profile
from properties.faces.search import make_write_plan, plan_seed
from properties.two_numbers import settings_of
from properties.volume import part, volume

PLACES = [(mode, storage) for mode in ("direct", "timeline") for storage in ("s3", "local", "hdfs")]
ONE = Write(tasks=(Task(),))
RUNS = volume(60)
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
    rows = [event for event in history.events if event.operation == "rows"]
    assert rows and not [event.error for event in rows if event.error]
    return history


def count(history: History, kind: str, operation: str) -> int:
    return sum(event.kind == kind and event.operation == operation for event in history.events)


def steps_of(plan: Plan, actor: str) -> int:
    """How many steps an actor makes before everything heals."""
    last = 0
    for step in range(8, 400, 8):
        fault = Fault.of(FaultKind.PAUSE, actor, Step(step), for_ms=1)
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
    assert len(data) == 7, data
    rows = next(event.value for event in history.events if event.operation == "rows")
    assert "/f0/2=2" in rows and "/f0/1=1" in rows  # type: ignore[operator]


@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_a_driver_may_die_at_every_step(mode: str, storage: str) -> None:
    reached = {"rollback": 0, "sweep": 0}
    steps = steps_of(plan_of(mode, storage), "driver")
    assert steps >= 24
    for step in range(1, steps + 1):
        history = holds(plan_of(mode, storage, Fault.of(FaultKind.KILL, "driver", Step(step))))
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
        kill = Fault.of(FaultKind.KILL, "driver", Step(step), restart_ms=10, executors_ms=0)
        history = holds(replace(plan, faults=(kill,)))
        interrupted += count(history, "invoke", "rollback") > count(history, "ok", "rollback")
    assert interrupted >= 5


@pytest.mark.parametrize(("mode", "storage"), [("direct", "s3"), ("timeline", "local"), ("timeline", "s3")])
def test_a_driver_and_its_successor_may_both_die(mode: str, storage: str) -> None:
    """Pairs of steps of a short run, one of them with a request of the driver on its way."""
    plan = plan_of(mode, storage, writes=(ONE, ONE, ONE), executors=1)
    pairs = [(first, second) for first in range(1, 34) for second in range(first + 1, 34, 1 + first % 2)]
    assert len(pairs) > 300
    for first, second in part(pairs):
        on_its_way = storage == "s3" and first % 3
        kind = FaultKind.ORPHANED if on_its_way else FaultKind.KILL
        late: dict[str, Any] = {"late_ms": 1500} if on_its_way else {"executors_ms": 1500}
        faults = (
            Fault.of(kind, "driver", Step(first), restart_ms=20, **late),
            Fault.of(FaultKind.KILL, "driver", Step(second), restart_ms=20, executors_ms=0),
        )
        holds(replace(plan, faults=faults))


def tokens(history: History, kind: str) -> list[tuple[int, int, int]]:
    """The write tokens of the attempts of the first write that began, or ended in some way."""
    first = next(event.instant for event in history.events if event.operation == "attempt")
    found = [e for e in history.events if e.operation == "attempt" and e.kind == kind and e.instant == first]
    begun = {event.index: event for event in history.events}
    texts = [str((e if e.kind == "invoke" else begun[e.caused_by or 0]).value) for e in found]
    return [tuple(map(int, text.split("-"))) for text in texts]  # type: ignore[misc]


def test_an_attempt_that_is_killed_never_ends_and_is_followed_by_another() -> None:
    fault = Fault.of(FaultKind.ATTEMPT_KILLED, "executor-0", Step(3))
    history = holds(plan_of("direct", "s3", fault, writes=(ONE,)))
    assert [token[2] for token in tokens(history, "invoke")] == [0, 1]
    assert [token[2] for token in tokens(history, "ok")] == [1]


def test_an_executor_is_idle_again_when_its_attempt_of_a_write_that_was_given_up_ends() -> None:
    """It was cut off for longer than its driver waits, and asked for its marker until the next write had begun."""
    cuts = [Fault.of(FaultKind.CUT_LINK, "executor-0", Step(1), **how) for how in ({"for_ms": 40_000}, {"lost": True})]
    history = holds(plan_of("timeline", "local", *cuts, *cuts, writes=(ONE, ONE), executors=1))
    assert count(history, "observe", "job-failed") == 1, "only the write that was cut off is given up"
    assert count(history, "ok", "commit") == 2, "the other write and the probe"


def test_a_zombie_writes_its_file_when_its_instant_is_long_committed() -> None:
    fault = Fault.of(FaultKind.ZOMBIE, "executor-0", Step(3), for_ms=600)
    history = holds(plan_of("timeline", "s3", fault, writes=(ONE, replace(ONE, after_ms=1000))))
    assert [token[2] for token in tokens(history, "ok")] == [1, 0]
    late = judge(history, frozenset({"G20"}))[0].breaches
    assert len(late) == 1
    committed = next(e.index for e in history.events if e.operation == "commit" and e.kind == "ok")
    put = next(e for e in map(history.events.__getitem__, late[0].evidence) if e.kind == "effect")
    assert committed < put.index
    assert [e for e in history.events if e.operation == "file" and e.path == put.path], "nobody ever deletes it"


def test_a_speculative_copy_succeeds_beside_the_first_attempt() -> None:
    fault = Fault.of(FaultKind.SPECULATIVE, "executor-0", Step(1))
    task = Task(slow_ms=50)
    write = Write(tasks=(task, Task(group="f1", slow_ms=200)))
    history = holds(plan_of("direct", "s3", fault, writes=(write,), executors=3))
    assert sorted(token[::2] for token in tokens(history, "ok")) == [(0, 0), (0, 1), (1, 0)]


def test_a_stage_that_is_retried_runs_every_task_again() -> None:
    fault = Fault.of(FaultKind.STAGE_RETRIED, "executor-1", Step(3))
    history = holds(plan_of("direct", "s3", fault, writes=(Write(tasks=(Task(), Task(group="f1"))),)))
    stages = sorted({token[1] % 100 for token in tokens(history, "invoke")})
    assert stages == [0, 1]
    assert len(tokens(history, "ok")) >= 3


def test_a_stage_may_run_again_while_its_driver_finalizes_and_nobody_counts_it() -> None:
    """Hudi I 19593: the results are computed a second time; the commit names the first attempts, and only them."""
    again = 0
    for step in range(5, 14):
        fault = Fault.of(FaultKind.STAGE_RETRIED, "driver", Step(step))
        history = holds(plan_of("direct", "s3", fault, writes=(Write(tasks=(Task(), Task(group="f1"))),)))
        fired = count(history, "fault", "stage-retried")
        again += fired
        stages = {token[1] % 100 for token in tokens(history, "invoke")}
        assert stages == ({0, 1} if fired else {0})
        named = next(e.value for e in history.events if e.operation == "commit" and e.kind == "invoke")
        assert isinstance(named, tuple) and len(named) == 2
    assert again >= 2


@pytest.mark.parametrize("mode", ["direct", "timeline"])
def test_a_request_on_its_way_is_applied_after_its_sender_died(mode: str) -> None:
    """The completed instant of a dead driver lands while its successor waits, and counts."""
    landed = 0
    for step in range(4, 24):
        fault = Fault.of(FaultKind.ORPHANED, "driver", Step(step), late_ms=900)
        history = holds(plan_of(mode, "s3", fault))
        died = next((e.index for e in history.events if e.kind == "fault" and e.operation == "kill"), None)
        landed += died is not None and any(
            e.kind == "effect" and e.index > died and e.process == "driver#1" for e in history.events
        )
    assert landed >= 10


@pytest.mark.parametrize("kind", [FaultKind.ATTEMPT_KILLED, FaultKind.ZOMBIE, FaultKind.STAGE_RETRIED, FaultKind.KILL])
@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_an_attempt_may_be_hit_at_every_step(mode: str, storage: str, kind: FaultKind) -> None:
    fired = 0
    for step in range(1, 24):
        fault = Fault(kind=kind, target="executor-0", trigger=Step(step), settings=settings_of(kind, 40, 1))
        history = holds(plan_of(mode, storage, fault))
        fired += count(history, "fault", kind.value)
    assert fired >= 6


def test_a_write_of_two_thousand_files_commits_them_all() -> None:
    tasks = tuple(Task(group=f"f{number}", partition=f"p{number % 7}") for number in range(2000))
    history = holds(plan_of("timeline", "s3", writes=(Write(tasks=tasks),), num_threads=20, executors=4))
    rows = next(event.value for event in history.events if event.operation == "rows")
    assert isinstance(rows, tuple) and len(rows) == 3 * 2001 + 2


def test_the_format_of_the_failed_write_does_not_matter() -> None:
    """Hudi HUDI-2305: the mode changed between the failed write and its rollback."""
    for first, second in (("direct", "timeline"), ("timeline", "direct")):
        writes = (replace(FIRST, abandon=True, markers=first), replace(SECOND, markers=second))
        history = holds(plan_of("timeline", "s3", writes=writes))
        assert count(history, "ok", "rollback") == 1


@pytest.mark.draws(runs=RUNS, one_in=RUNS // 3)
@pytest.mark.parametrize(("mode", "storage"), [*PLACES, ("timeline", "s3-unconditional")])
def test_the_swarm_of_writes_finds_nothing(mode: str, storage: str, chaos_seed: int) -> None:
    for seed in (plan_seed(chaos_seed, number) for number in range(RUNS)):
        holds(make_write_plan(seed, mode, storage))
