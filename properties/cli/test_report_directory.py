"""An earlier report is moved aside and never lost: not by a second run, a refusal, a kill or a full disk."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.cli import main
from marker_sim.errors import HarnessError, UsageError
from properties.cli.campaigns import campaign
from properties.faces.cli import failures_at, parse_request
from properties.faces.judges import load_profile
from properties.faces.report import judge_campaign, newest_earlier, open_report, write_outcome

ARGV = ("verify", "--budget", "1s")
REFERENCE = load_profile("reference")


def _files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def _report(directory: Path) -> dict[str, bytes]:
    """A report as a run leaves it; its files."""
    with open_report(directory, ARGV):
        write_outcome(judge_campaign(campaign(), REFERENCE, None, directory, ARGV), directory)
    return _files(directory)


def test_an_earlier_report_is_moved_as_a_whole_and_the_next_one_beside_it(tmp_path: Path) -> None:
    first = _report(tmp_path)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    places = []
    for _ in range(3):  # Within one second: none of them takes the place of another.
        with open_report(tmp_path, ARGV) as earlier:
            assert earlier is not None and earlier.parent == tmp_path / "earlier"
            assert sorted(os.listdir(tmp_path)) == ["earlier", "logs", "notes.txt"]
            assert os.listdir(tmp_path / "logs") == ["command.txt"]
            places.append(earlier)
            write_outcome(judge_campaign(campaign(violated=False), REFERENCE, None, tmp_path, ARGV), tmp_path)
        assert not (tmp_path / "plan.json").exists()
    assert len(set(places)) == 3 and _files(places[0]) == first
    assert newest_earlier(tmp_path) == places[-1]
    assert not any((place / "earlier").exists() for place in places)


def test_the_failures_of_a_report_are_judged_again_by_the_shipped_profile_that_it_names(tmp_path: Path) -> None:
    profile = load_profile("http-one-server")
    with open_report(tmp_path, ARGV):
        write_outcome(judge_campaign(campaign(), profile, None, tmp_path, ARGV), tmp_path)
    failures = failures_at(tmp_path)
    assert failures and all(each.profile == profile for each in failures)


def test_a_directory_with_anything_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text("mine", encoding="utf-8")
    with (
        pytest.raises(UsageError, match=r"holds 'verdict.json' and no earlier report; give an empty"),
        open_report(tmp_path, ARGV),
    ):
        raise AssertionError
    assert _files(tmp_path) == {"verdict.json": b"mine"}


def test_a_directory_that_is_a_file_or_a_link_to_nothing_is_wrong_usage_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        with pytest.raises(UsageError, match=f"{name} is not a directory"), open_report(tmp_path / name, ARGV):
            raise AssertionError
    assert _files(tmp_path) == {"file": b"mine"}


def test_what_is_in_the_way_of_an_earlier_report_is_named(tmp_path: Path) -> None:
    before = _report(tmp_path)
    (tmp_path / "earlier").write_text("mine", encoding="utf-8")
    with pytest.raises(HarnessError, match=r"File exists: .*/earlier"), open_report(tmp_path, ARGV):
        raise AssertionError
    assert _files(tmp_path) == {**before, "earlier": b"mine"}


def test_a_second_writer_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    with open_report(tmp_path, ARGV):
        before = _files(tmp_path)
        with pytest.raises(UsageError, match="is in use by another marker-sim"), open_report(tmp_path, ARGV):
            raise AssertionError
        words = [sys.executable, "-m", "marker_sim", "verify", "--budget", "1s", "--report", str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "is in use by another marker-sim" in done.stderr
        assert _files(tmp_path) == before
    with open_report(tmp_path, ARGV):
        pass


@pytest.mark.parametrize("failing", range(7))
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_a_move_that_is_cut_short_at_any_place_is_taken_back(
    failing: int, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _report(tmp_path)
    rename, left = os.rename, [failing]

    def sometimes(source: Path, target: Path) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise error
        rename(source, target)

    monkeypatch.setattr(os, "rename", sometimes)
    if failing == 6:  # After the last move, when the new report begins.
        monkeypatch.setattr(Path, "write_text", lambda *_, **__: sometimes(tmp_path, tmp_path))
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else HarnessError):  # noqa: SIM117
        with open_report(tmp_path, ARGV):
            raise AssertionError("the move was not cut short")
    assert _files(tmp_path) == before


def test_a_kill_in_the_middle_of_the_move_loses_nothing(tmp_path: Path) -> None:
    before = _report(tmp_path)
    killed = (
        "import os, signal, sys; from pathlib import Path; from marker_sim.report import directory;"
        "rename, count = os.rename, []\n"
        "def sometimes(source, target):\n"
        "    rename(source, target); count.append(1)\n"
        "    if len(count) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "directory.os.rename = sometimes\n"
        "with directory.open_report(Path(sys.argv[1]), ()): pass"
    )
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert sorted(_files(tmp_path).values()) == sorted(before.values())
    with open_report(tmp_path, ARGV):
        pass
    moved = {Path(name).name: data for name, data in _files(tmp_path / "earlier").items()}
    assert moved == {Path(name).name: data for name, data in before.items()}


def test_a_run_that_was_killed_as_it_began_does_not_block_the_directory(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with open_report(tmp_path, ARGV):
        assert (tmp_path / "logs" / "command.txt").read_text(encoding="utf-8") == "marker-sim verify --budget 1s\n"


HTTP = ("verify", "--sut", "http", "--start")
CANNOT_RUN: tuple[tuple[str, tuple[str, ...], int, str], ...] = (
    ("a typo in an option", ("verify", "--bugdet", "4s"), 2, "--bugdet"),
    ("a system that is not there", ("verify", "--sut", "no_such_module_:f"), 2, "cannot be imported"),
    ("a factory that is not there", ("verify", "--sut", "json:nope"), 2, "has no factory 'nope'"),
    ("a mutant that is none", ("verify", "--sut", "mutant:nope"), 2, "there is no mutant 'nope'"),
    (
        "a module that is no factory",
        ("verify", "--sut", "marker_sim.loading:load_system", "--mode", "x"),
        2,
        "mode",
    ),
    ("a profile that is not there", ("verify", "--profile", "nope.toml"), 2, "cannot be read"),
    ("a baseline that is not there", ("verify", "--expect", "nope.json"), 2, "cannot be read"),
    ("a program that is not there", (*HTTP, "./no-such-server {port}"), 4, "'./no-such-server' was not found"),
    ("a reader that is not there", (*HTTP, "sh {port}", "--reader", "nope-nope {dir}"), 4, "--reader: the program"),
    ("a command of half a word", (*HTTP, "sh '{port}"), 2, "is not a valid command line"),
    ("a Hudi that is not there", ("verify", "--sut", "hudi:9.9.9"), 2, "write hudi: and"),
    ("a write path that is not there", ("verify", "--sut", "hudi-spark:9.9.9"), 2, "write hudi-spark: and"),
    (
        "an object store that does not answer",
        (
            *(*HTTP, "sh {port}", "--storage", "s3", "--s3-endpoint", "http://127.0.0.1:9", "--s3-bucket", "lake"),
            *("--s3-access-key", "me", "--s3-secret-key", "mine"),
        ),
        4,
        "http://127.0.0.1:9",
    ),
)


@pytest.mark.parametrize(("words", "code", "says"), [case[1:] for case in CANNOT_RUN], ids=[c[0] for c in CANNOT_RUN])
def test_what_cannot_run_leaves_an_earlier_report_where_it_is(
    words: tuple[str, ...],
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = _report(tmp_path / "marker-sim-report")
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err
    assert _files(tmp_path) == {f"marker-sim-report/{name}": data for name, data in before.items()}


@pytest.mark.parametrize(
    ("sut", "module_name", "extra"),
    [
        ("http", "urllib3", "foreign"),
        ("hudi:1.0.2", "pyspark", "hudi"),
        ("hudi-spark:1.0.2", "fastavro", "audit"),
    ],
)
def test_a_missing_extra_is_found_before_anything_is_done(
    sut: str, module_name: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module_name, None)
    empty: dict[str, Any] = dict.fromkeys(("storage", "seed", "guarantees", "profile", "expect"))
    start = "sh {port}" if sut == "http" else None
    request = parse_request(
        sut=sut, mode="both", budget="1s", report="r", argv=("verify",), start=start, **empty
    )  # fmt: skip
    with pytest.raises(HarnessError) as caught:
        request.target.prepare(request, lambda _: None)
    assert str(caught.value) == (
        f"--sut {sut} needs the Python package {module_name}, which is not installed; pip install '.[{extra}]' in a"
        " clone of marker-sim"
    )


def test_a_chaos_directory_is_not_made_of_a_directory_with_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "summary.md").write_text("mine", encoding="utf-8")
    assert main(("chaos", "--budget", "1s", "--dir", str(tmp_path))) == 2
    assert "holds 'summary.md' and is not a chaos directory" in capsys.readouterr().err
    assert _files(tmp_path) == {"summary.md": b"mine"}


def test_a_chaos_of_a_system_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    assert main(("chaos", "--budget", "1s", "--dir", str(tmp_path / "chaos"), "--sut", "no_such_module_:f")) == 2
    assert not (tmp_path / "chaos").exists()


def test_a_verify_over_an_earlier_report_says_where_that_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _report(tmp_path)
    words = ("verify", "--budget", "300ms", "--guarantees", "G1", "--mode", "direct", "--storage", "local", "--json")
    main((*words, "--seed", "1", "--report", str(tmp_path)))
    out, err = capsys.readouterr()
    earlier = newest_earlier(tmp_path)
    assert earlier is not None and _files(earlier) == before
    assert json.loads(out) == json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert f"was moved to {earlier}" in err


def test_a_report_that_never_came_points_to_the_one_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _report(tmp_path)
    with open_report(tmp_path, ARGV) as earlier:
        pass
    for command in ("replay", "judge"):
        assert main((command, str(tmp_path))) == 2
        assert capsys.readouterr().err.endswith(f", such as {earlier}\n")


@pytest.mark.parametrize(
    ("report", "beside"), [("r", "r-again"), ("a/b/", "a/b-again"), (".", "{here}-again"), ("a/..", "{here}-again")]
)
def test_the_command_that_shows_a_foreign_failure_again_writes_beside_the_report(
    report: str, beside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "a").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    made = campaign()
    foreign = replace(made, failures=tuple(replace(failure, plan=None) for failure in made.failures))
    argv = ("verify", "--sut", "http", "--report", report, f"--report={report}", "--budget", "9s")
    outcome = judge_campaign(foreign, REFERENCE, None, Path(report), argv)
    where = beside.format(here=tmp_path / "here")
    assert outcome.rows[0].replay == f"marker-sim verify --sut http --budget 9s --seed 9 --report {shlex.quote(where)}"
