"""Walks of real servers: what is numbered is met again, and a defect at one call is found at that call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.plan import Op, Plan
from properties.faces.campaign import broken_in
from properties.faces.faults import REPLY
from properties.faces.judges import load_profile
from properties.faces.outcome import KEPT, NOT_MET, WalkedCall
from properties.faces.search import Walk
from properties.faces.targets import ServerPlans
from properties.faces.worlds import Fleet, ServerFaultInjector
from properties.volume import CI_ONLY, volume
from scenarios.test_plans_on_servers import real_runs

RUN_S = 60.0
PROFILE = load_profile("http")
POINTS = volume(40, quick=20)


def walked(tmp_path: Path, broken: str = "none", storage: str = "local") -> tuple[WalkedCall, ...]:
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


@pytest.mark.parametrize("storage", ["local", pytest.param("s3", marks=CI_ONLY)])
def test_a_correct_server_keeps_its_promises_at_every_point_and_most_points_are_met(
    tmp_path: Path, storage: str
) -> None:
    came = Counter(what for row in walked(tmp_path, storage=storage) for what in row.fates.values() if what)
    assert came.keys() <= {KEPT, NOT_MET} and came[KEPT] >= 0.8 * POINTS


def test_a_campaign_begins_with_small_plans_and_runs_no_large_one_before_what_they_broke_was_made_small(
    tmp_path: Path,
) -> None:
    with real_runs(tmp_path) as opened:
        assert isinstance(opened, ServerPlans)
        first = [opened.draw({}) for _ in range(opened.lanes)]
        assert all(each is not None and each.walked and each.plan.entries < 20 for each in first)
        assert all(op.kind != "hostile" for each in first if each for op in each.plan.ops)
        opened._walked.spent_s = RUN_S  # The share that comes first is used up.
        opened.reserve(0.5)
        assert opened.draw({}) is opened.draw({}) is None, "something is to be made small"
        opened.reserve(0.2)
        later = opened.draw({})
        assert later is not None and not later.walked


@CI_ONLY
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
    monkeypatch.setattr(ServerFaultInjector, "kill", noted("death", ServerFaultInjector.kill))
    plan = creates(Fault.of(FaultKind.KILL, "server", Site(REPLY, 1)))
    with real_runs(tmp_path, ahead=True) as opened:
        runs = [opened.again(plan, time.monotonic() + RUN_S) for _ in range(2)]
    assert order == ["start", "start", "death", "start", "death"]
    assert all(run.calls and not broken_in(run.history, plan, PROFILE) for run in runs)  # type: ignore[attr-defined]
