"""What needs a JVM, in short: the reference's jobs on Spark, a released timeline server, the walk of the Java client.

The long ones are marked `jvm` and `spark` and stages of CI. One Spark application, some 20 points.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from marker_sim.faults import FaultKind
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from properties import tools
from properties.faces.campaign import broken_in
from properties.faces.judges import load_profile
from properties.faces.outcome import failures_in
from properties.faces.surroundings import find_java, spark_home
from properties.faces.targets import KILLED, JavaRuns
from properties.faces.worlds import TASKS, LocalFront, Standalone, run_spark, task_fault, with_faults
from properties.volume import PROFILE, volume
from scenarios.findings.stored_finding import read_findings
from scenarios.quick_spark import use_quick_settings
from scenarios.spark_counts import count
from scenarios.test_hudi_java import asking

POINTS = 20
# All points are of the first table, and so is the first control, whose writes have no fault.
CONTROLS = volume(6, quick=1)
# Two of the points of seed 1 break promises, and one of those of seed 7; for each, processes play for seconds.
SEED = "7" if PROFILE == "quick" else "1"
RUN_S = 600.0  # For hangs alone.


@tools.needs(tools.java())
def test_on_spark_a_killed_executor_and_a_speculative_attempt_leave_each_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_settings(tmp_path / "conf", monkeypatch)
    tasks = tuple(Task(partition="p", group=f"g{number}", kind="MERGE") for number in range(TASKS))
    plan = Plan(mode="timeline", storage="local", directories=(), writes=(Write(tasks=tasks), Write(tasks=tasks)))
    faults = (
        (1, task_fault(FaultKind.EXECUTOR_KILLED, 1, "file")),
        (2, task_fault(FaultKind.SPECULATIVE, 2, "marker")),
    )
    with (
        LocalFront(tmp_path / "files") as front,
        Standalone(tmp_path / "cluster", java=find_java(), home=spark_home(), door=front) as cluster,
    ):
        run = run_spark(with_faults(plan, faults), cluster, tmp_path)
    assert not run.missed
    assert not failures_in(run.history, judge(run.history), load_profile("reference"))
    counts = count(run.history)
    assert counts.completed == counts.jobs == 3, "the last write is the kit's"
    assert counts.copies and not counts.strays, "a speculative attempt succeeded beside the first"
    assert counts.faults == {"kill-executor": 1, "speculative": 1}


@tools.needs(tools.jars())
def test_a_released_timeline_server_loses_names_as_its_stored_finding_says(tmp_path: Path) -> None:
    stored = next(each for each in read_findings() if each.name.startswith("a-kill-while-a-file-is-rewritten"))
    sut, plan = f"hudi:{tools.HUDI}", stored.told.own_plan
    request = asking(tmp_path, sut, "timeline", "local")
    with request.target.real_runs(request, lambda line: None) as opened:
        history = opened.again(plan, time.monotonic() + RUN_S).history
    assert history.header.sut_version == tools.HUDI
    assert stored.guarantee in {kind[0] for kind in broken_in(history, plan, request.profile)}


@tools.needs(tools.jars())
def test_twenty_points_of_the_walk_of_the_java_client_are_met_and_accuse_of_stories_alone(tmp_path: Path) -> None:
    request = asking(tmp_path, f"hudi-java:{tools.HUDI}", "direct", "local", SEED)
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        del runs.walk.controls[CONTROLS:]
        points = 0
        while points < POINTS:
            drawn = runs.draw({})
            assert drawn is not None
            played = runs.play(drawn)
            assert not played.trouble and not played.cut, (drawn.line, played.trouble)
            runs.took(drawn, played, failures_in(played.history, played.findings or (), request.profile))
            points += drawn.point is not None
        assert not runs.unconfirmed
    assert runs.met["direct", KILLED["write"]]
