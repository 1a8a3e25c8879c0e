"""Systems that are not deterministic, end their process or cannot be loaded, and edited ledgers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from marker_sim.campaign.nightly.units import swarm
from marker_sim.cli import main
from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.loading import load_system
from marker_sim.plan import Plan
from properties.faces.campaign import (
    NAME,
    Failures,
    NightlyTask,
    Totals,
    gaps,
    read_lines,
    read_record,
    run_campaign,
    stored,
    writing,
)
from properties.faces.judges import load_profile
from properties.faces.outcome import FIXED, NOT_REPRODUCED, VIOLATED, FailureRecord
from properties.faces.search import shrink
from properties.faces.targets import CampaignRequest, parse_target
from properties.volume import CI_ONLY, volume

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120
MODULE = """
import os
from marker_sim.markers.direct import direct_markers
from marker_sim.markers.store import Created

ASKED = [0]

class Forgetful:
    '''Forgets one marker in ninety of all that this process was ever asked for.'''

    def __init__(self, context):
        self._store = direct_markers(context)

    def create(self, name, request=""):
        ASKED[0] += 1
        return Created.CREATED if ASKED[0] % 90 == 0 else self._store.create(name)

    def __getattr__(self, name):
        return getattr(self._store, name)

class Ends(Forgetful):
    def create(self, name, request=""):
        os._exit(0)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module with both systems, which is the working directory's."""
    (tmp_path / "unsteady.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "unsteady"
    sys.modules.pop("unsteady", None)


def test_what_a_system_that_is_not_deterministic_broke_is_stored_and_no_single_run_calls_it_fixed(module: str) -> None:
    sut = f"{module}:Forgetful"
    done = swarm(NightlyTask(stream="swarm", first=1, count=12, sut=sut, profile="python", until=0.0))
    assert done["runs"] and done["differences"] and not done["trouble"]
    seen = [read_record(raw) for raw in done["sightings"]]
    assert "G1" in {record.guarantee for record in seen}
    assert not any(record.deterministic for record in seen)
    failures = Failures()
    where: dict[str, Any] = {"sut": sut, "profile": "python", "kit_version": "0", "night": 1, "at": "now"}
    for record in seen:
        failures.see(record, **where)
    said = {stored(_again(failure, sut))["status"] for failure in failures.open}
    assert NOT_REPRODUCED in said and said <= {NOT_REPRODUCED, VIOLATED}


def _again(failure: FailureRecord, sut: str) -> NightlyTask:
    return NightlyTask(stream="stored", first=0, count=0, sut=sut, profile="python", until=0.0, failure=failure)


def test_verify_shows_what_it_saw_once_when_the_shrunk_plan_does_not_show_it_again(module: str) -> None:
    request = CampaignRequest(
        target=parse_target(f"{module}:Forgetful"),
        modes=("direct",),
        storages=("s3", "local"),
        budget_s=20.0,
        seed=1,
        guarantees=frozenset({"G1"}),
        profile=load_profile("python"),
        runs=60,
        canaries=False,
    )
    campaign = run_campaign(request, lambda _: None)
    assert {failure.guarantee for failure in campaign.failures} == {"G1"} and campaign.statistics.differences


@CI_ONLY
def test_a_system_that_ends_its_process_costs_the_night_its_units_and_not_the_night(module: str) -> None:
    words = [
        "chaos",
        "--budget",
        f"{volume(8, quick=6)}s",
        "--dir",
        "chaos",
        "--sut",
        f"{module}:Ends",
        "--stages",
        "exhaustive,swarm",
    ]
    command = [sys.executable, "-m", "marker_sim", *words, "--jobs", "1", "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)
    assert done.returncode == 4, done.stderr
    trouble = json.loads(done.stdout)["nights"][0]["trouble"]
    assert trouble[0].startswith("space 0: the worker ended with exit code 0")
    assert any(said.startswith("swarm ") for said in trouble)


@pytest.mark.parametrize(
    "text", ["import sys; sys.exit(0)", "raise ValueError('boom')", "def f(:", "import nothing_such"]
)
def test_a_module_that_cannot_be_loaded_is_wrong_usage_whatever_it_raises(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unloadable.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="module 'unloadable' cannot be imported"):
        load_system("unloadable:f")
    assert main(["chaos", "--budget", "1s", "--sut", "unloadable:f"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_smaller_plan_that_hangs_leaves_the_failure_as_it_is() -> None:
    def fails(plan: Plan) -> bool:
        if len(plan.faults) < 2:
            raise HarnessError("a simulated run did not give control back")
        return True

    kinds = (FaultKind.KILL, FaultKind.PAUSE, FaultKind.ORPHANED)
    plan = Plan(faults=tuple(Fault.of(kind, "server", Step(3)) for kind in kinds))
    assert len(shrink(plan, fails, budget_s=2.0).faults) == 2


def _record() -> FailureRecord:
    return FailureRecord(
        guarantee="G9",
        mode="timeline",
        storage="s3",
        world="real",
        seed=3,
        message="it broke",
        text="it broke",
        evidence=(1,),
        plan=Plan(seed=3).to_dict(),
        shrunk=True,
    )


def _unit(number: int, **more: Any) -> dict[str, Any]:
    place = {"stream": "swarm", "first": number, "count": 1, "seconds": 0.1, "clock_s": 0.5}
    return {"kind": "unit", "at": "now", "night": 1, **place, **more}


def _night(number: int) -> dict[str, Any]:
    words = {"night": number, "clock_s": 0.0, "budget_s": 1.0, "stages": {}, "missing": [], "kit_version": "0"}
    return {"kind": "night", "at": "now", **words}


def test_a_night_that_could_not_say_whether_an_open_failure_is_fixed_does_not_hold() -> None:
    begin = {"kind": "chaos", "at": "now", "schema": 1, "sut": "reference", "profile": "reference", "seed": 0}
    totals = Totals().add_all([begin, _night(1), _unit(0, sightings=[asdict(_record())]), _night(2)])
    (failure,) = totals.failures.open
    words = {"kind": "replayed", "at": "now", "night": 2, "clock_s": 0.1, "name": failure.name}
    for status, sure in ((None, False), (NOT_REPRODUCED, False), (FIXED, True)):
        if status is not None:
            totals.add(words | {"status": status})
        assert any(failure.name in gap for gap in gaps(totals.night)) is not sure
    totals.add(_unit(1, sightings=[asdict(_record())]))
    (back,) = totals.failures.open
    assert back.status == VIOLATED, "what came back is not called fixed"


@pytest.mark.parametrize("line", [_unit(0), {"kind": "unit", "at": "now"}, {"kind": "replayed", "at": "now"}])
def test_a_ledger_whose_lines_contradict_each_other_is_refused_in_a_sentence(
    line: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with writing(tmp_path) as ledger:
        ledger.append("chaos", schema=1, sut="reference", profile="reference", seed=0)
        for each in (_night(1), _unit(0), line):
            ledger.append(**{key: value for key, value in each.items() if key != "at"})
    assert main(["chaos", "--budget", "1s", "--dir", str(tmp_path)]) == 4
    said = capsys.readouterr().err
    assert "line 4 of the ledger does not fit those before it" in said and said.count("\n") == 1
    assert len(list(read_lines(tmp_path))) == 4


@pytest.mark.parametrize("name", ["ledger", "failures", "logs"])
def test_what_stands_in_the_way_of_a_chaos_directory_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "ledger":
        (tmp_path / NAME).mkdir()
    else:
        with writing(tmp_path) as ledger:
            ledger.append("chaos", schema=1, sut="reference", profile="reference", seed=0)
        (tmp_path / name).write_text("x", encoding="utf-8")
    assert main(["chaos", "--budget", "1s", "--dir", str(tmp_path)]) == 4
    said = capsys.readouterr().err
    assert name in said and said.count("\n") == 1 and "unexpected" not in said
