"""Plans run in real time: by real processes, as jobs on a Spark cluster, by servers and systems that write tables.

Processes      plans of the swarm: driver, executors and server that can be killed, and a run may end differently each
               time; plans that need more than a few seconds are left to the simulated world (`ProcessRuns`)
ServerRuns     plans of systems that run in real time alone: servers started by a command, Hudi, write paths on Spark
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from marker_sim.campaign.pieces import NumberedRun
from marker_sim.campaign.played_runs import numbered
from marker_sim.campaign.runs import NOT_SERVED, execute
from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system
from marker_sim.outcome.failure import SERVER, SPARK
from marker_sim.plan import MODES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.system import System
from marker_sim.targets.python import served
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import JOBS, CampaignRequest, PlayedRun, RealRuns, ServerOptions

# The worlds are imported when one runs: every command that can confirm or replay a failure imports this module.
if TYPE_CHECKING:
    from marker_sim.worlds.processes.fork_server import ForkServer

ENTRIES_MAX = 60
LASTS_MAX_S = 40.0
TOO_LARGE = "plan too large for real processes"
TOO_LONG = "plan too long for real processes"
_OF_PROCESSES = tuple((mode, make) for mode in MODES for make in (make_write_plan, make_plan))
LONG_S, RUN_S, ALONE_RUN_S = 600.0, 120.0, 240.0  # Limits for a worker's servers, and for one run.
CLOSING_S, ALONE_MIN_S = 5.0, 15.0


class Processes(Keeper):
    """Runs plans of one system with real processes; a context manager that ends all of them."""

    def __init__(self, sut: str) -> None:
        super().__init__()
        self._sut = sut
        self.system = load_system(sut)
        self._fork_server: ForkServer | None = None

    def run(self, plan: Plan) -> History:
        """The history of one run; the first run starts the template process."""
        from marker_sim.worlds.processes.cluster import ProcessCluster
        from marker_sim.worlds.processes.fork_server import ForkServer

        if self._fork_server is None:
            self._fork_server = self._stack.enter_context(ForkServer())
        return ProcessCluster(plan, self._sut, self._fork_server).run()


class NumberedPlans(Keeper, ABC):
    """Numbered plans that are run in real time, a `Source`.

    system: None for one that is not loaded here.
    world: of their failures; goals: what a night of them has to reach.
    alone: whether a run has the machine for itself.
    """

    system: System | None = None
    world = SERVER
    goals: tuple[str, ...] = ()
    alone = False

    @abstractmethod
    def plan(self, number: int) -> Plan:
        """The plan with a number."""

    @abstractmethod
    def run(self, number: int, plan: Plan) -> NumberedRun:
        """The run of a plan; HarnessError when the kit failed."""

    def unfit(self, plan: Plan) -> str:
        """The reason why a plan is not run, "" when it is."""
        return ""

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The run of each plan, or the reason why it was not run."""
        for number in range(first, first + count):
            plan = self.plan(number)
            why = self.unfit(plan)
            yield NumberedRun(number, plan, None, reached=((why, 1),)) if why else self.run(number, plan)


class ProcessRuns(NumberedPlans):
    """Plans by real processes: a seed in either mode, of writes and of operations."""

    system: System

    def __init__(self, processes: Processes, seed: int, storage: str) -> None:
        super().__init__()
        self.system = processes.system
        self._processes = processes
        self._seed = seed
        self._storage = storage

    def plan(self, number: int) -> Plan:
        """The plan with a number; four consecutive numbers share a seed."""
        mode, make = _OF_PROCESSES[number % len(_OF_PROCESSES)]
        return make(plan_seed(self._seed, number // len(_OF_PROCESSES)), mode, self._storage)

    def unfit(self, plan: Plan) -> str:
        """The reason why a plan is not run: real processes need as long as its simulated time.

        Forty unanswered storage calls take minutes, after which real processes would count as stuck.
        """
        if plan.entries > ENTRIES_MAX:
            return TOO_LARGE
        if not served(self.system, plan.mode, plan.storage):
            return NOT_SERVED
        history, _ = execute(plan, self.system)
        lasts_s = next(event.time_ns for event in history.events if event.value == "healed") / 1e9
        return TOO_LONG if lasts_s > LASTS_MAX_S else ""

    def run(self, number: int, plan: Plan) -> NumberedRun:
        """The run of a plan, whose steps are not counted."""
        return NumberedRun(number, plan, self._processes.run(plan))


def request_on(sut: str, storage: str, server: ServerOptions, profile: str, seed: int, report: Path) -> CampaignRequest:
    """The request for a system on one storage."""
    target = parse_target(sut)
    return CampaignRequest(
        target=target,
        modes=target.can.modes,
        storages=target.can.storages[storage],
        seed=seed,
        profile=load_profile(profile),
        budget_s=LONG_S,
        server=server,
        report=report,
    )


class ServerRuns(NumberedPlans):
    """Plans of a system on one storage, on servers reused between runs; a context manager that ends them.

    until: time.monotonic() of the end of the night, for a system whose runs need the whole machine.
    """

    def __init__(self, sut: str, storage: str, server: ServerOptions, profile: str, seed: int) -> None:
        super().__init__()
        self.until = 0.0
        self._asked = (sut, storage, server, profile, seed)
        self._target = parse_target(sut)
        self.alone = self._target.can.alone
        self.world = SPARK if self._target.can.world == JOBS else SERVER
        self.goals = tuple(self._target.goals(storage, server))
        self._runs: RealRuns | None = None

    def plan(self, number: int) -> Plan:
        """The plan with a number."""
        sut, storage, server, _, seed = self._asked
        plan = self._target.plan_of(seed, number, storage, server)
        assert plan is not None, f"{sut} has no plans"
        return plan

    def run(self, number: int, plan: Plan) -> NumberedRun:
        """The run of a plan."""
        return numbered(number, self.again(plan))

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
        if self.world == SPARK:  # Its plan is bounded, and one cut short would meet few of its faults.
            until = math.inf
        elif self.alone:  # Its run ends with the night and reports the plan up to there.
            until = min(now + ALONE_RUN_S, max(self.until - CLOSING_S, now + ALONE_MIN_S))
        played = self._runs.again(plan, until, fresh, probing)
        if played.trouble:
            raise HarnessError(played.trouble)
        return played
