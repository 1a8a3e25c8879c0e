"""Plans of the swarm run by real processes: driver, executors and server that can be killed.

A real run may end differently each time. Plans that need more than a few seconds are left to the simulated world.
"""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.campaign.pieces import NumberedRun
from marker_sim.campaign.replay import Replayed, played
from marker_sim.campaign.runs import NOT_SERVED, execute
from marker_sim.history import History
from marker_sim.judges.promises.profiles import Profile
from marker_sim.loading import load_system
from marker_sim.plan import MODES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.system import System
from marker_sim.targets.python import served
from marker_sim.worlds.processes.cluster import ProcessCluster
from marker_sim.worlds.processes.fork_server import ForkServer

ENTRIES_MAX = 60
LASTS_MAX_S = 40.0
TOO_LARGE = "plan too large for real processes"
TOO_LONG = "plan too long for real processes"
_KINDS = tuple((mode, make) for mode in MODES for make in (make_write_plan, make_plan))


class Processes(Keeper):
    """Runs plans of one system with real processes; a context manager that ends all of them."""

    def __init__(self, sut: str) -> None:
        super().__init__()
        self._sut = sut
        self.system = load_system(sut)
        self._fork_server: ForkServer | None = None

    def run(self, plan: Plan) -> History:
        """The history of one run; the first run starts the template process."""
        if self._fork_server is None:
            self._fork_server = self._stack.enter_context(ForkServer())
        return ProcessCluster(plan, self._sut, self._fork_server).run()

    def again(self, plan: Plan, guarantee: str, profile: Profile, times: int) -> Replayed:
        """The results of a plan run several times and judged by one guarantee; races may end differently each time."""
        return played(lambda _: self.run(plan), plan, profile, guarantee, "", times, system=self.system)


class ProcessRuns:
    """The runs of numbered plans: a seed in either mode, of writes and of operations."""

    def __init__(self, processes: Processes, seed: int, storage: str) -> None:
        self.system = processes.system
        self._processes = processes
        self._seed = seed
        self._storage = storage

    def plan(self, number: int) -> Plan:
        """The plan with a number; four consecutive numbers share a seed."""
        mode, make = _KINDS[number % len(_KINDS)]
        return make(plan_seed(self._seed, number // len(_KINDS)), mode, self._storage)

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The run of each plan, or the reason why it was not run."""
        for number in range(first, first + count):
            plan = self.plan(number)
            unfit = _unfit(plan, self.system)
            if unfit:
                yield NumberedRun(number, plan, None, reached=((unfit, 1),))
            else:
                yield NumberedRun(number, plan, self._processes.run(plan))


def _unfit(plan: Plan, system: System) -> str:
    """The reason why a plan is not run, "" when it is."""
    if plan.entries > ENTRIES_MAX:
        return TOO_LARGE
    if not served(system, plan.mode, plan.storage):
        return NOT_SERVED
    # Real processes need as long as the simulated time of the plan. Forty unanswered storage calls take
    # minutes, after which real processes would count as stuck.
    history, _ = execute(plan, system)
    lasts_s = next(event.time_ns for event in history.events if event.value == "healed") / 1e9
    return TOO_LONG if lasts_s > LASTS_MAX_S else ""
