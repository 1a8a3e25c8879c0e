"""Who does the units of a night: shrinking as tasks of their own, and what is said when executors cannot be had."""

from __future__ import annotations

import json
import socket
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.campaign.nightly.shrinks import Shrinks
from marker_sim.campaign.nightly.spark_executor import SparkTask, kit
from marker_sim.campaign.nightly.work import NightlyTask, shrunk, swarm
from marker_sim.cli import main
from marker_sim.errors import HarnessError
from marker_sim.spark_session import said_by, ship

MUTANT = "mutant:no-type-file"
TASK = NightlyTask(stream="swarm", first=0, count=2, sut=MUTANT, profile="reference", until=0.0, seed=5)


def test_a_unit_waits_for_its_violations_and_is_then_one_line_with_small_plans() -> None:
    result, shrinks = swarm(TASK), Shrinks()
    kinds = [sighting["guarantee"] for sighting in result["sightings"]]
    assert kinds and not any(sighting["shrunk"] for sighting in result["sightings"])
    assert shrinks.explored(TASK, 2.0, result, {}) is None
    due = list(shrinks.due)
    assert len(due) == len(kinds), "each is a task of its own, the first of each kind in a night"
    made = [shrunk(replace(task, until=float("inf"))) for task in due]
    assert all(each["record"]["shrunk"] for each in made)
    units = [shrinks.shrunk(task, 1.0, answer) for task, answer in reversed(list(zip(due, made, strict=True)))]
    assert units[:-1] == [None] * (len(due) - 1), "before the last one it is no line"
    unit = units[-1]
    assert unit is not None and unit.seconds == 2.0 + len(due)
    assert [sighting["guarantee"] for sighting in unit.result["sightings"]] == kinds
    assert all(sighting["shrunk"] for sighting in unit.result["sightings"])
    assert shrinks.rest() == []


def test_what_was_not_made_small_in_time_is_kept_as_it_was_found() -> None:
    result, shrinks = swarm(TASK), Shrinks()
    before = json.dumps(result["sightings"])
    assert shrinks.explored(TASK, 2.0, result, {}) is None
    assert shrunk(shrinks.due[0])["record"] is None, "there is no time left"
    shrinks.shrunk(shrinks.due.popleft(), 0.0, {"trouble": "the worker ended with signal 9"})
    (unit,) = shrinks.rest()
    assert json.dumps(unit.result["sightings"]) == before and not shrinks.due
    assert unit.result["trouble"] == "the worker ended with signal 9"


def test_a_kind_seen_twice_before_is_not_made_small() -> None:
    result, shrinks = swarm(TASK), Shrinks()
    seen = {f"{each['guarantee']}/{each['mode']}/{each['storage']}": 2 for each in result["sightings"]}
    unit = shrinks.explored(TASK, 2.0, result, seen)
    assert unit is not None and unit.result is result and not shrinks.due


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            "--spark-master local",
            2,
            "accepted are local[THREADS], local-cluster[EXECUTORS,CORES,MEMORY_MB], spark://",
        ),
        ("--spark-master local[0]", 2, "accepted are local[THREADS]"),
        ("--spark-master mesos://here", 2, "accepted are local[THREADS]"),
        (
            "--spark-master local[1] --sut http --start ./server:{port}",
            2,
            "runs in real time; leave --spark-master out",
        ),
        ("--spark-master spark://127.0.0.1:{free}", 4, "nobody answers at spark://127.0.0.1:"),
    ],
)
def test_a_master_that_cannot_be_is_refused_in_one_sentence(
    words: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    asked = words.replace("{free}", str(free)).split()
    assert main(["chaos", "--budget", "5s", "--dir", str(tmp_path / "night"), *asked]) == code
    error = capsys.readouterr().err.strip().splitlines()
    assert said in error[-1] and error[-1].startswith("marker-sim: "), error


def test_without_java_the_sentence_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["chaos", "--budget", "5s", "--dir", str(tmp_path / "night"), "--spark-master", "local[1]"]) == 4
    assert "chaos --spark-master needs Java and JAVA_HOME is" in capsys.readouterr().err


def test_an_executor_with_another_kit_says_so_before_it_runs_anything() -> None:
    task = SparkTask(desk="no.such:Desk", kit="0.1 (another)")
    with pytest.raises(HarnessError, match=r"the executor on .* has marker-sim .* and the driver 0\.1 \(another\)"):
        list(task([None]))
    assert next(iter(replace(task, kit=kit())([None]))).num_rows == 1


class _Session:
    """Keeps what an executor would be sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.sparkContext = self

    def addPyFile(self, path: str) -> None:
        self.sent.append(path)


@pytest.mark.parametrize("package", [True, False])
def test_a_module_that_is_not_installed_is_sent_along_and_one_that_is_stays(
    package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "mine_sent" / "__init__.py" if package else tmp_path / "mine_sent.py"
    place.parent.mkdir(exist_ok=True)
    place.write_text("factory = None\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    session: Any = _Session()
    for sut in ("reference", MUTANT, "marker_sim.system:reference", "pytest:main"):
        ship(session, sut, tmp_path)
    assert session.sent == []
    ship(session, "mine_sent:factory", tmp_path)
    (sent,) = session.sent
    if package:
        assert zipfile.ZipFile(sent).namelist().count("mine_sent/__init__.py") == 1
    else:
        assert sent == str(place)
    sys.modules.pop("mine_sent", None)


def test_the_sentence_of_an_executors_exception_is_found_in_what_spark_says() -> None:
    trace = "Traceback (most recent call last):\n  File\nx.HarnessError: so it is\n\n\tat org"
    told = f"Job aborted due to stage failure: Task 0\n{trace}"
    assert said_by(RuntimeError(told)) == "so it is"
    assert said_by(RuntimeError("Job aborted: no Python in it\nmore")) == "Job aborted: no Python in it"
