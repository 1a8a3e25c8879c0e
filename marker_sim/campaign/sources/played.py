"""Plans of a loaded system run in real time: by real processes, or as jobs on a Spark cluster.

Processes      plans of the swarm: driver, executors and server that can be killed, and a run may end differently each
               time; plans that need more than a few seconds are left to the simulated world (`ProcessRuns`)
SparkRuns      jobs of the system on a cluster of two hosts, with faults of tasks, drivers and servers
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from marker_sim.campaign.pieces import NumberedRun
from marker_sim.campaign.played_runs import numbered
from marker_sim.campaign.runs import NOT_SERVED, execute
from marker_sim.history import History
from marker_sim.loading import load_system
from marker_sim.plan import MODES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.surroundings.requirements import find_java, spark_home
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.system import System
from marker_sim.targets.python import served

# The worlds are imported when one runs: every command that can confirm or replay a failure imports this module.
if TYPE_CHECKING:
    from marker_sim.worlds.processes.fork_server import ForkServer
    from marker_sim.worlds.spark.outcome import SparkRun
    from marker_sim.worlds.spark.standalone import Standalone

ENTRIES_MAX = 60
LASTS_MAX_S = 40.0
TOO_LARGE = "plan too large for real processes"
TOO_LONG = "plan too long for real processes"
_OF_PROCESSES = tuple((mode, make) for mode in MODES for make in (make_write_plan, make_plan))
KILLS = 4  # Limits an application to one or two minutes.
_OF_SPARK = tuple((mode, storage, kills) for kills in (KILLS, 0) for mode in MODES for storage in ("local", "s3"))


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
    """Numbered plans that are run in real time, a `Source`."""

    system: System

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


class SparkRuns(NumberedPlans):
    """Spark applications on one cluster, started with the first; a context manager that ends it."""

    at_once = 1

    def __init__(self, sut: str, seed: int) -> None:
        super().__init__()
        self.system = load_system(sut)
        self._sut = sut
        self._seed = seed
        self._cluster: Standalone | None = None

    def plan(self, number: int) -> Plan:
        """The plan with a number; eight consecutive numbers share a seed."""
        from marker_sim.worlds.spark.plans import driver_plan, task_plan

        mode, storage, kills = _OF_SPARK[number % len(_OF_SPARK)]
        seed = plan_seed(self._seed, number // len(_OF_SPARK))
        return driver_plan(seed, mode, storage, kills) if kills else task_plan(seed, mode, storage)

    def unfit(self, plan: Plan) -> str:
        """The reason why a plan is not run."""
        return "" if served(self.system, plan.mode, plan.storage) else NOT_SERVED

    def run(self, number: int, plan: Plan) -> NumberedRun:
        """The run of a plan."""
        return numbered(number, self.again(plan))

    def again(self, plan: Plan, deadline: float = 0.0, fresh: bool = False, probing: bool = True) -> SparkRun:
        """The result of a plan run once, however long it takes, with storage, drivers and servers used by it alone."""
        from marker_sim.worlds.spark.run import run_spark

        with TemporaryDirectory(prefix="spark-logs-") as logs:
            return run_spark(plan, self._running(), Path(logs), self._sut)

    def _running(self) -> Standalone:
        from marker_sim.worlds.door.available import refused
        from marker_sim.worlds.processes.storages import LocalFront
        from marker_sim.worlds.spark.standalone import Standalone

        if self._cluster is None:
            scratch = Path(self._stack.enter_context(TemporaryDirectory(prefix="spark-")))
            front = None if refused() else self._stack.enter_context(LocalFront(scratch / "files"))
            cluster = Standalone(scratch / "cluster", java=find_java(), home=spark_home(), door=front)
            self._cluster = self._stack.enter_context(cluster)
        return self._cluster
