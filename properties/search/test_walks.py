"""A walk: which plans it makes of numbered calls, in which order, and what it says came of them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.plan import Op, Plan
from properties.faces.report import walk_line
from properties.faces.search import (
    BASES,
    CHANGES,
    FATES,
    PAIRS,
    STARTING,
    Walk,
    asked_again,
    fates_of,
    numbered,
    shown,
    workload,
)
from properties.faces.worlds import ArmedFault, Interceptor, Recorder, StorageCall, within

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


def walked(storage: str = "local", seed: int = 1, after: tuple[StorageCall, ...] = AFTER) -> Walk:
    """A walk whose two workloads were numbered."""
    walk = Walk(storage, 1, 50, seed)
    for calls in (WHOLE, after):
        plan = walk.next()
        assert plan is not None
        ahead = rest(walk)
        assert not any(isinstance(fault.trigger, Call) for each in ahead for fault in each.faults), "no number is known"
        for each in ahead:
            walk.took(each, calls, True, ("G3",))
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
    lives = Counter(sum(isinstance(fault.trigger, Call) for fault in plan.faults[:-1]) for plan in plans)
    expected = [sum(len(fates_of("local", call)) for call in calls) for calls in (WHOLE, AFTER[4:])]
    assert [lives[0], lives[1]] == expected


def test_what_a_failed_change_left_meets_another_start_and_a_failed_read_or_a_death_does_not() -> None:
    for plan in rest(walked()):
        *others, point = plan.faults
        assert isinstance(point.trigger, Call)
        changes = point.trigger.operations[0] in CHANGES["local"] and not point.kind.row.kills
        assert [fault.kind for fault in others if isinstance(fault.trigger, Site)] == [FaultKind.KILL] * changes


def test_a_call_is_found_again_under_another_temporary_name_and_in_another_marker_file() -> None:
    triggers = list(numbered(WHOLE))
    assert re.search(triggers[2].pattern, f"{DIRECTORY}/.MARKERS4.tmp-0c9e77") and triggers[2].n == 1
    assert triggers[4].pattern == triggers[6].pattern and (triggers[4].n, triggers[6].n) == (1, 2)
    assert not re.search(triggers[0].pattern, "walk/.hoodie/.temp/11"), "another directory is not the same one"
    assert shown(WHOLE[1]) == f"open {DIRECTORY}/.MARKERS#.tmp-#"


@pytest.mark.parametrize(
    ("made", "next_time"),
    [
        ("walk/.hoodie/.temp/.next-81-1795750870/MARKERS0", "walk/.hoodie/.temp/.next-9-1795751233/MARKERS0"),
        ("walk/.hoodie/.temp/.1.gone.81", "walk/.hoodie/.temp/.1.gone.9"),
        (".locks/81-5512", ".locks/9-77"),
    ],
    ids=["directory-beside", "directory-aside", "elsewhere"],
)
def test_a_call_is_found_again_below_a_directory_of_another_temporary_name(made: str, next_time: str) -> None:
    call, own = (StorageCall("server-1", "timeline-server", "open", path) for path in (made, DIRECTORY))
    trigger, exact = numbered((call, own))
    assert re.search(trigger.pattern, next_time) and not re.search(trigger.pattern, DIRECTORY)
    assert re.search(exact.pattern, DIRECTORY) and not re.search(exact.pattern, "walk/.hoodie/.temp/2")


CREATES = tuple(called(operation, "MARKERS0") for operation in ("get", "open", "write", "close") for _ in range(9))


def test_each_fate_of_each_operation_comes_before_any_comes_often_and_the_order_is_of_the_seed() -> None:
    walk = Walk("local", 1, 50, 1)
    plan = walk.next()
    assert plan is not None
    walk.took(plan, (*WHOLE, *CREATES), True, ())
    numbering = walk.next()
    assert numbering is not None
    walk.took(numbering, (), True, ())
    points = [(plan.faults[-1], plan) for plan in rest(walk)]
    met = Counter[tuple[str, str]]()
    for fault, _ in points[: len(points) // 2]:
        assert isinstance(fault.trigger, Call)
        met[fault.trigger.operations[0], f"{fault.kind.value} {fault.trigger.when}"] += 1
    assert {operation for operation, _ in met} >= {"mkdir", "open", "write", "rename", "get"}
    assert met["write", "kill after"] > met["write", "kill before"], "a death after the call before it is the same"
    assert met["write", "io-error before"] > met["get", "io-error before"], "more comes of changes than of reads"
    early = [fault.trigger.operations[0] for fault, _ in points[:20] if isinstance(fault.trigger, Call)]
    assert "get" in early, "a server may take a file that cannot be read for one that is not there"
    assert rest(walked(seed=1)) == rest(walked(seed=1)) != rest(walked(seed=2))


def test_an_error_whose_effect_is_there_comes_early_at_writes_of_marker_files() -> None:
    late = []
    for seed in range(20):
        walk = Walk("local", 1, 50, seed)
        for calls in ((*WHOLE, *CREATES), ()):
            plan = walk.next()
            assert plan is not None
            walk.took(plan, calls, True, ())
        plans = rest(walk)
        at = next(number for number, plan in enumerate(plans) if _is_applied(plan.faults[-1]))
        late.append(at / len(plans))
    assert max(late) < 0.25


def _is_applied(fault: Fault) -> bool:
    call = fault.trigger
    return isinstance(call, Call) and call.operations == ("write",) and fault.settings.applied and call.n > 2


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


def test_requests_that_hang_are_awaited_once_for_each_kind_of_call_and_a_point_says_when_they_were_not() -> None:
    walk, patience = walked(), dict[tuple[str, ...], list[bool]]()
    while (plan := walk.next()) is not None:
        call = plan.faults[-1].trigger
        assert isinstance(call, Call)
        patient = walk.patient(plan)
        patience.setdefault((*call.operations, re.sub(r".*/", "", call.pattern)), []).append(patient)
        walk.took(plan, (), True, ("G6",) if patient else (), hung=not patient)
    assert all(each[0] and not any(each[1:]) for each in patience.values()) and len(patience) == 5
    came = Counter(what for row in walk.rows() for what in row.fates.values())
    assert came["G6"] == len(patience) and came["no answer"] == sum(came.values()) - len(patience)
    assert f"{came['no answer']} hung and were not awaited" in walk_line(walk.rows())


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_calls_that_change_storage_can_be_the_last_ones_and_closing_a_file_cannot_fail(storage: str) -> None:
    for operation in CHANGES[storage]:
        kinds = {fate.kind for fate in fates_of(storage, called(operation, "MARKERS0"))}
        assert FaultKind.KILL in kinds and any(kind.row.family == "storage" for kind in kinds)
    assert not fates_of(storage, called("close", "MARKERS0"))
    assert {fate.name for fate in fates_of(storage, called("get", "MARKERS0"))} == {"error", "4 errors"}


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_a_plan_takes_a_fault_at_each_kind_of_call_that_a_walk_numbers(storage: str) -> None:
    for operation in FATES[storage]:
        call = Fault.of(FaultKind.KILL, "server", Call("", (operation,)))
        Plan(storage=storage, faults=(call,), ops=(Op(actor="a", kind="list"),)).check()


def test_a_pattern_of_a_plan_is_looked_for_anywhere_below_the_table_of_a_run() -> None:
    anywhere, begins = (within("p0-1", Call(pattern)).pattern for pattern in (r"MARKERS\d+$", r"^t/\.hoodie/"))
    assert re.search(anywhere, "p0-1/t/.hoodie/.temp/1/MARKERS3") and not re.search(anywhere, "p0-2/t/MARKERS3")
    assert re.search(begins, "p0-1/t/.hoodie/x") and not re.search(begins, "p0-1/u/t/.hoodie/x")


def starts(plan: Plan) -> bool:
    return "starting" in plan.faults[-1].to_dict()


STARTED = tuple(call._replace(process="server-2", starting=True) for call in (WHOLE[5], WHOLE[1], WHOLE[4]))


def test_calls_of_a_server_that_starts_again_are_numbered_apart_and_shown_so() -> None:
    walk = walked(after=(*WHOLE[:4], *STARTED, *AFTER[4:]))
    own = [plan for plan in rest(walk) if starts(plan)]
    assert len(own) == sum(len(fates_of("local", call)) for call in STARTED)
    assert all(plan.faults[0].kind is FaultKind.KILL and plan.faults[-1].n == 1 for plan in own)
    assert [row.call for row in walk.rows() if row.base == BASES[STARTING]] == [shown(call) for call in STARTED]


def test_a_death_in_the_start_after_each_death_follows_when_all_single_points_were_played() -> None:
    walk = walked()
    single = rest(walk)
    deaths = [plan for plan in single if plan.faults[-1].kind is FaultKind.KILL and len(plan.faults) == 1]
    for plan in single:
        walk.took(plan, STARTED if plan in deaths[:2] else (), True, ())
    pairs = rest(walk)
    assert {plan.faults[:-1] for plan in pairs} == {plan.faults for plan in deaths[:2]}
    assert all(starts(plan) and plan.faults[-1].kind.row.kills for plan in pairs)
    walk.took(pairs[0], (), True, ("G3",))
    rows = [row for row in walk.rows() if row.base == BASES[PAIRS]]
    assert sum(row.pairs for row in rows) == len(pairs) and sum(row.tried for row in rows) == 1
    line = walk_line(walk.rows())
    assert f"of {len(pairs)} pairs of a death and another one in what follows it 1 tried, some broke G3 by" in line


def test_a_server_s_own_file_outside_of_tables_is_found_again_whatever_numbers_its_path_has() -> None:
    path = "/index/p0-12/segment-000017.log"
    call = next(numbered([StorageCall("server-1", "timeline-server", "write", path)]))
    assert re.search(within("p3-4", call).pattern, "index/p3-4/segment-000020.log")
    assert not re.search(within("p3-4", call).pattern, "p3-4/index/p3-4/segment-000020.log")
    assert shown(StorageCall("server-1", "timeline-server", "write", path)) == "write /index/p#-#/segment-#.log"


def test_a_fault_at_a_start_strikes_there_alone_and_no_other_fault_does() -> None:
    met: list[str] = []
    interceptor = Interceptor(
        Recorder(),
        lambda armed, call: met.append(f"{call.process} {armed.call.starting}"),
        serves=lambda process: process == "server-1",
        restarts=lambda process: process == "server-2",
    )
    interceptor.arm(*(ArmedFault(Fault.of(FaultKind.KILL, "server", Call(starting=each))) for each in (True, False)))
    for life in (3, 2, 1):
        interceptor.strike(StorageCall(f"server-{life}", "timeline-server", "put", "t/x"))
    assert met == ["server-2 True", "server-1 False"]
    assert [(call.process, call.starting) for call in interceptor.calls] == [("server-2", True), ("server-1", False)]


def test_a_fault_at_a_start_is_stored_and_read_again() -> None:
    for starting in (True, False):
        fault = Fault.of(FaultKind.KILL, "server", Call("^/", ("write",), 2, "after", starting))
        assert Fault.from_dict(fault.to_dict()) == fault and ("starting" in fault.to_dict()) == starting


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_power_is_lost_after_each_call_that_changes_something_where_it_can_be(storage: str) -> None:
    for operation in (*CHANGES[storage], "get"):
        call = called(operation, "MARKERS0")
        without, powered = fates_of(storage, call), fates_of(storage, call, storage == "local")
        more = [fate for fate in powered if fate not in without]
        assert len(more) == 3 * (storage == "local" and operation != "get")
        assert all(fate.kind is FaultKind.POWER_LOST and fate.when == "after" for fate in more)
        assert len({(fate.settings.names, fate.settings.lengths) for fate in more}) == len(more)


def test_a_second_client_asks_again_for_all_names_of_the_first_one_and_for_none_that_is_new() -> None:
    ops = workload("local", 2, 25, 1).ops
    first, second = [op for op in ops if op.actor == "executor-0" and op.kind == "create"], asked_again()
    assert {(op.directory, op.name) for op in second} == {(op.directory, op.name) for op in first}
    assert second[0].after_ms > 0 and len(second) == len({op.name for op in second})
