"""A run: a fresh storage, a table of one shape on it, the drivers that write it, and the history of all of it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from marker_sim import __version__
from marker_sim.errors import HarnessError
from marker_sim.history import Header, History
from marker_sim.plan import Plan
from marker_sim.tables.parts import NAME, parse_properties
from marker_sim.worlds.hudi_spark.drivers import DriverLife, OutOfTime, Program
from marker_sim.worlds.hudi_spark.settings import describe, hudi_options, shape_of, spark_conf
from marker_sim.worlds.hudi_spark.steps import steps_of
from marker_sim.worlds.hudi_spark.table import Count, Pace, Table, WriteRefused
from marker_sim.worlds.hudi_spark.table_storage import TableStorage, TriggerActions, bucket_place, local_place
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.standalone import Standalone

LOCAL_MASTER = "local[2,4]"
# A copy of a task that stands still starts as soon as half of its stage is done.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.4",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.minTaskRuntime": "100ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """Where drivers find executors.

    conf: what they are told besides.
    executors: those that are processes.
    """

    url: str
    conf: dict[str, str]
    executors: Callable[[], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTable:
    """A finished run.

    plan: of it, without the steps that there was no time for.
    interrupted: by Ctrl-C.
    cut: there was no time for the rest of it.
    trouble: of the kit's surroundings, which ended it.
    """

    history: History
    count: Count
    plan: Plan
    interrupted: bool
    cut: bool = False
    trouble: str = ""

    @property
    def counts(self) -> Mapping[str, int]:
        """What happened how often: steps that were met, in their mode, and whatever else was counted."""
        return {in_mode(name, self.plan.mode): met for name, met in self.count.met.items()} | self.count.counts


def in_mode(name: str, mode: str) -> str:
    """A step of a mode, as campaigns count it."""
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
    meddle: Callable[[TableStorage, str], None] | None = None,
) -> PlayedTable:
    """Run a plan on a fresh table.

    number: of the table.
    version: of Hudi.
    sut, profile: for the header.
    meddle: called before each audit, for tests of the kit.

    HarnessError when the kit's surroundings failed before there was anything to judge, UsageError for a plan that is
    not of a table.
    """
    recorder, target, name = Recorder(), TriggerActions(), f"t{number}"
    here = scratch / name
    interrupted, cut, trouble = False, False, ""
    with _place(plan, recorder, target, here, name) as place, _master(plan, program, here) as master:

        def begin(process: str) -> DriverLife:
            conf = {**spark_conf(master.url, program.jars, here), **master.conf, **place.conf(process)}
            options = hudi_options(plan, version)
            job = {"conf": conf, "options": options, "table": place.uri}
            return DriverLife(process, f"{name}-{process}", program, job, here)

        table = Table(
            name=name, plan=plan, recorder=recorder, place=place, target=target, begin=begin, program=program,
            pace=pace, executors=master.executors, meddle=meddle,
        )  # fmt: skip
        try:
            table.play()
            cut = table.begun < len(steps_of(plan))
        except OutOfTime:
            cut = True
        except WriteRefused:
            pass
        except KeyboardInterrupt:
            interrupted = True
        except HarnessError as error:
            trouble = str(error)
        finally:
            table.close()
            recorder.close()
        place.check()
        header = _header(plan, place, sut, version, profile, name)
    shutil.rmtree(here, ignore_errors=True)
    return PlayedTable(
        history=History(header, tuple(recorder.events)), count=table.count, plan=table.played, interrupted=interrupted,
        cut=cut, trouble=trouble,
    )  # fmt: skip


@contextlib.contextmanager
def _place(plan: Plan, recorder: Recorder, target: TriggerActions, here: Path, name: str) -> Iterator[TableStorage]:
    if plan.storage == "local":
        with local_place(recorder, target, here / "storage", name) as place:
            yield place
    else:
        with bucket_place(recorder, target, name) as place:
            yield place


@contextlib.contextmanager
def _master(plan: Plan, program: Program, here: Path) -> Iterator[Master]:
    if not shape_of(plan).cluster:
        yield Master(url=LOCAL_MASTER, conf={}, executors=tuple)
        return
    with Standalone(here / "cluster", java=program.java, home=program.home, cores=1) as cluster:

        def executors() -> tuple[int, ...]:
            cluster.check()
            return tuple(process.pid for found in cluster.executors().values() for process in found)

        yield Master(url=cluster.url, conf={"spark.executor.cores": "1", **SPECULATION}, executors=executors)


def _header(plan: Plan, place: TableStorage, sut: str, version: str, profile: str, table: str) -> Header:
    return Header(
        world="spark",
        mode="direct" if plan.mode == "direct" else "timeline",
        sut=sut,
        sut_version=version,
        kit_version=__version__,
        profile=profile,
        identity=False,
        num_threads=plan.num_threads,
        seed=plan.seed,
        options={**describe(plan), "table_version": _table_version(place, table)},
        **place.describe(),
    )


def _table_version(place: TableStorage, table: str) -> str:
    """As hoodie.properties has it, "" when no write came that far."""
    place.files.tree(table)  # Takes the snapshot that is read of.
    version = parse_properties(place.files.read(f"{table}/{NAME}") or b"").version
    return str(version) if version else ""
