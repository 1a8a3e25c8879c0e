"""A plan made small where runs come out differently: what counts is how often the smaller one fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest

from marker_sim.campaign.pieces import SearchState
from marker_sim.campaign.played_shrinking import PlayedShrinker, broken_in
from marker_sim.history import History
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.plan import Op, Plan
from marker_sim.system import reference
from marker_sim.worlds.simulated.cluster import run

PROFILE = load_profile("reference")
MUTANT = load_mutant(find_mutant("leading-slash"))
PLAN = Plan(
    mode="timeline",
    storage="local",
    num_threads=1,
    ops=tuple(
        Op(actor="executor-0", kind=kind, name="a.marker.CREATE" if kind == "create" else "")
        for kind in ("create", "list", "exists", "list", "list")
    ),
)


class Server:
    """Breaks its promise whenever it is asked for enough, and in some of the first runs of each smaller plan."""

    def __init__(self, enough: int, lucky: int) -> None:
        self._enough = enough
        self._lucky = lucky
        self._runs: Counter[Plan] = Counter()
        self._lock = threading.Lock()

    def again(self, plan: Plan, until: float, fresh: bool, probing: bool) -> History:
        with self._lock:
            self._runs[plan] += 1
            broken = plan.entries >= self._enough or self._runs[plan] <= self._lucky
        return run(plan, MUTANT if broken else reference())


@pytest.mark.parametrize(("lucky", "entries"), [(0, 4), (2, 4), (40, 1)])
def test_the_result_is_the_smallest_plan_that_fails_nearly_always(lucky: int, entries: int) -> None:
    found = broken_in(run(PLAN, MUTANT), PLAN, PROFILE)
    kind, broken = next((kind, each) for kind, each in found.items() if kind[0] == "G4")
    made = PlayedShrinker(Server(4, lucky).again, PROFILE).shrink(kind, [broken], time.monotonic() + 60)
    assert (made.plan.entries, made.failed, made.runs) == (entries, 10, 10)


def test_a_small_plan_gives_way_to_a_smaller_one_alone() -> None:
    kind, broken = next(iter(broken_in(run(PLAN, MUTANT), PLAN, PROFILE).items()))
    shorter = broken._replace(plan=replace(PLAN, ops=PLAN.ops[:2]))
    state = SearchState(request=cast(Any, None), progress=print)
    for each, kept in ((broken, broken), (shorter, shorter), (broken, shorter)):
        state.keep(kind, each)
        assert state.small[kind] is kept
