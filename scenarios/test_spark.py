"""The reference's write path on Spark under every fault, and defects planted in it that must be seen.

    pytest -m spark -n 0 scenarios/test_spark.py            MARKER_SIM_PROFILE=nightly: more seeds and every combination

One cluster serves all tests of this module, one application after another. Each test asserts that its faults struck.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from marker_sim.faults import Fault, FaultKind
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from properties.faces.judges import load_profile
from properties.faces.outcome import failures_in
from properties.faces.search import plan_seed
from properties.faces.surroundings import find_java, spark_home
from properties.faces.worlds import (
    STORAGE,
    TASKS,
    LocalFront,
    SparkRun,
    Standalone,
    driver_kill,
    driver_plan,
    phase_of,
    run_spark,
    taking_back_fails,
    task_fault,
    task_plan,
    with_faults,
)
from scenarios.spark_counts import SparkCounts, count

pytestmark = pytest.mark.spark

NIGHTLY = os.environ.get("MARKER_SIM_PROFILE") == "nightly"
ROUNDS = 8 if NIGHTLY else 1
KILLS = 12 if NIGHTLY else 5
ALL = [(mode, storage) for mode in ("direct", "timeline") for storage in ("local", "s3")]
SOME = (ALL, ALL) if NIGHTLY else ([("direct", "local"), ("timeline", "s3")], [("direct", "s3"), ("timeline", "local")])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with (
        LocalFront(tmp_path_factory.mktemp("files")) as front,
        Standalone(tmp_path_factory.mktemp("cluster"), java=find_java(), home=spark_home(), door=front) as one,
    ):
        yield one


@pytest.mark.draws(runs=1, one_in=1)
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize(("mode", "storage"), SOME[0])
def test_whatever_befalls_tasks_server_and_storage_each_row_is_there_once_and_no_file_is_left(
    mode: str, storage: str, number: int, cluster: Standalone, tmp_path: Path, chaos_seed: int
) -> None:
    run = run_spark(task_plan(plan_seed(chaos_seed, number), mode, storage), cluster, tmp_path)
    counts = _sound(run)
    assert counts.completed == counts.jobs
    assert counts.copies, "no copy of a task succeeded beside it"
    assert counts.again, "no task was computed again"
    assert counts.late, "no attempt outlived its instant"
    failing = {fault.kind.value for fault in run.plan.faults if fault.target == STORAGE}
    assert failing <= counts.faults.keys(), "a call failed otherwise than its fault says"


@pytest.mark.draws(runs=1, one_in=1)
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize(("mode", "storage"), SOME[1])
def test_wherever_a_driver_dies_the_next_write_leaves_the_table_in_order(
    mode: str, storage: str, number: int, cluster: Standalone, tmp_path: Path, chaos_seed: int
) -> None:
    plan = driver_plan(plan_seed(chaos_seed, number), mode, storage, KILLS)
    run = run_spark(plan, cluster, tmp_path)
    counts = _sound(run)
    assert counts.kills.total() == sum(bool(phase_of(fault)) for fault in plan.faults) == KILLS
    assert counts.rollbacks, "nothing was rolled back"


def test_a_late_attempt_asks_again_when_storage_refuses_to_delete_its_file(cluster: Standalone, tmp_path: Path) -> None:
    tasks = tuple(Task(partition="p", group=f"g{number}", kind="MERGE") for number in range(TASKS))
    writes = (Write(tasks=tasks), Write(tasks=tasks))
    plan = Plan(mode="timeline", storage="s3", directories=(), writes=writes)
    late = task_fault(FaultKind.LATE_ATTEMPT, 1, "file")
    refused = taking_back_fails(FaultKind.THROTTLED, calls=2)
    counts = _sound(run_spark(with_faults(plan, ((1, late), (2, refused))), cluster, tmp_path))
    assert counts.late, "no attempt outlived its instant"


@pytest.mark.parametrize(
    ("mutant", "guarantee", "fault"),
    [
        ("file-before-marker", "G13", None),
        ("no-reconcile", "G14", (2, task_fault(FaultKind.SPECULATIVE, 1, "marker"))),
        ("rollback-without-logs", "G15", (2, driver_kill("finalize-begins"))),
    ],
)
def test_a_planted_defect_is_seen(
    mutant: str, guarantee: str, fault: tuple[int, Fault] | None, cluster: Standalone, tmp_path: Path
) -> None:
    tasks = tuple(Task(partition="p", group=f"g{number}", kind="APPEND") for number in range(TASKS))
    writes = (Write(tasks=tasks), Write(tasks=tasks))
    plan = Plan(mode="direct", storage="local", directories=(), writes=writes, merge_on_read=True)
    run = run_spark(with_faults(plan, (fault,) if fault else ()), cluster, tmp_path, f"mutant:{mutant}")
    assert not run.missed
    assert guarantee in {finding.guarantee for finding in judge(run.history) if finding.breaches}


def _sound(run: SparkRun) -> SparkCounts:
    """Every fault struck, no promise was broken, and the next write left no data file that no commit names."""
    assert not run.missed
    assert not failures_in(run.history, judge(run.history), load_profile("reference"))
    counts = count(run.history)
    assert not counts.strays, counts
    return counts
