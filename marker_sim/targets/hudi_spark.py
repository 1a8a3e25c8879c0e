"""Rounds against one version of Hudi within a budget: modes and table types alternate, the rest is drawn from the seed.

Kills go to the places that were met least so far, so that a campaign covers all of them before it repeats one. Real
time decides what meets what, so a seed gives the same choices and not the same run. A place that was not met leaves
inconclusive what it decides (deciding.py); a table to which nothing could be written any more, the whole campaign.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from marker_sim.campaign.result import Campaign, Failure, failures_in
from marker_sim.campaign.statistics import Statistics
from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import Profile
from marker_sim.targets.bundles import spark_home
from marker_sim.targets.hudi import S3A, bundle, check_version, find_java
from marker_sim.targets.interruption import drive
from marker_sim.worlds.hudi_spark.choices import Choices
from marker_sim.worlds.hudi_spark.deciding_faults import TABLE, deciding
from marker_sim.worlds.hudi_spark.drivers import Program
from marker_sim.worlds.hudi_spark.rounds import PlayedTable, play_round
from marker_sim.worlds.hudi_spark.table_storage import TableStorage
from marker_sim.worlds.spark.standalone import end_marked

MODES = ("direct", "timeline")
CLOSING_S = 3.0


@dataclass(slots=True, kw_only=True)
class _HudiSparkSearch:
    """What the rounds came to so far. armed, met: steps by mode and name."""

    profile: Profile
    progress: Callable[[str], None]
    statistics: Statistics = field(default_factory=Statistics)
    failures: dict[tuple[str, str, str], Failure] = field(default_factory=dict)
    last: History | None = None
    armed: Counter[tuple[str, str]] = field(default_factory=Counter)
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    writes: int = 0

    def add(self, played: PlayedTable) -> None:
        """Judge a round and count it."""
        history, count = played.history, played.count
        mode = history.header.mode
        findings = judge(history)
        self.statistics.add(history, findings)
        for name, number in sorted(count.armed.items()):
            self.armed[mode, name] += number
        for name, number in sorted(count.met.items()):
            self.met[mode, name] += number
            self.statistics.reach(name, number)
        for what, number in sorted(count.counts.items()):
            self.statistics.reach(what, number)
        self.refused += count.refused
        self.last = history
        self.writes += sum(event.kind == "invoke" for event in history.events)
        for failure in failures_in(history, findings, self.profile):
            self.failures.setdefault((failure.guarantee, mode, failure.cause), replace(failure, mode=mode))

    def not_reached(self, modes: tuple[str, ...]) -> tuple[str, ...]:
        """What had to happen and did not, whatever it is that one wants to know."""
        missed = [
            f"{name} in {mode} mode (aimed at {number} times)"
            for (mode, name), number in sorted(self.armed.items())
            if not self.met[mode, name] and not any(name == each.step and each.guarantees for each in TABLE)
        ]
        for mode in modes:
            met = [name for (met_mode, name), number in self.met.items() if met_mode == mode and number]
            if not any(name.startswith("driver killed") for name in met):
                missed.append(f"a driver killed in {mode} mode")
        if not self.statistics.reached.get("rows read by hudi-rs"):
            missed.append("rows read by hudi-rs")
        return (*missed, *(f"a write after a kill: {why}" for why in self.refused))

    def line(self) -> str:
        """How far it is."""
        broken = ", ".join(sorted({name for name, _, _ in self.failures}, key=lambda name: int(name[1:]))) or "none"
        kills = self.statistics.faults.get("kill", 0)
        return f"{self.statistics.runs} tables, {self.writes} writes, {kills} drivers killed, violated so far: {broken}"


def run_hudi_spark(
    version: str,
    *,
    modes: tuple[str, ...] = MODES,
    storage: str,
    budget_s: float,
    seed: int,
    report_dir: Path,
    profile: Profile,
    progress: Callable[[str], None],
    names: tuple[str, ...] = (),
    on_round: Callable[[History], None] | None = None,
    meddle: Callable[[TableStorage, str], None] | None = None,
    stop: Callable[[Statistics], bool] = lambda statistics: False,
) -> Campaign:
    """Judge the write path of a released Hudi for `budget_s` seconds.

    names: take these steps alone. on_round: shown each history. meddle: given the storage and the table before each
    audit, for tests of the kit. Every process it started is gone when it returns or raises. Ctrl-C ends it early with
    what was found so far. HarnessError for what is missing here; UsageError for a version that has no bundle.
    """
    began = time.monotonic()
    program = _program(version, storage, report_dir, began + budget_s - CLOSING_S, progress)
    search = _HudiSparkSearch(profile=profile, progress=progress)
    choices = Choices(version, modes, storage, seed, budget_s, names, search.met, search.armed)
    try:
        interrupted, trouble = drive(partial(_play, search, choices, program, on_round, meddle, stop), search.failures)
    finally:
        end_marked(program.mark)
    return Campaign(
        sut=f"hudi-spark:{version}",
        sut_version=version,
        seed=seed,
        duration_s=time.monotonic() - began,
        runs=search.statistics.runs,
        steps=search.writes,
        statistics=search.statistics,
        failures=tuple(search.failures.values()),
        last=search.last,
        not_reached=search.not_reached(modes),
        deciding=deciding(modes, storage, names, search.armed, search.met),
        interrupted=interrupted,
        trouble=trouble,
    )


def _play(
    search: _HudiSparkSearch,
    choices: Choices,
    program: Program,
    on_round: Callable[[History], None] | None,
    meddle: Callable[[TableStorage, str], None] | None,
    stop: Callable[[Statistics], bool],
) -> None:
    """Run and judge every round that fits; what ended the last one early is raised when it is counted."""
    profile = search.profile.name
    with _scratch() as scratch:
        while not stop(search.statistics) and (spec := choices.next(program.left_s())) is not None:
            search.progress(f"round {spec.number}: {spec.mode}, {spec.shape.table_type}, {spec.shape.partitions}")
            played = play_round(
                spec, program=program, scratch=scratch, pace=choices.pace, profile=profile, meddle=meddle
            )  # fmt: skip
            search.add(played)
            search.progress(search.line())
            if on_round is not None:
                on_round(played.history)
            if played.interrupted:
                raise KeyboardInterrupt
            if played.trouble:
                raise HarnessError(played.trouble)


def _program(version: str, storage: str, report_dir: Path, deadline: float, progress: Callable[[str], None]) -> Program:
    """What drivers need; HarnessError for the first that is missing here, UsageError for a version."""
    check_version(version, "hudi-spark")
    jars = bundle(version).find(progress)
    home, java = spark_home(), find_java()
    if storage == "s3":
        jars = (*jars, *S3A.find(progress))
    mark = f"{os.getpid()}-{uuid.uuid4().hex}"
    return Program(home=home, java=java, jars=jars, mark=mark, logs=report_dir / "logs", deadline=deadline)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    try:
        scratch = Path(tempfile.mkdtemp(prefix="marker-sim-")).resolve()
    except OSError as error:
        raise HarnessError(f"no scratch directory can be made: {error.strerror or error}") from error
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
