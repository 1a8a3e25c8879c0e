"""`shrink`: a stored failure becomes smaller in its place and is kept as it was; what cannot be is one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.cli import main
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.history import read_jsonl
from marker_sim.plan import Op, Plan, read_plan, write_plan
from properties.faces.campaign import ShrinkingSoFar
from properties.volume import CI_ONLY

ROOT = Path(__file__).parents[2]
SUT = "mutant:exists-from-memory"
LARGE = Plan(
    mode="timeline",
    storage="s3",
    num_threads=2,
    ops=(
        Op(actor="driver", kind="create", name="a.marker.CREATE"),
        *(Op(actor=f"executor-{n}", kind="create", name=f"p/{n}.marker.MERGE", after_ms=n) for n in range(9)),
        Op(actor="driver", kind="delete", server=1),
        Op(actor="driver", kind="create", name="a.marker.CREATE"),
    ),
    faults=(Fault.of(FaultKind.SECOND_SERVER, "server", Step(1), for_ms=300),),
)


def report(directory: Path, plan: Plan, sut: str = SUT, cause: str = "another-server", **more: Any) -> Path:
    """A report with one failure whose plan was not shrunk for lack of time."""
    failure = {
        "guarantee": "G2", "mode": plan.mode, "storage": plan.storage, "cause": cause, "message": "m", "evidence": [],
        "confirmed": "", "entries_before": 0, "large": "there was no time left", "plan": "plan.json",
        "replay": "marker-sim replay r/plan.json", "story": 0,
    }  # fmt: skip
    directory.mkdir()
    verdict = {"schema": 1, "verdict": "violated", "sut": sut, "guarantees": [], "failures": [failure], **more}
    (directory / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    write_plan(plan, directory / "plan.json")
    return directory


@pytest.mark.parametrize("named", ["r/plan.json", pytest.param("r", marks=CI_ONLY)])
def test_a_failure_becomes_smaller_in_its_place_and_the_earlier_one_is_kept(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = report(tmp_path / "r", LARGE)
    assert main(["shrink", str(tmp_path / named), "--budget", "60s"]) == 1
    out = capsys.readouterr().out
    small = read_plan(home / "plan.json")
    assert small.entries <= 4 < LARGE.entries
    assert out.startswith("SMALLER: G2 ") and f"{LARGE.entries} entries before, {small.entries} now" in out
    (aside,) = (home / "earlier").iterdir()
    assert read_plan(aside / "plan.json") == LARGE and str(aside) in out
    (failure,) = json.loads((home / "verdict.json").read_bytes())["failures"]
    assert failure["entries_before"] == LARGE.entries and failure["large"] == ""
    history = read_jsonl(home / "history.jsonl")
    assert history.header.plan == small.to_dict() and (home / "history.parquet").is_file()
    assert history.events[failure["evidence"][-1]].path in failure["message"]
    assert main(["replay", str(home)]) == 1
    assert main(["shrink", str(home), "--budget", "60s"]) == 1
    assert "nothing was left to try when it was made small" in capsys.readouterr().out
    assert len([*(home / "earlier").iterdir()]) == 1


def test_an_interrupted_search_keeps_what_it_found_and_the_next_one_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, tried = report(tmp_path / "r", LARGE), ShrinkingSoFar.__call__

    def interrupt(self: ShrinkingSoFar, plan: Plan, failed: bool) -> None:
        tried(self, plan, failed)
        if failed:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("marker_sim.cli.output.QUIET_EVERY_S", 0.0)
        patched.setattr(ShrinkingSoFar, "__call__", interrupt)
        assert main(["shrink", str(home), "--budget", "60s"]) == 130
    out, err = capsys.readouterr()
    smaller = read_plan(home / "plan.json").entries
    assert out.startswith("SMALLER: G2 ") and smaller < LARGE.entries
    assert f"{LARGE.entries} entries before, {smaller} now" in err and "plans tried" in err
    assert main(["shrink", str(home), "--budget", "60s"]) == 1
    assert f"{smaller} entries before" in capsys.readouterr().out and read_plan(home / "plan.json").entries <= 4


def test_a_failure_that_is_not_seen_again_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = report(tmp_path / "r", replace(LARGE, ops=LARGE.ops[:3]))
    assert main(["shrink", str(home)]) == 3
    assert capsys.readouterr().out.startswith("NOT REPRODUCED, 0 of 1: G2 ")
    assert read_plan(home / "plan.json").entries == 4 and not (home / "earlier").exists()


def test_what_cannot_be_made_smaller_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(LARGE, tmp_path / "alone.json")
    gone = report(tmp_path / "gone", LARGE, sut="nowhere_at_all:Markers")
    stored = ROOT / "docs" / "tutorial" / "code" / "glued.json"
    finding = ROOT / "scenarios" / "findings" / "stored" / "names-come-back-after-a-deletion.json"
    for path, said in (
        (tmp_path / "missing", "does not exist"),
        (tmp_path, "is not the report of a finished verify"),
        (tmp_path / "alone.json", "says which guarantee it breaks"),
        (stored, "is of `marker-sim chaos`"),
        (finding, "is no plan in a report of verify"),
        (gone, "cannot be imported"),
    ):
        assert main(["shrink", str(path)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and said in err
    assert main(["shrink", str(gone), "--budget", "soon"]) == 2
    assert "--budget was given 'soon'" in capsys.readouterr().err


def test_a_server_that_cannot_be_started_is_no_fault_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = {"start": "/nowhere/at-all --port {port}"}
    home = report(tmp_path / "r", replace(LARGE, storage="local"), sut="http", server=server)
    assert main(["shrink", str(home)]) in (2, 4)
    assert "/nowhere/at-all" in "".join(capsys.readouterr())
