"""Hudi's write path by its Java client, without Spark: `hudi-java:VERSION` for a released version, `hudi-java:PATH` for
a built one.

The client's own jar is not in Hudi's bundles; what it needs besides is in the bundle for Spark and in PySpark's jars.
Its table has one writer, whose every storage call fails once, or is its last (hudi_java_walk.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from marker_sim.errors import UsageError
from marker_sim.plan import Plan
from marker_sim.reading import either
from marker_sim.surroundings.requirements import find_java, spark_home
from marker_sim.targets.http import check_packages
from marker_sim.targets.hudi import S3A, bundle
from marker_sim.targets.jvm.bundles import Jars, is_path, read_build
from marker_sim.targets.target import (
    OF_SERVERS,
    TABLES,
    CampaignRequest,
    RealRuns,
    ServerOptions,
    Target,
    TargetCapabilities,
)

NAME = "hudi-java"
VERSIONS = ("1.1.1", "1.2.0")
# What is promised of a write path does not depend on who runs its tasks.
OF_JAVA = TargetCapabilities(
    profile="hudi-spark",
    world=TABLES,
    alone=True,
    refuses=OF_SERVERS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiJavaTarget(Target):
    """The write path of a version, by its Java client.

    built: its jars, () for a released version. writers: how many at once, 0 for one by one. orders: in every order.
    """

    can: TargetCapabilities = OF_JAVA
    built: tuple[Path, ...] = ()
    writers: int = 0
    orders: bool = False

    def started_by(self, server: ServerOptions) -> Target:
        """The target with several writers, if they are asked for."""
        return replace(self, writers=server.writers or 0, orders=server.orders)

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """Check or fetch packages, Java, the bundle and the client."""
        if self.writers and request.storage != "local":
            raise UsageError(
                f"--writers was given with --storage {request.storage}; several writers run on local files, whose calls"
                " the kit lets through one by one: write --storage local, or leave --writers out"
            )
        if self.orders and (self.writers != 2 or request.modes != ("direct",)):
            raise UsageError("--orders was given; write --writers 2 --mode direct beside it, or leave --orders out")
        if request.server.services and self.writers:
            raise UsageError("--services was given with --writers; leave one of them out")
        check_packages(self.sut, f"{NAME} on {request.storage}")
        find_java()
        self._jars(request.storage, progress)

    def plan_of(self, request: CampaignRequest, number: int) -> Plan:
        """The plan of a number: a table with a few deaths, drawn."""
        from marker_sim.targets.hudi_java_walk import draw_deaths

        return draw_deaths(self.can.modes, request.storage, request.seed, number)

    def real_runs(self, request: CampaignRequest, progress: Callable[[str], None]) -> AbstractContextManager[RealRuns]:
        """The runs of writes, each on a fresh table."""
        from marker_sim.targets.hudi_java_runs import open_runs

        made = None
        if self.writers:
            from marker_sim.targets.jvm.hudi_java_orders import OrderRuns
            from marker_sim.targets.jvm.hudi_java_writers import WriterRuns

            made = partial(OrderRuns if self.orders else WriterRuns, writers=self.writers)
        return open_runs(request, self.version, find_java(), self._jars(request.storage, progress), progress, made)

    def script_settings(self) -> dict[str, str]:
        """The class path and a JDK, for several writers: their runs are threads of one JVM."""
        if not self.writers:
            return {}
        jars = [*self._jars("local", lambda line: None), str(spark_home() / "jars" / "*")]
        places = str(Path(find_java()).resolve().parent), os.environ.get("PATH", os.defpath)
        return {"CLASSPATH": os.pathsep.join(jars), "PATH": os.pathsep.join(places)}

    def _jars(self, storage: str, progress: Callable[[str], None]) -> list[str]:
        released = () if self.built else (client(self.version), bundle(self.version))
        needed = (*released, *((S3A,) if storage == "s3" else ()))
        return [str(path) for path in (*self.built, *(path for jars in needed for path in jars.find(progress)))]


def client(version: str) -> Jars:
    """The Java client of a version, in the cache or not."""
    return Jars(what=f"the Java client of Hudi {version}", coordinates=(f"org.apache.hudi:hudi-java-client:{version}",))


def parse(text: str) -> Target | None:
    """The target of a text, None for a name that is not of this module; UsageError for a wrong version or path."""
    name, _, word = text.partition(":")
    if name != NAME:
        return None
    if is_path(word):
        found = read_build(word, NAME)
        built = tuple(jar for jar in (found.client, found.jar) if jar is not None)
        return HudiJavaTarget(sut=found.sut, version=found.version, built=built)
    if word not in VERSIONS:
        raise UsageError(
            f"--sut was given {text!r}; write {NAME}: and {either(VERSIONS)}, or the path of a folder with the jars of"
            " another version"
        )
    return HudiJavaTarget(sut=text, version=word)
