"""`--sut hudi-java:VERSION`: Hudi's Java client writes, in lives of one JVM and as processes behind the door.

Tests marked `jvm` start real JVMs; they need Java 17 and `pip install '.[spark]'`, and fetch the jars once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.cli.request import parse_request
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.judges import judge
from marker_sim.outcome.failure import failures_in
from marker_sim.targets.hudi_java_runs import DrawnPoint, JavaRuns
from marker_sim.targets.hudi_java_walk import FAILED, TablePoint, table_of
from marker_sim.targets.target import CampaignRequest
from marker_sim.worlds.spark.hudi.steps import TableStep, with_steps
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.plans import STORAGE

PATIENCE_S = 400.0


def asking(report: Path, sut: str, mode: str) -> CampaignRequest:
    request = parse_request(
        argv=(), sut=sut, mode=mode, storage=None, budget="400s", seed="1", guarantees=None, profile=None, expect=None,
        report=str(report),
    )  # fmt: skip
    return replace(request, report=report)


def broken(played: SparkRun, request: CampaignRequest) -> set[str]:
    return {kind.guarantee for kind in failures_in(played.history, judge(played.history), request.profile)}


@pytest.mark.jvm
def test_one_error_while_a_rollback_lists_direct_markers_is_shown_by_a_warm_jvm_and_confirmed_by_a_process(
    tmp_path: Path,
) -> None:
    """apache/hudi pull request 18887: the rollback reads markers of the other type, deletes nothing and completes."""
    error = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(r"\.hoodie/\.temp/\d+$", ("list",)))
    step = TableStep(name=FAILED["rollback"], stage="rollback", faults=(error,))
    plan = with_steps(table_of("direct", 1), (step,))
    request = asking(tmp_path, "hudi-java:1.2.0", "direct")
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        stage, workload = runs.walk.bases[0]
        numbered = runs.play(DrawnPoint(number=1, plan=workload, point=None, words=""))
        runs.took(DrawnPoint(number=1, plan=workload, point=None, words=""), numbered, ())
        assert stage == "write" and len(numbered.calls[1]) > 40, "a write makes some 90 calls"
        point = TablePoint(0, 1, "error", 1, plan)
        confirmed = runs.play(DrawnPoint(number=2, plan=plan, point=point, words=""))
        assert not runs.unconfirmed, "the processes broke what the warm JVM had broken"
    assert not broken(numbered, request) and not confirmed.calls[0], "what counts is of processes, seen by the door"
    assert "G15" in broken(confirmed, request)


@pytest.mark.jvm
@pytest.mark.parametrize("merges", [False, True])
def test_an_earlier_version_writes_without_a_fault_and_keeps_every_promise(tmp_path: Path, merges: bool) -> None:
    request = asking(tmp_path, "hudi-java:1.1.1", "timeline")
    plan = table_of("timeline", 1, merges)
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        played = runs.play(DrawnPoint(number=1, plan=plan, point=None, words=""))
    assert not broken(played, request) and played.counts["rows read by hudi"] == 1
