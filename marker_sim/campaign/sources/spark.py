"""Jobs of the system on a Spark cluster of two hosts, with faults of tasks, drivers and servers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from marker_sim.campaign.pieces import NumberedRun
from marker_sim.campaign.played_runs import numbered
from marker_sim.campaign.runs import NOT_SERVED
from marker_sim.loading import load_system
from marker_sim.plan import MODES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.surroundings.requirements import find_java, spark_home
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.targets.python import served
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.processes.storages import LocalFront
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.plans import driver_plan, task_plan
from marker_sim.worlds.spark.run import run_spark
from marker_sim.worlds.spark.standalone import Standalone

KILLS = 4  # Limits an application to one or two minutes.
_KINDS = tuple(
    (mode, storage, draw) for draw in (driver_plan, task_plan) for mode in MODES for storage in ("local", "s3")
)


class SparkRuns(Keeper):
    """The numbered Spark applications on one cluster, started with the first; a context manager that ends it."""

    at_once = 1

    def __init__(self, sut: str, seed: int) -> None:
        super().__init__()
        self.system = load_system(sut)
        self._sut = sut
        self._seed = seed
        self._cluster: Standalone | None = None

    def plan(self, number: int) -> Plan:
        """The plan with a number; eight consecutive numbers share a seed."""
        mode, storage, draw = _KINDS[number % len(_KINDS)]
        seed = plan_seed(self._seed, number // len(_KINDS))
        return driver_plan(seed, mode, storage, KILLS) if draw is driver_plan else draw(seed, mode, storage)

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The run of each plan that the system supports."""
        for number in range(first, first + count):
            plan = self.plan(number)
            if served(self.system, plan.mode, plan.storage):
                yield numbered(number, self.again(plan))
            else:
                yield NumberedRun(number, plan, None, reached=((NOT_SERVED, 1),))

    def again(self, plan: Plan, deadline: float = 0.0, fresh: bool = False, probing: bool = True) -> SparkRun:
        """The result of a plan run once, however long it takes, with storage, drivers and servers used by it alone."""
        with tempfile.TemporaryDirectory(prefix="spark-logs-") as logs:
            return run_spark(plan, self._running(), Path(logs), self._sut)

    def _running(self) -> Standalone:
        if self._cluster is None:
            scratch = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-")))
            front = None if refused() else self._stack.enter_context(LocalFront(scratch / "files"))
            cluster = Standalone(scratch / "cluster", java=find_java(), home=spark_home(), door=front)
            self._cluster = self._stack.enter_context(cluster)
        return self._cluster
