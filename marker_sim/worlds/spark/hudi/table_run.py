"""A run: a fresh storage, a table of one shape on it, the drivers that write it, and the history of all of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Literal

from marker_sim import __version__
from marker_sim.errors import HarnessError
from marker_sim.history import Header, History
from marker_sim.plan import Plan
from marker_sim.tables.parts import NAME, parse_properties
from marker_sim.worlds.door.front import UNSEEN
from marker_sim.worlds.interceptor import DRIVERS, Interceptor
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.application import Application, Driver, OutOfTime, driver_words
from marker_sim.worlds.spark.fault_injector import TableFaultInjector
from marker_sim.worlds.spark.hudi.future import TableWithFuture, WritersWithFuture
from marker_sim.worlds.spark.hudi.java_driver import JavaDrivers
from marker_sim.worlds.spark.hudi.settings import Program, describe, hudi_options, log_of, shape_of, spark_conf
from marker_sim.worlds.spark.hudi.steps import steps_of
from marker_sim.worlds.spark.hudi.table import READERS, Pace, Table, WriteRefused
from marker_sim.worlds.spark.hudi.table_storage import TableStorage, table_storage
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.session import SPECULATION
from marker_sim.worlds.spark.standalone import Standalone

LOCAL_MASTER = "local[2,4]"
# A copy of a task that stands still starts before half of its stage is done.
ON_CLUSTER = {"spark.executor.cores": "1", **SPECULATION, "spark.speculation.quantile": "0.4"}


def in_mode(name: str, mode: str) -> str:
    """The name under which campaigns count a step in a mode."""
    return f"{name}, {mode} mode"


def play_table(
    plan: Plan,
    *,
    number: int,
    version: str,
    program: Program,
    scratch: Path,
    pace: Pace,
    sut: str,
    profile: str,
    java: JavaDrivers | None = None,
) -> SparkRun:
    """Run a plan on a fresh table.

    number: of the table. version: of Hudi.
    sut, profile: for the header. java: how drivers begin that are no jobs of Spark.

    HarnessError when the kit's surroundings failed before there was anything to judge, UsageError for a plan that is
    not of a table.
    """
    name = f"t{number}"
    here = scratch / name
    recorder, warm = Recorder(), java is not None and java.warm is not None
    injector = TableFaultInjector(recorder, name) if java is None else java.injector(recorder, name, plan.storage)
    interceptor = Interceptor(recorder, injector.inject, callers=DRIVERS)
    stored = table_storage(plan, interceptor, here / "storage", name, door=not warm)
    with stored as place, _cluster(plan, program, here, place) as cluster:
        injector.cluster = cluster
        begin: Callable[[str], Driver] = partial(_start, plan, version, program, here, place, cluster)
        if java is not None:
            begin = partial(java.begin, plan, program, here, place, injector)
        table = (WritersWithFuture if shape_of(plan).writers else TableWithFuture)(
            name=name,
            plan=plan,
            place=place,
            injector=injector,
            begin=begin,
            program=program,
            pace=pace,
            readers=("hudi",) if warm else READERS,
        )
        interrupted, cut, trouble = _ending(table)
        events = recorder.close()
        place.check()
        header = _header(plan, place, sut, version, profile, name, "spark" if java is None else "java")
        unseen = {UNSEEN + sentence: 1 for sentence in place.unseen()}
    shutil.rmtree(here, ignore_errors=True)
    met = {in_mode(step, plan.mode): times for step, times in table.met.items()}
    return SparkRun(
        history=History(header, events),
        plan=table.played,
        counts=met | table.counts | unseen,
        armed=table.armed,
        met=table.met,
        refused=tuple(table.refused),
        interrupted=interrupted,
        cut=cut,
        trouble=trouble,
        calls=tuple(table.calls),
    )


def _ending(table: Table) -> tuple[bool, bool, str]:
    """Whether the writes of a table were interrupted, whether they were cut, and what the surroundings' trouble was."""
    try:
        table.play()
    except OutOfTime:
        return False, True, ""
    except WriteRefused:
        return False, False, ""
    except KeyboardInterrupt:
        return True, False, ""
    except HarnessError as error:
        return False, False, str(error)
    finally:
        table.close()
    return False, table.begun < len(steps_of(table.plan)), ""


def _cluster(
    plan: Plan, program: Program, here: Path, place: TableStorage
) -> AbstractContextManager[Standalone | None]:
    """A cluster with executors as processes, as a context; None in it where the plan wants them in the driver."""
    if not shape_of(plan).cluster:
        return nullcontext()
    return Standalone(here / "cluster", java=program.java, home=program.home, cores=1, door=place.door)


def _start(
    plan: Plan, version: str, program: Program, here: Path, place: TableStorage, cluster: Standalone | None, name: str
) -> Application:
    """A new driver with a name, under which it also signs its requests to S3."""
    url, own = (LOCAL_MASTER, {}) if cluster is None else (cluster.url, ON_CLUSTER)
    conf = spark_conf(url, program.jars, here) | own | place.conf(name)
    spec = {"settings": conf, "options": hudi_options(plan, version), "table": place.uri}
    words = driver_words("hudi", spec, here / f"{name}.spec")
    return Application(name, words, program.environment(), log_of(program, here, name), program.deadline, place.door)


def _header(
    plan: Plan, place: TableStorage, sut: str, version: str, profile: str, table: str, world: Literal["spark", "java"]
) -> Header:
    return Header(
        world=world,
        mode="direct" if plan.mode == "direct" else "timeline",
        sut=sut,
        sut_version=version,
        kit_version=__version__,
        profile=profile,
        identity=False,
        num_threads=plan.num_threads,
        seed=plan.seed,
        options={**describe(plan), "table_version": _table_version(place, table)},
        storage=plan.storage,
        witness="effects",
    )


def _table_version(place: TableStorage, table: str) -> str:
    """The table version in hoodie.properties, "" when no write has made that file."""
    place.files.tree(table)  # Takes the snapshot that is read of.
    version = parse_properties(place.files.read(f"{table}/{NAME}") or b"").version
    return str(version) if version else ""
