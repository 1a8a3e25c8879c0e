"""Walks of real servers: what is numbered is met again, and a defect at one call is found at that call."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from marker_sim.campaign.played_shrinking import broken_in
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.result import KEPT, NOT_MET, WalkedCall
from marker_sim.search.walks import Walk
from properties.volume import volume
from scenarios.test_plans_on_servers import real_runs

RUN_S = 60.0
PROFILE = load_profile("http")
POINTS = volume(40, quick=12)


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
