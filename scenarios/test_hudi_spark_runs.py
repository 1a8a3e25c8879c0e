"""Runs of `--sut hudi-spark:VERSION` without Spark: where faults strike, what comes next, and how a run can end."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from marker_sim.errors import HarnessError, UsageError
from marker_sim.plan import Plan, read_plan, write_plan
from marker_sim.worlds.spark.hudi.steps import PHASES
from properties.faces.cli import main
from properties.faces.tables import DirectorySource, Unreadable
from properties.faces.targets import ServerOptions, parse_target
from properties.faces.worlds import (
    DATA,
    KILLED_AT,
    REWRITE,
    Application,
    ArmedFault,
    Choices,
    Gone,
    Hangs,
    OutOfTime,
    Pace,
    Program,
    Recorder,
    StorageCall,
    Table,
    TableFaultInjector,
    TableStep,
    TableStorage,
    WriteRefused,
    aimed_at,
    call_of,
    draw_table,
    has_rewrites,
    in_mode,
    key_count,
    partition_names,
    steps_of,
    with_steps,
)

I1, I2 = "20261121172129786", "20261121172133948"
FILE_ID = "f7a62827-d340-4e43-94d2-6206a470252b-0"
UUID = "0d822f47-674f-4d48-abff-36268519ddcf"
# What the releases write, by place: layout 1 (0.x, and 1.x at table version 6) and layout 2.
EFFECTS = {
    "requested": ("put", f".hoodie/{I1}.commit.requested", f".hoodie/timeline/{I1}.deltacommit.requested"),
    "inflight": ("put", f".hoodie/{I1}.inflight", f".hoodie/timeline/{I1}.deltacommit.inflight"),
    "flush": ("put", f".hoodie/.temp/{I1}/MARKERS0", f".hoodie/.temp/{I1}/MARKERS17"),
    "rewrite": ("cut", f".hoodie/.temp/{I1}/MARKERS0", f".hoodie/.temp/{I1}/MARKERS17"),
    "type-file": ("put", f".hoodie/.temp/{I1}/MARKERS.type"),
    "marker": (
        "put",
        f".hoodie/.temp/{I1}/p1/{FILE_ID}_1-14-24_{I1}.parquet.marker.CREATE",
        f".hoodie/.temp/{I1}/2024/01/01/.{FILE_ID}_{I1}.log.1_1-30-52.marker.APPEND",
    ),
    "data-file": ("put", f"a b/{FILE_ID}_1-14-24_{I1}.parquet", f"p1/.{FILE_ID}_{I1}.log.1_1-30-52"),
    "metadata": (
        "put",
        f".hoodie/metadata/.hoodie/{I1}.deltacommit",
        f".hoodie/metadata/.hoodie/timeline/{I1}_{I2}.deltacommit",
    ),
    "before-commit": (
        "put",
        f".hoodie/{I1}.commit",
        f".hoodie/timeline/{I1}_{I2}.deltacommit",
        f".hoodie/timeline/{I1}_{I2}.commit.{UUID}",
    ),
    "after-commit": ("put", f".hoodie/{I1}.deltacommit", f".hoodie/timeline/{I1}_{I2}.commit"),
    "marker-deletion": ("delete", f".hoodie/.temp/{I1}/MARKERS3", f".hoodie/.temp/{I1}/p/x.parquet.marker.MERGE"),
    "rollback-requested": ("put", f".hoodie/{I2}.rollback.requested", f".hoodie/timeline/{I2}.rollback.requested"),
    "rollback-inflight": ("put", f".hoodie/{I2}.rollback.inflight", f".hoodie/timeline/{I2}.rollback.inflight"),
    "rollback-deletion": ("delete", f"p1/{FILE_ID}_1-14-24_{I1}.parquet", f"p1/.{FILE_ID}_{I1}.log.1_1-30-52"),
    "rollback-before-completion": ("put", f".hoodie/{I2}.rollback", f".hoodie/timeline/{I2}_{I2}.rollback.{UUID}"),
    "rollback-after-completion": ("put", f".hoodie/{I2}.rollback", f".hoodie/timeline/{I2}_{I2}.rollback"),
    "rollback-marker-deletion": ("delete", f".hoodie/.temp/{I1}/MARKERS.type"),
}
NEVER_AIMED_AT = (
    ".hoodie/hoodie.properties",
    f".hoodie/.temp/{I1}/.MARKERS0.crc",
    f"p1/.{FILE_ID}_1-14-24_{I1}.parquet.crc",
    "p1/.hoodie_partition_metadata",
    f".hoodie/metadata/files/.files-0000-0_{I1}.log.1_0-25-30",
    f".hoodie/metadata/files/files-0000-0_0-25-30_{I1}.hfile",
)


# On a local file system a put is several calls.
CALLS = {"put": ("open", "write", "close"), "cut": ("cut",), "delete": ("delete",)}


def fitting(operation: str, path: str) -> set[str]:
    """The places whose kills, however they are drawn, are at a call of an effect, on each storage that has them."""
    calls = {
        "local": [StorageCall("executor-127.0.0.2", "executor", each, f"t0/{path}") for each in CALLS[operation]],
        "s3": [StorageCall("driver-1", "driver", operation, f"t0/{path}")],
    }
    return {
        phase.word
        for phase in PHASES
        if all(
            any(aimed_at(phase.fault(random.Random(seed), 1, storage), "t0").fits(call) for call in calls[storage])
            for storage in (("local",) if phase.rewrites else ("local", "s3"))
            for seed in range(12)
        )
    }


@pytest.mark.parametrize("word", sorted(EFFECTS))
def test_a_place_is_met_by_what_the_releases_write_there(word: str) -> None:
    operation, *paths = EFFECTS[word]
    assert all(word in fitting(operation, path) for path in paths), paths
    other = "delete" if operation == "put" else "put"
    assert not any(word in fitting(other, path) for path in paths)


def test_every_place_has_an_example() -> None:
    assert set(EFFECTS) == {phase.word for phase in PHASES}


@pytest.mark.parametrize("path", NEVER_AIMED_AT)
def test_no_driver_is_killed_at_what_is_no_place(path: str) -> None:
    assert not fitting("put", path)
    assert re.search(f"^t0/{DATA}", f"t0/{path}") is None


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_rounds_go_to_every_place_and_trouble_before_they_repeat_one(storage: str) -> None:
    met = Counter[tuple[str, str]]()
    choices = Choices("1.0.2", ("direct", "timeline"), storage, 7, 600.0, met, met)
    for _ in range(40):
        drawn = choices.next(10_000.0)
        assert drawn is not None
        for step in drawn.steps:
            met[drawn.plan.mode, step.name] = met.get((drawn.plan.mode, step.name), 0) + 1
    for mode in ("direct", "timeline"):
        places = {
            phase.name for phase in PHASES if phase.mode in ("", mode) and (storage == "local" or not phase.rewrites)
        }
        names = {name for each, name in met if each == mode}
        assert places <= names
        assert {"executor killed", "executor paused", "driver killed at reconcile"} <= names
        assert ("puts refused" in names) is (storage == "s3")
        kills = [count for (each, name), count in met.items() if each == mode and name in places - {"metadata"}]
        assert min(kills) >= 2, "every place was met again and again"


@pytest.mark.parametrize("modes", [("timeline",), ("direct", "timeline")])
@pytest.mark.parametrize("seed", range(12))
def test_the_first_kill_of_timeline_mode_is_in_a_rewrite_and_its_write_writes_files_again(
    modes: tuple[str, ...], seed: int
) -> None:
    met: Counter[tuple[str, str]] = Counter()
    choices = Choices("1.0.2", modes, "local", seed, 240.0, met, met)
    for _ in modes:
        drawn = choices.next(1e6)
        assert drawn is not None
        plan = drawn.plan
        met.update((plan.mode, step.name) for step in drawn.steps)
        if plan.mode == "timeline":
            assert drawn.steps[0].name == REWRITE
            assert plan.num_threads < len(partition_names(plan)) / 2, "two tasks at a time ask for markers"
    assert met["timeline", REWRITE] == 1


def test_some_writes_that_write_files_again_have_hudis_defaults_and_some_few_threads() -> None:
    drawn = [draw_table(random.Random(seed), 0, "1.0.2", rewrites=True) for seed in range(60)]
    assert all(map(has_rewrites, drawn))
    assert {plan.num_threads for plan in drawn} == {1, 2, 20}
    assert {len(partition_names(plan)) >= 60 for plan in drawn if plan.num_threads == 20} == {True}
    assert all(key_count(plan) >= len(partition_names(plan)) for plan in drawn), "a row for each partition"


def test_after_it_was_met_it_is_a_place_like_others_and_on_s3_it_is_none() -> None:
    for storage in ("local", "s3"):
        met: Counter[tuple[str, str]] = Counter()
        choices = Choices("1.0.2", ("timeline",), storage, 5, 600.0, met, met)
        for _ in range(60):
            drawn = choices.next(1e6)
            assert drawn is not None
            met.update((drawn.plan.mode, step.name) for step in drawn.steps)
            assert has_rewrites(drawn.plan) or REWRITE not in {step.name for step in drawn.steps}
        assert 2 <= met["timeline", REWRITE] < 30 if storage == "local" else not met["timeline", REWRITE]


def test_no_kill_waits_for_more_files_than_a_write_makes() -> None:
    choices = Choices("0.15.0", ("direct", "timeline"), "s3", 3, 600.0)
    for _ in range(80):
        drawn = choices.next(1e6)
        assert drawn is not None
        kills = [each for step in drawn.steps for each in step.faults if each.target == "driver"]
        assert all(call_of(each).n <= len(partition_names(drawn.plan)) for each in kills)
        if drawn.plan.merge_on_read:
            assert "rollback-deletion" not in {step.word for step in drawn.steps}, "its rollbacks append to log files"


def test_the_same_seed_chooses_the_same_rounds() -> None:
    first, second = (Choices("1.2.0", ("timeline",), "s3", 5, 240.0) for _ in range(2))
    assert [first.next(1e6) for _ in range(8)] == [second.next(1e6) for _ in range(8)]


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_a_round_is_a_plan_that_is_stored_and_read_and_gives_the_same_steps_and_rows(
    tmp_path: Path, storage: str
) -> None:
    choices = Choices("1.0.2", ("direct", "timeline"), storage, 4, 600.0)
    for _ in range(12):
        drawn = choices.next(1e6)
        assert drawn is not None
        write_plan(drawn.plan, tmp_path / "plan.json")
        read = read_plan(tmp_path / "plan.json")
        assert read == drawn.plan
        assert with_steps(replace(read, writes=(), faults=()), steps_of(read)) == read
        assert read.entries == len(read.writes) + len(read.faults) > 0


def test_the_shape_of_a_table_is_checked_when_a_plan_is_read() -> None:
    good = with_steps(draw_table(random.Random(3), 0, "1.0.2"), [KILL]).to_dict()
    shape = good["shape"] | {"partitions": "weekly"}
    with pytest.raises(UsageError, match="partitions is 'weekly'; accepted are plain, nested"):
        Plan.from_dict(good | {"shape": shape})
    with pytest.raises(UsageError, match=r"write faults \[1\] are not of 1"):
        Plan.from_dict(good | {"writes": [{"faults": [1]}]})


class Driver:
    """Stands in for a driver: each write ends as `outcomes` say in turn, and the last one again and again."""

    def __init__(self, name: str, outcomes: list[str]) -> None:
        self.name, self.alive, self._outcomes = name, True, outcomes

    def wait_ready(self) -> None: ...

    def ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if message["do"] == "read":
            return {"rows": []}
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if outcome == "out of time":
            raise OutOfTime
        if outcome == "dies":
            self.alive = False
            raise Gone(self.name)
        if outcome == "hangs":
            raise Hangs
        return {"ok": True} if outcome == "ok" else {"error": outcome}

    def kill_now(self) -> None:
        self.alive = False

    def kill(self) -> None:
        self.alive = False

    def last_lines(self) -> str:
        return "its last words"


class Nowhere:
    """Storage that nothing happens to, but for what is aimed: an aim strikes when it is armed."""

    def __init__(self, root: Path, injector: TableFaultInjector) -> None:
        self.files, self.uri = DirectorySource(root, 1), str(root)
        self.reader: tuple[str, dict[str, str]] = (str(root), {})
        self.interceptor = self
        self._injector = injector
        self.calls: list[StorageCall] = []

    def caller(self, target: str, driver: str) -> str:
        return driver

    def arm(self, *faults: ArmedFault) -> None:
        for fault in faults:
            fault.fired += 1
            self._injector.inject(fault, StorageCall(self._injector.process, "driver", "put", "t0/p0/x.parquet"))

    def disarm(self) -> None: ...


KILL = TableStep(
    name=f"{KILLED_AT}data-file",
    stage="write",
    faults=(next(phase for phase in PHASES if phase.word == "data-file").fault(random.Random(0), 4, "local"),),
)


def acted(tmp_path: Path, outcomes: list[str]) -> tuple[Table, Recorder]:
    """A table of one write that is killed."""
    injector = TableFaultInjector(Recorder(), "t0")
    plan = with_steps(draw_table(random.Random(3), 0, "1.0.2"), [KILL])
    program = Program(
        home=tmp_path, java="java", jars=(), mark="none", logs=tmp_path, deadline=time.monotonic() + 1_000
    )  # fmt: skip
    table = Table(
        name="t0", plan=plan, place=cast(TableStorage, Nowhere(tmp_path, injector)), injector=injector,
        begin=lambda name: cast(Application, Driver(name, outcomes)), program=program, pace=Pace(),
    )  # fmt: skip
    return table, injector.recorder


def test_a_budget_that_ends_in_a_write_blames_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marker_sim.worlds.spark.hudi.table.read_rows", lambda *_, **__: ())
    table, recorder = acted(tmp_path, ["ok", "out of time"])
    with pytest.raises(OutOfTime):
        table.play()
    ends = [(event.kind, event.operation, event.value) for event in recorder.events[-2:]]
    assert ends == [("fault", "kill", "end-of-run"), ("info", "write", None)]


@pytest.mark.parametrize("last", ["HoodieRollbackException: it cannot", "hangs"])
def test_a_table_that_takes_no_write_after_a_kill_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    monkeypatch.setattr("marker_sim.worlds.spark.hudi.table.read_rows", lambda *_, **__: ())
    table, recorder = acted(tmp_path, ["ok", "dies", last])
    with pytest.raises(WriteRefused, match="no write succeeded any more"):
        table.play()
    assert table.met[KILL.name] == 1
    assert [event.operation for event in recorder.events if event.kind == "fault"] == ["kill"]
    infos = [event.error for event in recorder.events if event.kind == "info"]
    assert len(infos) == 4
    assert table.refused[0] == infos[1]
    audited = [event for event in recorder.events if event.operation in ("audit", "rows")]
    assert [event.process for event in audited[-3:]] == ["hudi", "hudi-rs", "kit"], "it was audited once more"
    assert audited[-1].caused_by == max(event.index for event in recorder.events if event.kind == "info")


def test_a_driver_that_dies_by_itself_after_a_fault_is_not_the_kits_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marker_sim.worlds.spark.hudi.table.read_rows", lambda *_, **__: ())
    table, _ = acted(tmp_path, ["ok", "dies", "dies"])
    with pytest.raises(WriteRefused, match="no write succeeded any more"):
        table.play()
    assert "its driver ended by itself" in table.refused[0]


@pytest.mark.parametrize("outcome", ["dies", "hangs", "SparkException: no"])
def test_a_driver_that_fails_without_a_fault_is_the_surroundings_fault(tmp_path: Path, outcome: str) -> None:
    table, _ = acted(tmp_path, [outcome])
    with pytest.raises(HarnessError, match=r"failed without a fault .*its last words"):
        table.play()


def test_what_a_reader_cannot_read_before_any_fault_is_its_own_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def unreadable(uri: str, options: object, deadline_s: float) -> tuple[str, ...]:
        asked.append(uri)
        raise Unreadable("no such codec")

    monkeypatch.setattr("marker_sim.worlds.spark.hudi.table.read_rows", unreadable)
    table, recorder = acted(tmp_path, ["ok", "dies", "ok"])
    table.play()
    said = [event.error for event in recorder.events if event.operation == "rows" and event.process == "hudi-rs"]
    assert said == ["unsupported: before any fault: no such codec"]
    assert len(asked) == 1


def test_a_plan_of_a_table_is_run_by_hudi_alone_and_hudi_runs_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(with_steps(draw_table(random.Random(3), 0, "1.0.2"), [KILL]), tmp_path / "table.json")
    write_plan(Plan(), tmp_path / "store.json")
    assert main(["replay", str(tmp_path / "table.json")]) == 4
    assert "of a table that Hudi writes, which reference does not; give --sut hudi-spark" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "store.json"), "--sut", "hudi-spark:1.0.2"]) == 4
    assert "its plan is of a marker store, and hudi-spark:1.0.2 writes tables" in capsys.readouterr().out


def test_the_plans_of_a_night_meet_every_place_in_turn_and_depend_on_their_number_alone() -> None:
    target = parse_target("hudi-spark:1.0.2")
    for storage in ("local", "s3"):
        plans = [target.plan_of(7, number, storage, ServerOptions()) for number in range(24)]
        assert plans[5] == target.plan_of(7, 5, storage, ServerOptions())
        met = {in_mode(step.name, plan.mode) for plan in plans if plan is not None for step in steps_of(plan)}
        assert set(target.goals(storage, ServerOptions())) <= met
        assert all(plan is not None and plan.storage == storage and plan.shape is not None for plan in plans)
