"""The nightly: killed anywhere it loses and repeats nothing; what it finds can be opened, replayed and pruned."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from marker_sim.campaign.nightly.units import swarm
from marker_sim.cli import main
from properties.faces.campaign import ALIKE_MAX, NightlyTask, Ranges, read_lines, read_stored, signature, writing
from properties.faces.surroundings import VARIABLE
from properties.volume import CI_ONLY, PROFILE, volume

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120
MUTANT = "mutant:no-type-file"
# Of a night that is not the first; all of them in CI.
STAGES = ("--stages", "swarm") if PROFILE == "quick" else ()
# Of a unit: what depends on time or on what was found before.
_VARIES = ("kind", "at", "night", "clock_s", "seconds", "sightings")


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "marker_sim", "chaos", *words]


def _start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        _command(*words),
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(*words: str, cwd: Path) -> tuple[int, str, str]:
    process = _start(*words, cwd=cwd)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err


def _lines(directory: Path, kind: str = "unit") -> list[dict[str, Any]]:
    return [line for line in read_lines(directory) if line["kind"] == kind]


def _marked(directory: Path) -> list[int]:
    """The processes that carry the directory's mark."""
    word = f"{VARIABLE}={directory.resolve()}".encode()
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if word in Path(f"/proc/{entry.name}/environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _has_more(directory: Path, before: int) -> bool:
    return len(_lines(directory)) > before


def _wait(what: str, condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.draws(runs=4, one_in=2)
def test_a_night_killed_again_and_again_has_done_each_turn_once_with_the_counts_of_an_undisturbed_run(
    tmp_path: Path, chaos_seed: int
) -> None:
    rng, directory = random.Random(chaos_seed), tmp_path / "chaos"
    words = ("--budget", "90s", "--dir", str(directory), "--stages", "swarm", "--jobs", "2")
    for ending in (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
        before = len(_lines(directory))
        process = _start(*words, *(() if before else ("--seed", "9000")), cwd=tmp_path)
        _wait("no unit was done", partial(_has_more, directory, before))
        time.sleep(rng.uniform(0.0, 0.6))
        process.send_signal(ending)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode in (-signal.SIGKILL, 130), out + err
        assert ("night 1 goes on after " in err) is bool(before), "it says from where"
        _wait("workers outlive a chaos that was killed", lambda: not _marked(directory))
    units = [line for line in _lines(directory) if line["stream"] == "swarm"]
    turns = sorted(turn for line in units for turn in range(line["first"], line["first"] + line["count"]))
    assert len(turns) == len(set(turns)), "a turn was done twice"
    done = Ranges()
    for line in units:
        done.add(line["first"], line["count"])
    holes = sum(stop - begin for begin, stop in done.free[:-1])
    assert holes <= 2 * 12, "more was left out than two workers had in hand at the end"
    for line in rng.sample(units, 2):
        task = NightlyTask(
            stream="swarm",
            first=line["first"],
            count=line["count"],
            sut="reference",
            profile="reference",
            until=0,
            seed=9000,
        )
        stored = {key: value for key, value in line.items() if key not in _VARIES}
        again = {key: value for key, value in swarm(task).items() if key not in _VARIES}
        assert stored == again | {key: line[key] for key in ("stream", "first", "count")}
    total = json.loads((directory / "summary.json").read_text(encoding="utf-8"))["nights"][0]
    assert total["runs"] == sum(line.get("runs", 0) for line in _lines(directory))
    assert len(_lines(directory, "night")) == 1, "it was one night all along"


def _fail(tmp_path: Path) -> Path:
    """A chaos directory with failures of a mutant."""
    directory = tmp_path / "chaos"
    code, out, err = _run(
        "--budget", f"{volume(6, quick=4)}s", "--dir", str(directory), "--sut", MUTANT, "--stages", "swarm",
        "--seed", "1", *(("--jobs", "1") if PROFILE == "quick" else ()), cwd=tmp_path,
    )  # fmt: skip
    assert code == 1, out + err
    return directory


def test_failures_of_a_mutant_are_stored_once_each_replayed_and_the_night_after_says_still(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = _fail(tmp_path)
    files = sorted((directory / "failures").glob("*.json"))
    failures = [read_stored(file) for file in files]
    assert failures and all(failure.name == file.stem for failure, file in zip(failures, files, strict=True))
    looks = Counter((f.kind, signature(f)) for f in failures)
    assert max(looks.values()) <= ALIKE_MAX, "near-duplicates are kept"
    assert sum(f.seen + f.alike for f in failures) == sum(len(line.get("sightings", ())) for line in _lines(directory))
    shutil.rmtree(directory / "failures")  # As if it had been killed between a line and its files.
    assert main(["replay", str(directory)]) == 1, "the ledger knows of them"
    shutil.rmtree(directory / "failures")
    code, out, err = _run("--budget", "4s", "--dir", str(directory), *STAGES, cwd=tmp_path)
    assert code == 1, out + err
    assert {file.name for file in files} <= {file.name for file in (directory / "failures").glob("*.json")}
    night = json.loads((directory / "summary.json").read_text(encoding="utf-8"))["nights"][1]
    # A tenth of a night is for stored failures: on one slow core nothing of four seconds.
    open_ = {*night["still_violated"], *night["unsure"]}
    assert {failure.name for failure in failures} <= open_ and not night["fixed"]
    assert night["still_violated"] or len(os.sched_getaffinity(0)) == 1
    first = [line["first"] for line in _lines(directory) if line["stream"] == "swarm"]
    assert len(first) == len(set(first)), "the second night goes on with fresh turns"
    capsys.readouterr()
    assert main(["replay", str(files[0])]) == 1
    assert capsys.readouterr().out.startswith("STILL VIOLATED: ")
    assert main(["replay", str(directory), "--sut", "reference"]) == 0
    assert "FIXED" in capsys.readouterr().out and files[0].exists(), "another system prunes nothing"


def test_a_failure_of_today_opens_and_one_of_a_newer_schema_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen = next((ROOT / "properties" / "chaos").glob("*.json"))
    stored = read_stored(frozen)
    assert stored.guarantee == "G9" and stored.sut == MUTANT
    assert main(["replay", str(frozen)]) == 1, "it breaks what it broke"
    capsys.readouterr()
    newer = tmp_path / frozen.name
    newer.write_text(json.dumps(json.loads(frozen.read_text(encoding="utf-8")) | {"schema": 2}), encoding="utf-8")
    assert main(["replay", str(newer)]) == 2
    assert "has schema 2, this version reads up to 1" in capsys.readouterr().err
    assert main(["replay", str(tmp_path)]) == 4
    assert capsys.readouterr().out.startswith("CANNOT RUN: ")
    assert newer.exists(), "what cannot be read is not pruned"


def test_a_night_keeps_its_budget(tmp_path: Path) -> None:
    began = time.monotonic()
    words = ("--budget", "1s", "--dir", "chaos", "--stages", "swarm", "--jobs", "1", "--json")
    process = _start(*words, cwd=tmp_path)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    night = json.loads(out)["nights"][0]
    assert night["state"] == "ended" and night["seconds"] <= 1 + 5 + 2, night["seconds"]
    assert time.monotonic() - began < 1 + 5 + 30
    assert not _marked(tmp_path / "chaos")
    assert (tmp_path / "chaos" / "summary.html").is_file()


def test_a_second_chaos_on_a_directory_is_refused_and_ctrl_c_ends_the_first_which_the_same_command_goes_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = _start("--budget", "60s", "--dir", "chaos", "--stages", "swarm", "--jobs", "1", cwd=tmp_path)
    _wait("no unit was done", lambda: _lines(tmp_path / "chaos"))
    assert main(["chaos", "--budget", "1s", "--dir", str(tmp_path / "chaos")]) == 2
    assert "is in use by another marker-sim" in capsys.readouterr().err
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, out + err
    assert "is paused" in out and "the same command continues it" in out
    assert not _marked(tmp_path / "chaos")
    _run("--budget", "2s", "--dir", "chaos", *STAGES, "--jobs", "1", cwd=tmp_path)
    kinds = [line["kind"] for line in read_lines(tmp_path / "chaos") if line["kind"] not in ("unit", "replayed")]
    assert kinds[:4] == ["chaos", "night", "pause", "end"] or kinds[:5] == ["chaos", "night", "pause", "resume", "end"]


@CI_ONLY
def test_a_worker_that_is_killed_loses_no_turn(tmp_path: Path) -> None:
    directory = tmp_path / "chaos"
    words = ("--budget", "60s", "--dir", str(directory), "--stages", "swarm", "--seed", "0", "--jobs", "1")
    process = _start(*words, cwd=tmp_path)
    _wait("no unit was done", partial(_has_more, directory, 1))
    (worker,) = _marked(directory)
    os.kill(worker, signal.SIGKILL)
    _wait("nothing is done by the worker in its place", partial(_has_more, directory, len(_lines(directory)) + 1))
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 130
    units = [line for line in _lines(directory) if line["stream"] == "swarm"]
    assert [line["first"] for line in units] == [12 * number for number in range(len(units))]
    assert not any(line["trouble"] for line in units)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--budget", "soon"), "--budget was given 'soon'"),
        (("--jobs", "0"), "--jobs was given '0'; write a whole number from 1"),
        (("--stages", "swarm,moon"), "--stages was given 'swarm,moon'; write some of swarm, exhaustive, real, spark"),
        (("--stages", "swarm:-1"), "--stages was given 'swarm:-1'"),
        (("--seed", "x"), "--seed was given 'x'"),
        (("--sut", "http"), "--sut http needs the command that starts the server; write --start"),
        (("--sut", "mutant:none-such"), "there is no mutant 'none-such'"),
        (("--dir", "file"), "file cannot be a chaos directory"),
    ],
)
def test_wrong_input_gets_one_sentence(
    words: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    budget = () if "--budget" in words else ("--budget", "1s")
    assert main(["chaos", *budget, *words]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_a_directory_belongs_to_one_system_and_one_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with writing(tmp_path) as ledger:
        ledger.append("chaos", schema=1, sut="reference", profile="reference", seed=7)
    assert main(["chaos", "--budget", "1s", "--dir", str(tmp_path), "--sut", MUTANT]) == 2
    assert "belongs to --sut reference; give another --dir" in capsys.readouterr().err
    assert main(["chaos", "--budget", "1s", "--dir", str(tmp_path), "--seed", "8"]) == 2
    assert "began with --seed 7 and goes on from there" in capsys.readouterr().err
