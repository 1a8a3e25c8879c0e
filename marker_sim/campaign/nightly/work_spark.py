"""Units on Spark: jobs of the system on a cluster of two hosts, with faults of tasks, drivers and servers."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from marker_sim.campaign.nightly.failures import Sighting, kind_of
from marker_sim.campaign.nightly.work import NightlyTask, counts_of, sighting_of
from marker_sim.campaign.runs import promised_breach
from marker_sim.campaign.servability import LEFT_OUT, NOT_SERVED, findings_in
from marker_sim.campaign.statistics import Statistics
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system
from marker_sim.plan import MODES
from marker_sim.seeds import plan_seed
from marker_sim.targets.bundles import spark_home
from marker_sim.targets.hudi import find_java
from marker_sim.targets.python import served
from marker_sim.worlds.spark.counts import count
from marker_sim.worlds.spark.plans import SparkPlan
from marker_sim.worlds.spark.random_plans import driver_plan, task_plan
from marker_sim.worlds.spark.run import run_spark
from marker_sim.worlds.spark.standalone import Standalone

NOT_FIRED = "fault on Spark that did not fire"
KILLS = 4  # So that an application takes a minute or two and not more.
STRAY = "data file on Spark that no commit names at the end"
_KINDS = tuple(
    (mode, storage, draw) for draw in (driver_plan, task_plan) for mode in MODES for storage in ("local", "s3")
)


class SparkWork:
    """Does units with one cluster for all of them; a context manager that leaves no process."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._cluster: Standalone | None = None

    def __enter__(self) -> SparkWork:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def units(self, task: NightlyTask) -> dict[str, Any]:
        """Applications by number: the seed is an eighth of it."""
        system = load_system(task.sut)
        profile, statistics, found = load_profile(task.profile), Statistics(), dict[str, Sighting]()
        for number in range(task.first, task.first + task.count):
            spark_plan = plan_of_number(task.seed, number)
            if not served(system, spark_plan.plan.mode, spark_plan.plan.storage):
                statistics.reach(NOT_SERVED)
                continue
            with tempfile.TemporaryDirectory(prefix="spark-logs-") as logs:
                run = run_spark(spark_plan, self._running(), Path(logs), task.sut)
            findings = findings_in(run.history, system)
            if not findings:
                statistics.reach(LEFT_OUT)
                continue
            statistics.add(run.history, findings)
            counts = count(run.history)
            for name, times in ((NOT_FIRED, len(run.missed)), (STRAY, len(counts.strays)), ("Spark job", counts.jobs)):
                statistics.reach(name, times)
            for finding in findings:
                breach = promised_breach(finding, spark_plan.plan, profile)
                kind = kind_of(finding.guarantee, spark_plan.plan.mode, spark_plan.plan.storage)
                if breach is not None and kind not in found:
                    mode = spark_plan.plan.mode
                    seen = sighting_of(
                        finding.guarantee, mode, spark_plan.plan, breach, run.history, False, "spark"
                    )  # fmt: skip
                    found[kind] = replace(seen, plan=spark_plan.to_dict())
        return counts_of(statistics, 0, profile) | {"sightings": [asdict(found[kind]) for kind in sorted(found)]}

    def _running(self) -> Standalone:
        if self._cluster is None:
            scratch = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-")))
            self._cluster = self._stack.enter_context(
                Standalone(scratch / "cluster", java=find_java(), home=spark_home())
            )
        return self._cluster


def plan_of_number(search: int, number: int) -> SparkPlan:
    """The plan with a number, of the search with a seed."""
    mode, storage, draw = _KINDS[number % len(_KINDS)]
    seed = plan_seed(search, number // len(_KINDS))
    return driver_plan(seed, mode, storage, KILLS) if draw is driver_plan else draw(seed, mode, storage)
