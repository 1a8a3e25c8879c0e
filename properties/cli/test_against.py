"""`verify --against SUT`: the same plans on two systems of the simulated world, what only one of them breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from properties.faces.cli import main
from properties.volume import CI_ONLY, volume

BROKEN = "mutant:exists-from-memory"
RUNS = volume(120)
ONLY = (
    "--mode", "timeline", "--storage", "s3",
    "--guarantees", "G2", "--runs", str(RUNS), "--seed", "2", "--jobs", "1",
)  # fmt: skip


def verify(report: Path, sut: str, against: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any, str]:
    code = main(["verify", "--sut", sut, "--against", against, *ONLY, "--report", str(report)])
    return code, json.loads((report / "verdict.json").read_text()), capsys.readouterr().out


@CI_ONLY
def test_what_only_one_system_breaks_is_said_and_the_exit_code_is_of_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, verdict, out = verify(tmp_path, BROKEN, "reference", capsys)
    against = verdict["against"]
    assert code == 1 and verdict["sut"] == BROKEN and against["sut"] == "reference"
    assert against["runs"] == [RUNS, RUNS]
    assert [each["broken"] for each in against["violations"]] == [[True, False]] * len(against["violations"]) != []
    assert all(each["violations"][0] > 0 == each["violations"][1] for each in against["violations"])
    assert [(each["run_on"], each["broke"]) for each in against["plans"]] == [("reference", 0)] * len(against["plans"])
    assert against["plans"], "a small plan of the first was run on the second"
    assert f"only {BROKEN} breaks: G2 (another-server" in out and "only reference breaks: nothing" in out
    assert "Against reference" in (tmp_path / "report.html").read_text()

    code, verdict, out = verify(tmp_path, "reference", BROKEN, capsys)
    assert code != 1 and verdict["verdict"] != "violated", "what the other one breaks does not count"
    assert [each["broken"] for each in verdict["against"]["violations"]] == [[False, True]] * len(against["violations"])
    (moved,) = (tmp_path / "earlier").iterdir()
    assert (moved / "against" / "verdict.json").is_file()
    assert main(["replay", str(tmp_path / "against")]) == 1, "the plans of the second can be run again"


@CI_ONLY
def test_a_system_against_itself_breaks_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict, out = verify(tmp_path, BROKEN, BROKEN, capsys)
    assert code == 1
    assert all(each["broken"] == [True, True] for each in verdict["against"]["violations"])
    assert all(len(set(each["violations"])) == 1 for each in verdict["against"]["violations"]), "the same plans"
    assert all(each["broke"] == each["runs"] == 1 for each in verdict["against"]["plans"])
    assert f"only {BROKEN} (--sut) breaks: nothing" in out and f"only {BROKEN} (--against) breaks: nothing" in out


WRONG = (
    (("--against", "nope"), "--against was given 'nope'; accepted are"),
    (("--against", "http"), "--against http needs the command that starts the server; write --against-start"),
    (("--against-start", "x {port}"), "--against-start was given without --against"),
    (
        ("--against", "http", "--against-start", "x {port}"),
        "runs in real servers, and --sut reference in",
    ),
    (("--sut", "hudi:1.2.0", "--against", "hudi-spark:1.2.0"), "give two systems that can run the same plans"),
    (("--sut", "hudi:1.2.0", "--against", "http", "--against-start", "x"), "write {port} where the port belongs"),
    (
        ("--sut", "hudi:1.2.0", "--against", "http", "--against-start", "x {port} {interval_ms}"),
        "--against-start has no {threads}, but the other system's command has it",
    ),
    (
        ("--sut", "http", "--start", "x {port} {threads}", "--against", "hudi:1.2.0"),
        "--start has no {interval_ms}, but the other system's command has it",
    ),
    (
        ("--sut", "hudi:1.2.0", "--against", "hudi:1.1.1", "--against-start", "x {port}"),
        "given with --against hudi:1.1.1, whose command the kit composes; leave --against-start out",
    ),
)


@pytest.mark.parametrize(("words", "says"), WRONG, ids=[each[1][:40] for each in WRONG])
def test_two_systems_that_cannot_be_compared_get_one_sentence(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *words, "--report", str(tmp_path / "r")]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert not (tmp_path / "r").exists()
