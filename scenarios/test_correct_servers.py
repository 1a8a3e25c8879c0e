"""Correct servers of odd shape, in several languages, are not accused; one with a subtle fault is."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.result import Campaign
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.names import MarkerDirectory
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.http.conditions import ONE_REFUSED
from marker_sim.worlds.http.local_reader import LocalReader
from marker_sim.worlds.http.planned_run import OF_PLANS
from marker_sim.worlds.http.servers import Command, Fleet
from marker_sim.worlds.http.world import Surroundings
from marker_sim.worlds.recorder import Recorder
from scenarios.correct_servers.starts import HERE, SERVERS, build_go, missing, start

NIGHTLY = os.environ.get("MARKER_SIM_PROFILE") == "nightly"
BUDGET_S = 60.0 if NIGHTLY else 12.0
QUICK = ("go-hex-files", "node-journal")  # They start at once, so that the second plan surely has its turn.
HASTY = """		if len(batch) < full {
			files, _ := read(o.dir)
			for at := range batch {
				known := false
				for _, text := range files {
					known = known || strings.Contains("\\n"+text, "\\n"+batch[at].name+"\\n")
				}
				batch[at].back <- answer{!known, nil}
				batch[at].back = make(chan answer, 1)
			}
			time.Sleep(wait) // With the next turn.
		}
"""


def campaign(
    tmp_path: Path, command: str, reader: str, storage: str, budget_s: float = BUDGET_S, until_broken: bool = False
) -> Campaign:
    request = CampaignRequest(
        target=HttpTarget(),
        modes=("timeline",),
        storages=(storage,),
        budget_s=budget_s,
        stop_at_first=until_broken,
        shrinking=False,
        seed=1,
        profile=load_profile("http"),
        server=ServerOptions(start=command, reader=reader),
        report=tmp_path / "report",
    )
    return run_campaign(request, lambda line: None)


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_a_correct_server_of_odd_shape_is_not_accused(tmp_path: Path, name: str) -> None:
    if lacks := missing(name):
        pytest.skip(f"{name} needs {lacks}")
    command, reader = start(name, tmp_path)
    done = campaign(tmp_path, command, reader, SERVERS[name].storage)
    assert [(failure.guarantee, failure.message) for failure in done.failures] == []
    assert not done.trouble
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert {name for name in ("G1", "G4", "G6") if rows[name].judged == 0} == set()
    if name in QUICK:
        met = done.statistics.reached[OF_PLANS + ONE_REFUSED]
        assert met, "storage was refused below one directory, whatever files are called"


@pytest.mark.skipif(shutil.which("go") is None, reason="needs go")
def test_a_server_that_answers_batches_that_are_not_full_before_it_writes_them_is_caught(tmp_path: Path) -> None:
    text = (HERE / "bysize" / "main.go").read_text(encoding="utf-8")
    anchor = "\t\to.store(batch)\n"
    assert text.count(anchor) == 1
    source = tmp_path / "main.go"
    source.write_text(text.replace(anchor, HASTY + anchor), encoding="utf-8")
    build_go(source, tmp_path / "hasty")
    done = campaign(tmp_path, f"{tmp_path / 'hasty'} -port {{port}} -dir {{storage}}", "", "local", 60.0, True)
    assert {"G1", "G3", "G11"} & {failure.guarantee for failure in done.failures}


def test_a_reader_that_waits_for_a_lock_of_a_stopped_server_costs_that_look_and_nothing_else(tmp_path: Path) -> None:
    place = MarkerDirectory("t", "001")
    (tmp_path / place.path).mkdir(parents=True)
    patient = "sh -c 'test ! -e {dir}/locked || exec sleep 60; echo a.marker.CREATE'"
    reader = LocalReader(Recorder(), tmp_path, list, patient, random.Random(1))
    assert reader.look_at_stopped(place, [])
    (tmp_path / place.path / "locked").touch()
    began = time.monotonic()
    assert not reader.look_at_stopped(place, [])
    assert time.monotonic() - began < 20
    failing = LocalReader(Recorder(), tmp_path, list, "sh -c 'echo database is locked >&2; exit 1'", random.Random(1))
    assert not failing.look_at_stopped(place, [])
    with pytest.raises(HarnessError, match="database is locked"):
        failing.look_at_dead(place)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(Command(text="sh -c 'grep SigIgn /proc/$$/status; exit 3'"), tmp_path / "work", tmp_path / "logs") as it:
        yield it


def test_a_server_is_not_ended_by_the_signal_of_a_full_disk_and_takes_a_broken_pipe_as_anybody_does(
    fleet: Fleet,
) -> None:
    with pytest.raises(HarnessError, match=r"SigIgn:\s0{9}1[0-9a-f]{2}0[0-9a-f]{3} "):
        fleet.start("first", 1, 50, lambda name: Surroundings({}, {}), lambda port: "no answer")
