"""One night: units handed out to workers until the budget is used, each in the ledger once it is done.

The night's clock runs while this process does, and is in every line, so that a killed night resumes where it stopped.
At the end of the budget no unit begins; running ones get `GRACE_S`, then they are stopped and done first the next time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from marker_sim.campaign.nightly.ledger import Ledger, Line, read_lines, writing
from marker_sim.campaign.nightly.opening import (
    ALONE,
    FOREIGN,
    NightlyStage,
    NightRequest,
    check_place,
    missing,
    opened,
    schedule,
)
from marker_sim.campaign.nightly.page import write_summary
from marker_sim.campaign.nightly.parquet import sweep, write_tables
from marker_sim.campaign.nightly.summary import open_stories
from marker_sim.campaign.nightly.totals import Totals
from marker_sim.campaign.nightly.units import ROWS, SPACE, NightlyTask, do
from marker_sim.campaign.pieces import rates_of
from marker_sim.errors import UsageError
from marker_sim.outcome.failure import CANNOT_RUN, FailureRecord
from marker_sim.report.words import counted
from marker_sim.surroundings.files import scratch_directory
from marker_sim.surroundings.worker_pool import VARIABLE, WAIT_S, Answer, TaskPool, WorkerPool, guarded
from marker_sim.targets.table import DEFAULT, parse_target

GRACE_S = 5.0
# Share of a night in which stored failures are run again.
STORED_SHARE = 0.1
SUMMARY_EVERY_S = 60.0
ALONE_MIN_S = 40.0  # A run takes a minute: with less time left, none is started.
# A unit of the swarm has this many turns for each SEEDS_EVERY_S of the budget, so that the ledger stays small.
SEEDS, SEEDS_EVERY_S, SEEDS_FACTOR_MAX = 12, 450.0, 32
# A unit in real time has so many plans, two at a time where a run does not need the machine for itself.
PLANS, PLANS_ALONE, LANES = 8, 4, 2
SINGLES_A_UNIT, ROOTS_A_UNIT = 100, 2  # Of the exhaustive search: single crashes, first crashes of pairs.
# On Spark a unit takes some seconds: long compared with its start, and short enough to lose.
SEEDS_ON_SPARK, EXHAUSTIVE_FACTOR_ON_SPARK = 60, 5


def run_night(
    request: NightRequest,
    draw_seed: Callable[[], int],
    progress: Callable[[str], None],
    say: Callable[[str], None] = lambda line: None,
) -> Totals:
    """Begin or continue a night in a directory and run it until its budget is used, or Ctrl-C, which pauses it.

    say: gets a sentence about a night that goes on, and where it was.
    UsageError for a directory of another system or seed, or one that is in use; HarnessError when it cannot be written.
    """
    begun = next(read_lines(request.directory), None)
    sut = request.sut or (DEFAULT if begun is None else begun["sut"])
    check_place(sut, request)
    parse_target(sut).load()  # Fails before any file is written or changed.
    with writing(request.directory) as ledger:
        totals = opened(ledger, request, draw_seed)
        totals.failures.write(request.directory)
        sweep(request.directory, read_lines(request.directory))
        night = _Night(request, ledger, totals, progress)
        if night.before_s:
            runs = counted(totals.night.stream_runs.total(), "run")
            say(
                f"night {totals.night.number} goes on after {night.before_s:.0f} s of {request.budget_s:g} s and {runs}"
            )
        try:
            with (
                guarded(VARIABLE, str(request.directory.resolve())) if night.foreign else nullcontext(),
                scratch_directory(_scratch(request.directory)) as scratch,
                _pool(request, totals, night.jobs, scratch) as workers,
            ):
                night.run(workers)
            night.note("end")
        except KeyboardInterrupt:
            night.note("pause")
            totals = Totals().add_all(read_lines(request.directory))  # A line may be written and not counted yet,
            totals.failures.write(request.directory)  # or counted and its failures not stored.
        write_summary(totals, request.directory)
        return totals


class _Night:
    """The night in progress."""

    def __init__(self, request: NightRequest, ledger: Ledger, totals: Totals, progress: Callable[[str], None]) -> None:
        self._began = time.monotonic()
        self.before_s = totals.night.seconds
        self._request = request
        self._ledger = ledger
        self._totals = totals
        self._progress = progress
        can = parse_target(totals.sut).can
        self.foreign = not can.plans
        self._alone = can.alone
        self.jobs = 1 if can.alone else request.jobs if can.plans else (request.jobs + 1) // LANES
        self._stages, _ = schedule(totals.night.stages, request.budget_s, missing(totals, request))
        factor = min(SEEDS_FACTOR_MAX, max(1, int(request.budget_s / SEEDS_EVERY_S)))
        on_spark = request.spark_master is not None
        plans = PLANS_ALONE if can.alone else PLANS
        self._sizes = {"swarm": SEEDS_ON_SPARK if on_spark else SEEDS * factor, **dict.fromkeys(FOREIGN, plans)}
        self._exhaustive_factor = EXHAUSTIVE_FACTOR_ON_SPARK if on_spark else 1
        self._taken = defaultdict[str, float](float)
        self._died = set[tuple[str, str, int, str | None]]()
        self._points: int | None = None
        self._digest = ""
        self._shown = self._began

    @property
    def clock_s(self) -> float:
        """The seconds of the budget that are used."""
        return self.before_s + time.monotonic() - self._began

    def note(self, kind: str, **content: Any) -> list[str]:
        """Append a line of this night and count it; returns the failures that it changed."""
        line = self._ledger.append(kind, night=self._totals.night.number, clock_s=round(self.clock_s, 3), **content)
        return self._totals.add(line)

    def run(self, workers: TaskPool) -> None:
        """Hand out the tasks of the night as workers are idle; what runs at the end of the budget gets `GRACE_S`."""
        budget_s = self._request.budget_s
        for task in self._tasks(workers):
            if task is not None:
                workers.give(workers.idle[0], task)
            if task is None:
                self._collect(workers, budget_s - self.clock_s)
            while not workers.idle and self.clock_s < budget_s:
                self._collect(workers, budget_s - self.clock_s)
            if self.clock_s >= budget_s:
                break
        deadline = time.monotonic() + GRACE_S
        while workers.busy and time.monotonic() < deadline:
            self._collect(workers, deadline - time.monotonic())

    def _tasks(self, workers: TaskPool) -> Iterator[NightlyTask | None]:
        """The canary, stored failures, the stages, and the swarm for the rest; None to wait for the next answer."""
        budget_s, night = self._request.budget_s, self._totals.night
        if night.canary is None and self.clock_s < budget_s and not self.foreign:
            yield self._task("canary", night.number, 1)
        end_s = self.clock_s + budget_s * STORED_SHARE
        for failure in self._waiting():
            if self.clock_s < end_s:
                yield self._task("stored", 0, 0, failure=failure)
        while workers.busy and self.clock_s < end_s:
            yield None
        if any("exhaustive" in stage.streams for stage in self._stages) and self.clock_s < budget_s:
            yield self._task(SPACE, 0, 0)  # By a worker, because running the system may end the process.
            while self._points is None:
                yield None
        for stage in self._stages:
            yield from self._stage_tasks(workers, stage)
        if self._stages and "swarm" in night.stages:
            yield from self._stage_tasks(workers, NightlyStage(name="swarm", end_s=budget_s, streams=("swarm",)))

    def _waiting(self) -> list[FailureRecord]:
        """The open stored failures that were not run in this night yet and can be run here."""
        night, waiting = self._totals.night, []
        for failure in self._totals.failures.open:
            if failure.name in night.replayed or failure.night == night.number:
                continue
            elsewhere = ("spark",) if self._request.spark_master is None else ("spark", "real")
            if failure.world in elsewhere or not failure.plan:
                self.note("replayed", name=failure.name, status=CANNOT_RUN)
            else:
                waiting.append(failure)
        return waiting

    def _stage_tasks(self, workers: TaskPool, stage: NightlyStage) -> Iterator[NightlyTask | None]:
        """The units of a stage until its end, of the stream first that had the least time."""
        streams = set(stage.streams)
        while streams and self.clock_s < stage.end_s:
            if stage.name in ALONE and workers.busy:
                yield None
                continue
            stream = min(streams, key=lambda name: (self._taken[name], name))
            part = self._next(stream)
            if part is None:
                streams.remove(stream)
            else:
                yield self._task(stream, *part)

    def _next(self, stream: str) -> tuple[int, int, str] | None:
        """The next numbers of a stream and the space they belong to; None when it has no more in this night."""
        if self._alone and self._request.budget_s - self.clock_s < ALONE_MIN_S:
            return None
        if stream != "exhaustive":
            part = self._totals.ranges(stream).take(self._sizes.get(stream, 1))
            return None if part is None else (*part, "")
        points, factor = self._points or 0, self._exhaustive_factor
        ranges = self._totals.ranges(stream, self._space)
        part = ranges.take(SINGLES_A_UNIT * factor, points) or ranges.take(ROOTS_A_UNIT * factor, 2 * points)
        return None if part is None else (*part, self._space)

    @cached_property
    def _space(self) -> str:
        """The exhaustive search's crash points, their digest, and the number of the current pass over them."""
        points, number = self._points or 0, 1
        while self._totals.ranges("exhaustive", f"{points}.{self._digest}.{number}").whole(2 * points):
            number += 1
        return f"{points}.{self._digest}.{number}"

    def _task(
        self, stream: str, first: int, count: int, space: str = "", failure: FailureRecord | None = None
    ) -> NightlyTask:
        self._taken[stream] += 0.001
        return NightlyTask(
            stream=stream,
            first=first,
            count=count,
            sut=self._totals.sut,
            profile=self._totals.profile,
            until=time.monotonic() + self._request.budget_s - self.clock_s,
            seed=self._totals.seed,
            seen=dict(self._totals.night.kinds),
            failure=failure,
            listing=self._totals.night.tables,
            space=space,
            server=self._totals.server,
        )

    def _collect(self, workers: TaskPool, timeout_s: float) -> None:
        """Record the units that are done; a task whose worker died is given once more."""
        for answer in workers.answers(min(timeout_s, WAIT_S)):
            task = answer.task
            name = (task.stream, task.space, task.first, task.failure and task.failure.name)
            if answer.died and name not in self._died:
                self._died.add(name)
                # Without shrinking where that may have killed it.
                workers.give(workers.idle[0], task if self.foreign else replace(task, until=time.monotonic()))
            else:
                self._take(answer)
        now = time.monotonic()
        self._progress(_line(self._totals, self.clock_s, self._request.budget_s, len(workers.busy)))
        if now - self._shown > SUMMARY_EVERY_S:
            self._shown = now
            write_summary(self._totals, self._request.directory)

    def _take(self, answer: Answer) -> None:
        """Take in an answer: a unit, or the result of a question that is no unit."""
        task, seconds = answer.task, answer.seconds
        result = answer.result or {"trouble": answer.died or str(answer.error)}
        if "refused" in result:
            raise UsageError(result["refused"])
        self._taken[task.stream] += seconds
        if task.stream == SPACE:
            self._points, self._digest = result.get("points", 0), result.get("digest", "")
            if result.get("trouble"):
                self._record(task, seconds, {"trouble": result["trouble"]})
        elif task.failure is not None:
            status = result.get("status") or CANNOT_RUN
            names = self.note("replayed", name=task.failure.name, status=status, why=result["trouble"])
            self._totals.failures.write(self._request.directory, names)
        else:
            self._record(task, seconds, result)

    def _record(self, task: NightlyTask, seconds: float, result: Line) -> None:
        """Write a unit's table files, then its line of the ledger."""
        count = result.pop("count", task.count)
        place: dict[str, Any] = {"stream": task.stream, "first": task.first, "count": count}
        place |= {"space": task.space} if task.space else {}
        rows = result.pop(ROWS, None)
        if rows is not None:
            night = {"night": self._totals.night.number}
            write_tables(self._request.directory, night | place, result, rows)
        self._totals.ranges(task.stream, task.space).give_back(task.first, task.count)
        names = self.note("unit", **place, seconds=round(seconds, 3), **result)
        self._totals.failures.write(self._request.directory, names)


def _line(totals: Totals, clock_s: float, budget_s: float, busy: int) -> str:
    night = totals.night
    what = ", ".join(f"{stream} {runs:,}" for stream, runs in sorted(night.stream_runs.items()) if runs)
    rates = rates_of({"runs": night.runs, "steps": night.steps}, clock_s)
    return (
        f"night {night.number}: {night.runs:,} runs{f' ({what})' if what else ''}; {rates};"
        f" {night.faults.total():,} faults; {_left_of(budget_s - clock_s)};"
        f" {counted(len(open_stories(totals)), 'story')} open;"
        f" {counted(busy, 'unit')} in work (runs count once the failures are made small)"
    )


def _left_of(seconds: float) -> str:
    return f"{seconds / 60:.0f} min left" if seconds >= 600 else f"{max(0.0, seconds):.0f} s left"


def _pool(request: NightRequest, totals: Totals, jobs: int, scratch: Path) -> AbstractContextManager[TaskPool]:
    """The pool that runs the units: processes on this machine, or executors of a cluster."""
    if request.spark_master is None:
        return WorkerPool(do, request.directory, jobs, scratch)
    from marker_sim.campaign.nightly.spark_pool import SparkPool

    return SparkPool(request.spark_master, do, request.directory, request.jobs, scratch, totals.sut)


def _scratch(directory: Path) -> Path:
    """The directory for temporary files of workers, the same each night so that those of a killed night are deleted.

    Not below the chaos directory: sockets have names of at most 107 bytes.
    """
    digest = hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"marker-sim-chaos-{os.getuid()}-{digest}"
