"""Plans of the swarm run by real processes: driver, executors and server can be killed, and a run may end differently.

Plans that need more than a few seconds are left to the simulated world.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from marker_sim.campaign.pieces import NumberedRun
from marker_sim.campaign.runs import NOT_SERVED, execute
from marker_sim.history import History
from marker_sim.loading import load_system
from marker_sim.plan import MODES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.targets.python import served

# The world is imported when it runs: every command that can confirm or replay a failure imports this module.
if TYPE_CHECKING:
    from marker_sim.worlds.processes.fork_server import ForkServer

ENTRIES_MAX = 60
LASTS_MAX_S = 40.0
TOO_LARGE = "plan too large for real processes"
TOO_LONG = "plan too long for real processes"
_OF_PROCESSES = tuple((mode, make) for mode in MODES for make in (make_write_plan, make_plan))


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


class ProcessRuns:
    """Plans by real processes, a `Source`: a seed in either mode, of writes and of operations."""

    def __init__(self, processes: Processes, seed: int, storage: str) -> None:
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

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The run of each plan, whose steps are not counted, or the reason why it was not run."""
        for number in range(first, first + count):
            plan = self.plan(number)
            why = self.unfit(plan)
            history = None if why else self._processes.run(plan)
            yield NumberedRun(number, plan, history, reached=((why, 1),) if why else ())
