"""Wrong arguments get one clear sentence on standard error, code 2, no traceback, and nothing is run or written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marker_sim.cli import main
from marker_sim.cli.request import SEED_MAX, parse_duration, parse_request
from marker_sim.errors import UsageError

HTTP = ("verify", "--sut", "http", "--start", "s {port}")
WRONG: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("an unknown command", ("veryfy",), "No such command 'veryfy'"),
    ("an unknown option", ("verify", "--bugdet", "4s"), "--bugdet"),
    ("an option without its value", ("verify", "--seed"), "--seed"),
    ("a missing argument", ("replay",), "Missing argument 'PATH'"),
    ("one argument too many", ("judge", "a.jsonl", "b.jsonl"), "b.jsonl"),
    ("a budget without a unit", ("verify", "--budget", "40"), "--budget was given '40'; write a number"),
    ("a budget of nothing", ("verify", "--budget", "0s"), "--budget was given '0s'"),
    ("an endless budget", ("verify", "--budget", "1000h"), "at most 720h"),
    ("a mode that is none", ("verify", "--mode", "batch"), "--mode was given 'batch'; write both, direct or timeline"),
    (
        "a storage that is none",
        ("verify", "--storage", "nfs"),
        "was given 'nfs'; write sim, s3, local or hdfs",
    ),
    ("a seed that is no number", ("verify", "--seed", "abc"), "--seed was given 'abc'; write a whole number"),
    ("a seed below zero", ("verify", "--seed=-1"), "--seed was given '-1'"),
    ("a guarantee that is none", ("verify", "--guarantees", "G1,G99"), "'G99' is no guarantee"),
    ("no guarantee at all", ("verify", "--guarantees", ","), "no guarantee was given"),
    ("a profile that is not there", ("verify", "--profile", "nope.toml"), "profile 'nope.toml' cannot be read"),
    ("a baseline that is not there", ("verify", "--expect", "nope.json"), "baseline nope.json cannot be read"),
    ("a system that is none", ("verify", "--sut", "mine"), "--sut was given 'mine'; accepted are reference, package"),
    (
        "a module that is not there",
        ("verify", "--sut", "no_such_module_:f"),
        "'no_such_module_' cannot be imported",
    ),
    ("a factory that is not there", ("verify", "--sut", "json:nope"), "has no factory 'nope'"),
    ("a mutant that is none", ("verify", "--sut", "mutant:nope"), "there is no mutant 'nope'"),
    ("an HTTP server without its command", ("verify", "--sut", "http"), "write --start 'COMMAND {port} ...'"),
    ("a command without a port", ("verify", "--sut", "http", "--start", "./s"), "write {port} where the port belongs"),
    ("an HTTP server on S3", (*HTTP, "--storage", "s3"), "not there yet"),
    (
        "an HTTP server in direct mode",
        (*HTTP, "--mode", "direct"),
        "leave --mode",
    ),
    (
        "a form that is none",
        (*HTTP, "--dir-format", "x"),
        "write path or file",
    ),
    ("Hudi without a version", ("verify", "--sut", "hudi"), "write hudi:VERSION, for example hudi:1.0.2"),
    ("Hudi with a command", ("verify", "--sut", "hudi:1.0.2", "--start", "x {port}"), "leave --start out"),
    ("a command for the reference", ("verify", "--start", "x {port}"), "--start was given with --sut reference"),
    ("a system of a later version", ("verify", "--sut", "command"), "which this version cannot run yet"),
    ("nothing to replay", ("replay", "nope"), "nope does not exist; give a plan.json or the report directory"),
    ("no history to judge", ("judge", "nope.jsonl"), "nope.jsonl does not exist; give a history"),
)


@pytest.mark.parametrize(("words", "says"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_wrong_arguments_get_one_sentence_and_code_2(
    words: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("marker-sim: "), err
    assert says in err
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "command.txt"]
    assert left == []


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        ("", "plan.json", "cannot be read as a plan"),
        ("[]", "plan.json", "is not a plan"),
        ('{"mode": "sideways"}', "plan.json", "mode 'sideways' is none of"),
        ('{"schema": 99}', "plan.json", "schema 99"),
        ("nonsense", "history.jsonl", "line 1 is not a row of a history"),
        ("", "history.jsonl", "is empty"),
        ("PAR1", "history.parquet", "cannot be read as a history"),
    ],
)
def test_damaged_files_get_one_sentence_and_code_2(
    content: str, name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    assert main(("replay" if name == "plan.json" else "judge", str(file))) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err


def test_no_command_prints_the_help_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(()) == 2
    out, err = capsys.readouterr()
    assert out == "" and all(command in err for command in ("verify", "replay", "judge", "doctor"))


@pytest.mark.parametrize("command", ["verify", "replay", "judge", "doctor"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main((command, "--help")) == 0
    assert "--help" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "seconds"), [("40s", 40), ("2m", 120), ("8h", 28800), ("1500ms", 1.5), ("0.5s", 0.5)])
def test_durations_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert parse_duration(text, "--budget") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1e3s", "1 day", "nan", "inf", "1.5.5s", "４０s", "9" * 400 + "h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="for example 40s"):
        parse_duration(text, "--budget")


def test_a_request_is_complete_and_draws_its_seed() -> None:
    empty = dict.fromkeys(("storage", "seed", "guarantees", "profile", "expect", "start", "reader", "dir_format"))
    seeds = set()
    for _ in range(3):
        request = parse_request(sut="reference", mode="both", budget="1s", report="r", argv=("verify",), **empty)
        seeds.add(request.seed)
        assert 0 <= request.seed <= SEED_MAX
        assert request.modes == ("direct", "timeline")
        assert request.storages == ("s3", "s3-unconditional", "local", "hdfs")
    assert len(seeds) > 1


def test_an_unwritable_report_directory_is_code_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(("verify", "--budget", "1s", "--report", os.fspath(tmp_path / "file"))) == 4
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "cannot be written" in err
