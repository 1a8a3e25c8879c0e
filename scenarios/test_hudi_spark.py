"""`--sut hudi-spark:VERSION`: the real Hudi write path, drivers killed at storage effects, and damage done on purpose.

Tests marked `spark` start Spark, one at a time; they need Java 17 and `pip install '.[spark]'`, and fetch bundles once.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.plan import read_plan, write_plan
from marker_sim.worlds.spark.hudi.steps import PHASES
from properties.faces.campaign import broken_in, run_campaign
from properties.faces.cli import parse_request
from properties.faces.judges import load_profile
from properties.faces.outcome import Campaign
from properties.faces.search import plan_seed
from properties.faces.tables import by_word, observed
from properties.faces.targets import CampaignRequest, HudiSparkTarget, Jars, open_runs
from properties.faces.worlds import (
    DATA,
    FIRST_S,
    VARIABLE,
    Choices,
    Table,
    TableRound,
    TableStorage,
    draw_table,
    partition_names,
    with_steps,
)

NIGHTLY = os.environ.get("MARKER_SIM_PROFILE") == "nightly"
VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
PATIENCE_S = 240.0  # A busy machine may take a minute for what a quiet one does in fifteen seconds.


def request(**words: str | None) -> CampaignRequest:
    given: dict[str, str | None] = {
        "sut": "hudi-spark:1.0.2", "mode": "both", "storage": None, "budget": "40s", "seed": "1", "guarantees": None,
        "profile": None, "expect": None, "report": "r",
    }  # fmt: skip
    return parse_request(argv=(), **{**given, **words})  # type: ignore[arg-type]


def test_a_request_for_the_write_path_takes_both_modes_and_real_storages() -> None:
    parsed = request(mode="direct", storage="s3")
    assert isinstance(parsed.target, HudiSparkTarget) and parsed.target.version == "1.0.2"
    assert parsed.modes == ("direct",) and parsed.profile.name == "hudi-spark"
    with pytest.raises(UsageError, match="cannot run on; write local or s3"):
        request(storage="hdfs")
    with pytest.raises(UsageError, match=r"write hudi-spark:VERSION, for example hudi-spark:1\.0\.2"):
        request(sut="hudi-spark")


def test_what_is_missing_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--sut hudi-spark:9\.9\.9 has no bundle"):
        play(tmp_path, "9.9.9", 10.0)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(Jars, "cached", lambda self: (tmp_path / "some.jar",))
    with pytest.raises(HarnessError, match="Hudi needs Java and JAVA_HOME is"):
        play(tmp_path, "1.0.2", 10.0)


def test_where_no_call_can_be_stopped_local_storage_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("marker_sim.targets.run_environment.refused", lambda: "seccomp refuses the filter")
    with (
        pytest.raises(HarnessError, match="which is refused here: seccomp refuses the filter; give --storage s3"),
        open_runs(asking(tmp_path, "1.0.2", 10.0), "1.0.2", "java", ()),
    ):
        raise AssertionError("it was opened")


@pytest.fixture
def one_kill_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has one step, a kill at a data file."""
    place = next(phase for phase in PHASES if phase.word == "data-file")

    def drawn(choices: Choices, left_s: float) -> TableRound | None:
        number = len(choices._runs)
        if number and left_s < FIRST_S + choices.pace.estimate_s("write"):
            return None
        choices._runs[str(number)] += 1
        rng = random.Random(number)
        plan = draw_table(rng, number, choices.version)
        plan = replace(plan, mode=choices.modes[0], storage=choices.storage, seed=plan_seed(choices.seed, number))
        step = place.step(rng, len(partition_names(plan)), choices.storage)
        return TableRound(number=number, plan=with_steps(plan, [step]))

    monkeypatch.setattr(Choices, "next", drawn)


def damaged_by(monkeypatch: pytest.MonkeyPatch, damage: Callable[[TableStorage, str], None]) -> None:
    """Before each look at a table it is damaged."""
    read = Table._read_by_hudi

    def read_then(table: Table) -> Any:
        damage(table.place, table.name)
        return read(table)

    monkeypatch.setattr(Table, "_read_by_hudi", read_then)


def play(
    tmp_path: Path,
    version: str,
    budget_s: float,
    mode: str = "timeline",
    storage: str = "local",
    enough: Callable[[], bool] = lambda: False,
) -> Campaign:
    """A campaign that ends with its budget, or after the run that was `enough`."""

    def heard(_: History) -> None:
        if enough():
            raise KeyboardInterrupt

    asked = asking(tmp_path, version, budget_s, mode, storage)
    return run_campaign(asked, lambda line: None, on_run=heard)


def asking(
    tmp_path: Path,
    version: str,
    budget_s: float,
    mode: str = "timeline",
    storage: str = "local",
) -> CampaignRequest:
    return CampaignRequest(
        target=HudiSparkTarget(sut=f"hudi-spark:{version}", version=version),
        modes=(mode,),
        storages=(storage,),
        budget_s=budget_s,
        seed=1,
        profile=load_profile("hudi-spark"),
        report=tmp_path,
    )


def verdicts(done: Campaign) -> dict[str, str]:
    return {row.id: row.verdict for row in done.statistics.rows(load_profile("hudi-spark"))}


@pytest.mark.spark
@pytest.mark.usefixtures("one_kill_each")
def test_hudi_takes_back_what_a_killed_driver_left(tmp_path: Path) -> None:
    runs = iter(range(2))
    done = play(tmp_path, "1.2.0", PATIENCE_S, enough=lambda: next(runs) == 1)
    assert done.statistics.reached["driver killed at data-file, timeline mode"] >= 1
    assert done.statistics.reached["audit"] >= 2
    assert done.not_reached == ()
    found = verdicts(done)
    assert [found[name] for name in ("G14", "G15", "G18", "G19", "G24")] == ["holds"] * 5
    assert not left_over()


@pytest.mark.spark
@pytest.mark.usefixtures("one_kill_each")
def test_a_stray_file_and_markers_put_back_are_found_and_their_plan_shows_them_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planted: list[tuple[str, str]] = []

    def damage(place: TableStorage, table: str) -> None:
        """Put back what a rollback deleted, and markers of an instant that is over."""
        root, held = Path(place.uri), dict[str, bytes]()
        for event in place.interceptor.recorder.events:
            if event.kind == "effect" and event.path is not None and isinstance(event.value, bytes):
                held[event.path.removeprefix(f"{table}/")] = event.value
        gone = [path for path in held if re.match(rf"{DATA}(?<=\.parquet)", path) and not (root / path).exists()]
        if not gone or rolled_back(place, table) is None:
            return
        (root / gone[0]).write_bytes(held[gone[0]])
        files = [path for path in sorted(root.rglob("*.parquet")) if ".hoodie" not in path.parts]
        source = min(files, key=lambda path: path.stem.rpartition("_")[2])  # A commit began after the oldest one.
        over = source.stem.rpartition("_")[2]
        marker = root / ".hoodie" / ".temp" / over / "MARKERS0"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(f"{source.relative_to(root)}.marker.CREATE\n")
        planted.append((gone[0], over))

    damaged_by(monkeypatch, damage)
    done = play(tmp_path, "1.0.2", PATIENCE_S, enough=lambda: bool(planted))
    assert planted
    messages = {failure.guarantee: failure.message for failure in done.failures}
    assert any(path in messages["G15"] for path, _ in planted)
    residue = next(row for row in done.statistics.rows(load_profile("hudi-spark")) if row.id == "G18")
    assert residue.violations > 0
    assert any(instant in residue.message for _, instant in planted)
    assert verdicts(done)["G14"] == "holds"
    plan = next(failure.plan for failure in done.failures if failure.guarantee == "G15")
    assert plan is not None
    write_plan(plan, tmp_path / "plan.json")
    again = asking(tmp_path, "1.0.2", PATIENCE_S)
    with again.target.real_runs(again, lambda line: None) as runs:
        history = runs.again(read_plan(tmp_path / "plan.json"), time.monotonic() + PATIENCE_S).history
    assert {kind[0] for kind in broken_in(history, plan, again.profile)} >= {"G15"}
    assert [event.error for event in history.events if event.operation == "kill"] == ["data-file"]


@pytest.mark.spark
@pytest.mark.usefixtures("one_kill_each")
def test_a_lost_file_and_a_lost_row_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted: list[str] = []

    def damage(place: TableStorage, table: str) -> None:
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

    damaged_by(monkeypatch, damage)
    done = play(tmp_path, "1.2.0", PATIENCE_S, enough=lambda: bool(planted))
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
        done = play(tmp_path, version, 600.0, mode=mode, storage=storage)
        assert not done.trouble
        assert done.statistics.faults["kill"] >= 20
        assert not left_over()


def rolled_back(place: TableStorage, table: str) -> str | None:
    """The instant of the first rollback that is on the timeline."""
    for part in observed(place.files, table):
        facts = by_word(part.value if isinstance(part.value, tuple) else ())
        if facts.get("action") == ("rollback",) and "rolled-back" in facts:
            return facts["rolled-back"][0]
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
