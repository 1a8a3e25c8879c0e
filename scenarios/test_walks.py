"""Walks of real servers: what is numbered is met again, and a defect at one call is found at that call."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.campaign.played_shrinking import broken_in
from marker_sim.errors import HarnessError
from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.faults.sites import REPLY
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.result import KEPT, NOT_MET, WalkedCall
from marker_sim.plan import Op, Plan
from marker_sim.search.walks import BASES, STARTING, Walk
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.http_plans import ServerPlans
from marker_sim.targets.target import CampaignRequest, RealRuns, ServerOptions
from marker_sim.worlds.http.fault_injector import ServerFaultInjector
from marker_sim.worlds.http.servers import Fleet
from properties.volume import volume
from scenarios.correct_servers.starts import HERE, start
from scenarios.test_plans_on_servers import real_runs

RUN_S = 60.0
PROFILE = load_profile("http")
POINTS = volume(40, quick=20)


def walked(
    tmp_path: Path, broken: str = "none", storage: str = "local", points: int = POINTS
) -> tuple[WalkedCall, ...]:
    """The calls of a server after so many points of its walk."""
    walk = Walk(storage, 2, 25, 1)
    with real_runs(tmp_path, broken, storage) as opened:
        for _ in range(POINTS + 2):
            plan = walk.next()
            if plan is None:
                break
            played = opened.again(plan, time.monotonic() + RUN_S)
            kinds = broken_in(played.history, plan, PROFILE)
            walk.took(plan, played.calls, plan.faults[-1] in played.struck, {kind[0] for kind in kinds})  # type: ignore[attr-defined]
    return walk.rows()


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_a_correct_server_keeps_its_promises_at_every_point_and_most_points_are_met(
    tmp_path: Path, storage: str
) -> None:
    came = Counter(what for row in walked(tmp_path, storage=storage) for what in row.fates.values() if what)
    assert came.keys() <= {KEPT, NOT_MET} and came[KEPT] >= 0.8 * POINTS


def test_a_server_that_swallows_errors_is_found_at_the_calls_that_fail(tmp_path: Path) -> None:
    rows = walked(tmp_path, "swallows-failure")
    at = {(row.call.partition(" ")[0], fate) for row in rows for fate, what in row.fates.items() if what[:1] == "G"}
    assert at and {fate for _, fate in at} <= {"error", "4 errors", "disk full", "disk full within", "done, error"}


def creates(*faults: Fault) -> Plan:
    ops = tuple(Op(actor="executor-0", kind="create", name=f"p/a{number}.marker.CREATE") for number in range(4))
    return Plan(mode="timeline", storage="local", num_threads=1, interval_ms=25, ops=ops, faults=faults)


def test_what_hangs_is_awaited_for_g6_and_without_patience_the_run_ends_sooner_and_does_not_judge_it(
    tmp_path: Path,
) -> None:
    plan = creates(Fault.of(FaultKind.IO_ERROR, "server", Call(r"MARKERS\d+$", ("put",))))
    took, broken, hung = [], [], []
    with real_runs(tmp_path, "stays-busy") as opened:
        assert isinstance(opened, ServerPlans)
        for patient in (True, False):
            began = time.monotonic()
            run = opened.again(plan, began + RUN_S, patient=patient)
            took.append(time.monotonic() - began)
            hung.append(run.hung)
            broken.append({kind.guarantee for kind in broken_in(run.history, plan, PROFILE)})
    assert "G6" in broken[0] and "G6" not in broken[1] and hung == [False, True]
    assert took[1] < took[0]


def test_a_server_that_was_started_after_the_last_fault_serves_the_next_run(tmp_path: Path) -> None:
    plan = creates(Fault.of(FaultKind.KILL, "server", Site(REPLY, 1)))
    with real_runs(tmp_path) as opened:
        runs = [opened.again(plan, time.monotonic() + RUN_S).history for _ in range(3)]
    lives = [[event.process for event in run.events if event.operation == "started"] for run in runs]
    assert all(len(each) == 2 for each in lives)
    assert [each[-1] for each in lives[:-1]] == [each[0] for each in lives[1:]]


def test_the_server_after_a_death_begins_to_start_before_it_and_none_is_started_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def noted(word: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            order.append(word)
            return method(*given)

        return call

    monkeypatch.setattr(Fleet, "_launch", noted("start", Fleet._launch))
    monkeypatch.setattr(ServerFaultInjector, "shoot", noted("death", ServerFaultInjector.shoot))
    plan = creates(Fault.of(FaultKind.KILL, "server", Site(REPLY, 1)))
    with real_runs(tmp_path, ahead=True) as opened:
        runs = [opened.again(plan, time.monotonic() + RUN_S) for _ in range(2)]
    assert order == ["start", "start", "death", "start", "death"]
    assert all(run.calls and not broken_in(run.history, plan, PROFILE) for run in runs)  # type: ignore[attr-defined]


def test_a_server_that_calls_storage_before_it_is_needed_may_not_be_started_ahead(tmp_path: Path) -> None:
    command = f"{RECOVERING} {{port}} {{storage}}"
    plan = creates(Fault.of(FaultKind.KILL, "server", Site(REPLY, 2)))
    first, *others = plan.ops
    plan = replace(plan, ops=(first, replace(first, name="p/late.marker.CREATE", after_ms=1_000), *others))
    with (
        started(tmp_path, command, "echo {dir}", ahead=True) as opened,  # Two servers write over each other's file.
        pytest.raises(HarnessError, match="called storage before it was needed"),
    ):
        opened.again(plan, time.monotonic() + RUN_S)


RECOVERING = shlex.join([sys.executable, "-S", str(HERE.parent / "servers" / "recovering_server.py")])
STARTS, WORKLOADS = volume(40, quick=6), 2


@contextmanager
def started(tmp_path: Path, command: str, reader: str, ahead: bool = False) -> Iterator[RealRuns]:
    request = CampaignRequest(
        target=HttpTarget(ahead=ahead), modes=("timeline",), storages=("local",), seed=1, profile=PROFILE,
        budget_s=600.0, server=ServerOptions(start=command, reader=reader), report=tmp_path,
    )  # fmt: skip
    with request.target.real_runs(request, lambda line: None) as opened:
        yield opened


def played(opened: RealRuns, points: int, chosen: Callable[[Plan], bool], seed: int = 1) -> tuple[Walk, Counter[str]]:
    """The walk after so many of the chosen points, and what was counted in their runs."""
    walk, counts = Walk("local", 2, 25, seed), Counter[str]()
    bases = WORKLOADS
    while points and (plan := walk.next()) is not None:
        if not bases and not chosen(plan):
            walk.took(plan, (), False, ())
            continue
        run = opened.again(plan, time.monotonic() + RUN_S)
        counts.update(run.counts)
        kinds = broken_in(run.history, plan, PROFILE)
        struck = plan.faults[-1] in run.struck  # type: ignore[attr-defined]
        walk.took(plan, run.calls, struck, {kind.guarantee for kind in kinds})  # type: ignore[attr-defined]
        bases, points = max(0, bases - 1), points if bases else points - 1
    return walk, counts


def at_a_start(plan: Plan) -> bool:
    return plan.faults[-1].trigger.starting  # type: ignore[union-attr]


def dies_at_a_start(plan: Plan) -> bool:
    return at_a_start(plan) and plan.faults[-1].kind.row.kills


def outside_of_tables(plan: Plan) -> bool:
    return plan.faults[-1].trigger.pattern.startswith("^/")  # type: ignore[union-attr]


def recovered(
    tmp_path: Path, broken: str = "", chosen: Callable[[Plan], bool] = at_a_start
) -> tuple[list[tuple[str, str, str]], Counter[str]]:
    """Call, fate and what came of each point at a start, of a server that puts its journal into its state then."""
    command = f"{RECOVERING} {{port}} {{storage}}" + (f" --broken {broken}" if broken else "")
    with started(tmp_path, command, f"{RECOVERING} --names {{dir}}") as opened:
        walk, counts = played(opened, STARTS, chosen)
    rows = [row for row in walk.rows() if row.base == BASES[STARTING]]
    came = [(row.call, fate, what) for row in rows for fate, what in row.fates.items() if what not in ("", NOT_MET)]
    assert len(came) >= 0.5 * (counts["in plans: plan"] - WORKLOADS)
    return came, counts


def test_a_server_that_ends_when_storage_fails_at_a_start_and_loses_nothing_keeps_its_promises(tmp_path: Path) -> None:
    came, counts = recovered(tmp_path)
    assert {what for _, _, what in came} == {KEPT}
    assert counts["server not up again until faults were over"], "no error at a start ended this server"


def test_a_recovery_that_loses_something_when_it_dies_itself_is_found(tmp_path: Path) -> None:
    came, _ = recovered(tmp_path, "empties-first", dies_at_a_start)
    assert any("G3" in what.split() for _, _, what in came)


def test_a_server_that_never_comes_up_after_a_death_in_its_recovery_is_violated(tmp_path: Path) -> None:
    came, _ = recovered(tmp_path, "needs-a-hand")
    assert "G6" in {what for _, _, what in came} <= {KEPT, "G6"}


@pytest.mark.parametrize("name", ["python-one-log", "python-sqlite"])
def test_files_of_a_private_format_outside_of_tables_are_walked(tmp_path: Path, name: str) -> None:
    with started(tmp_path, *start(name, tmp_path)) as opened:
        walk, _ = played(opened, volume(40, quick=4), outside_of_tables)
    rows = walk.rows()
    assert {row.call.partition(" ")[2] for row in rows} & {"/markers.log", "/markers.sqlite-wal"}
    assert {what for row in rows for what in row.fates.values()} - {"", NOT_MET} == {KEPT}
