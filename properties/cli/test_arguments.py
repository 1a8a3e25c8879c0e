"""Wrong arguments get one clear sentence on standard error, code 2, no traceback, and nothing is run or written."""

from __future__ import annotations

import json
import os
import re
import shlex
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from marker_sim.cli import main
from marker_sim.errors import UsageError
from properties.faces.cli import COMMANDS, PAGES, SECRET_OPTION, SEED_MAX, TOP, build_app, parse_duration, parse_request
from properties.faces.judges import SHIPPED
from properties.faces.report import without_option
from properties.faces.targets import NAMES, PLANNED, parse_target

ROOT = Path(__file__).parents[2]
HTTP = ("verify", "--sut", "http", "--start", "sh {port}")
S3 = (*HTTP, "--storage", "s3")
NOBODY = "http://127.0.0.1:9"
WRONG: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("an unknown command", ("veryfy",), "No such command 'veryfy'"),
    ("an unknown option", ("verify", "--bugdet", "4s"), "--bugdet"),
    ("an option without its value", ("verify", "--seed"), "--seed"),
    ("a missing argument", ("replay",), "Missing argument 'PATH'"),
    ("an option twice", ("verify", "--runs", "4", "--runs=5"), "--runs was given twice; write it once"),
    ("a flag twice, in both its forms", ("judge", "nope.jsonl", "-v", "--verbose"), "--verbose was given twice"),
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
    (
        "a system that is none",
        ("verify", "--sut", "mine"),
        "given 'mine'; accepted are reference, mutant:NAME, package",
    ),
    (
        "a module that is not there",
        ("verify", "--sut", "no_such_module_:f"),
        "'no_such_module_' cannot be imported",
    ),
    ("a factory that is not there", ("verify", "--sut", "json:nope"), "has no factory 'nope'"),
    ("a mutant that is none", ("verify", "--sut", "mutant:nope"), "there is no mutant 'nope'"),
    ("an HTTP server without its command", ("verify", "--sut", "http"), "write --start 'COMMAND {port} ...'"),
    ("a command without a port", ("verify", "--sut", "http", "--start", "./s"), "write {port} where the port belongs"),
    ("an HTTP server on HDFS", (*HTTP, "--storage", "hdfs"), "cannot run on; write local or s3"),
    ("an endpoint without S3", (*HTTP, "--s3-endpoint", NOBODY), "with --storage local; write --storage s3, or leave"),
    ("a bucket without S3", (*HTTP, "--storage", "local", "--s3-bucket", "b"), "--s3-bucket was given with --storage"),
    ("an endpoint for the reference", ("verify", "--s3-endpoint", NOBODY), "--s3-endpoint was given with --sut"),
    ("a bucket without its endpoint", (*S3, "--s3-bucket", "lake"), "--s3-bucket was given without --s3-endpoint"),
    ("a secret without an endpoint", (*S3, "--s3-secret-key", "s"), "--s3-secret-key was given without --s3-endpoint"),
    ("an endpoint without its bucket", (*S3, "--s3-endpoint", NOBODY), "needs a bucket that the kit may write to"),
    ("an endpoint that is no URL", (*S3, "--s3-endpoint", "127.0.0.1:9", "--s3-bucket", "lake"), "write http://"),
    ("an endpoint with a path", (*S3, "--s3-endpoint", f"{NOBODY}/lake", "--s3-bucket", "lake"), "nothing more"),
    ("a port that is none", (*S3, "--s3-endpoint", "http://h:99999", "--s3-bucket", "lake"), "write http://"),
    ("a bucket that is none", (*S3, "--s3-endpoint", NOBODY, "--s3-bucket", "My_Lake"), "the name of a bucket"),
    ("a path on S3", (*S3, "--dir-format", "path"), "with --storage s3; write s3a, s3 or s3n"),
    ("S3's form on a local directory", (*HTTP, "--dir-format", "s3a"), "with --storage local; write path or file"),
    (
        "S3's words in the command of a local server",
        ("verify", "--sut", "http", "--start", "s {port} {endpoint}"),
        "{endpoint}, which is there with --storage s3 alone",
    ),
    ("identity for the reference", ("verify", "--identity"), "--identity was given with --sut reference"),
    ("batch threads for Hudi", ("verify", "--sut", "hudi:1.0.2", "--batch-threads", "3"), "leave it out"),
    ("batch threads for the reference", ("verify", "--batch-threads", "3"), "given with --sut reference"),
    ("no batch threads", ("verify", "--sut", "http", "--start", "x {port}", "--batch-threads", "0"), "from 1 to 1000"),
    ("identity for Hudi", ("verify", "--sut", "hudi:1.0.2", "--identity"), "leave --identity out"),
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
    ("no program", ("verify", "--sut", "command"), "write --sut command --start './my-program --flag'"),
    ("two programs", ("verify", "--sut", "command:x", "--start", "y"), "which has a command; write one of them"),
    ("no command line", ("verify", "--sut", "command:'x"), "is not a valid command line"),
    ("a port for a program", ("verify", "--sut", "command:x", "--identity"), "leave it out"),
    ("a path that no file can have", ("replay", "b" * 300), "cannot be used: File name too long; give another path"),
    ("a table that no file can be", ("audit", f"/tmp/{'b' * 300}"), "File name too long"),
    ("a history that no file can be", ("judge", f"{'b' * 300}/x.jsonl"), "File name too long"),
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


def test_an_endpoint_needs_credentials_from_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*S3, "--s3-endpoint", NOBODY, "--s3-bucket", "lake", "--report", os.fspath(tmp_path / "report"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    assert main(words) == 2
    assert "needs credentials; write --s3-access-key or set AWS_ACCESS_KEY_ID" in capsys.readouterr().err
    assert main((*words, "--s3-access-key", "me")) == 2
    assert "write --s3-secret-key or set AWS_SECRET_ACCESS_KEY" in capsys.readouterr().err
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    assert main(words) == 4, "nobody answers there"
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and NOBODY in err, err


@pytest.mark.parametrize(
    ("status", "code"), [(403, "InvalidAccessKeyId"), (403, "SignatureDoesNotMatch"), (404, "NoSuchBucket")]
)
def test_wrong_credentials_and_a_bucket_that_is_not_there_get_one_sentence(
    status: int, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_PUT = do_HEAD = do_POST = do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    store = HTTPServer(("127.0.0.1", 0), Refuses)
    thread = threading.Thread(target=store.serve_forever, args=(0.01,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{store.server_port}"
        words = ("--s3-endpoint", url, "--s3-bucket", "lake", "--s3-access-key", "me", "--s3-secret-key", "hush-hush")
        ended = main((*S3, *words, "--report", os.fspath(tmp_path / "report")))
    finally:
        store.shutdown()
        store.server_close()
        thread.join()
    out, err = capsys.readouterr()
    assert ended in (2, 4) and out == "" and err.count("\n") == 1, err
    assert "lake" in err and "hush-hush" not in err, err
    assert not any("hush-hush" in file.read_text() for file in tmp_path.rglob("*") if file.is_file())


def test_a_secret_is_not_kept_with_the_words_of_a_command() -> None:
    words = ("verify", "--s3-secret-key", "hush", "--seed", "1", "--s3-secret-key=hush", "--json")
    assert without_option(words, SECRET_OPTION) == ("verify", "--seed", "1", "--json")


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        ("", "plan.json", "cannot be read as a plan"),
        ("[]", "plan.json", "is not a plan"),
        ('{"schema": 2, "mode": "sideways"}', "plan.json", "mode 'sideways' is none of"),
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


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_whole_at_every_width(
    command: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main((*command.split(), "--help")) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if len(line) > width] == []
    assert not re.search(r"…|\.\.\.", shown.removeprefix(shown.partition("\n")[0]))
    page = PAGES.get(command, TOP)
    assert f"{command} [OPTIONS]" in shown and "\nExit codes:\n  0 " in shown
    assert all(f"\n  {line}\n      {said}\n" in shown for line, said in page.examples)
    for document in re.findall(r"[\w/-]+\.md", page.more):
        assert document in shown and (ROOT / document).is_file()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_has_one_group_and_each_example_is_accepted(command: str) -> None:
    app: Any = get_command(build_app())
    own = app.commands[command]
    options = [max(each.opts, key=len).removeprefix("--") for each in own.params if each.param_type_name == "option"]
    grouped = " ".join(PAGES[command].groups.values()).split()
    assert sorted(grouped) == sorted(options if grouped else ())
    for line, _ in PAGES[command].examples:
        program, name, *words = shlex.split(line)
        assert (program, name) == ("marker-sim", command)
        own.make_context(name, words, obj=(name, *words))
    assert sorted(" ".join(TOP.groups.values()).split()) == sorted(COMMANDS)


@pytest.mark.parametrize(("command", "names"), [("verify", NAMES), ("chaos", PLANNED), ("replay", PLANNED)])
def test_help_names_every_system_and_every_shipped_profile(
    command: str, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main((command, "--help")) == 0
    shown = "".join(capsys.readouterr().out.split())  # However wide the terminal is.
    assert all(name in shown for name in names) and "mutant:NAME" in shown
    present = [file.name for file in (files("marker_sim.judges") / "promises").iterdir()]
    assert {name.removesuffix(".toml") for name in present if name.endswith(".toml")} == set(SHIPPED)
    assert command != "verify" or f"{','.join(SHIPPED)}orafile" in shown
    for name in (*names[1:3], "hudi:1.0.2", "hudi-spark:1.0.2") if command == "verify" else names[1:3]:
        assert parse_target(name.replace("VERSION", "1.0.2"))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_a_short_form(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*command.split(), "--help")) == 0
    shown = capsys.readouterr().out
    assert main((*command.split(), "-h")) == 0 and capsys.readouterr().out == shown


def test_a_shell_completes_commands_and_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, number, found in (("marker-sim ver", 1, ["verify"]), ("marker-sim verify --sar", 2, ["--sarif"])):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(number))
        monkeypatch.setenv("_MARKER_SIM_COMPLETE", "complete_bash")
        assert main(()) == 0
        out, err = capsys.readouterr()
        assert out.split() == found and err == ""
    monkeypatch.delenv("_MARKER_SIM_COMPLETE")
    assert main(("--show-completion", "bash")) == 0
    out, err = capsys.readouterr()
    assert "marker-sim" in out and err == ""


def _settings(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'x'\n\n[tool.marker-sim]\n{text}\n", encoding="utf-8")


def test_options_of_verify_may_stand_in_pyproject_and_the_command_line_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _settings(tmp_path, "guarantees = 'G1'\nbudget = '30m'\nmode = 'direct'\nseed = 7\njson = true\nverbose = false")
    assert main(("verify", "--runs", "2", "--mode", "timeline", "--storage", "s3", "--jobs", "1")) in (0, 3)
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["seed"] == 7 and {(row["id"], row["mode"]) for row in verdict["guarantees"]} == {("G1", "timeline")}
    said = shlex.split((tmp_path / "marker-sim-report" / "logs" / "command.txt").read_text(encoding="utf-8"))
    assert said[:2] == ["marker-sim", "verify"] and "--guarantees=G1" in said and "--seed=7" in said
    assert "--mode=direct" not in said and "--budget=30m" not in said and "timeline" in said
    assert main(("judge", "marker-sim-report")) in (0, 3), "no other command takes options from it"
    assert "of 11 guarantees" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bugdet = '4s'", "[tool.marker-sim] of pyproject.toml has a key 'bugdet'; write options of verify: "),
        ("as_json = true", "has a key 'as_json'"),
        ("help = true", "has a key 'help'"),
        ("budget = true", "--budget was given 'True'"),
        ("guarantees = ['G1', 'G2']", "is no guarantee"),
        ("json = 'yes'", "'--json' does not take a value"),
        ("budget = '4'", "--budget was given '4'"),
        ("budget = ", "pyproject.toml cannot be read: "),
        ("[tool.marker-sim.chaos]\nbudget = '8h'", "has a key 'chaos'"),
    ],
)
def test_a_wrong_key_or_value_in_pyproject_is_one_sentence(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _settings(tmp_path, text)
    assert main(("verify", "--jobs", "1")) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err
    assert main(("verify", "--help")) == 0, "help is there all the same"


@pytest.mark.parametrize(("text", "seconds"), [("40s", 40), ("2m", 120), ("8h", 28800), ("1500ms", 1.5), ("0.5s", 0.5)])
def test_durations_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert parse_duration(text, "--budget") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1e3s", "1 day", "nan", "inf", "1.5.5s", "４０s", "9" * 400 + "h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="for example 40s"):
        parse_duration(text, "--budget")


def test_words_of_storage_and_mode_may_be_written_in_capitals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--runs", "2", "--guarantees", "G1", "--jobs", "1", "--json")
    assert main(("verify", "--storage", "LOCAL", "--mode", "Direct", *words)) in (0, 3)
    rows = json.loads(capsys.readouterr().out)["guarantees"]
    assert {(row["mode"], row["storage"]) for row in rows} == {("direct", "local")}


def test_a_request_is_complete_and_draws_its_seed() -> None:
    empty: dict[str, Any] = dict.fromkeys(("storage", "seed", "guarantees", "profile", "expect"))
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
    assert main(("verify", "--budget", "1s", "--report", os.fspath(tmp_path / "file" / "report"))) == 4
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "cannot be written" in err
