"""Who does the units of a night: violations made small, workers that die, executors that cannot be had."""

from __future__ import annotations

import socket
import sys
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.campaign.nightly import nightly_run
from marker_sim.campaign.nightly.units import swarm
from marker_sim.cli import main
from marker_sim.errors import HarnessError
from properties.faces.campaign import NightlyTask, answer_of, do, kit, read_lines
from properties.faces.outcome import VIOLATED
from properties.faces.surroundings import Answer, said_by, ship
from properties.tools import java, needs
from properties.volume import CI_ONLY

MUTANT = "mutant:no-type-file"
TASK = NightlyTask(stream="swarm", first=0, count=2, sut=MUTANT, profile="reference", until=0.0, seed=5)


def test_a_unit_is_one_line_with_small_plans() -> None:
    sightings = swarm(replace(TASK, until=float("inf")))["sightings"]
    assert sightings and all(sighting["shrunk"] for sighting in sightings), "the first of each kind in a night"


def test_what_was_not_made_small_in_time_is_kept_as_it_was_found() -> None:
    sightings = swarm(TASK)["sightings"]
    assert sightings and not any(sighting["shrunk"] for sighting in sightings)


def test_a_kind_seen_twice_before_is_not_made_small() -> None:
    seen = {f"{each['guarantee']}/{each['mode']}/{each['storage']}": 2 for each in swarm(TASK)["sightings"]}
    sightings = swarm(replace(TASK, until=float("inf"), seen=seen))["sightings"]
    assert sightings and not any(sighting["shrunk"] for sighting in sightings)


class _DyingPool:
    """One worker in this process that dies at each task once. last: the stream after whose task it is Ctrl-C."""

    def __init__(self, last: str) -> None:
        self._last = last
        self._task: NightlyTask | None = None
        self._tried: list[NightlyTask] = []

    @property
    def idle(self) -> list[int]:
        return [0] if self._task is None else []

    @property
    def busy(self) -> list[int]:
        return [] if self._task is None else [0]

    def give(self, _: int, task: NightlyTask) -> None:
        self._task = task

    def answers(self, _: float) -> Iterator[Answer]:
        assert self._task is not None
        task, self._task = self._task, None
        first_time = not any(replace(each, until=0.0) == replace(task, until=0.0) for each in self._tried)
        self._tried.append(task)
        if first_time:
            yield Answer(task=task, seconds=0.0, died="the worker ended with signal 9")
        else:
            yield Answer(task=task, seconds=0.1, result=do(task))
            if task.stream == self._last:
                raise KeyboardInterrupt


@CI_ONLY
def test_a_worker_that_dies_once_at_any_task_costs_the_night_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("chaos", "--dir", str(tmp_path), "--budget", "7m", "--sut", MUTANT, "--seed", "1", "--new-night")
    for stage in ("swarm", "exhaustive"):
        pool = _DyingPool(stage)
        monkeypatch.setattr(nightly_run, "_pool", lambda *_, pool=pool: nullcontext(pool))
        assert main([*words, "--stages", stage]) == 130
    lines = list(read_lines(tmp_path))
    units = [line for line in lines if line["kind"] == "unit"]
    assert [unit["stream"] for unit in units] == ["canary", "swarm", "canary", "exhaustive"]
    assert not any(unit["trouble"] for unit in units)
    assert units[0]["caught"] and units[1]["sightings"] and units[2]["caught"]
    again = [line["status"] for line in lines if line["kind"] == "replayed"]
    assert again and set(again) == {VIOLATED}, "each stored failure was run once more"


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
        pytest.param(
            "--spark-master spark://127.0.0.1:{free}", 4, "no master answers at spark://127.0.0.1:", marks=needs(java())
        ),
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
    with pytest.raises(HarnessError, match=r"the executor on .* has marker-sim .* and the driver 0\.1 \(another\)"):
        answer_of("0.1 (another)", None, 0.0, None)
    assert answer_of(kit(), None, 0.0, None) == (0.0, None)


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
