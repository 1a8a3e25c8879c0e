"""`marker-sim chaos` against a foreign server: killed and resumed it loses nothing, and leaves nothing running."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from marker_sim.errors import EXIT_INCONCLUSIVE, EXIT_VIOLATED, UsageError
from properties.campaign.test_chaos import TIMEOUT_S, _has_more, _lines, _marked, _start, _wait
from properties.faces.campaign import read_stored
from properties.faces.cli import main
from properties.faces.targets import ServerOptions, check_keys
from properties.faces.worlds import Endpoint
from properties.volume import CI_ONLY, volume
from scenarios.test_http import START


@CI_ONLY
def test_a_night_against_a_broken_server_that_is_killed_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "chaos"
    start = f"{START} --broken memory-only"
    words = ("--sut", "http", "--start", start, "--budget", "60s", "--jobs", "2", "--dir", str(directory))
    process = _start(*words, "--seed", "3", cwd=tmp_path)
    _wait("no plan was run", partial(_has_more, directory, 0), TIMEOUT_S)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    _wait("something outlives a chaos that was killed", lambda: not _marked(directory))
    before = _lines(directory)
    assert len(_lines(directory, "end")) == 0, "it was killed in the middle"

    budget = f"{before[-1]['clock_s'] + volume(20):.0f}s"
    resumed = _start("--budget", budget, "--jobs", "2", "--dir", str(directory), cwd=tmp_path)
    out, err = resumed.communicate(timeout=TIMEOUT_S)
    assert resumed.returncode == 1, out + err
    assert not _marked(directory), "nothing outlives the end of a night"
    units = [line for line in _lines(directory) if line["stream"] == "foreign-local"]
    assert _lines(directory)[: len(before)] == before, "what was done before the kill stays done"
    numbers = [line["first"] for line in units]
    assert len(numbers) == len(set(numbers)), "a plan counts once"
    assert len(_lines(directory, "night")) == len(_lines(directory, "resume")) == 1
    assert not any(line["trouble"] for line in units)
    night = json.loads((directory / "summary.json").read_text())["nights"][0]
    assert night["runs"] == sum(line["runs"] for line in units) and night["canary"]["caught"]

    stored = [read_stored(file) for file in sorted((directory / "failures").glob("*.json"))]
    seen = sum(each.seen + each.alike for each in stored)
    assert seen == sum(len(line["sightings"]) for line in units) > 0, "no failure was lost"
    assert all(each.world == "server" and each.server["start"] == start for each in stored)
    # What a busy machine's timing alone showed need not show again in four runs; what the server always does has to.
    likely = sorted(stored, key=lambda each: (each.shrunk, each.seen), reverse=True)
    files = (str(directory / "failures" / f"{each.name}.json") for each in likely)
    codes = (main(["replay", file, "--times", "4"]) for file in files)
    assert next((code for code in codes if code != EXIT_INCONCLUSIVE), EXIT_INCONCLUSIVE) == EXIT_VIOLATED


@CI_ONLY
def test_a_directory_takes_other_versions_of_a_server_and_no_other_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = ("--dir", str(tmp_path / "chaos"), "--seed", "1", "--jobs", "1", "--budget")
    first, then = f"{volume(15, quick=5)}s", f"{volume(15, quick=3)}s"
    first_night = main(["chaos", "--sut", "http", "--start", START, *directory, first])
    assert first_night in (0, 3), "nothing broke; whether its few plans met every goal depends on the machine"
    assert main(["chaos", "--sut", "http", "--start", f"{START} -v", "--storage", "s3", *directory, then]) in (3, 4)
    capsys.readouterr()
    for sut in ("reference", "hudi:1.2.0"):
        assert main(["chaos", "--sut", sut, *directory, then]) == 2
        assert "belongs to --sut http; give another --dir" in capsys.readouterr().err
    assert main(["chaos", "--profile", "http-power-loss", *directory, then]) == 2
    assert "is judged by --profile http; give another --dir" in capsys.readouterr().err
    nights = json.loads((tmp_path / "chaos" / "summary.json").read_text())["nights"]
    assert set(nights[0]["stream_runs"]) <= {"foreign-local"}, "its command says nothing of S3"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--sut", "http"), "--sut http needs the command that starts the server; write --start"),
        (("--start", "x {port}"), "--start was given with --sut reference; it belongs to --sut http"),
        (("--sut", "hudi:1.2.0", "--start", "x {port}"), "whose command the kit composes; leave --start out"),
        (("--sut", "hudi:1.2.0", "--stages", "swarm"), "whose night has one stage; leave it out"),
        (("--sut", "hudi:1.2.0", "--storage", "hdfs"), "--storage was given 'hdfs'; write local, s3 or both"),
        (("--storage", "s3"), "--storage was given with --sut reference, whose stages run on all; leave it out"),
        (("--sut", "hudi:1.2.0", "--profile", "hadi"), "profile 'hadi' cannot be read"),
        (("--sut", "hudi:9.9.9"), "hudi:9.9.9 has no bundle"),
        (("--sut", "http", "--start", "x {port} {endpoint}", "--storage", "both"), "leave {endpoint} out"),
        (("--sut", "hudi:1.2.0", "--s3-endpoint", "http://127.0.0.1:9"), "with --storage local; write --storage s3"),
        (("--sut", "hudi:1.2.0", "--storage", "s3", "--s3-bucket", "b"), "--s3-bucket was given without --s3-endpoint"),
    ],
)
def test_wrong_words_for_a_foreign_night_get_one_sentence_and_make_no_directory(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chaos", "--budget", "1s", "--dir", str(tmp_path / "chaos"), *words]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert not (tmp_path / "chaos" / "failures").exists()


def test_an_object_store_of_the_users_own_is_kept_without_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(url="http://127.0.0.1:9", bucket="lake", access_key="me", secret_key="hush")
    options = ServerOptions(start="x {port}", endpoint=endpoint)
    stored = json.dumps(options.to_dict())
    assert "hush" not in stored and "me" not in json.loads(stored)["endpoint"].values()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    keyless = ServerOptions.from_dict(json.loads(stored)).endpoint
    assert keyless is not None
    with pytest.raises(UsageError, match="needs credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        check_keys(keyless)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    again = ServerOptions.from_dict(json.loads(stored)).endpoint
    assert again is not None and replace(again, prefix=endpoint.prefix) == endpoint
