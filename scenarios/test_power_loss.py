"""Servers that lose their power: one that syncs all that it answers holds, one that omits a sync does not."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.faults import Fault, FaultKind, Site
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import Plan
from properties.faces.campaign import broken_in
from properties.faces.faults import REPLY
from properties.faces.judges import load_profile
from properties.faces.outcome import POWER_LOST
from properties.faces.search import KEEPS, workload
from properties.faces.targets import CampaignRequest, HttpTarget, RealRuns, ServerOptions, ServerPlans
from properties.faces.worlds import OF_PLANS, POWER
from properties.volume import CI_ONLY
from scenarios.correct_servers.starts import start
from scenarios.test_http import campaign

PROMISES, PROMISES_NOT = load_profile("http-power-loss"), load_profile("http")
SERVE = (
    f"{shlex.quote(sys.executable)} -m marker_sim serve --base {{storage}} --port {{port}} --batch-threads {{threads}}"
    " --batch-interval-ms {interval_ms}"
)
NOTHING, NAMES, LENGTHS = KEEPS
RUN_S = 60.0


def synced(tmp_path: Path, omit: str = "") -> str:
    return start("python-synced", tmp_path)[0] + (f" --omit {omit}" if omit else "")


def asked(tmp_path: Path, command: str, runs: int | None = None) -> CampaignRequest:
    return CampaignRequest(
        target=HttpTarget(), modes=("timeline",), storages=("local",), seed=1, profile=PROMISES, runs=runs,
        budget_s=240.0, shrinking=False, server=ServerOptions(start=command), report=tmp_path / "report",
    )  # fmt: skip


@contextmanager
def opened(request: CampaignRequest) -> Iterator[RealRuns]:
    with request.target.real_runs(request, lambda line: None) as runs:
        yield runs


def plan_of(keeps: dict[str, bool], n: int = 7) -> Plan:
    """Power is lost once, when clients have so many answers."""
    plan = workload("local", 2, 25, 1)
    lost = Fault.of(FaultKind.POWER_LOST, "server", Site(REPLY, n), **keeps)
    return replace(plan, faults=(lost,))


def histories(request: CampaignRequest) -> list[History]:
    """A run for each way in which power is lost."""
    with opened(request) as runs:
        return [runs.again(plan_of(keeps), time.monotonic() + RUN_S).history for keeps in KEEPS]


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[History]]:
    """The runs of the synced server, by the sync that it omits."""
    return {
        omit: histories(asked(folder, synced(folder, omit)))
        for omit in ("", "files", "directories")
        for folder in [tmp_path_factory.mktemp("synced")]
    }


@pytest.mark.parametrize(
    ("omit", "breaks"),
    [("", (False, False, False)), ("files", (True, True, True)), ("directories", (True, False, False))],
)
def test_each_sync_that_is_omitted_loses_answered_names_in_the_ways_that_need_it(
    lost: dict[str, list[History]], omit: str, breaks: tuple[bool, ...]
) -> None:
    for history, expected in zip(lost[omit], breaks, strict=True):
        broken = {kind[0] for kind in broken_in(history, plan_of(NOTHING), PROMISES)}
        assert bool(broken & {"G1", "G3", "G4"}) == expected and bool(broken) == expected
        assert broken_in(history, plan_of(NOTHING), PROMISES_NOT) == {}, "nobody is accused who did not promise it"
        under = {breach.under for finding in judge(history) for breach in finding.breaches}
        assert under == ({"power-loss"} if expected else set())


@pytest.mark.parametrize("fsync", [True, pytest.param(False, marks=CI_ONLY)])
def test_the_reference_holds_with_its_syncs_and_breaks_without(tmp_path: Path, fsync: bool) -> None:
    for history in histories(asked(tmp_path, SERVE + " --fsync" * fsync)):
        assert bool(broken_in(history, plan_of(NOTHING), PROMISES)) != fsync


def test_what_is_taken_back_is_in_the_history_as_effects_of_the_power(lost: dict[str, list[History]]) -> None:
    history = lost["directories"][0]
    faults = [(event.process, event.operation) for event in history.events if event.kind == "fault"]
    assert faults[:3] == [("server-1", "power-loss"), ("server-1", "kill"), ("server-2", "restart")]
    begin, end = (
        next(event.index for event in history.events if event.kind == "fault" and event.operation == word)
        for word in ("kill", "restart")
    )
    effects = [event for event in history.events[begin:end] if event.kind == "effect"]
    assert {(event.process, event.role) for event in effects} == {(POWER, "kit")}
    assert ("delete", "MARKERS0") in {(e.operation, (e.path or "").rpartition("/")[2]) for e in effects}


@pytest.mark.parametrize("omit", [pytest.param("", marks=CI_ONLY), pytest.param("files", marks=CI_ONLY), "directories"])
def test_a_campaign_finds_it(tmp_path: Path, omit: str) -> None:
    done = campaign(asked(tmp_path, synced(tmp_path, omit), runs=2))
    assert not done.trouble
    assert {failure.guarantee for failure in done.failures} >= ({"G3"} if omit else set())
    assert omit or done.failures == ()
    assert done.statistics.reached[OF_PLANS + POWER_LOST]


@pytest.mark.parametrize("promised", [True, False])
def test_power_is_lost_in_drawn_plans_where_that_is_promised(tmp_path: Path, promised: bool) -> None:
    request = replace(asked(tmp_path, SERVE, runs=30), profile=PROMISES if promised else PROMISES_NOT)
    with opened(request) as runs:
        assert isinstance(runs, ServerPlans)
        plans = [drawn.plan for _ in range(30) if (drawn := runs.draw({})) is not None]
        lost = [fault for plan in plans for fault in plan.faults if fault.kind is FaultKind.POWER_LOST]
        assert len(plans) == 30 and len(lost) >= 30 * promised and bool(lost) == promised
        assert (POWER_LOST in runs._decided_by()) == promised
        for plan in plans if promised else ():
            kinds = {fault.kind for fault in plan.faults}
            assert not {FaultKind.SECOND_SERVER, FaultKind.POWER_LOST} <= kinds
