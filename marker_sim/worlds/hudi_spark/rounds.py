"""A round: a fresh storage, a table of one shape on it, the drivers that write it, and the history of all of it."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from marker_sim import __version__
from marker_sim.errors import HarnessError
from marker_sim.history import Header, History
from marker_sim.seeds import plan_seed
from marker_sim.worlds.hudi_spark.drivers import DriverLife, OutOfTime, Program
from marker_sim.worlds.hudi_spark.round_steps import RoundStep
from marker_sim.worlds.hudi_spark.settings import Shape, hudi_options, spark_conf
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
class Spec:
    """One round: what it chooses follows from `seed`, the campaign's, its number and what was met before it.

    master: "local", where all of a job is one process, or "standalone", where executors are processes on two hosts.
    """

    number: int
    seed: int
    version: str
    mode: str
    storage: str
    master: Literal["local", "standalone"]
    shape: Shape
    steps: tuple[RoundStep, ...]

    @property
    def line(self) -> str:
        """Which it is, for whoever watches."""
        return f"round {self.number}: {self.mode}, {self.shape.table_type}, {self.shape.partitions}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTable:
    """A round that is over.

    interrupted: by Ctrl-C.
    trouble: of the kit's surroundings, which ended it.
    plan: None, for its seed does not determine it.
    """

    history: History
    count: Count
    interrupted: bool
    trouble: str = ""
    plan: None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """What happened how often: steps that were met, and whatever else was counted."""
        both = sorted({*self.count.met, *self.count.counts})
        return {name: self.count.met.get(name, 0) + self.count.counts.get(name, 0) for name in both}


def play_round(
    spec: Spec,
    *,
    program: Program,
    scratch: Path,
    pace: Pace,
    sut: str,
    profile: str,
    meddle: Callable[[TableStorage, str], None] | None = None,
) -> PlayedTable:
    """Run a round.

    sut, profile: for the header.
    meddle: called before each audit, for tests of the kit.

    HarnessError when the kit's surroundings failed before there was anything to judge.
    """
    recorder, target, name = Recorder(), TriggerActions(), f"t{spec.number}"
    here = scratch / name
    interrupted, trouble = False, ""
    with _place(spec, recorder, target, here, name) as place, _master(spec, program, here) as master:

        def begin(process: str) -> DriverLife:
            conf = {**spark_conf(master.url, program.jars, here), **master.conf, **place.conf(process)}
            options = hudi_options(spec.shape, spec.mode, spec.version)
            job = {"conf": conf, "options": options, "table": place.uri}
            return DriverLife(process, f"{name}-{process}", program, job, here)

        table = Table(
            name=name, shape=spec.shape, recorder=recorder, place=place, target=target, begin=begin, program=program,
            rng=random.Random(plan_seed(spec.seed, spec.number)), pace=pace, executors=master.executors, meddle=meddle,
        )  # fmt: skip
        try:
            table.play(spec.steps)
        except (OutOfTime, WriteRefused):
            pass
        except KeyboardInterrupt:
            interrupted = True
        except HarnessError as error:
            trouble = str(error)
        finally:
            table.close()
            recorder.close()
        place.check()
        header = _header(spec, place, sut, profile, name)
    shutil.rmtree(here, ignore_errors=True)
    return PlayedTable(
        history=History(header, tuple(recorder.events)), count=table.count, interrupted=interrupted, trouble=trouble
    )


@contextlib.contextmanager
def _place(spec: Spec, recorder: Recorder, target: TriggerActions, here: Path, name: str) -> Iterator[TableStorage]:
    if spec.storage == "local":
        with local_place(recorder, target, here / "storage", name) as place:
            yield place
    else:
        with bucket_place(recorder, target, name) as place:
            yield place


@contextlib.contextmanager
def _master(spec: Spec, program: Program, here: Path) -> Iterator[Master]:
    if spec.master == "local":
        yield Master(url=LOCAL_MASTER, conf={}, executors=tuple)
        return
    with Standalone(here / "cluster", java=program.java, home=program.home, cores=1) as cluster:

        def executors() -> tuple[int, ...]:
            cluster.check()
            return tuple(process.pid for found in cluster.executors().values() for process in found)

        yield Master(url=cluster.url, conf={"spark.executor.cores": "1", **SPECULATION}, executors=executors)


def _header(spec: Spec, place: TableStorage, sut: str, profile: str, table: str) -> Header:
    return Header(
        world="spark",
        mode="direct" if spec.mode == "direct" else "timeline",
        sut=sut,
        sut_version=spec.version,
        kit_version=__version__,
        profile=profile,
        identity=False,
        num_threads=spec.shape.threads,
        seed=spec.seed,
        options={
            **spec.shape.describe(),
            "number": str(spec.number),
            "master": spec.master,
            "table_version": _table_version(place, table),
        },
        **place.describe(),
    )


def _table_version(place: TableStorage, table: str) -> str:
    """As hoodie.properties has it, "" when no write came that far."""
    path = f"{table}/.hoodie/hoodie.properties"
    if path not in place.tree.list():
        return ""
    lines = place.tree.read(path).decode("utf-8", "replace").splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith("hoodie.table.version=")), "")
