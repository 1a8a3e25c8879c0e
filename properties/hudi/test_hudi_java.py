"""`--sut hudi-java:VERSION` without Java: what the kit makes of recorded answers of the Java program."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.history import Header, History
from marker_sim.judges import Finding
from marker_sim.plan import Plan
from properties.faces.campaign import numbered as numbered_run
from properties.faces.campaign import request_on
from properties.faces.outcome import KEPT, NOT_MET, OF_STORY, UNCONFIRMED, Kind
from properties.faces.search import WalkPoint, fates_of
from properties.faces.targets import (
    AS_BEFORE,
    CONFIRMED,
    NOT_CONFIRMED,
    PROCESSES_S,
    DrawnPoint,
    HudiJavaTarget,
    JavaRuns,
    ServerOptions,
    TableWalk,
    parse_target,
    table_of,
)
from properties.faces.worlds import (
    BUCKET,
    DRIVER,
    DRIVERS,
    STORAGE,
    Application,
    ArmedFault,
    Gone,
    Interceptor,
    JavaDriver,
    JavaDrivers,
    JavaFaultInjector,
    OutOfTime,
    Program,
    Recorder,
    SparkRun,
    TableFaultInjector,
    TableStep,
    aimed_at,
    bucket_storage,
    java_options,
)
from properties.hudi.test_hudi_java_walk import INSTANT, MARKERS, WRITE, begun, first_points, walked


def answer(*calls: dict[str, Any], struck: tuple[int, ...] = ()) -> dict[str, Any]:
    return {"ok": True, "calls": list(calls), "struck": list(struck)}


def told(operation: str, puts: str, result: str = "ok") -> dict[str, Any]:
    return {"op": operation, "path": MARKERS, "result": result, "gone": [], "puts": puts}


class Named:
    """A driver of whom only the name is asked for."""

    name = "driver-1"


class Place:
    """A storage of which only the place of the table is asked for."""

    uri = "t0"


def injector(*faults: Fault, warm: bool = True) -> JavaFaultInjector:
    made = JavaFaultInjector(Recorder(), "t0", warm=warm)
    made.driver = Named()  # type: ignore[assignment]
    made._armed = [ArmedFault(aimed_at(fault, "t0").fault, "") for fault in faults]
    return made


def test_a_marker_file_that_is_written_again_is_recorded_as_the_door_records_it() -> None:
    made = injector()
    texts = ("", "a\n", "a\n", "", "a\nb\n", "a\nb\n")
    made.took(answer(*map(told, ("open", "write", "close", "open", "write", "close"), texts)))
    seen = [event.operation for event in made.recorder.events if event.kind == "effect"]
    assert seen == ["put", "put", "put", "overwrite-begin", "overwrite-end", "put"]


def test_a_full_disk_refuses_what_needs_room_and_no_deletion_or_rename() -> None:
    made = injector()
    cut = {**told("open", ""), "cut": True}
    made.took(answer(*(told(each, "") for each in ("mkdir", "open", "write", "close", "rename", "delete")), cut))
    assert [call.needs_room for call in made.calls] == [True, True, True, False, False, False, False]
    assert "disk full" not in {fate.name for fate in fates_of("local", made.calls[5])}


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
    assert made.fired == 1 and not made.deadly


class Lingering:
    """A JVM whose life puts two objects and goes on after its death."""

    alive = True

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.s3: Any = None

    def ask(self, message: dict[str, Any], _: float) -> dict[str, Any]:
        if message["do"] == "open":
            conf = {key.removeprefix("fs.s3a."): value for key, value in message["conf"].items()}
            assert conf["retry.limit"] == conf["attempts.maximum"] == "0", "each error is Hudi's"
            self.s3 = boto3.client(
                "s3", endpoint_url=conf["endpoint"], region_name=conf["endpoint.region"],
                aws_access_key_id=conf["access.key"], aws_secret_access_key=conf["secret.key"],
                config=Config(retries={"total_max_attempts": 1}),
            )  # fmt: skip
            return {"ok": True}
        with suppress(ConnectionClosedError):
            self.put("first")
        assert self.ended.wait(5)
        return {"died": True}

    def tell(self, message: dict[str, Any]) -> None:
        assert message == {"do": "end"}
        self.ended.set()

    def put(self, name: str) -> None:
        self.s3.put_object(Bucket=BUCKET, Key=f"t0/{name}", Body=b"x")


def test_a_warm_life_on_s3_is_dead_at_its_call_and_what_is_left_of_it_changes_nothing() -> None:
    made, jvm = TableFaultInjector(Recorder(), "t0"), Lingering()
    death = Fault.of(FaultKind.KILL, DRIVER, Call("first$", ("put",), when="after"))
    with bucket_storage(Interceptor(made.recorder, made.inject, callers=DRIVERS), "t0") as place:
        made.driver = JavaDriver("driver-1", cast(Application, jvm), place, {}, None, own=False)
        made.driver.wait_ready()
        made.arm(TableStep(name="driver killed at a write", stage="write", faults=(death,)), place)
        with pytest.raises(Gone):
            made.driver.ask({"do": "write", "rows": [], "options": {}}, 5.0)
        with pytest.raises(ClientError, match="AccessDenied"):
            jvm.put("second")
        made.end()
        assert [file.path for file in place.files.tree("t0")] == ["t0/first"] and not made.driver.alive
    assert made.deadly and [call.path for call in made.calls] == ["t0/first"]
    assert [event.kind for event in made.recorder.events] == ["effect", "fault"]


def broken(name: str) -> Kind:
    return Kind(name, "direct", "local", "")


class Played(NamedTuple):
    """What came of points. warm: of the runs that were made for them, which were of a warm JVM."""

    runs: JavaRuns
    counts: list[dict[str, int]]
    counted: list[bool]
    warm: list[bool]

    @property
    def came(self) -> list[str]:
        return sorted(what for row in self.runs.walk.rows() for what in row.fates.values() if what)


def alike(walk: TableWalk) -> list[WalkPoint]:
    """Two points of one kind: deaths after the writes of two data files."""
    points = [point for point in (*first_points(walk), *walk._left) if point.fate == "death after"]
    return [point for point in points if point.plan.faults[0].trigger.operations == ("write",)]  # type: ignore[union-attr]


def plays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, points: int, *made: str, left_s: float = math.inf) -> Played:
    """What came of so many points of one kind. made: for each run that is made for them, what it broke."""
    warm, left = list[bool](), list(made)

    def run(_: JavaRuns, plan: Plan, __: float, drivers: JavaDrivers) -> SparkRun:
        warm.append(drivers.warm is not None)
        findings = tuple(Finding(guarantee=name, applicable=True) for name in left.pop(0).split())
        return SparkRun(history=History(Header(), ()), plan=plan, counts={}, findings=(*findings, KEPT_ONE))

    def failed(_: JavaRuns, played: SparkRun) -> set[Kind]:
        return {broken(each.guarantee) for each in played.findings or () if each is not KEPT_ONE}

    monkeypatch.setattr(JavaRuns, "_run", run)
    monkeypatch.setattr(JavaRuns, "_broken", failed)
    request = request_on("hudi-java:1.2.0", "local", ServerOptions(), "hudi-spark", 1, tmp_path)
    deadline = time.monotonic() + left_s
    program = Program(home=tmp_path, java="java", jars=(), mark="", logs=tmp_path, deadline=deadline)
    walk = walked()
    runs = JavaRuns(request=request, version="1.2.0", program=program, words=[], scratch=tmp_path, walk=walk)
    counts, counted = list[dict[str, int]](), list[bool]()
    for number, point in enumerate(alike(runs.walk)[:points], 1):
        drawn = DrawnPoint(number=number, plan=point.plan, point=point, words="")
        played = runs.play(drawn)
        runs.took(drawn, played, failed(runs, played))
        counts.append(dict(played.counts))
        counted.append(numbered_run(number, played).history is not None)
    assert not left
    return Played(runs, counts, counted, warm)


WAITS = "hoodie.filesystem.view.remote.timeout.secs"
KEPT_ONE = Finding(guarantee="G3", applicable=True, judged=1)


def test_a_run_that_keeps_every_promise_is_of_a_warm_jvm_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    played = plays(monkeypatch, tmp_path, 1, "")
    assert played.warm == [True] and played.counts == [{}] and played.counted == [True] and not played.runs.unconfirmed


def test_what_a_warm_jvm_breaks_is_a_violation_if_processes_break_it_at_the_second_try(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 1, "G15", "", "G15")
    assert played.warm == [True, False, False] and played.counts == [{CONFIRMED: 1}] and not played.runs.unconfirmed
    assert played.came == ["G15"]


def test_the_next_point_of_a_confirmed_story_needs_no_processes_and_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 2, "G15", "G15", "G15")
    assert played.warm == [True, False, True] and played.counts == [{CONFIRMED: 1}, {AS_BEFORE: 1}]
    assert played.counted == [True, False] and played.came == ["G15", OF_STORY + "G15"]


def test_a_guarantee_that_processes_did_not_break_at_a_kind_of_call_is_played_by_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 2, "G15", "G15", "G15 G24", "G24")
    assert played.warm == [True, False, True, False] and played.counts == [{CONFIRMED: 1}, {CONFIRMED: 1}]
    assert not played.runs.unconfirmed


def test_what_no_process_breaks_in_two_tries_is_no_violation_and_each_of_its_points_is_counted_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 2, "G15", "", "", "G15")
    assert played.warm == [True, False, False, True] and played.counts == [{NOT_CONFIRMED: 1}] * 2
    ((named, times),) = played.runs.unconfirmed.items()
    assert named.startswith("G15 by ") and times == 2 and played.came == [UNCONFIRMED] * 2
    assert played.counted == [True, False], "the run of processes counts, and one of a warm JVM alone does not"


def test_what_there_is_no_time_to_play_by_processes_is_not_confirmed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 1, "G15", left_s=PROCESSES_S / 2)
    assert played.warm == [True] and played.came == [UNCONFIRMED] and played.counted == [False]


def test_a_campaign_that_was_ended_begins_no_driver() -> None:
    ended = JavaDrivers("1.2.0", ["java"], over=lambda: True)
    with pytest.raises(OutOfTime):
        ended.begin(Plan(), None, Path(), None, injector(), "driver-2")  # type: ignore[arg-type]


def test_a_client_waits_less_for_a_silent_timeline_server_in_a_warm_jvm_and_is_otherwise_the_same() -> None:
    plan, drivers = table_of("timeline", 1), JavaDrivers("1.2.0", [], Named)  # type: ignore[arg-type]
    driver = drivers.begin(plan, None, Path(), Place(), injector(), "driver-1")  # type: ignore[arg-type]
    warm, process = dict(driver.options), java_options(plan, "1.2.0")
    assert not driver.own and int(warm.pop(WAITS)) < int(process.pop(WAITS)) and warm == process


def test_a_point_whose_run_had_no_time_for_its_fault_stays_untried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 0)
    point = alike(played.runs.walk)[0]
    drawn = DrawnPoint(number=1, plan=point.plan, point=point, words="")
    run = SparkRun(history=History(Header(), ()), plan=point.plan, counts={})
    struck = replace(run, met={point.plan.writes[0].name: 1})
    for cut in (replace(struck, cut=True), replace(run, cut=True), run):
        played.runs.took(drawn, cut, ())
        assert played.came == ([] if cut.cut else [NOT_MET]), (
            "a table that was not audited after its fault shows nothing"
        )
        rows = {row.call: row.fates for row in played.runs.walk.rows() if row.number == point.number}
        assert point.fate in next(fates for call, fates in rows.items() if call.startswith("write"))
    assert played.runs.draw({}) is None, "the time is over"


@pytest.mark.parametrize(("last", "came"), [("ok", KEPT), ("info", UNCONFIRMED)])
def test_a_point_after_which_no_write_completes_is_not_kept_where_no_judge_accuses_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, last: Literal["ok", "info"], came: str
) -> None:
    played = plays(monkeypatch, tmp_path, 0)
    point, recorder = alike(played.runs.walk)[0], Recorder()
    kinds: tuple[Literal["ok", "info"], ...] = ("ok", "info", last)
    for kind in kinds:
        recorder.record("driver-1", DRIVER, kind, "write", "t0", "")
    run = SparkRun(history=History(Header(), recorder.close()), plan=point.plan, counts={})
    drawn = DrawnPoint(number=1, plan=point.plan, point=point, words="")
    played.runs.took(drawn, replace(run, met={point.plan.writes[0].name: 1}), ())
    assert played.came == [came] and sum(played.runs.unconfirmed.values()) == (last == "info")


def test_what_a_table_breaks_without_a_fault_is_no_story_of_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 0)
    runs, warm, broke = played.runs, list[bool](), ["G13", "G13", "G13", "G13 G15", "G13 G15"]

    def run(_: JavaRuns, plan: Plan, __: float, drivers: JavaDrivers) -> SparkRun:
        warm.append(drivers.warm is not None)
        findings = tuple(Finding(guarantee=name, applicable=True) for name in broke.pop(0).split())
        return SparkRun(history=History(Header(), ()), plan=plan, counts={}, findings=findings)

    monkeypatch.setattr(JavaRuns, "_run", run)
    runs.walk = walked()
    runs.play(DrawnPoint(number=1, plan=runs.walk.controls[0], point=None, words=""))
    for number, point in enumerate(alike(runs.walk)[:2], 2):
        found = runs.play(DrawnPoint(number=number, plan=point.plan, point=point, words=""))
        assert [each.guarantee for each in found.findings or ()] == ([] if number == 2 else ["G13", "G15"])
    assert warm == [True, False, True, True, False] and not broke


def test_a_workload_that_breaks_a_promise_is_numbered_by_the_calls_of_its_warm_life(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = plays(monkeypatch, tmp_path, 0)
    walk = played.runs.walk = begun(("direct",))
    plan = walk.next()
    assert isinstance(plan, Plan)

    def run(_: JavaRuns, plan: Plan, __: float, drivers: JavaDrivers) -> SparkRun:
        calls = ((), WRITE) if drivers.warm is not None else ((), ())
        findings = (Finding(guarantee="G15", applicable=True),)
        return SparkRun(history=History(Header(), ()), plan=plan, counts={}, findings=findings, calls=calls)

    monkeypatch.setattr(JavaRuns, "_run", run)
    drawn = DrawnPoint(number=1, plan=plan, point=None, words="")
    found = played.runs.play(drawn)
    played.runs.took(drawn, found, {broken("G15")})
    assert found.findings and len(walk.rows()) == len(WRITE)


def test_versions_that_were_not_tried_are_refused_in_a_sentence() -> None:
    found = parse_target("hudi-java:1.2.0")
    assert isinstance(found, HudiJavaTarget) and found.version == "1.2.0"
    with pytest.raises(UsageError, match=r"--sut was given 'hudi-java:0\.9'; write hudi-java: and 1\.1\.1 or 1\.2\.0"):
        parse_target("hudi-java:0.9")
