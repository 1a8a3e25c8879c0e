"""Runs against one version of Hudi: modes and table types alternate, the rest is drawn from the seed.

Kills go to the places that were met least so far, so that a campaign covers all of them before it repeats one. Each
run is a plan. Real time decides what meets what, so a plan gives the same writes and faults and not the same run. A
place that was not met leaves inconclusive what it decides (steps.py); a table to which nothing could be
written any more, the whole campaign.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.outcome.failure import Kind
from marker_sim.outcome.result import Campaign
from marker_sim.plan import Plan
from marker_sim.surroundings.files import scratch_directory
from marker_sim.surroundings.requirements import spark_home
from marker_sim.surroundings.supervisor import end_marked
from marker_sim.targets.run_environment import check_door
from marker_sim.targets.target import CampaignRequest
from marker_sim.worlds.door.front import UNSEEN
from marker_sim.worlds.http.servers import VARIABLE
from marker_sim.worlds.spark.hudi.choices import Choices, TableRound, deciding
from marker_sim.worlds.spark.hudi.java_driver import JavaDrivers
from marker_sim.worlds.spark.hudi.settings import Program
from marker_sim.worlds.spark.hudi.steps import TABLE
from marker_sim.worlds.spark.hudi.table import Pace
from marker_sim.worlds.spark.hudi.table_run import play_table
from marker_sim.worlds.spark.outcome import SparkRun

CLOSING_S = 3.0
ENDING_S = 1.0  # For the end of a driver when the time is over.


@contextmanager
def open_program(request: CampaignRequest, java: str, jars: tuple[Path, ...]) -> Iterator[tuple[Program, Path]]:
    """What the drivers of a campaign have in common, with a mark by which all processes are found at the end, and a
    scratch directory.

    HarnessError when storage calls cannot be stopped here.
    """
    check_door(request.storage)
    deadline = time.monotonic() + request.budget_s - CLOSING_S
    mark = f"{os.getpid()}-{uuid.uuid4().hex}"
    program = Program(
        home=spark_home(), java=java, jars=jars, mark=mark, logs=request.report / "logs", deadline=deadline
    )
    try:
        with scratch_directory() as scratch:
            yield program, scratch
    finally:
        end_marked(VARIABLE, mark)


@contextmanager
def open_runs(request: CampaignRequest, version: str, java: str, jars: tuple[Path, ...]) -> Iterator[SparkTableRuns]:
    """The runs of a campaign; HarnessError when storage calls cannot be stopped here."""
    choices = Choices(version, request.modes, request.storage, request.seed, request.budget_s)
    with open_program(request, java, jars) as (program, scratch):
        yield SparkTableRuns(request=request, version=version, program=program, choices=choices, scratch=scratch)


@dataclass(slots=True, kw_only=True)
class TableRuns(ABC):
    """The runs of one campaign, each on a fresh table; `targets.target.RealRuns` says what each method is for.

    spared_s: of the budget, for making small what was found.
    """

    request: CampaignRequest
    version: str
    program: Program
    scratch: Path
    spared_s: float = 0.0
    tables: int = 0
    lanes: int = 1
    at_once: int = 1
    counts: tuple[str, str] = ("tables", "writes")
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @abstractmethod
    def _run(self, plan: Plan, deadline: float) -> SparkRun:
        """The result of a plan."""

    def _play(self, plan: Plan, deadline: float, pace: Pace, java: JavaDrivers | None = None) -> SparkRun:
        with self._guard:
            number, self.tables = self.tables, self.tables + 1
        return play_table(
            plan,
            number=number,
            version=self.version,
            program=replace(self.program, deadline=deadline),
            scratch=self.scratch,
            pace=pace,
            sut=self.request.target.sut,
            profile=self.request.profile.name,
            java=java,
        )

    def again(self, plan: Plan, deadline: float, fresh: bool = False, probing: bool = True) -> SparkRun:
        """The result of a plan on a separate table; HarnessError when the surroundings fail."""
        played = self._run(plan, deadline - ENDING_S)
        if played.interrupted:
            raise KeyboardInterrupt
        if played.trouble:
            raise HarnessError(played.trouble)
        return played

    def reserve(self, share: float) -> None:
        """Reserve a share of the budget for shrinking."""
        self.spared_s = share * self.request.budget_s


def tally(played: SparkRun, tried: Counter[tuple[str, str]], met: Counter[tuple[str, str]]) -> None:
    """Count the steps of a run, by mode and name."""
    for counter, counts in ((tried, played.armed), (met, played.met)):
        counter.update({(played.plan.mode, name): number for name, number in sorted(counts.items())})


@dataclass(slots=True, kw_only=True)
class SparkTableRuns(TableRuns):
    """The runs of one campaign with Hudi on Spark. refused: why tables took no write any more."""

    choices: Choices
    refused: list[str] = field(default_factory=list)

    def draw(self, reached: Mapping[str, int]) -> TableRound | None:
        """The next run, None when none fits into the budget; the first always does."""
        return self.choices.next(self.program.left_s() - self.spared_s)

    def play(self, drawn: TableRound) -> SparkRun:
        """The result of the drawn run."""
        return self._run(drawn.plan, self.program.deadline - self.spared_s)

    def _run(self, plan: Plan, deadline: float) -> SparkRun:
        return self._play(plan, deadline, self.choices.pace)

    def took(self, drawn: TableRound, played: SparkRun, broken: Collection[Kind]) -> None:
        """Take in that a run has ended."""
        tally(played, self.choices.armed, self.choices.met)
        self.refused += played.refused

    def close(self) -> None:
        """Nothing: each run ends its own processes."""

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result with the aims that were not met."""
        request, met, armed = self.request, self.choices.met, self.choices.armed
        missed = [
            f"{name} in {mode} mode (aimed at {number} times)"
            for (mode, name), number in sorted(armed.items())
            if not met[mode, name] and not any(name == each.step and each.guarantees for each in TABLE)
        ]
        for mode in request.modes:
            names = [name for (met_mode, name), number in met.items() if met_mode == mode and number]
            if not any(name.startswith("driver killed") for name in names):
                missed.append(f"a driver killed in {mode} mode")
        if not campaign.statistics.reached.get("rows read by hudi-rs"):
            missed.append("rows read by hudi-rs")
        missed += sorted(name for name in campaign.statistics.reached if name.startswith(UNSEEN))
        return replace(
            campaign,
            server=request.server.to_dict(),
            not_reached=(*missed, *(f"a write after a kill: {why}" for why in self.refused)),
            deciding=deciding(request.modes, request.storage, armed, met),
        )
