"""The write client as jobs of a Spark application: `reference-spark`, or `reference-spark:SYSTEM` with other markers.

SYSTEM is a name as `marker_sim.loading` has it: the user's `package.module:factory`, or `mutant:NAME`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from marker_sim.loading import load_system
from marker_sim.outcome.failure import Kind
from marker_sim.outcome.result import Campaign
from marker_sim.plan import Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.surroundings.requirements import find_java
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.system import System
from marker_sim.targets.http import check_packages
from marker_sim.targets.python import served_places
from marker_sim.targets.target import (
    JOBS,
    REAL_STORAGES,
    CampaignRequest,
    RealRuns,
    Target,
    TargetCapabilities,
)

# The world is imported when one runs.
if TYPE_CHECKING:
    from marker_sim.worlds.spark.outcome import SparkRun
    from marker_sim.worlds.spark.run import SparkProcesses

NAME = "reference-spark"
BOTH = "all"  # The word for both storages by turns.
STORAGES = {**REAL_STORAGES, BOTH: ("local", "s3")}
OF_JOBS = TargetCapabilities(profile=NAME, world=JOBS, alone=True, storages=STORAGES)
KILLS = 4  # Limits an application to one or two minutes.
ENDING_S = 25.0  # For the last write, which must leave the table in order, and what is stored.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSparkTarget(Target):
    """The write client on Spark. system: whose markers it uses, as `marker_sim.loading` names it."""

    can: TargetCapabilities = OF_JOBS
    system: str

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """Check packages, Java, the door, and that the system has a factory for what is requested."""
        from marker_sim.targets.run_environment import check_door

        for storage in request.storages:
            check_packages(self.sut, f"{NAME} on {storage}")
            check_door(storage)
        find_java("Spark")
        served_places(load_system(self.system), request.modes, request.storages)

    def plan_of(self, request: CampaignRequest, number: int) -> Plan:
        """The plan with a number: those with deaths of the driver first, then the others, each in all places."""
        return plan_of_number(load_system(self.system), request.modes, request.storages, request.seed, number)

    def real_runs(self, request: CampaignRequest, progress: Callable[[str], None]) -> AbstractContextManager[RealRuns]:
        """The runs, each with storage and drivers of its own, on one cluster."""
        return SparkJobs(request, self.system)


def plan_of_number(system: System, modes: tuple[str, ...], storages: tuple[str, ...], seed: int, number: int) -> Plan:
    """The plan with a number; two consecutive numbers a place share a seed. UsageError when nothing is served."""
    from marker_sim.worlds.spark.plans import driver_plan, task_plan

    places = served_places(system, modes, storages)
    turn, place = divmod(number, len(places))
    drawn = plan_seed(seed, turn // 2)
    return task_plan(drawn, *places[place]) if turn % 2 else driver_plan(drawn, *places[place], KILLS)


class JobsRound(NamedTuple):
    """A chosen run. line: how the terminal names it."""

    plan: Plan
    line: str


class SparkJobs(Keeper):
    """The runs of one campaign on a cluster, which ends with it; `targets.target.RealRuns` says what each method is
    for.
    """

    lanes = 1
    at_once = 1
    counts = ("applications", "operations")

    def __init__(self, request: CampaignRequest, system: str) -> None:
        super().__init__()
        self._request = request
        self._name = system
        self._system = load_system(system)
        self._processes: SparkProcesses | None = None
        self._began = time.monotonic()
        self._until = self._began + request.budget_s
        self._number = 0
        self._longest_s = 0.0
        self._struck = False

    def draw(self, reached: Mapping[str, int]) -> JobsRound | None:
        """The next run, None when one as long as the shortest useful one no longer fits; the first always does."""
        number, request = self._number, self._request
        if number and self._until - time.monotonic() < ENDING_S + self._longest_s / 2:
            return None
        self._number += 1
        plan = plan_of_number(self._system, request.modes, request.storages, request.seed, number)
        line = f"application {self._number}, {len(plan.writes)} writes, {plan.mode} markers on {plan.storage}"
        return JobsRound(plan, line)

    def play(self, drawn: JobsRound) -> SparkRun:
        """The result of the drawn run, without the writes that there was no time for."""
        began = time.monotonic()
        played = self.again(drawn.plan, self._until)
        self._longest_s = max(self._longest_s, time.monotonic() - began)
        self._struck |= len(played.missed) < len(played.plan.faults)
        return played

    def again(self, plan: Plan, deadline: float, fresh: bool = False, probing: bool = True) -> SparkRun:
        """The result of a plan, with storage, drivers and servers of its own; HarnessError when kit or Spark fails."""
        from marker_sim.worlds.spark.run import SparkProcesses, run_spark

        if self._processes is None:
            self._processes = self._stack.enter_context(SparkProcesses())
        return run_spark(plan, self._processes, self._name, deadline - ENDING_S)

    def reserve(self, share: float) -> None:
        """Reserve a share of the budget for shrinking."""
        self._until = self._began + (1 - share) * self._request.budget_s

    def took(self, drawn: JobsRound, played: SparkRun, broken: Collection[Kind]) -> None:
        """Nothing: a plan does not depend on what earlier ones met."""

    def close(self) -> None:
        """Nothing: each run ends its own processes."""

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result with whether any fault had its effect."""
        missed = () if self._struck else ("a fault that had its effect on Spark",)
        return replace(campaign, server=self._request.server.to_dict(), not_reached=missed)


def on_spark(sut: str) -> str:
    """The name of the target that runs a system on Spark: its own, if it does so already."""
    return sut if parse(sut) else f"{NAME}:{sut}"


def parse(text: str) -> Target | None:
    """The target of a text, None for one without the name or without a system after it."""
    name, found, system = text.partition(":")
    if name != NAME or (found and not system):
        return None
    return ReferenceSparkTarget(sut=text, system=system or "reference")
