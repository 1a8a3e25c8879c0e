"""A night on a Spark cluster whose executor and whose driver are killed: every run is there once, and is the same run.

pytest -m spark -n 0 scenarios/test_spark_campaign.py
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from marker_sim.campaign.nightly.units import swarm
from marker_sim.surroundings import supervisor
from properties.faces.campaign import COVERAGE, FOLDER, ROWS, NightlyTask, read_lines
from properties.faces.surroundings import VARIABLE

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent
SUT = "mutant:no-type-file"
SEED = 77
START_S, UNIT_S, END_S = 120.0, 60.0, 30.0


def _start(directory: Path) -> subprocess.Popen[str]:
    words = ["--spark-master", "local-cluster[2,1,1024]", "--stages", "swarm", "--budget", "10m"]
    words += ["--dir", str(directory), "--sut", SUT]
    words += [] if directory.exists() else ["--seed", str(SEED)]
    return subprocess.Popen(
        [sys.executable, "-m", "marker_sim", "chaos", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _units(directory: Path) -> list[dict[str, Any]]:
    return [line for line in read_lines(directory) if line["kind"] == "unit" and line["stream"] == "swarm"]


def _wait(
    what: str, condition: Callable[[], Any], seconds: float, process: subprocess.Popen[str] | None = None
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, f"{what}: {process and process.communicate()}"
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def _more(directory: Path, than: int) -> bool:
    return len(_units(directory)) > than


def _executors(process: subprocess.Popen[str]) -> list[psutil.Process]:
    below = psutil.Process(process.pid).children(recursive=True)
    return [each for each in below if any("CoarseGrainedExecutorBackend" in word for word in _words(each))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _busy(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Executors with a Python worker, that is with a task."""
    return [each for each in _executors(process) if each.children(recursive=True)]


def test_executor_and_driver_are_killed_and_every_run_is_there_once_as_one_process_makes_it(tmp_path: Path) -> None:
    directory, mark = tmp_path / "night", str((tmp_path / "night").resolve())
    driver = _start(directory)
    try:
        _wait("no unit was done", partial(_more, directory, 0), START_S, driver)
        _wait("no executor is at work", partial(_busy, driver), UNIT_S, driver)
        killed = random.Random(SEED).choice(_busy(driver))
        killed.send_signal(signal.SIGKILL)
        before = len(_units(directory))
        _wait("nothing was done without the executor", partial(_more, directory, before + 1), 2 * UNIT_S, driver)
        driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=END_S)
        left = partial(supervisor.marked, VARIABLE, mark)
        _wait("executors outlive their driver", lambda: not list(left()), END_S)
        before = len(_units(directory))
        driver = _start(directory)
        _wait("the night does not go on", partial(_more, directory, before + 1), START_S + UNIT_S, driver)
        driver.send_signal(signal.SIGINT)
        out, err = driver.communicate(timeout=UNIT_S)
        assert driver.returncode == 130, out + err
        assert not list(left())
    finally:
        driver.kill()
        supervisor.end_marked(VARIABLE, mark)
    lines, units = list(read_lines(directory)), _units(directory)
    assert [line["kind"] for line in lines].count("night") == 1 and "resume" in {line["kind"] for line in lines}
    numbers = Counter(number for unit in units for number in range(unit["first"], unit["first"] + unit["count"]))
    assert set(numbers.values()) == {1}, "a number was done twice"
    _check_tables(directory, units)
    _check_again(directory, [units[0], next(unit for unit in units[::-1] if unit["sightings"])])


def _check_tables(directory: Path, units: list[dict[str, Any]]) -> None:
    """Each run of the ledger is a row and nothing else is."""
    keys = ["stream", "number", "run"]
    runs = pq.read_table(directory / FOLDER / "runs").to_pylist()
    assert len({tuple(row[key] for key in keys) for row in runs}) == len(runs) == sum(unit["runs"] for unit in units)
    for unit in units:
        own = [row for row in runs if unit["first"] <= row["number"] < unit["first"] + unit["count"]]
        assert len(own) == unit["runs"] and sum(row["steps"] for row in own) == unit["steps"]
    counted = Counter[tuple[str, str]]()
    for row in pq.read_table(directory / FOLDER / "coverage").to_pylist():
        counted[row["kind"], row["name"]] += row["times"]
    for kind in COVERAGE:
        said = sum((Counter(unit.get(kind, {})) for unit in units), Counter[str]())
        assert said == {name: times for (each, name), times in counted.items() if each == kind}


def _check_again(directory: Path, units: list[dict[str, Any]]) -> None:
    """What executors found in a unit is what one process finds, run by run, and is stored."""
    violations = pq.read_table(directory / FOLDER / "violations").to_pylist()
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in (directory / "failures").glob("*.json")]
    sightings = sum(len(unit["sightings"]) for unit in _units(directory))
    assert sum(each["seen"] + each["alike"] for each in stored) == sightings, (
        "a violation is stored twice, or not at all"
    )
    for unit in units:
        words: dict[str, Any] = {name: unit[name] for name in ("stream", "first", "count")}
        again = swarm(NightlyTask(**words, sut=SUT, profile="reference", until=0.0, seed=SEED, listing=True))
        rows = again.pop(ROWS)
        found, same = again.pop("sightings"), [name for name in again if name != "trouble"]
        assert {name: unit[name] for name in same} == json.loads(json.dumps({name: again[name] for name in same}))
        assert _kinds(found) == _kinds(unit["sightings"])
        # A plan that was made small is named by the cause of what is left of it; these are not made small again here.
        whole = [(each, other) for each, other in zip(found, unit["sightings"], strict=True) if not other["shrunk"]]
        assert [each["cause"] for each, _ in whole] == [other["cause"] for _, other in whole]
        broken = sorted((row.number, row.run, *promise) for row in rows for promise in row.broken)
        numbers = range(unit["first"], unit["first"] + unit["count"])
        columns = ("number", "run", "guarantee", "cause", "under", "message")
        assert broken == sorted(tuple(row[name] for name in columns) for row in violations if row["number"] in numbers)
    assert any(each["shrunk"] for each in stored), "nothing was made small"


def _kinds(sightings: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [tuple(each[name] for name in ("guarantee", "mode", "storage")) for each in sightings]
