"""A history that is judged table by table has the findings of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.history import History
from marker_sim.judges import Finding, judge
from marker_sim.judges.guarantees import ALL
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.report.columns import read_parquet, write_parquet
from marker_sim.scale import parts
from marker_sim.scale.parts import OF_ALL_TABLES, judge_in_parts
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System, reference
from marker_sim.worlds.simulated.cluster import Cluster
from properties.judges.build import Story, marker
from properties.scale.composed import composed

COMBINATIONS = (("timeline", "s3"), ("direct", "s3"), ("timeline", "local"), ("direct", "local"))
MUTANTS = ("ack-before-flush", "only-the-new-names", "exists-from-memory", "read-error-is-empty", "no-reconcile")


def comparable(findings: tuple[Finding, ...]) -> dict[str, object]:
    return {
        each.guarantee: (
            each.applicable,
            each.judged,
            each.eligible,
            bool(each.undecided),
            each.excused,
            sorted((breach.evidence, breach.message, breach.under, breach.cause) for breach in each.breaches),
        )
        for each in findings
        if each.guarantee not in OF_ALL_TABLES
    }


def in_parts(history: History, tmp_path: Path, group_events: int = 1) -> tuple[Finding, ...]:
    write_parquet(history, tmp_path / "history.parquet")
    header, findings, complete = judge_in_parts(tmp_path / "history.parquet", None, group_events)
    assert complete and header == history.header
    return findings


def run(system: System, writes: bool, seed: int, mode: str, storage: str) -> History:
    return Cluster((make_write_plan if writes else make_plan)(seed, mode, storage), system).run()


@pytest.mark.parametrize(("mode", "storage"), COMBINATIONS)
def test_the_parts_of_a_long_history_have_the_findings_of_the_whole(mode: str, storage: str, tmp_path: Path) -> None:
    """Runs of the reference and of mutants, of operations and of writes, each with tables of its own."""
    systems = [reference(), *(load_mutant(find_mutant(name)) for name in MUTANTS)]
    runs = [run(system, writes, 3, mode, storage) for system in systems for writes in (False, True)]
    whole = History(runs[0].header, tuple(composed(runs)))
    expected = comparable(judge(whole))
    assert comparable(in_parts(whole, tmp_path)) == expected
    assert comparable(in_parts(whole, tmp_path, 1_000)) == expected
    assert read_parquet(tmp_path / "history.parquet") == whole


def test_tables_of_one_run_have_the_findings_of_the_whole(tmp_path: Path) -> None:
    broken = 0
    for name in ("reference", *MUTANTS[:3]):
        system = reference() if name == "reference" else load_mutant(find_mutant(name))
        for seed in range(4):
            for mode, storage in COMBINATIONS:
                history = run(system, False, seed, mode, storage)
                findings = comparable(judge(history))
                assert comparable(in_parts(history, tmp_path)) == findings
                broken += any(row[-1] for row in findings.values())  # type: ignore[index]
    assert broken >= 5


def test_what_is_not_judged_in_parts_is_undecided(tmp_path: Path) -> None:
    story = Story()
    story.start()
    story.end(story.ask(marker("a")), "ok", "created")
    write_parquet(story.history(), tmp_path / "history.parquet")
    _, findings, complete = judge_in_parts(tmp_path / "history.parquet", None, 1, table_max=2)
    assert not complete and all(each.undecided for each in findings)
    assert {each.guarantee for each in findings} == ALL - {"G21"}
    _, findings, complete = judge_in_parts(tmp_path / "history.parquet", None)
    assert complete and {each.guarantee for each in findings if each.undecided} >= OF_ALL_TABLES - {"G21"}


def test_the_command_judges_a_large_history_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from marker_sim.cli import judge, main

    runs = [run(load_mutant(find_mutant("ack-before-flush")), False, 3, "timeline", "s3") for _ in range(2)]
    whole = History(runs[0].header, tuple(composed(runs)))
    path = tmp_path / "history.parquet"
    write_parquet(whole, path)
    codes = []
    for words in ([], ["--guarantees", "G1,G4"], ["--guarantees", "G6"]):
        codes.append([main(["judge", str(path), *words])])
        with monkeypatch.context() as small:
            small.setattr(judge, "WHOLE_MAX", 10)
            codes[-1].append(main(["judge", str(path), *words]))
    capsys.readouterr()
    assert codes[0] == [1, 1] and codes[1] == [1, 1] and codes[2][1] == 3
    assert parts.WHOLE_MAX > 10
