"""`--sut hudi-java:VERSION` without Java: its walk, and what the kit makes of recorded answers of the Java program."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from marker_sim.campaign.sources.played import request_on
from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.history import Header, History
from marker_sim.outcome.failure import Kind
from marker_sim.outcome.result import KEPT, NOT_MET, UNCONFIRMED
from marker_sim.plan import Plan
from marker_sim.report.notes import walk_line
from marker_sim.search.walks import fates_of
from marker_sim.targets.hudi_java import HudiJavaTarget
from marker_sim.targets.hudi_java_runs import CONFIRMED, NOT_CONFIRMED, DrawnPoint, JavaRuns
from marker_sim.targets.hudi_java_walk import TablePoint, TableWalk, draw_deaths
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import ServerOptions
from marker_sim.worlds.interceptor import ArmedFault, StorageCall
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.hudi.java_driver import JavaDrivers, JavaFaultInjector
from marker_sim.worlds.spark.hudi.settings import Program
from marker_sim.worlds.spark.hudi.steps import aimed_at
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.plans import DRIVER, STORAGE

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
ROLLBACK = (called("list", f".hoodie/.temp/{INSTANT}"), called("delete", DATA))


def walked(modes: tuple[str, ...] = ("direct",)) -> TableWalk:
    """A walk whose copy-on-write workloads were numbered."""
    walk = TableWalk(modes, 1)
    for stage, plan in walk.bases[: 2 * len(modes)]:
        assert walk.next() == plan
        walk.number(plan, [(), WRITE] if stage == "write" else [(), WRITE, (*ROLLBACK, *WRITE)])
    return walk


def first_points(walk: TableWalk) -> list[TablePoint]:
    points = []
    while isinstance(point := walk.next(), TablePoint):
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
    walk = TableWalk(("timeline",), 1)
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


def test_rows_say_what_was_kept_broken_not_met_and_not_confirmed() -> None:
    walk = walked()
    points = first_points(walk)[:4]
    walk.took(points[0], True, ())
    walk.took(points[1], False, ())
    walk.took(points[2], True, ("G24", "G15"))
    walk.took(points[3], True, (), confirmed=False)
    came = Counter(what for row in walk.rows() for what in row.fates.values() if what)
    assert came == {KEPT: 1, NOT_MET: 1, "G15 G24": 1, UNCONFIRMED: 1}
    assert "1 broke one and not again in a process that was killed there" in walk_line(walk.rows())


def answer(*calls: dict[str, Any], struck: tuple[int, ...] = ()) -> dict[str, Any]:
    return {"ok": True, "calls": list(calls), "struck": list(struck)}


def told(operation: str, puts: str, result: str = "ok") -> dict[str, Any]:
    return {"op": operation, "path": MARKERS, "result": result, "gone": [], "puts": puts}


class Named:
    """A driver of whom only the name is asked for."""

    name = "driver-1"


def injector(*faults: Fault, warm: bool = True) -> JavaFaultInjector:
    made = JavaFaultInjector(Recorder(), "t0", warm=warm)
    made.driver = Named()  # type: ignore[assignment]
    made._faults = faults
    made._armed = {ArmedFault(aimed_at(fault, "t0").fault, ""): number for number, fault in enumerate(faults)}
    return made


def test_a_marker_file_that_is_written_again_is_recorded_as_the_door_records_it() -> None:
    made = injector()
    texts = ("", "a\n", "a\n", "", "a\nb\n", "a\nb\n")
    made.took(answer(*map(told, ("open", "write", "close", "open", "write", "close"), texts)))
    seen = [event.operation for event in made.recorder.events if event.kind == "effect"]
    assert seen == ["put", "put", "put", "overwrite-begin", "overwrite-end", "put"]


def test_a_death_between_the_cut_of_a_marker_file_and_its_first_byte_is_recorded_after_the_cut() -> None:
    death = Fault.of(FaultKind.KILL, DRIVER, Call(r"\.hoodie/\.temp/[0-9]+/MARKERS0$", ("open",), 2, "after"))
    made = injector(death)
    assert made.told()[0]["effect"] == "die-after" and made.told()[0]["n"] == 2
    calls = [told("open", ""), told("write", "a\n"), told("open", "", result="die-after")]
    made.took({"died": True, "calls": calls, "struck": [1]})
    assert [event.operation for event in made.recorder.events] == ["put", "put", "overwrite-begin", "kill"]
    assert made.deadly and made.fired == 1


def test_a_process_fails_its_own_calls_and_dies_by_the_door() -> None:
    error = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(r"\.hoodie/\.temp/[0-9]+$", ("list",)), calls=4)
    death = Fault.of(FaultKind.KILL, DRIVER, Call(r"p0/", ("open",)))
    made = injector(error, death, warm=False)
    assert [fault["effect"] for fault in made.told()] == ["error"] and made.told()[0]["calls"] == 4
    made.took(answer({"op": "list", "path": f"t0/.hoodie/.temp/{INSTANT}", "result": "error"}, struck=(1,)))
    assert [event.kind for event in made.recorder.events] == ["fault"], "the door records the effects"
    assert made.times(0) == 1 and not made.deadly


def plays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *broken: bool) -> tuple[JavaRuns, SparkRun, list[bool]]:
    """The run of a point, when the runs made for it break a promise or not in turn, and which of them were warm."""
    kind, warm, left = Kind("G15", "direct", "local", ""), list[bool](), list(broken)

    def run(_: JavaRuns, plan: Plan, __: float, drivers: JavaDrivers) -> SparkRun:
        warm.append(drivers.warm is not None)
        return SparkRun(history=History(Header(), ()), plan=plan, counts={})

    monkeypatch.setattr(JavaRuns, "_run", run)
    monkeypatch.setattr(JavaRuns, "_broken", lambda _, played: {kind} if left.pop(0) else set())
    request = request_on("hudi-java:1.2.0", "local", ServerOptions(), "hudi-spark", 1, tmp_path)
    program = Program(home=tmp_path, java="java", jars=(), mark="", logs=tmp_path, deadline=math.inf)
    runs = JavaRuns(request=request, version="1.2.0", program=program, scratch=tmp_path, walk=walked())
    point = runs.walk.next()
    assert isinstance(point, TablePoint)
    drawn = DrawnPoint(number=1, plan=point.plan, point=point, words="")
    played = runs.play(drawn)
    runs.took(drawn, played, {kind} if played.counts.get(CONFIRMED) else ())
    return runs, played, warm


def test_a_run_that_keeps_every_promise_is_of_a_warm_jvm_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs, played, warm = plays(monkeypatch, tmp_path, False)
    assert warm == [True] and not played.counts and not runs.unconfirmed


def test_what_a_warm_jvm_breaks_is_a_violation_if_processes_break_it_at_the_second_try(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs, played, warm = plays(monkeypatch, tmp_path, True, False, True)
    assert warm == [True, False, False] and played.counts == {CONFIRMED: 1} and not runs.unconfirmed
    assert [what for row in runs.walk.rows() for what in row.fates.values() if what] == ["G15"]


def test_what_no_process_breaks_is_no_violation_and_is_counted_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs, played, warm = plays(monkeypatch, tmp_path, True, False, False)
    assert warm == [True, False, False] and played.counts == {NOT_CONFIRMED: 1}
    assert len(runs.unconfirmed) == 1 and runs.unconfirmed[0].startswith("G15 by ")
    assert [what for row in runs.walk.rows() for what in row.fates.values() if what] == [UNCONFIRMED]


def test_versions_that_were_not_tried_are_refused_in_a_sentence() -> None:
    found = parse_target("hudi-java:1.2.0")
    assert isinstance(found, HudiJavaTarget) and found.version == "1.2.0"
    with pytest.raises(UsageError, match=r"--sut was given 'hudi-java:0\.9'; write hudi-java: and 1\.1\.1 or 1\.2\.0"):
        parse_target("hudi-java:0.9")


def test_plans_by_number_are_the_same_each_time() -> None:
    drawn = [draw_deaths(("direct", "timeline"), 7, number) for number in range(6)]
    assert drawn == [draw_deaths(("direct", "timeline"), 7, number) for number in range(6)]
    assert {plan.mode for plan in drawn} == {"direct", "timeline"} and all(plan.faults for plan in drawn)
