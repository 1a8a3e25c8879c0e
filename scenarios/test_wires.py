"""Rounds in which the wire between clients and a foreign server fails in all nine ways, end to end.

Every fault must have been seen on the wire, and the lossy ones must have broken requests, or the scenario fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.result import Campaign
from marker_sim.history import History
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.http.wire_rounds import WIRE, kinds_here
from marker_sim.worlds.proxies import install
from marker_sim.worlds.proxies.faults import BROKEN, kinds_of
from scenarios.test_http import START

needs_wires = pytest.mark.skipif(install.missing() != "", reason=install.missing())


def campaign(tmp_path: Path, histories: list[History], start: str = START) -> Campaign:
    request = CampaignRequest(
        target=HttpTarget(kinds=(WIRE,)),
        modes=("timeline",),
        storages=("local",),
        budget_s=1.0,
        seed=1,
        profile=load_profile("http"),
        server=ServerOptions(start=start),
        report=tmp_path,
    )
    return run_campaign(request, lambda line: None, on_run=histories.append)


@needs_wires
def test_the_correct_server_is_not_accused_of_what_the_wire_does(tmp_path: Path) -> None:
    histories: list[History] = []
    done = campaign(tmp_path, histories)
    assert {failure.guarantee: failure.message for failure in done.failures} == {}
    assert done.not_reached == (), "a fault was not seen on the wire"
    for kind in kinds_of():
        assert done.statistics.reached[f"{kind.value} seen on the wire"] >= 1
    assert done.statistics.faults[BROKEN] >= len(histories) and done.statistics.faults["kill"] >= len(histories)
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert {rows[guarantee].verdict for guarantee in ("G1", "G3", "G4", "G6")} == {"holds"}
    _nobody_knows_what_was_broken(histories)
    assert done.statistics.operations["create"]["info"] > 0 and done.statistics.operations["create"]["ok"] > 300


def _nobody_knows_what_was_broken(histories: list[History]) -> None:
    for history in histories:
        broken = {event.caused_by for event in history.events if event.operation == BROKEN}
        ends = {event.caused_by: event.kind for event in history.events if event.kind in ("ok", "fail", "info")}
        assert broken and {ends.get(invoke, "open") for invoke in broken} <= {"info", "fail", "open"}
        for process in {event.process for event in history.events if event.kind == "info" and event.role == "client"}:
            own = [event.kind for event in history.events if event.process == process]
            assert own[-1] == "info", "a client never acts again after an unknown end"


@needs_wires
def test_a_server_that_a_broken_connection_ends_is_accused(tmp_path: Path) -> None:
    done = campaign(tmp_path, [], start=f"{START} --broken dies-of-a-broken-pipe")
    messages = {failure.guarantee: failure.message for failure in done.failures}
    # A listing that was asked of it when it was gone already failed without a fault of storage, which is G11's matter.
    assert {"G6"} <= messages.keys() <= {"G6", "G11"}
    assert "exited by itself" in messages["G6"]


def test_without_toxiproxy_the_kind_is_left_out_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "find_server", lambda: None)
    kinds, left_out = kinds_here(("hostile", WIRE))
    assert kinds == ("hostile",)
    assert left_out[0].startswith("a round of kind wire: ") and "marker-sim doctor --install" in left_out[0]
