"""The walk over the storage calls of a released Hudi: its points, their order, and what it tells."""

from __future__ import annotations

from collections import Counter

import pytest

from marker_sim.plan import Plan
from properties.faces.outcome import KEPT, NOT_MET, OF_STORY, UNCONFIRMED
from properties.faces.report import walk_line
from properties.faces.search import WalkPoint, fates_of
from properties.faces.targets import TableWalk, draw_deaths
from properties.faces.worlds import (
    DRIVER,
    FUTURES,
    HEAD,
    PREPARED,
    STORAGE,
    StorageCall,
    aimed_at,
    shape_of,
    steps_of,
    with_future,
)

INSTANT = "20261127091528056"
MARKERS = f"t0/.hoodie/.temp/{INSTANT}/MARKERS0"


def called(operation: str, path: str) -> StorageCall:
    return StorageCall("driver-1", DRIVER, operation, f"t0/{path}")


DATA = "p0/f86aebc8-f5c1-421a-8841-55f44f2bb8c6-0_0-0-0_20261127091528056.parquet"
WRITE = (
    called("open", f".hoodie/timeline/{INSTANT}.commit.requested"),
    called("write", DATA),
    called("write", DATA.replace("p0", "p1")),
    called("get", ".hoodie/hoodie.properties"),
)
ROLLBACK = (
    called("list", f".hoodie/.temp/{INSTANT}"),
    called("delete", DATA),
    called("open", f".hoodie/metadata/.hoodie/timeline/{INSTANT}.deltacommit.requested"),
    called("delete", f".hoodie/timeline/{INSTANT}.commit.requested"),
    called("rename", f".hoodie/timeline/{INSTANT}_{INSTANT}.rollback"),
)


def begun(modes: tuple[str, ...], storage: str = "local") -> TableWalk:
    """A walk whose controls were given."""
    walk = TableWalk(modes, 1, storage=storage)
    for control in walk.controls:
        assert walk.next() == control
        walk.number(control, [(), WRITE])
    return walk


def walked(modes: tuple[str, ...] = ("direct",)) -> TableWalk:
    """A walk whose copy-on-write workloads were numbered."""
    walk = begun(modes)
    for number, (stage, _) in enumerate(walk.bases[: 2 * len(modes)]):
        plan = walk.with_own_future(number)
        assert walk.next() == plan
        walk.number(plan, [(), WRITE] if stage == "write" else [(), WRITE, (*ROLLBACK, *WRITE)])
    return walk


def first_points(walk: TableWalk) -> list[WalkPoint]:
    points = []
    while isinstance(point := walk.next(), WalkPoint):
        points.append(point)
    return points


def test_each_call_of_a_write_and_of_a_rollback_has_each_fate_and_first_calls_of_a_kind_come_first() -> None:
    walk = walked()
    points = first_points(walk)
    first = (*WRITE[:2], WRITE[3], *ROLLBACK)
    assert len(points) == sum(len(fates_of("local", call)) for call in first), "and nothing of the write after it"
    assert {point.turn for point in points} == {1}, "merge-on-read tables are numbered before second calls are tried"
    assert isinstance(walk.bases[2][1], Plan) and walk.bases[2][1].merge_on_read
    stages = Counter(walk.bases[point.base][0] for point in points)
    assert stages["rollback"] == sum(len(fates_of("local", call)) for call in ROLLBACK)


def test_a_marker_file_that_is_cut_is_tried_before_second_calls_of_other_kinds() -> None:
    walk = begun(("timeline",))
    marker = called("open", f".hoodie/.temp/{INSTANT}/MARKERS0")
    for _, plan in walk.bases[:2]:
        walk.number(plan, [(), (marker, marker._replace(also=("cut",))), ()])
    points = [point for point in first_points(walk) if point.fate == "death after"]
    assert {point.plan.faults[0].n for point in points} == {1, 2}


def test_a_point_names_its_call_by_role_and_path_and_its_plan_is_stored_and_read_again() -> None:
    for point in first_points(walked()):
        assert Plan.from_dict(point.plan.to_dict()) == point.plan
        (fault,) = point.plan.faults
        base, number = walked().bases[point.base][0], point.number
        meant = (WRITE if base == "write" else ROLLBACK)[number - 1]
        aimed = aimed_at(fault, "t0")
        assert aimed.fits(meant), (fault, meant)
        other = meant._replace(path=meant.path.replace(INSTANT, "20270101000000000").replace("f86aebc8", "00112233"))
        assert aimed.fits(other), "the next run has other names"
        assert fault.target == (DRIVER if fault.kind.row.kills else STORAGE)


def test_a_call_of_a_lazy_rollback_is_found_among_those_of_the_write_before_it() -> None:
    listing = called("list", f".hoodie/.temp/{INSTANT}")
    ends = called("rename", f".hoodie/timeline/{INSTANT}_{INSTANT}.commit")
    walk = begun(("direct",))
    base = next(n for n, (stage, plan) in enumerate(walk.bases) if shape_of(plan).lazy and stage == "rollback")
    walk.number(walk.bases[base][1], [(), WRITE, (*WRITE, listing, ends, *ROLLBACK)])
    points = [point for point in walk._left if walk.shown(point).startswith("error at ")]
    assert len(points) == len(ROLLBACK)
    turns = {walk.shown(point).split()[3]: point.plan.faults[-1].trigger.n for point in points}
    assert turns[".hoodie/.temp/#"] == 2, "the first is of the write, which reconciles"


def test_rows_say_what_was_kept_broken_not_met_and_not_confirmed() -> None:
    walk = walked()
    points = first_points(walk)[:5]
    walk.took(points[0], True, ())
    walk.took(points[1], False, ())
    walk.took(points[2], True, ("G24", "G15"))
    walk.took(points[3], True, (), UNCONFIRMED)
    walk.took(points[4], True, (), OF_STORY + "G15")
    came = Counter(what for row in walk.rows() for what in row.fates.values() if what)
    assert came == {KEPT: 1, NOT_MET: 1, "G15 G24": 1, UNCONFIRMED: 1, OF_STORY + "G15": 1}
    line = walk_line(walk.rows())
    assert "1 broke one and not again in a process that was killed there" in line
    assert "1 broke one as another call of their kind did by the same fate" in line


def test_on_s3_requests_have_the_fates_of_requests_and_a_deletion_of_many_keys_is_one_of_them() -> None:
    walk = begun(("direct",), "s3")
    head = called("get", DATA)._replace(also=(HEAD,))
    many = called("delete", f".hoodie/.temp/{INSTANT}/a.marker.CREATE\nt0/.hoodie/.temp/{INSTANT}/b.marker.CREATE\nt0/")
    folder = called("get", "")._replace(path="t0")  # No pattern below the table has it.
    calls = (called("list", ""), folder, head, called("get", DATA), many)
    for number in range(2):
        plan = walk.with_own_future(number)
        assert walk.next() == plan and plan.storage == "s3"
        walk.number(plan, [(), calls, ()])
    points = dict[str, list[WalkPoint]]()
    for point in first_points(walk):
        points.setdefault(walk.shown(point).partition(" at ")[2], []).append(point)
    words = ("list ", "head p#/#", "get p#/#", "delete .hoodie/.temp/#/a.marker.CREATE and 2 more")
    for began, call in zip(words, (calls[0], *calls[2:]), strict=True):
        (own,) = (found for shown, found in points.items() if shown.startswith(began))
        assert {point.fate for point in own} == {fate.name for fate in fates_of("s3", call)}
        later = call._replace(path=call.path.replace(INSTANT, "20270101000000000").replace("t0/", "t7/"))
        assert all(aimed_at(point.plan.faults[0], "t7").fits(later) for point in own)
    assert {point.plan.faults[0].n for point in points[next(name for name in points if name.startswith("get"))]} == {2}
    assert {point.fate for own in points.values() for point in own if point.fate == "done in part"}


def test_rollbacks_are_numbered_with_a_future_that_their_points_do_not_have() -> None:
    walk = TableWalk(("direct", "timeline"), 1)
    futures = [shape_of(walk.with_own_future(number)).future for number in range(len(walk.bases))]
    stages = [stage for stage, _ in walk.bases]
    assert [bool(future) for future in futures] == [stage == "rollback" for stage in stages]
    plans = (*walk.controls, *map(walk.with_own_future, range(len(walk.bases))))
    tables = dict[object, list[object]]()
    for plan in plans:
        if shape_of(plan).future:
            tables.setdefault((plan.merge_on_read, shape_of(with_future(plan, ()))), []).append(shape_of(plan).future)
    assert all(len(own) == len(set(own)) for own in tables.values()), "each run of a table has another one"
    for mode in ("direct", "timeline"):
        assert {shape_of(plan).future for plan in walk.controls if plan.mode == mode} == set(FUTURES.values())
    assert not any(shape_of(point.plan).future for point in first_points(walked()))


def test_a_look_at_one_path_fails_as_a_listing_does_and_no_death_is_at_it() -> None:
    look = called("status", f".hoodie/.temp/{INSTANT}")
    assert fates_of("local", look) == fates_of("local", look._replace(operation="list")) != ()
    assert not any(fate.kind.row.kills for fate in fates_of("local", look))


def test_requests_about_markers_are_lost_and_only_one_that_makes_a_marker_is_answered_false() -> None:
    marker = called("request", f".hoodie/.temp/{INSTANT}/p0/a.parquet.marker.CREATE")
    deletion = called("request", f".hoodie/.temp/{INSTANT}?dir/delete")
    walk = begun(("timeline",))
    for number in range(2):
        plan = walk.with_own_future(number)
        assert walk.next() == plan
        walk.number(plan, [(), (marker, deletion), ()])
    points = first_points(walk)
    fates = {call: {point.fate for point in points if call in point.call} for call in ("marker.CREATE", "?dir/delete")}
    assert fates["?dir/delete"] == fates["marker.CREATE"] - {"answered false"} == {"lost", "reply lost"}
    for point in points:
        assert aimed_at(point.fault, "t0").fits(deletion if "?" in point.call else marker)
        assert Plan.from_dict(point.plan.to_dict()) == point.plan and point.fault.target == STORAGE


def test_a_rollback_loses_the_content_of_its_plan_and_of_no_other_entry() -> None:
    renames = (
        called("rename", f".hoodie/timeline/{INSTANT}.rollback.requested"),
        called("rename", f".hoodie/timeline/{INSTANT}.rollback.inflight"),
    )
    walk = begun(("direct",))
    for number in range(2):
        plan = walk.with_own_future(number)
        assert walk.next() == plan
        walk.number(plan, [(), WRITE, (*renames, *WRITE)] if number else [(), ()])
    lost = [point for point in first_points(walk) if point.fate in ("death after, empty", "death after, in part")]
    assert len(lost) == 2 and all(aimed_at(point.fault, "t0").fits(renames[0]) for point in lost)
    assert {point.fault.settings.empty for point in lost} == {True, False}
    assert all(point.fault.trigger.when == "after" for point in lost)  # type: ignore[union-attr]


def test_the_rollback_of_an_upgraded_table_has_the_calls_that_move_the_entries_of_earlier_writes() -> None:
    walk = begun(("direct",))
    base = next(n for n, (stage, plan) in enumerate(walk.bases) if shape_of(plan).upgrades and stage == "rollback")
    moved = [
        called("rename", ".hoodie/timeline/20261101000000000.commit.requested"),
        called("rename", ".hoodie/timeline/20261101000000000_20261101000000001.commit"),
    ]
    walk.number(walk.with_own_future(base), [(), WRITE, (*ROLLBACK, *moved, *WRITE)])
    found = {point.number for point in walk._left}
    assert found == {*range(1, len(ROLLBACK) + 3)}, "and none of the write that comes after it"


def test_requests_are_sent_again_in_timeline_mode_alone_where_the_server_has_another_thread_for_them() -> None:
    walk = TableWalk(("direct", "timeline"), 1)
    plans = [plan for _, plan in walk.bases if shape_of(plan).resends]
    assert {plan.mode for plan in plans} == {"timeline"} and {plan.num_threads for plan in plans} == {2}
    assert {plan.num_threads for _, plan in walk.bases if not shape_of(plan).resends} == {1}
    assert all(plan.mode == "timeline" for plan in walk.controls if shape_of(plan).resends)


def test_workloads_of_a_table_are_numbered_together_and_no_point_is_given_before_they_were() -> None:
    walk = begun(("direct",))
    write, rollback = walk.with_own_future(0), walk.with_own_future(1)
    assert [walk.next(), walk.next(), walk.next()] == [write, rollback, None]
    walk.number(rollback, [(), WRITE, (*ROLLBACK, *WRITE)])
    assert walk.next() is None
    walk.number(write, [(), WRITE])
    in_turn = first_points(walked())
    assert first_points(walk) == in_turn, "whichever ended first"


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_plans_by_number_are_the_same_each_time(storage: str) -> None:
    drawn = [draw_deaths(("direct", "timeline"), storage, 7, number) for number in range(6)]
    assert drawn == [draw_deaths(("direct", "timeline"), storage, 7, number) for number in range(6)]
    assert {plan.mode for plan in drawn} == {"direct", "timeline"} and all(plan.faults for plan in drawn)
    assert {plan.storage for plan in drawn} == {storage}


def test_plans_beyond_a_walk_have_points_that_alone_broke_nothing() -> None:
    walk = walked()
    walk.bases = walk.bases[:2]
    points = first_points(walk)
    assert walk.beyond() is None, "no point has ended"
    for number, point in enumerate(points):
        walk.took(point, True, ("G15",) if number > 2 else ())
    kept, drawn = {fault for point in points[:3] for fault in point.plan.faults}, walk.beyond()
    assert drawn is not None and set(drawn.faults) <= kept and len(drawn.faults) > 1
    assert len({walk.beyond() for _ in range(9)}) > 1
    walk.number(drawn, [(), WRITE])
    assert not first_points(walk), "it is no workload"
    for point in points:
        walk.took(point, True, ())
    abandoned = [write for _ in range(20) if (plan := walk.beyond()) for write in plan.writes if write.abandon]
    assert abandoned and all(write.faults for write in abandoned), "a rollback undoes what failed or died in any way"


def test_controls_of_each_table_come_first_and_have_no_fault() -> None:
    walk = TableWalk(("direct", "timeline"), 1)
    controls = [walk.next() for _ in walk.controls]
    assert controls == walk.controls and not any(plan.faults for plan in walk.controls)
    assert {plan.mode for plan in walk.controls} == {"direct", "timeline"}
    shapes = [shape_of(plan) for plan in walk.controls if plan.merge_on_read]
    assert {shape.small_files for shape in shapes} == {True, False} and all(shape.deletes for shape in shapes)
    assert walk.next() == walk.bases[0][1]


SERVICE = (
    called("open", f".hoodie/timeline/{INSTANT}.compaction.requested"),
    called("write", DATA),
    called("write", DATA.replace("p0", "p1")),
)


def test_services_come_after_the_writes_of_plain_tables_and_before_those_of_others() -> None:
    walk = begun(("direct",))
    given = list[str]()
    while (found := walk.next()) is not None:
        if isinstance(found, WalkPoint):
            given.append(f"point of {walk.bases[found.base][0]}")
            continue
        stage = next(stage for stage, plan in walk.bases if plan == with_future(found, ()))
        traits = (
            "plain" if not (shape_of(found).metadata or shape_of(found).version6 or shape_of(found).lazy) else "other"
        )
        given.append(f"{traits} {stage}")
        calls = {"write": [(), WRITE], "rollback": [(), WRITE, (*ROLLBACK, *WRITE)]}
        walk.number(found, calls.get(stage, [()] * 9))
    plain = {f"plain {service}" for service in PREPARED if service != "upgrade"}
    first = min(given.index(each) for each in plain)
    assert {"point of write", "point of rollback"} == {each for each in given[:first] if each.startswith("point")}
    after = given[first : given.index("other write")]
    assert not any(each.startswith("point") for each in after), "all of them were given before"
    assert {each for each in given[:first] if each.startswith("plain")} == {"plain write", "plain rollback"}
    assert given.index("other write") > max(given.index(each) for each in plain)
    assert {each.split()[1] for each in given if each.startswith("other")} == {"write", "rollback", *PREPARED}


def test_each_service_is_walked_on_each_table_that_it_fits() -> None:
    walk = TableWalk(("direct", "timeline"), 1, services=True)
    assert walk.next() == walk.bases[0][1], "its workloads are its controls"
    found = Counter[str]()
    for stage, plan in walk.bases:
        shape = shape_of(plan)
        assert plan.merge_on_read or stage != "compact", "Hudi compacts no copy-on-write table"
        assert shape.version6 == (stage == "upgrade")
        found[stage] += 1
    assert found == {**dict.fromkeys(PREPARED, 8), "compact": 4}
    assert len({plan for _, plan in walk.bases}) == len(walk.bases)


def test_points_of_a_service_are_calls_of_the_service_alone() -> None:
    walk = TableWalk(("direct",), 1, services=True)
    base = next(n for n, (stage, plan) in enumerate(walk.bases) if stage == "compact")
    plan = walk.bases[base][1]
    walk.number(plan, [WRITE, *(WRITE for _ in PREPARED["compact"]), SERVICE, WRITE, SERVICE])
    points = walk._left
    assert {point.call.split()[0] for point in points} == {"open", "write"}
    assert {point.number for point in points} == {1, 2, 3}
    for point in points:
        (own,) = steps_of(point.plan)
        assert own.stage == "compact" and own.faults == (point.fault,) and own.name
        assert point.trigger.n == (1 if point.number < 3 or "p1" in point.trigger.pattern else 2)
        assert steps_of(Plan.from_dict(point.plan.to_dict())) == (own,)
