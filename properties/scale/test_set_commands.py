"""`judge --sets` and `judge FACTS` as commands: verdict, exit code, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from marker_sim.cli import main
from marker_sim.history import write_jsonl
from marker_sim.report.columns import write_parquet
from properties.judges.build import DIRECTORY, Story, marker
from properties.scale.planted import as_columns, as_ids, planted

Capture = pytest.CaptureFixture[str]


def lost() -> Story:
    story = Story()
    story.start()
    story.end(story.ask(marker("a")), "ok", "created")
    return story


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_lost_marker_is_a_violation_by_sets(form: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / f"history.{form}"
    (write_parquet if form == "parquet" else write_jsonl)(lost().history(), path)
    assert main(["judge", str(path), "--sets", "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert {row["id"]: row["verdict"] for row in verdict["guarantees"]} == {
        "G4": "violated",
        "G14": "inconclusive",
        "G15": "inconclusive",
    }
    assert verdict["sets"]["answered-not-stored"] == {"judged": 1, "excused": 0, "breaches": 1}
    assert main(["judge", str(path), "--sets", "--guarantees", "G4"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "by differences of sets alone: reference breaks 1 of 1 guarantee: G4" in said
    assert f"{DIRECTORY}: {marker('a')!r} was answered and is not stored in the end" in said


def test_a_loss_that_is_not_promised_under_every_fault_that_happened_is_not_decided(
    tmp_path: Path, capsys: Capture
) -> None:
    story = lost()
    story.fault("directory-removed", "nemesis", path="elsewhere/.hoodie/.temp/009")
    write_parquet(story.history(), tmp_path / "history.parquet")
    profile = tmp_path / "profile.json"
    rule = {"guarantee": "G4", "promised": True}
    profile.write_text(json.dumps({"name": "own", "promise": [rule, rule | {"under": "outside", "promised": False}]}))
    words = ["judge", str(tmp_path / "history.parquet"), "--sets", "--guarantees", "G4", "--profile", str(profile)]
    assert main([*words, "--json"]) == 3
    (row,) = json.loads(capsys.readouterr().out)["guarantees"]
    assert "needs the others" in row["message"]


def test_facts_in_a_directory_are_judged_and_what_is_kept_holds(tmp_path: Path, capsys: Capture) -> None:
    rows, _ = planted(2_000, 1_000)
    kept = [row for row in rows if row[2] is None or row[2] >= "p/0000050"]  # What is odd belongs to the first 50.
    for name, chosen, code in (("broken", rows, 1), ("kept", kept, 0)):
        (tmp_path / name).mkdir()
        ids, texts = as_ids(as_columns(chosen))
        pq.write_table(ids, tmp_path / name / "facts.parquet")
        pq.write_table(texts, tmp_path / name / "texts.parquet")
        only = ["--guarantees", "G4,G14"]
        assert main(["judge", str(tmp_path / name), *only, "--json"]) == code, capsys.readouterr().out
        verdict = json.loads(capsys.readouterr().out)
        assert {row["verdict"] for row in verdict["guarantees"]} == {"violated" if code else "holds"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sets", "--guarantees", "G1"], "sets decide nothing about G1"),
        (["--spark-master", "local[1]", "--guarantees", "G6"], "sets decide nothing about G6"),
    ],
)
def test_what_sets_do_not_judge_is_refused(words: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    write_jsonl(lost().history(), tmp_path / "history.jsonl")
    assert main(["judge", str(tmp_path / "history.jsonl"), *words]) == 2
    assert said in capsys.readouterr().err


def test_files_that_are_no_facts_are_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "facts.csv").write_text("name,age\na,1\n")
    assert main(["judge", str(tmp_path)]) == 2
    assert "give Parquet, CSV or JSON files with the columns fact, directory, name, moment" in capsys.readouterr().err
    (tmp_path / "other.json").write_text("{}")
    assert main(["judge", str(tmp_path)]) == 2
    assert "several forms (.csv, .json)" in capsys.readouterr().err
