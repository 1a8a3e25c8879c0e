"""`marker-sim serve --workers 2` judged as somebody else's server, and accused when its workers are broken."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from marker_sim.judges.promises.profiles import load_profile
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.target import CampaignRequest, ServerOptions
from properties.volume import volume
from scenarios.stored_plans import caught
from scenarios.test_http import campaign

OPTIONS = "--workers 2 --base {storage} --port {port} --batch-threads {threads} --batch-interval-ms {interval_ms}"
PROGRAM = """
import sys
from marker_sim.cli import main
from marker_sim.seams import Reply
from marker_sim.serve import forwarding
{broken}
sys.exit(main(["serve", *sys.argv[1:]]))
"""
TOO_EARLY = """
ask = forwarding._ToOwner.ask
def early(self, asked, done):
    ask(self, asked, lambda reply: None)
    self._loop.call_soon(done, Reply(200, True))
forwarding._ToOwner.ask = early
"""
NO_OWNER = """
forwarding.Forwarding._route = lambda self, asked, done: self._app.answer(asked, done)
"""


def asked(tmp_path: Path, broken: str, runs: int | None, budget_s: float = 120.0) -> CampaignRequest:
    program = shlex.quote(PROGRAM.replace("{broken}", broken))
    return CampaignRequest(
        target=HttpTarget(),
        modes=("timeline",),
        storages=("local",),
        budget_s=budget_s,
        runs=runs,
        seed=7,
        profile=load_profile("http"),
        shrinking=False,
        server=ServerOptions(start=f"{shlex.quote(sys.executable)} -c {program} {OPTIONS}", identity=True),
        report=tmp_path,
    )


def test_two_workers_are_not_accused(tmp_path: Path) -> None:
    done = campaign(asked(tmp_path, "", volume(8, quick=2)))
    assert {failure.guarantee: failure.message for failure in done.failures} == {}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert all(rows[name].judged for name in ("G1", "G3", "G4", "G5", "G6"))


@pytest.mark.parametrize(
    ("broken", "guarantee"), [(TOO_EARLY, "G1"), (NO_OWNER, "G5")], ids=["answers-before-the-owner", "two-owners"]
)
def test_broken_workers_are_accused(
    tmp_path: Path, broken: str, guarantee: str, request: pytest.FixtureRequest
) -> None:
    found = caught(request.node.callspec.id, guarantee, asked(tmp_path, broken, None))
    assert found is not None and found.evidence
