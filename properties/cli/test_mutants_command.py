"""`marker-sim mutants` says who was killed by whom, names survivors, and keeps what was done when it is interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marker_sim.cli import main
from marker_sim.errors import HarnessError
from marker_sim.mutants import Mutant
from marker_sim.plan import Plan
from properties.faces.campaign import SEARCHES, Kill, kill
from properties.faces.judges import GUARANTEES
from properties.volume import CI_ONLY, volume


def test_a_mutant_that_dies_is_told_with_its_row_of_the_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["mutants", "--only", "no-reconcile", "--seeds", "2", "--budget-per-mutant", "20s", "--report"]
    assert main([*words, str(tmp_path / "matrix")]) == 0
    assert "1 of 1 mutants killed by their guarantee" in capsys.readouterr().out
    content = json.loads((tmp_path / "matrix" / "mutants.json").read_text(encoding="utf-8"))
    assert content["schema"] == 1 and content["guarantees"] == [guarantee.id for guarantee in GUARANTEES]
    assert content["survivors"] == [] and content["seeds"] == 2 and not content["interrupted"]
    (row,) = content["mutants"]
    assert row["killed"] and 0 < row["cells"]["G14"] <= row["runs"]
    assert set(row["searches"]) == {search.name for search in SEARCHES}
    told = row["searches"]["swarm"]
    assert told["caught"] == told["ranges"] == 2 and 0 < told["median_s"] <= told["worst_s"]
    assert Plan.from_dict(row["plan"]).entries == row["entries"] <= 4
    text = (tmp_path / "matrix" / "mutants.txt").read_text(encoding="utf-8")
    assert f"[{row['cells']['G14']}]" in text


def test_a_survivor_is_named_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One plan of each search is not enough for a mutant that a few hundred find."""
    words = ["mutants", "--only", "delete-result-ignored", "--seeds", "1", "--runs", "1", "--json"]
    assert main([*words, "--jobs", "1", "--report", str(tmp_path / "matrix")]) == 1
    content = json.loads(capsys.readouterr().out)
    assert content["survivors"] == ["delete-result-ignored"] and content["summary"]["killed"] == 0


@pytest.mark.parametrize(("ending", "code"), [(KeyboardInterrupt(), 130), (HarnessError("it stood still"), 4)])
def test_what_was_done_is_kept_when_it_ends_early(
    ending: BaseException, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second_is_too_long(mutant: Mutant, seeds: int, budget_s: float, plans: int | None) -> Kill:
        if mutant.name != "no-type-file":
            raise ending
        return kill(mutant, seeds, budget_s, SEARCHES[:1], shrinking=False, plans=plans)

    monkeypatch.setattr("marker_sim.campaign.hunts.kill", second_is_too_long)
    words = ["mutants", "--only", "no-type-file,first-infix", "--seeds", "1", "--jobs", "1"]
    words += ["--report", str(tmp_path / "matrix")]
    assert main(words) == code
    content = json.loads((tmp_path / "matrix" / "mutants.json").read_text(encoding="utf-8"))
    assert content["interrupted"] and [row["name"] for row in content["mutants"]] == ["no-type-file"]


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(part) for key, part in value.items() if not str(key).endswith("_s")}
    return [_without_times(part) for part in value] if isinstance(value, list) else value


@CI_ONLY
def test_with_a_number_of_runs_several_processes_find_the_same_but_for_times(tmp_path: Path) -> None:
    words = [
        "mutants",
        "--only",
        "no-type-file,delete-result-ignored",
        "--seeds",
        "1",
        "--runs",
        str(volume(10, quick=5)),
    ]
    found = []
    for jobs in ("1", "2"):
        main([*words, "--jobs", jobs, "--report", str(tmp_path / jobs)])
        found.append(_without_times(json.loads((tmp_path / jobs / "mutants.json").read_text(encoding="utf-8"))))
    assert found[0] == found[1]


def test_the_first_survivor_ends_it_when_that_was_asked_for(tmp_path: Path) -> None:
    words = ["mutants", "--only", "delete-result-ignored,no-type-file", "--seeds", "1", "--runs", "1"]
    assert main([*words, "--stop-at-first", "--jobs", "1", "--report", str(tmp_path / "matrix")]) == 1
    content = json.loads((tmp_path / "matrix" / "mutants.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in content["mutants"]] == content["survivors"] == ["delete-result-ignored"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "leading-slsh"], "leading-slash"),
        (["--only", ","], "--only"),
        (["--seeds", "0"], "--seeds was given '0'"),
        (["--runs", "0"], "--runs was given '0'"),
        (["--runs", "3", "--budget-per-mutant", "2s"], "write one of them"),
        (["--jobs", "many"], "--jobs was given 'many'"),
        (["--budget-per-mutant", "20"], "--budget-per-mutant was given '20'"),
    ],
)
def test_wrong_words_are_answered_with_what_is_accepted(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mutants", *words, "--report", str(tmp_path / "matrix")]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "matrix").exists()
