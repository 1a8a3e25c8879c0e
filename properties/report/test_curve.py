"""The probability of a violation along its run: branches follow the run exactly, the curve rises where it should."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from marker_sim.cli import main
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.plan import Op, Plan, Task, Write, write_plan
from properties.faces.campaign import curve_of, execute, failure_of, with_curve
from properties.faces.judges import load_profile
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.outcome import CurvePoint, Failure, Kind, LikelihoodCurve, likelihood_curve
from properties.faces.report import lane_picture, render_curves
from properties.faces.worlds import Branch
from properties.volume import CI_ONLY

PROFILE = load_profile("reference")
MUTANT = "exists-from-memory"
SYSTEM = load_mutant(find_mutant(MUTANT))
# It breaks G2 when a second server is there for the deletion, which this plan alone decides.
PLAN = Plan(
    storage="s3",
    num_threads=1,
    ops=(
        Op(actor="driver", kind="create", name="a.marker.CREATE"),
        Op(actor="driver", kind="delete", server=1),
        Op(actor="driver", kind="create", name="a.marker.CREATE"),
    ),
    faults=(Fault.of(FaultKind.SECOND_SERVER, "server", Step(1), for_ms=156),),
)
STEPS = {"driver": 40, "server": 40, "second": 40}


@pytest.fixture(scope="module")
def failure() -> Failure:
    found = failure_of(Kind("G2", PLAN.mode, PLAN.storage, ""), PLAN, SYSTEM, PROFILE)
    assert found is not None
    return with_curve(found, SYSTEM, PROFILE)


def test_a_branch_follows_the_run_up_to_its_event_and_differs_after_it() -> None:
    plan = replace(PLAN, jitter=7)
    whole, _ = execute(plan, SYSTEM)
    total = len(whole.events)
    others = []
    for stays in range(1, total + 1):
        history, _ = execute(plan, SYSTEM, Branch(stays, 3, STEPS))
        assert history.events[:stays] == whole.events[:stays]
        others.append(history.events != whole.events)
    assert all(others[: total // 4]) and not others[-1]


def test_a_branch_is_a_function_of_its_seed() -> None:
    one, same, other = (execute(PLAN, SYSTEM, Branch(4, seed, STEPS))[0].events for seed in (1, 1, 2))
    assert one == same != other


def test_only_faults_that_did_not_strike_are_moved() -> None:
    for stays, drawn in ((2, 8), (12, 1)):
        starts = set()
        for seed in range(1, 16):
            events = execute(PLAN, SYSTEM, Branch(stays, seed, STEPS))[0].events
            starts.add(next((e.time_ns for e in events if e.operation == "second-server"), None))
        assert len(starts) >= drawn and (drawn > 1 or len(starts) == 1)


@CI_ONLY
def test_the_curve_rises_when_the_second_server_starts_and_is_the_same_again(failure: Failure) -> None:
    curve = failure.curve
    assert curve is not None and curve == curve_of(failure, SYSTEM, PROFILE)
    began = next(e.index for e in failure.history.events if e.operation == "second-server")
    assert curve.event in (began - 1, began) and curve.before.share <= 0.4 and curve.points[-1].share == 1
    assert curve.sentence.startswith(f"P(G2 violated) rises from {curve.before.share:.2g} to ")
    assert f"at event {curve.event}: [{curve.event}] " in curve.sentence


@pytest.mark.parametrize(
    ("name", "guarantee", "writes", "fault", "moment"),
    [
        (
            "instant-removed-first",  # Decided by the driver's death between two steps of its rollback.
            "G16",
            (Write(tasks=(Task(group="f0"),), abandon=True), Write(tasks=(Task(group="f1"),))),
            Fault.of(FaultKind.KILL, "driver", Step(12)),
            "driver#1 fault kill",
        ),
        pytest.param(
            "entry-written-in-place",  # Decided when the entry is there and empty: what follows is torn.
            "G14",
            tuple(Write(tasks=(Task(group=f"f{number}"),)) for number in range(3)),
            Fault.of(FaultKind.TORN_WRITE, "driver", Step(9)),
            "driver#1 effect overwrite-begin t/.hoodie/19700101000000000.commit",
            marks=CI_ONLY,
        ),
    ],
    ids=["kill", "torn-write"],
)
def test_a_planted_defect_is_decided_by_the_event_that_is_known_to_decide_it(
    name: str, guarantee: str, writes: tuple[Write, ...], fault: Fault, moment: str
) -> None:
    plan = Plan(mode="direct", storage="local", writes=writes, faults=(fault,))
    system = load_mutant(find_mutant(name))
    found = failure_of(Kind(guarantee, plan.mode, plan.storage, ""), plan, system, PROFILE)
    assert found is not None
    curve = curve_of(found, system, PROFILE)
    assert curve is not None and moment in curve.moment
    assert curve.before.share <= 0.4 and curve.after.share == 1 and " rises from " in curve.sentence


def test_without_anything_to_decide_it_is_likely_from_the_beginning() -> None:
    system = load_mutant(find_mutant("leading-slash"))
    plan = replace(PLAN, ops=PLAN.ops[:1], faults=())
    found = next(
        each
        for guarantee in ("G2", "G3", "G4", "G11")
        if (each := failure_of(Kind(guarantee, plan.mode, plan.storage, ""), plan, system, PROFILE)) is not None
    )
    curve = curve_of(found, system, PROFILE)
    assert curve is not None and {point.share for point in curve.points} == {1.0}
    assert "is 1 from the first event on" in curve.sentence


def _measured(share: Callable[[int], float], total: int, asked: list[int]) -> LikelihoodCurve:
    events = tuple(e for e in execute(PLAN, SYSTEM)[0].events[:1] for _ in range(total))

    def measure(stays: int) -> CurvePoint:
        asked.append(stays)
        return CurvePoint(stays, round(20 * share(stays)), 20)

    return likelihood_curve("G1", 0, events, total, 20, measure)


def test_the_event_of_a_rise_is_found_among_very_many_with_few_points() -> None:
    asked: list[int] = []
    curve = _measured(lambda stays: 1.0 if stays > 4_217 else 0.05, 10_000, asked)
    assert curve.event == 4_217 and len(asked) < 32 and len(set(asked)) == len(asked)
    assert "rises from 0.05 to 1 at event 4217: " in curve.sentence
    slow = _measured(lambda stays: stays / 400, 400, [])
    assert "rises little by little from 0 to 1; most from " in slow.sentence


def test_the_picture_has_lanes_evidence_and_the_curve_within_its_view(failure: Failure) -> None:
    picture = lane_picture(failure.history, failure.evidence, failure.curve)
    assert len([bar for bar in picture.bars if bar.kind == "proof"]) == len(failure.evidence)
    assert any(bar.kind == "fault" and "second-server" in bar.says for bar in picture.bars)
    for bar in picture.bars:
        assert 0 <= bar.begin < bar.end <= picture.events and bar.process in picture.processes, bar
    page, plain = render_curves([failure]), lane_picture(failure.history, failure.evidence)
    assert plain.curve is None and plain.bars == picture.bars
    svg = ElementTree.fromstring(page[page.index("<svg") : page.index("</figure>")])
    (run,) = svg.findall("svg")
    assert len(run.findall("rect")) + len(run.findall("path")) == len(picture.bars) + 1
    assert len(run.findall("polyline")) == 1 and f"M{picture.curve and picture.curve.after.events} 8V" in page


def test_replay_prints_and_writes_the_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(PLAN, tmp_path / "plan.json")
    words = ["replay", str(tmp_path / "plan.json"), "--sut", f"mutant:{MUTANT}", "--curve"]
    for name in ("curve.json", "curve.html"):
        assert main([*words, str(tmp_path / name)]) == 1
        out = capsys.readouterr().out
        assert "P(G2 violated) rises from " in out and out.endswith(f"{tmp_path / name}\n")
    (curve,) = json.loads((tmp_path / "curve.json").read_bytes())
    assert curve["guarantee"] == "G2" and curve["sentence"] in out
    assert [n for n, _, _ in curve["points"]] == sorted({n for n, _, _ in curve["points"]})
    assert curve["rise"]["from"] < curve["rise"]["to"]
    assert curve["sentence"] in (tmp_path / "curve.html").read_text(encoding="utf-8")
    for refused in ([*words, str(tmp_path / "curve.png")], [*words[:2], "curve.json"], [*words, "--script"]):
        assert main(refused) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "curve.png").exists()
