"""Plans of systems that run in real time: servers started by a command, Hudi, and Hudi's write path on Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from marker_sim.campaign.pieces import NumberedRun
from marker_sim.campaign.played_runs import numbered
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import Plan
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, PlayedRun, RealRuns, ServerOptions

LONG_S, RUN_S, ALONE_RUN_S = 600.0, 120.0, 240.0  # Limits for a worker's servers, and for one run.
CLOSING_S, ALONE_MIN_S = 5.0, 15.0


def request_on(sut: str, storage: str, server: ServerOptions, profile: str, seed: int, report: Path) -> CampaignRequest:
    """The request for a system on one storage."""
    target = parse_target(sut)
    return CampaignRequest(
        target=target, modes=target.can.modes, storages=(storage,), seed=seed, profile=load_profile(profile),
        budget_s=LONG_S, server=server, report=report,
    )  # fmt: skip


class ServerRuns(Keeper):
    """The runs of a system on one storage, on servers reused between runs; a context manager that ends them.

    until: time.monotonic() of the end of the night, for a system whose runs need the whole machine.
    """

    system = None

    def __init__(self, sut: str, storage: str, server: ServerOptions, profile: str, seed: int) -> None:
        super().__init__()
        self.storage = storage
        self.until = 0.0
        self._asked = (sut, storage, server, profile, seed)
        self.target = parse_target(sut)
        self._runs: RealRuns | None = None

    def plan(self, number: int) -> Plan:
        """The plan with a number."""
        sut, storage, server, _, seed = self._asked
        plan = self.target.plan_of(seed, number, storage, server)
        assert plan is not None, f"{sut} has no plans"
        return plan

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The run of each plan."""
        for number in range(first, first + count):
            yield numbered(number, self.again(self.plan(number)))

    def again(self, plan: Plan, deadline: float = 0.0, fresh: bool = False, probing: bool = True) -> PlayedRun:
        """The result of one run, as long as it may take here, whatever the deadline of who asks.

        fresh: on new servers; probing: with last probes. HarnessError when the kit failed.
        """
        now = time.monotonic()
        if self._runs is None:
            report = Path(self._stack.enter_context(TemporaryDirectory(prefix="marker-sim-logs-")))
            request = request_on(*self._asked, report)
            self._runs = self._stack.enter_context(request.target.real_runs(request, lambda line: None))
        until = now + RUN_S
        if self.target.can.alone:  # Its run ends with the night and reports the plan up to there.
            until = min(now + ALONE_RUN_S, max(self.until - CLOSING_S, now + ALONE_MIN_S))
        played = self._runs.again(plan, until, fresh, probing)
        if played.trouble:
            raise HarnessError(played.trouble)
        return played
