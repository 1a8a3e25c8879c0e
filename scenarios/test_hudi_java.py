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
from marker_sim.targets.hudi_java_walk import FAILED, KILLED, TablePoint, table_of
from marker_sim.targets.target import CampaignRequest
from marker_sim.worlds.spark.hudi.steps import Stage, TableStep, with_steps
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.plans import DRIVER, STORAGE


def asking(report: Path, sut: str, mode: str) -> CampaignRequest:
    request = parse_request(
        argv=(), sut=sut, mode=mode, storage=None, budget="400s", seed="1", guarantees=None, profile=None, expect=None,
        report=str(report),
    )  # fmt: skip
    return replace(request, report=report)


def broken(played: SparkRun, request: CampaignRequest) -> set[str]:
    return {kind.guarantee for kind in failures_in(played.history, judge(played.history), request.profile)}


# Apache/hudi pull request 18887: a rollback that cannot list direct markers reads those of the other type, deletes
# nothing and completes.
UNLISTED = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(r"\.hoodie/\.temp/\d+$", ("list",)))
# The known one of 1.x: a marker file that held names is emptied to be written again.
CUT = Fault.of(FaultKind.KILL, DRIVER, Call(r"\.hoodie/\.temp/\d+/MARKERS0$", ("open",), 2, "after"))


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("mode", "stage", "fault"), [("direct", "rollback", UNLISTED), ("timeline", "write", CUT)], ids=["unlisted", "cut"]
)
def test_what_a_warm_jvm_breaks_counts_when_processes_that_are_killed_or_fail_there_break_it(
    tmp_path: Path, mode: str, stage: Stage, fault: Fault
) -> None:
    name = (KILLED if fault is CUT else FAILED)[stage]
    plan = with_steps(table_of(mode, 1), (TableStep(name=name, stage=stage, faults=(fault,)),))
    request = asking(tmp_path, "hudi-java:1.2.0", mode)
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        _, workload = runs.walk.bases[0]
        drawn = DrawnPoint(number=1, plan=workload, point=None, words="")
        numbered = runs.play(drawn)
        runs.took(drawn, numbered, ())
        assert len(numbered.calls[1]) > 40, "a write makes some 90 calls"
        confirmed = runs.play(DrawnPoint(number=2, plan=plan, point=TablePoint(0, 1, "", 1, plan), words=""))
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
