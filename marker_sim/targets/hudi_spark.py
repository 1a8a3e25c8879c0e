"""Hudi's write path as PySpark jobs: `hudi-spark:VERSION` for a released version, `hudi-spark:PATH` for a built one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from marker_sim.plan import Plan
from marker_sim.targets.http import check_packages
from marker_sim.targets.hudi import find_jars, parse_bundle
from marker_sim.targets.target import (
    TABLES,
    CampaignRequest,
    RealRuns,
    ServerOptions,
    Target,
    TargetCapabilities,
)

NAME = "hudi-spark"
OF_WRITE_PATH = TargetCapabilities(profile=NAME, world=TABLES, alone=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiSparkTarget(Target):
    """The write path of a version.

    built: a bundle built by the user, None for a released one.
    """

    can: TargetCapabilities = OF_WRITE_PATH
    built: Path | None = None

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """Check or fetch packages, Java, the bundle, and for S3 its client."""
        check_packages(self.sut, f"{NAME} on {request.storage}")
        find_jars(self.version, NAME, request.storage, progress, self.built)

    def forecast(self, request: CampaignRequest) -> str:
        """The sentence about the places that the budget has no room for."""
        from marker_sim.worlds.spark.hudi.choices import forecast

        return forecast(self.version, request.modes, request.storage, request.seed, request.budget_s).sentence

    def plan_of(self, seed: int, number: int, storage: str, server: ServerOptions) -> Plan | None:
        """The plan of a run number, as if every earlier run had met its aims."""
        from marker_sim.worlds.spark.hudi.choices import plan_of_number

        return plan_of_number(self.version, self.can.modes, storage, seed, number)

    def goals(self, storage: str, server: ServerOptions) -> tuple[str, ...]:
        """The goals: each step in its mode."""
        from marker_sim.worlds.spark.hudi.steps import places_of
        from marker_sim.worlds.spark.hudi.table_run import in_mode

        return tuple(in_mode(each.step, mode) for mode in self.can.modes for each in places_of(mode, storage))

    def real_runs(self, request: CampaignRequest, progress: Callable[[str], None]) -> AbstractContextManager[RealRuns]:
        """The runs of writes, each on a fresh table."""
        from marker_sim.targets.hudi_spark_runs import open_runs

        java, jars, s3a = find_jars(self.version, NAME, request.storage, progress, self.built)
        return open_runs(request, self.version, java, (*jars, *s3a))


def parse(text: str) -> Target | None:
    """The target of a text, None for a name that is not of this module; UsageError for a wrong version or path."""
    found = parse_bundle(text, NAME, writes=True)
    return None if found is None else HudiSparkTarget(sut=found.sut, version=found.version, built=found.jar)
