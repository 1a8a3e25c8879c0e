"""What becomes of a table that Hudi's Java client left damaged: the step at which a reader sees it.

Tests marked `jvm` start real JVMs; they need Java 17 and `pip install '.[spark]'`, and fetch the jars once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.faults import Call, Fault, FaultKind
from properties.faces.campaign import StoredPlan
from properties.faces.cli import parse_request
from properties.faces.report import script_of
from properties.faces.search import WalkPoint
from properties.faces.targets import FAILED, CampaignRequest, DrawnPoint, JavaRuns, table_of
from properties.faces.worlds import FUTURES, STORAGE, SparkRun, TableStep, shape_of, with_future, with_steps
from scenarios.findings.stored_finding import read_findings
from scenarios.plain_shell import run_script, settings_of_java_client

LISTING = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(r"\.hoodie/\.temp/[0-9a-z_]+$", ("list",)))
# Of the partition that the failed write began two rows are found; of the one that rests one is lost, and one is not the
# last that was committed.
WRONG = "finds 4 wrong rows (2 of no completed write, 1 lost, 1 with other values, 3 of them of failed writes)"
FAILS = TableStep(name=FAILED["rollback"], stage="rollback", faults=(LISTING,))
WRITES = TableStep(name="", stage="write", faults=())


def asking(report: Path, version: str) -> CampaignRequest:
    request = parse_request(
        argv=(), sut=f"hudi-java:{version}", mode="direct", storage=None, budget="500s", seed="1", guarantees=None,
        profile=None, expect=None, report=str(report),
    )  # fmt: skip
    return replace(request, report=report)


def told(played: SparkRun, guarantee: str) -> list[str]:
    """What a guarantee's breaches say."""
    return [
        breach.message
        for finding in played.findings or ()
        if finding.guarantee == guarantee
        for breach in finding.breaches
    ]


def found_before(name: str) -> StoredPlan:
    (stored,) = (each.told for each in read_findings() if each.name == name)
    return stored


def steps(played: SparkRun) -> list[str]:
    return [str(event.value) for event in played.history.events if event.operation == "future"]


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["1.1.1", "1.2.0"])
def test_rows_of_a_rolled_back_write_are_read_once_its_instant_is_archived(tmp_path: Path, version: str) -> None:
    """Pull request 18887: a rollback that cannot list its markers completes, and leaves the files that they name."""
    request = asking(tmp_path, version)
    plan = with_steps(table_of("direct", 1), (FAILS,))
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        played = runs.play(DrawnPoint(number=1, plan=plan, point=WalkPoint(1, 1, "error", 1, plan), words=""))
        clean = runs.again(with_future(with_steps(plan, (WRITES,)), FUTURES["archived"]), runs.program.deadline)
        assert not runs.unconfirmed, "processes broke what the warm JVM had broken"
    assert shape_of(played.plan).future == FUTURES["archived"], "the first future shows it, and its run is what counts"
    assert steps(played) == steps(clean) == ["", *FUTURES["archived"]]
    seen = told(played, "G30")
    assert {message.split()[1] for message in seen} == {"hudi", "hudi-rs"}
    for message in (*seen, *told(played, "G15")):
        assert WRONG in message, message
        assert "after step 6 (archive)" in message
    assert not [finding for finding in clean.findings or () if finding.breaches]
    assert {f.guarantee for f in clean.findings or () if f.applicable and f.judged} >= {"G30", "G31"}


@pytest.mark.jvm
def test_by_default_settings_they_are_read_after_some_thirty_commits_and_writers_leave_them_as_well(
    tmp_path: Path,
) -> None:
    request = asking(tmp_path, "1.2.0")
    plan = with_future(with_steps(table_of("direct", 1), (FAILS,)), ("default",) * 30)
    (goes_on,) = (
        each.told for each in read_findings() if each.name.startswith("a-writer-that-was-rolled-back-goes-on")
    )
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        alone = runs._run(plan, runs.program.deadline, runs._drivers(runs._warm))
        shared = runs._run(with_future(goes_on.own_plan, FUTURES["archived"]), runs.program.deadline)
    (late,) = told(alone, "G30")
    assert WRONG in late
    assert int(late.partition("after step ")[2].split()[0]) in range(25, 31), late
    (other,) = told(shared, "G30")
    assert "finds 1 wrong rows (1 with other values, 1 of them of failed writes" in other and "(archive)" in other


@pytest.mark.jvm
def test_a_program_without_the_kit_says_at_which_step_the_rows_are_wrong(tmp_path: Path) -> None:
    stored = found_before("a-rollback-that-cannot-list-its-markers-completes-and-deletes-nothing")
    shape = shape_of(table_of("direct", 1))
    plan = with_future(replace(stored.own_plan, shape=shape), ("commit", "clean", "archive"))
    program, language = script_of(replace(stored, plan=plan, also=(*stored.also, "G30")))
    done = run_script(program, tmp_path, 600, language, **settings_of_java_client(stored.version), TRIES="1")
    assert done.code == 1, done
    read = [
        line.removeprefix("    by listing storage after step ") for line in done.lines if line.startswith("    by ")
    ]
    assert read == ["1 (commit): the right rows", "2 (clean): the right rows", "3 (archive): 8 wrong rows"]
    (k03,) = (line for line in done.lines if line.startswith("# broken: G30: k03 reads as ["))
    (k00,) = (line for line in done.lines if line.startswith("# broken: G30: k00 reads as ["))
    assert "[w2] instead of [w1]" in k00, "that partition rests, so what was left is the newest file of its group"
    assert "w2" in k03 and "w4" in k03 and "instead of [w4] by listing storage after step 3 (archive)" in k03
