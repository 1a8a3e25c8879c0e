"""A walk: which plans it makes of numbered calls, in which order, and what it says came of them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from marker_sim.faults import Call, FaultKind
from marker_sim.plan import Plan
from marker_sim.report.notes import walk_line
from marker_sim.search.walks import CHANGES, Walk, fates_of, numbered, shown
from marker_sim.worlds.http.world import within
from marker_sim.worlds.interceptor import StorageCall

DIRECTORY = "walk/.hoodie/.temp/1"


def called(operation: str, path: str, life: int = 1) -> StorageCall:
    return StorageCall(f"server-{life}", "timeline-server", operation, f"{DIRECTORY}/{path}" if path else DIRECTORY)


WHOLE = (
    called("mkdir", ""),
    called("open", ".MARKERS0.tmp-81f3a2"),
    called("write", ".MARKERS0.tmp-81f3a2"),
    called("close", ".MARKERS0.tmp-81f3a2"),
    called("rename", "MARKERS0"),
    called("get", "MARKERS0"),
    called("rename", "MARKERS1"),
)
AFTER = (*WHOLE[:4], *(call._replace(process="server-2") for call in (WHOLE[5], WHOLE[6])))


def walked(storage: str = "local", seed: int = 1) -> Walk:
    """A walk whose two workloads were numbered."""
    walk = Walk(storage, 1, 50, seed)
    for calls in (WHOLE, AFTER):
        plan = walk.next()
        assert plan is not None and walk.next() is None, "points are not known before the calls are numbered"
        walk.took(plan, calls, True, ())
    return walk


def rest(walk: Walk) -> list[Plan]:
    plans = []
    while (plan := walk.next()) is not None:
        plans.append(plan)
    return plans


def test_each_call_has_each_fate_once_and_only_what_follows_a_planned_death_is_walked_again() -> None:
    plans = rest(walked())
    assert len(set(plans)) == len(plans)
    lives = Counter(sum(fault.kind.row.kills for fault in plan.faults[:-1]) for plan in plans)
    expected = [sum(len(fates_of("local", call)) for call in calls) for calls in (WHOLE, AFTER[4:])]
    assert [lives[0], lives[1]] == expected


def test_a_call_is_found_again_under_another_temporary_name_and_in_another_marker_file() -> None:
    triggers = list(numbered(WHOLE))
    assert re.search(triggers[2].pattern, f"{DIRECTORY}/.MARKERS4.tmp-0c9e77") and triggers[2].n == 1
    assert triggers[4].pattern == triggers[6].pattern and (triggers[4].n, triggers[6].n) == (1, 2)
    assert not re.search(triggers[0].pattern, "walk/.hoodie/.temp/11"), "another directory is not the same one"
    assert shown(WHOLE[1]) == f"open {DIRECTORY}/.MARKERS#.tmp-#"


def test_first_calls_of_a_kind_come_before_later_ones_in_an_order_of_the_seed() -> None:
    turns = [plan.faults[-1].trigger.n for plan in rest(walked()) if not plan.faults[0].kind.row.kills]
    assert turns == sorted(turns) and len(set(turns)) == 2
    assert rest(walked(seed=1)) == rest(walked(seed=1)) != rest(walked(seed=2))


def test_a_walk_says_what_was_kept_broken_not_met_and_not_tried() -> None:
    walk = walked()
    for struck, broken in ((True, ()), (True, ("G11", "G3")), (False, ())):
        plan = walk.next()
        assert plan is not None
        walk.took(plan, (), struck, broken)
    came = Counter(what for row in walk.rows() for what in row.fates.values())
    assert (came["kept"], came["G3 G11"], came["not met"]) == (1, 1, 1) and came[""] == sum(came.values()) - 3
    line = walk_line(walk.rows())
    assert "3 tried: 1 kept every promise, 1 broke G3 G11 by" in line and f"{came['']} not tried" in line


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_calls_that_change_storage_can_be_the_last_ones_and_closing_a_file_cannot_fail(storage: str) -> None:
    for operation in CHANGES[storage]:
        kinds = {fate.kind for fate in fates_of(storage, called(operation, "MARKERS0"))}
        assert FaultKind.KILL in kinds and any(kind.row.family == "storage" for kind in kinds)
    assert not fates_of(storage, called("close", "MARKERS0"))
    assert {fate.name for fate in fates_of(storage, called("get", "MARKERS0"))} == {"error", "4 errors"}


def test_a_pattern_of_a_plan_is_looked_for_anywhere_below_the_table_of_a_run() -> None:
    anywhere, begins = (within("p0-1", Call(pattern)).pattern for pattern in (r"MARKERS\d+$", r"^t/\.hoodie/"))
    assert re.search(anywhere, "p0-1/t/.hoodie/.temp/1/MARKERS3") and not re.search(anywhere, "p0-2/t/MARKERS3")
    assert re.search(begins, "p0-1/t/.hoodie/x") and not re.search(begins, "p0-1/u/t/.hoodie/x")


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_power_is_lost_after_each_call_that_changes_something_where_it_can_be(storage: str) -> None:
    for operation in (*CHANGES[storage], "get"):
        call = called(operation, "MARKERS0")
        without, powered = fates_of(storage, call), fates_of(storage, call, storage == "local")
        more = [fate for fate in powered if fate not in without]
        assert len(more) == 3 * (storage == "local" and operation != "get")
        assert all(fate.kind is FaultKind.POWER_LOST and fate.when == "after" for fate in more)
        assert len({(fate.settings.names, fate.settings.lengths) for fate in more}) == len(more)
