"""`marker-sim audit` as a command: exit codes, the three files of a report, and sentences for wrong usage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pyarrow.parquet as pq
import pytest

from marker_sim.cli import main
from properties.audit.hand_table import HandTable


@pytest.fixture
def table(tmp_path: Path) -> HandTable:
    made = HandTable(tmp_path / "t", 8)
    made.commit(1, made.base(1))
    return made


def test_exit_codes_say_clean_damaged_and_undecided(table: HandTable, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(table.root)]) == 0
    assert "no damage found" in capsys.readouterr().out
    table.store(table.base(0))
    assert main(["audit", f"file://{table.root}"]) == 3
    assert "next: " in capsys.readouterr().out
    table.store(table.base(1, "f9"))
    assert main(["audit", str(table.root), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["schema"], report["verdict"], report["table_version"]) == (1, "damaged", 8)
    assert report["findings"][0]["level"] == "damage" and report["findings"][0]["next_step"]


def test_a_report_holds_every_finding_and_an_earlier_one_is_kept(table: HandTable, tmp_path: Path) -> None:
    table.store(*(table.base(1, f"x{n}") for n in range(30)), table.base(1, "<script>alert(1)</script>"))
    where = tmp_path / "report"
    for _ in range(2):
        assert main(["audit", str(table.root), "--report", str(where), "--json"]) == 1
    report = json.loads((where / "audit.json").read_text())
    rows = pq.read_table(where / "findings.parquet").to_pylist()
    assert rows == report["findings"] and len(rows) == 31
    page = (where / "audit.html").read_text()
    assert "prefers-color-scheme: dark" in page and "<script>" not in page and "http" not in page.split("</head>")[1]
    [earlier] = (where / "earlier").iterdir()
    assert json.loads((earlier / "audit.json").read_text())["findings"] == report["findings"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/nowhere/at/all"], "is no directory"),
        (["hdfs://host/t"], "hadoop distcp"),
        (["{t}", "--jobs", "0"], "write a whole number"),
        (["{t}", "--stuck-after", "soon"], "write a time"),
        (["{t}", "--s3-endpoint", "localhost"], "write a URL"),
        (["{t}/p"], "no Hudi table"),
        (["{t}", "--report", "{t}/report"], "lies in the table"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_ends_with_one_sentence_and_writes_nothing(
    table: HandTable, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(table.root.rglob("*"))
    assert main(["audit", *(word.replace("{t}", str(table.root)) for word in words)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert sorted(table.root.rglob("*")) == before


def test_files_that_its_user_may_not_read_are_wrong_usage(
    table: HandTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_path: str) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.scandir", refused)
    assert main(["audit", str(table.root)]) == 2
    assert "Permission denied; audit it as a user who may read" in capsys.readouterr().err


def test_storage_that_fails_is_no_finding(table: HandTable, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--s3-endpoint", "http://127.0.0.1:9", "--report", str(table.root.parent / "r")]
    assert main(["audit", "s3://bucket/t", *words]) == 4
    assert "marker-sim: s3://bucket/" in capsys.readouterr().err
