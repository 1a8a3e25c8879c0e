"""`--sut hudi-spark:VERSION`: the real Hudi write path, drivers killed at storage effects, and damage done on purpose.

Tests marked `spark` start Spark, one at a time; they need Java 17 and `pip install '.[spark]'`, and fetch bundles once.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psutil
import pyarrow.parquet as pq
import pytest

from marker_sim.campaign import Campaign
from marker_sim.cli.request import parse_request
from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.judges.profiles import load_profile
from marker_sim.real.gate import Aim, Call
from marker_sim.real.processes import VARIABLE
from marker_sim.real.recorder import Recorder
from marker_sim.real.spark.application import Gone
from marker_sim.sut.bundles import Jars
from marker_sim.sut.hudi_spark.campaign import run_hudi_spark
from marker_sim.sut.hudi_spark.choices import Choices
from marker_sim.sut.hudi_spark.lives import Hangs, Life, OutOfTime, Program
from marker_sim.sut.hudi_spark.phases import DATA, PHASES
from marker_sim.sut.hudi_spark.places import Place, Target
from marker_sim.sut.hudi_spark.settings import draw_shape
from marker_sim.sut.hudi_spark.table import Pace, Refused, Table
from marker_sim.tables import LocalTree, Unreadable
from marker_sim.tables.entries import facts, place_of

NIGHTLY = os.environ.get("MARKER_SIM_PROFILE") == "nightly"
VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
I1, I2 = "20261121172129786", "20261121172133948"
FILE_ID = "f7a62827-d340-4e43-94d2-6206a470252b-0"
UUID = "0d822f47-674f-4d48-abff-36268519ddcf"
# What the releases write, by place: layout 1 (0.x, and 1.x at table version 6) and layout 2.
EFFECTS = {
    "requested": ("put", f".hoodie/{I1}.commit.requested", f".hoodie/timeline/{I1}.deltacommit.requested"),
    "inflight": ("put", f".hoodie/{I1}.inflight", f".hoodie/timeline/{I1}.deltacommit.inflight"),
    "flush": ("put", f".hoodie/.temp/{I1}/MARKERS0", f".hoodie/.temp/{I1}/MARKERS17"),
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


def fitting(operation: str, path: str, process: str = "driver-1") -> set[str]:
    call = Call(process, "driver", operation, f"t0/{path}")
    rng = random.Random(0)
    return {phase.word for phase in PHASES if phase.blow(rng).aim("t0", "driver-1").fits(call)}


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
    met: dict[tuple[str, str], int] = {}
    choices = Choices("1.0.2", ("direct", "timeline"), storage, 7, 600.0, (), met)
    for _ in range(40):
        spec = choices.next(10_000.0)
        assert spec is not None
        for step in spec.steps:
            met[spec.mode, step.name] = met.get((spec.mode, step.name), 0) + 1
    for mode in ("direct", "timeline"):
        places = {phase.name for phase in PHASES if phase.mode in ("", mode)}
        names = {name for each, name in met if each == mode}
        assert places <= names
        assert {"executor killed", "executor paused", "driver killed at reconcile"} <= names
        assert ("puts refused" in names) is (storage == "s3")
        kills = [count for (each, name), count in met.items() if each == mode and name in places - {"metadata"}]
        assert min(kills) >= 2, "every place was met again and again"


def test_the_same_seed_chooses_the_same_rounds() -> None:
    first, second = (Choices("1.2.0", ("timeline",), "s3", 5, 240.0, (), {}) for _ in range(2))
    assert [first.next(1e6) for _ in range(8)] == [second.next(1e6) for _ in range(8)]


def request(**words: str | None) -> object:
    given: dict[str, str | None] = {
        "sut": "hudi-spark:1.0.2", "mode": "both", "storage": None, "budget": "40s", "seed": "1", "guarantees": None,
        "profile": None, "expect": None, "report": "r",
    }  # fmt: skip
    return parse_request(argv=(), **{**given, **words})  # type: ignore[arg-type]


def test_a_request_for_the_write_path_takes_both_modes_and_real_storages() -> None:
    parsed = request(mode="direct", storage="s3")
    assert (parsed.kind, parsed.detail, parsed.modes) == ("hudi-spark", "1.0.2", ("direct",))  # type: ignore[attr-defined]
    assert parsed.profile.name == "hudi-spark"  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="cannot run on; write local or s3"):
        request(storage="hdfs")
    with pytest.raises(UsageError, match=r"write hudi-spark:VERSION, for example hudi-spark:1\.0\.2"):
        request(sut="hudi-spark")


def test_what_is_missing_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--sut hudi-spark:9\.9\.9 has no bundle"):
        play(tmp_path, "9.9.9", 10.0)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(Jars, "cached", lambda self: (tmp_path / "some.jar",))
    with pytest.raises(HarnessError, match="the Hudi write path needs Java and JAVA_HOME is"):
        play(tmp_path, "1.0.2", 10.0)


class Driver:
    """Stands in for a driver: each write ends as `outcomes` say in turn, and the last one again and again."""

    def __init__(self, name: str, outcomes: list[str]) -> None:
        self.name, self.alive, self._outcomes = name, True, outcomes

    def wait_ready(self) -> None: ...

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
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

    def strike(self) -> None:
        self.alive = False

    def end(self) -> None:
        self.alive = False

    def said(self) -> str:
        return "its last words"


class Nowhere:
    """Storage that nothing happens to, but for what is aimed: an aim strikes when it is armed."""

    def __init__(self, root: Path, target: Target) -> None:
        self.tree, self.uri = LocalTree(root), str(root)
        self.reader: tuple[str, dict[str, str]] = (str(root), {})
        self._target = target

    def arm(self, *aims: Aim, at: str = "whole") -> None:
        for aim in aims:
            aim.fired += 1
            self._target.acts[aim](Call(self._target.process, "driver", "put", "t0/p0/x.parquet"))

    def disarm(self) -> None: ...


def acted(tmp_path: Path, outcomes: list[str]) -> tuple[Table, Recorder]:
    recorder, target = Recorder(), Target()
    shape = draw_shape(random.Random(3), 0, "1.0.2")
    program = Program(
        home=tmp_path, java="java", jars=(), mark="none", logs=tmp_path, deadline=time.monotonic() + 1_000
    )  # fmt: skip
    table = Table(
        name="t0", shape=shape, recorder=recorder, place=cast(Place, Nowhere(tmp_path, target)), target=target,
        begin=lambda name: cast(Life, Driver(name, outcomes)), program=program, rng=random.Random(1), pace=Pace(),
        executors=tuple,
    )  # fmt: skip
    return table, recorder


KILL = next(phase for phase in PHASES if phase.word == "data-file").step(random.Random(0))


def test_a_budget_that_ends_in_a_write_blames_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marker_sim.sut.hudi_spark.table.read_rows", lambda *_, **__: ())
    table, recorder = acted(tmp_path, ["ok", "out of time"])
    with pytest.raises(OutOfTime):
        table.play([KILL])
    ends = [(event.kind, event.operation, event.value) for event in recorder.events[-2:]]
    assert ends == [("fault", "kill", "end-of-run"), ("info", "write", None)]


@pytest.mark.parametrize("last", ["HoodieRollbackException: it cannot", "hangs"])
def test_a_table_that_takes_no_write_after_a_kill_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    monkeypatch.setattr("marker_sim.sut.hudi_spark.table.read_rows", lambda *_, **__: ())
    table, recorder = acted(tmp_path, ["ok", "dies", last])
    with pytest.raises(Refused, match="no write succeeded any more"):
        table.play([KILL])
    assert table.count.met == {KILL.name: 1}
    assert [event.operation for event in recorder.events if event.kind == "fault"] == ["kill"]
    infos = [event.error for event in recorder.events if event.kind == "info"]
    assert len(infos) == 4
    assert table.count.refused[0] == infos[1]


@pytest.mark.parametrize("outcome", ["dies", "hangs", "SparkException: no"])
def test_a_driver_that_fails_without_a_fault_is_the_surroundings_fault(tmp_path: Path, outcome: str) -> None:
    table, _ = acted(tmp_path, [outcome])
    with pytest.raises(HarnessError, match=r"failed without a fault .*its last words"):
        table.play([KILL])


def test_what_a_reader_cannot_read_before_any_fault_is_its_own_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def unreadable(uri: str, options: object, deadline_s: float) -> tuple[str, ...]:
        asked.append(uri)
        raise Unreadable("no such codec")

    monkeypatch.setattr("marker_sim.sut.hudi_spark.table.read_rows", unreadable)
    table, recorder = acted(tmp_path, ["ok", "dies", "ok"])
    table.play([KILL])
    said = [event.error for event in recorder.events if event.operation == "rows" and event.process == "hudi-rs"]
    assert said == ["unsupported: before any fault: no such codec"]
    assert len(asked) == 1


def play(
    tmp_path: Path,
    version: str,
    budget_s: float,
    names: tuple[str, ...] = ("driver killed at data-file",),
    mode: str = "timeline",
    storage: str = "local",
    meddle: Callable[[Place, str], None] | None = None,
    seen: list[History] | None = None,
) -> Campaign:
    return run_hudi_spark(
        version,
        modes=(mode,),
        storage=storage,
        budget_s=budget_s,
        seed=1,
        report_dir=tmp_path,
        profile=load_profile("hudi-spark"),
        progress=lambda line: None,
        names=names,
        meddle=meddle,
        on_round=None if seen is None else seen.append,
    )


def verdicts(done: Campaign) -> dict[str, str]:
    return {row.id: row.verdict for row in done.tally.rows(load_profile("hudi-spark"))}


@pytest.mark.spark
def test_hudi_takes_back_what_a_killed_driver_left(tmp_path: Path) -> None:
    done = play(tmp_path, "1.2.0", 60.0)
    assert done.tally.reached["driver killed at data-file"] >= 1
    assert done.tally.reached["audit"] >= 2
    assert done.not_reached == ()
    found = verdicts(done)
    assert [found[name] for name in ("G14", "G15", "G18", "G19", "G24")] == ["holds"] * 5
    assert not left_over()


@pytest.mark.spark
def test_a_stray_file_and_markers_put_back_are_found(tmp_path: Path) -> None:
    planted: list[str] = []

    def damage(place: Place, table: str) -> None:
        instant = rolled_back(place, table)
        if instant is None:
            return
        root = Path(place.uri)
        source = next(path for path in sorted(root.rglob("*.parquet")) if ".hoodie" not in path.parts)
        stray = source.with_name(re.sub(r"_\d+\.parquet$", f"_{instant}.parquet", source.name))
        shutil.copyfile(source, stray)
        over = source.stem.rpartition("_")[2]
        marker = root / ".hoodie" / ".temp" / over / "MARKERS0"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(f"{source.relative_to(root)}.marker.CREATE\n")
        planted.extend((stray.name, over))

    done = play(tmp_path, "1.0.2", 60.0, meddle=damage)
    assert planted
    messages = {failure.guarantee: failure.message for failure in done.failures}
    assert planted[0] in messages["G15"]
    residue = next(row for row in done.tally.rows(load_profile("hudi-spark")) if row.id == "G18")
    assert residue.violations > 0
    assert planted[1] in residue.message
    assert verdicts(done)["G14"] == "holds"


@pytest.mark.spark
def test_a_lost_file_and_a_lost_row_are_found(tmp_path: Path) -> None:
    planted: list[str] = []

    def damage(place: Place, table: str) -> None:
        if rolled_back(place, table) is None or planted:
            return
        bases = [path for path in Path(place.uri).rglob("*.parquet") if ".hoodie" not in path.parts]
        groups: dict[str, list[Path]] = {}
        for path in sorted(bases, key=lambda path: path.stem.rpartition("_")[2]):
            groups.setdefault(path.name.partition("_")[0], []).append(path)
        old = next(paths[0] for paths in groups.values() if len(paths) > 1)
        new = next(paths[-1] for paths in groups.values() if pq.read_metadata(paths[-1]).num_rows > 1)
        old.unlink()
        pq.write_table(pq.read_table(new, partitioning=None).slice(1), new)
        new.with_name(f".{new.name}.crc").unlink(missing_ok=True)
        planted.append(old.name)

    seen: list[History] = []
    done = play(tmp_path, "1.2.0", 60.0, meddle=damage, seen=seen)
    assert planted
    messages = {failure.guarantee: failure.message for failure in done.failures}
    assert planted[0] in messages["G14"]
    assert re.search(r"k\d\d", messages["G24"])
    assert verdicts(done)["G15"] == "holds"


if NIGHTLY:

    @pytest.mark.spark
    @pytest.mark.parametrize("storage", ["local", "s3"])
    @pytest.mark.parametrize("mode", ["direct", "timeline"])
    @pytest.mark.parametrize("version", VERSIONS)
    def test_no_trouble_of_the_kit_in_a_long_campaign(tmp_path: Path, version: str, mode: str, storage: str) -> None:
        done = play(tmp_path, version, 600.0, names=(), mode=mode, storage=storage)
        assert not done.trouble
        assert done.tally.faults["kill"] >= 20
        assert not left_over()


def rolled_back(place: Place, table: str) -> str | None:
    """The instant of the first rollback that is on the timeline."""
    for path in place.tree.list():
        entry = place_of(path.removeprefix(f"{table}/"))
        if entry is not None and entry.action == "rollback":
            for fact in facts(entry, place.tree.read(path)):
                if fact.startswith("rolled-back "):
                    return fact.removeprefix("rolled-back ")
    return None


def left_over() -> list[psutil.Process]:
    """Processes that this one started for a driver and that still live."""
    mine = f"{os.getpid()}-"
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(VARIABLE, "").startswith(mine) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found
