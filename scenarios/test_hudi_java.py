"""`--sut hudi-java:VERSION`: Hudi's Java client writes, in lives of one JVM and as processes, on local files and on S3.

Tests marked `jvm` start real JVMs; they need Java 17 and `pip install '.[spark]'`, and fetch the jars once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.judges import judge
from marker_sim.plan import TableShape
from marker_sim.worlds.spark.hudi import java_driver
from properties.faces.campaign import StoredPlan
from properties.faces.cli import parse_request
from properties.faces.outcome import failures_in
from properties.faces.report import script_of
from properties.faces.search import WalkPoint
from properties.faces.targets import (
    CONFIRMED,
    FAILED,
    KILLED,
    CampaignRequest,
    DrawnPoint,
    JavaRuns,
    ServerOptions,
    table_of,
)
from properties.faces.worlds import DRIVER, SparkRun, TableStep, shape_of, traits, with_steps
from scenarios.findings.stored_finding import StoredFinding, read_findings
from scenarios.plain_shell import run_script, settings_of_java_client


def asking(report: Path, sut: str, mode: str, storage: str | None = None, seed: str = "1") -> CampaignRequest:
    request = parse_request(
        argv=(), sut=sut, mode=mode, storage=storage, budget="400s", seed=seed, guarantees=None, profile=None,
        expect=None, report=str(report),
    )  # fmt: skip
    return replace(request, report=report)


def broken(played: SparkRun, request: CampaignRequest) -> set[str]:
    return {kind.guarantee for kind in failures_in(played.history, judge(played.history), request.profile)}


STORED = [
    each
    for each in read_findings()
    if each.sut.startswith("hudi-java:") and each.told.own_plan.shape and not each.told.own_plan.shape.writers
]


@pytest.mark.jvm
@pytest.mark.parametrize("stored", STORED, ids=[each.name for each in STORED])
def test_what_a_warm_jvm_breaks_counts_when_processes_that_are_killed_or_fail_there_break_it(
    tmp_path: Path, stored: StoredFinding
) -> None:
    plan = stored.told.own_plan
    request = asking(tmp_path, stored.sut, plan.mode)
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        _, workload = runs.walk.bases[0]
        drawn = DrawnPoint(number=1, plan=workload, point=None, words="")
        numbered = runs.play(drawn)
        runs.took(drawn, numbered, ())
        assert len(numbered.calls[1]) > 40, "a write makes some 90 calls"
        confirmed = runs.play(DrawnPoint(number=2, plan=plan, point=WalkPoint(0, 1, "", 1, plan), words=""))
        assert not runs.unconfirmed, "the processes broke what the warm JVM had broken"
    readers = {event.process for event in confirmed.history.events}
    assert not broken(numbered, request) and "hudi-rs" in readers, "what counts is of processes, seen by the door"
    assert stored.guarantee in broken(confirmed, request)


@pytest.mark.jvm
@pytest.mark.parametrize("merges", [False, True])
def test_an_earlier_version_writes_without_a_fault_and_keeps_every_promise(tmp_path: Path, merges: bool) -> None:
    request = asking(tmp_path, "hudi-java:1.1.1", "timeline")
    plan = table_of("timeline", 1, merges)
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        played = runs.play(DrawnPoint(number=1, plan=plan, point=None, words=""))
    assert not broken(played, request) and played.counts["rows read by hudi"] == 1


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a-commit-that-was-written-in-part-is-completed", "is completed and cannot be read"),
        ("a-manifest-that-an-archiver-left-in-part-stops-all-archiving", "no write succeeds any more"),
    ],
    ids=["a-commit", "an-archive"],
)
def test_a_java_program_without_the_kit_shows_what_a_write_or_a_service_broke(
    tmp_path: Path, name: str, shown: str
) -> None:
    (stored,) = (each for each in STORED if each.name == name)
    program, language = script_of(stored.told)
    done = run_script(program, tmp_path, 600, language, **settings_of_java_client(stored.version), TRIES="1")
    assert done.code == stored.ran[0].code == 1, done
    assert any(shown in line for line in done.lines) and not done.left


@pytest.mark.jvm
def test_a_java_program_of_a_restore_says_that_it_holds_when_no_fault_meets_it(tmp_path: Path) -> None:
    plan = with_steps(table_of("direct", 1), (RESTORES,))
    also = ("G14", "G15", "G19", "G24", "G31")
    told = StoredPlan(guarantee="G16", plan=plan, sut="hudi-java:1.2.0", server=ServerOptions(), also=also, message="")
    program, language = script_of(told)
    done = run_script(program, tmp_path, 600, language, **settings_of_java_client("1.2.0"), TRIES="1")
    assert done.code == 0 and done.lines[-1] == "held in 1 tries", done
    assert sum("done   (restore" in line for line in done.lines) == 2, "the second one finds nothing to do"


@pytest.mark.jvm
def test_on_s3_an_error_reaches_hudi_unless_s3a_repeats_and_processes_break_what_a_warm_jvm_broke(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asking(tmp_path, "hudi-java:1.2.0", "direct", "s3")
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        for _, workload in runs.walk.bases[:2]:
            drawn = DrawnPoint(number=1, plan=workload, point=None, words="")
            runs.took(drawn, runs.play(drawn), ())
        points = {runs.walk.shown(point): point for point in runs.walk._left if point.turn == 1}
        operations = {name.split()[2] for name in points if name.startswith("error")}
        assert operations == {"put", "delete", "get", "head", "list"}
        listing = points["error at list .hoodie/.temp/#/ (the rollback after it, direct, COPY_ON_WRITE)"]
        played = runs.play(DrawnPoint(number=2, plan=listing.plan, point=listing, words=""))
        assert "G15" in broken(played, request) and played.counts[CONFIRMED] == 1 and not runs.unconfirmed
        put = points["error at put .hoodie/timeline/#.commit.requested (a write, direct, COPY_ON_WRITE)"]
        refused = []
        for settings in (java_driver._ONCE, {}):
            monkeypatch.setattr(java_driver, "_ONCE", settings)
            played = runs.play(DrawnPoint(number=3, plan=put.plan, point=put, words=""))
            assert played.met[FAILED["write"]] == 1 and not broken(played, request)
            refused.append(played.counts.get("write refused after a fault", 0))
        assert refused == [1, 0], "the settings of hudi-spark have S3A repeat the request"
        death = points["death after at put .hoodie/timeline/#.commit.requested (a write, direct, COPY_ON_WRITE)"]
        played = runs.play(DrawnPoint(number=4, plan=death.plan, point=death, words=""))
        assert played.met[KILLED["write"]] == 1 and not broken(played, request)


MANIFEST = Fault.of(FaultKind.KILL, DRIVER, Call(r"\.hoodie/timeline/history/manifest_\d+$", ("rename",)))
COMPACTS, RESTORES = TableStep(name="", stage="compact", faults=()), TableStep(name="", stage="restore", faults=())
DIES = Fault.of(FaultKind.KILL, DRIVER, Call(r"p\d/[^/]*\.parquet$", ("close",), 2, "after"))
COMPACTION_DIES = TableStep(name=KILLED["compact"], stage="compact", faults=(DIES,))
ARCHIVES = TableStep(name=KILLED["archive"], stage="archive", faults=(MANIFEST,))


@pytest.mark.jvm
def test_services_break_nothing_without_a_fault_and_a_death_in_an_archiver_fails_all_writes(tmp_path: Path) -> None:
    """Issue 19649 of apache/hudi: the archiver leaves its temporary manifest, whose name no later one can read."""
    request = asking(tmp_path, "hudi-java:1.2.0", "direct")
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        merged = table_of("direct", 1, True, TableShape(deletes=True, small_files=False))
        for own in (COMPACTS, RESTORES):
            plan = with_steps(merged if own is COMPACTS else table_of("direct", 1), (own,))
            played = runs.play(DrawnPoint(number=1, plan=plan, point=None, words=""))
            served = [event.value for event in played.history.events if event.operation == "write"]
            assert served.count(own.stage) == 2, "the second one finds nothing to do"
            assert not broken(played, request) and "info" not in {event.kind for event in played.history.events}
        plan = with_steps(merged, (COMPACTION_DIES,))
        dies = runs.play(DrawnPoint(number=2, plan=plan, point=WalkPoint(0, 1, "death after", 1, plan), words=""))
        assert dies.met[KILLED["compact"]] == 1 and dies.counts["rows read by hudi"] == 5
        assert not broken(dies, request), "rows written since a pending compaction are read"
        plan = with_steps(table_of("direct", 1), (ARCHIVES,))
        played = runs.play(DrawnPoint(number=2, plan=plan, point=WalkPoint(0, 1, "death before", 1, plan), words=""))
    assert played.met[KILLED["archive"]] == 1 and played.counts[CONFIRMED] == 1 and not runs.unconfirmed
    assert broken(played, request) == {"G19"}, "processes broke it as well"
    errors = [e.error for e in played.history.events if e.operation == "write" and e.kind == "info"]
    assert len(errors) == 4 and all("NumberFormatException" in str(error) for error in errors[1:])


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("mode", "stage", "has", "shown", "guarantee"),
    [
        pytest.param("direct", "rollback", "", "error at status .hoodie/.temp/# ", "G15", id="a-look-that-fails"),
        pytest.param(
            "direct", "rollback", "upgrades", "death after at open .hoodie/hoodie.properties ", "G16", id="an-upgrade"
        ),
        pytest.param("timeline", "write", "resends", "error at open .hoodie/.temp/#/MARKERS# ", "G13", id="a-resend"),
        pytest.param("timeline", "write", "", "answered false at request .hoodie/.temp/#/p", "G13", id="an-answer"),
    ],
)
def test_what_is_no_failed_system_call_breaks_a_promise_in_a_warm_jvm_and_by_processes(
    tmp_path: Path, mode: str, stage: str, has: str, shown: str, guarantee: str
) -> None:
    request = asking(tmp_path, "hudi-java:1.2.0", mode)
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        workload = next(
            plan
            for own, plan in runs.walk.bases
            if own == stage and (getattr(shape_of(plan), has) if has else not traits(plan))
        )
        drawn = DrawnPoint(number=1, plan=workload, point=None, words="")
        numbered = runs.play(drawn)
        assert not broken(numbered, request), "without the fault the table keeps every promise"
        runs.took(drawn, numbered, ())
        point = next(each for each in runs.walk._left[::-1] if runs.walk.shown(each).startswith(shown))
        played = runs.play(DrawnPoint(number=2, plan=point.plan, point=point, words=""))
        assert guarantee in broken(played, request) and played.counts[CONFIRMED] == 1
