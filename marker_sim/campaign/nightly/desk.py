"""A worker of a night: performs one unit after another and answers each with a JSON-ready dict.

Units of the simulated world are in work.py. Here are those that take real time: real processes, Spark, and systems that
are servers or write their own tables. Failures of servers are shrunk on them at once; those of real processes are
searched for in the simulated world.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

from marker_sim.campaign.coverage.canary import find_false_statement
from marker_sim.campaign.nightly.failures import StoredFailure, plan_of
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.campaign.nightly.opening import FOREIGN
from marker_sim.campaign.nightly.work import (
    SPACE,
    NightlyTask,
    canary,
    canary_line,
    exhaustive,
    simulated_again,
    stored,
    swarm,
    unit,
    worth_shrinking,
)
from marker_sim.campaign.pieces import PieceResult
from marker_sim.campaign.played_shrinking import BESIDE, Again, PlayedShrinker
from marker_sim.campaign.replay import played, with_processes
from marker_sim.campaign.sources.exhaustive import Space
from marker_sim.campaign.sources.played import CLOSING_S, Processes, ProcessRuns, ServerRuns, SparkRuns
from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.loading import load_system
from marker_sim.outcome.failure import SERVER, SPARK, Failure, FailureRecord, Kind, record_of
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.targets.table import parse_target

Kept = TypeVar("Kept")
_SIMULATED = {"swarm": swarm, "canary": canary}
REAL = {"real-local": "local", "real-s3": "s3"}
# Time for shrinking on servers: a maximum, and a share of the rest of the night.
SHRINK_S, ALONE_SHRINK_S, SHRINK_SHARE = 30.0, 300.0, 0.25
# How often a plan that failed is run again.
REAL_TIMES, SERVER_TIMES = 2, 5


class Desk(Keeper):
    """Performs one unit after another; expensive resources are kept for the next unit of the same kind."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: Any = None
        self._of = ""

    def do(self, task: NightlyTask) -> Line:
        """The answer to a task; `trouble` in it is an error, `refused` the reason why the system cannot be judged."""
        try:
            return self._done(task)
        except (HarnessError, UsageError) as error:
            refused = isinstance(error, UsageError) and task.failure is None
            return {"refused" if refused else "trouble": str(error)}
        except Exception as error:
            traceback.print_exc()
            sys.stderr.flush()
            return {"trouble": f"unexpected {type(error).__name__}: {error}; its traceback is in the worker's log"}

    def _done(self, task: NightlyTask) -> Line:
        if task.failure is not None and task.failure.world == "simulated":
            return stored(task)
        if not parse_target(task.sut).can.plans:
            return self._on_servers(task)
        if task.stream in _SIMULATED:
            return _SIMULATED[task.stream](task)
        if task.stream in ("exhaustive", SPACE):
            return exhaustive(task, self._keep("exhaustive", lambda: Space(load_system(task.sut))))
        if task.stream == "spark":
            return spark(task, self._keep("spark", lambda: SparkRuns(task.sut, task.seed)))
        real = self._keep("real", lambda: Processes(task.sut))
        if task.failure is not None:
            return stored_again(task.failure, load_profile(task.failure.profile), real)
        return processes(task, real)

    def _on_servers(self, task: NightlyTask) -> Line:
        stream = task.space if task.stream == "canary" else task.stream
        storage = FOREIGN[stream] if task.failure is None else task.failure.storage
        made = (task.sut, storage, task.server, task.profile, task.seed)
        runs = self._keep(storage, lambda: ServerRuns(*made))
        runs.until = task.until
        if task.failure is not None:
            return stored_again(task.failure, load_profile(task.profile), runs)
        return false_statement(task, runs) if task.stream == "canary" else servers(task, runs)

    def _keep(self, of: str, make: Callable[[], Kept]) -> Kept:
        """The resource that units of one kind share, made for the first; that of the previous kind is closed."""
        if self._of != of:
            self._stack.close()
            self._of, self._kept = "", make()
            if isinstance(self._kept, AbstractContextManager):
                self._stack.enter_context(self._kept)
            self._of = of
        kept: Kept = self._kept
        return kept


def processes(task: NightlyTask, real: Processes) -> Line:
    """Plans run with real processes, by number.

    A violation is stored as the simulated world shows it, or as it was with a word on how often it comes.
    """
    profile = load_profile(task.profile)

    def records(seen: PieceResult) -> Iterable[FailureRecord]:
        for failure in sorted(seen.found.values(), key=lambda failure: failure.kind):
            plan = failure.own_plan
            _, record = simulated_again(task, failure.kind._replace(cause=""), plan, real.system, task.until)
            if record is None:
                record = record_of(failure, "real", shrunk=False)
                again = with_processes(real, plan, failure.guarantee, profile, REAL_TIMES).broken
                often = f"{again + 1} of {REAL_TIMES + 1} runs"
                text = f"{record.text}\nseen with real processes in {often}, and not in the simulated world"
                record = replace(record, text=text)
            yield record

    return unit(task, ProcessRuns(real, task.seed, REAL[task.stream]), records)


def spark(task: NightlyTask, runs: SparkRuns) -> Line:
    """Plans run as Spark applications, by number; of each kind of failure the 1st, 2nd, 4th and so on is shrunk."""
    return unit(task, runs, lambda seen: _made_small(task, runs.again, seen.found, SPARK, alone=True))


def servers(task: NightlyTask, runs: ServerRuns) -> Line:
    """A unit of numbered plans on real servers; the 1st, 2nd, 4th, 8th ... failure of a kind is shrunk."""
    goals, alone = list(runs.target.goals(runs.storage, task.server)), runs.target.can.alone
    return unit(task, runs, lambda seen: _made_small(task, runs.again, seen.found, SERVER, alone)) | {"goals": goals}


def _made_small(
    task: NightlyTask, again: Again, broken: dict[Kind, Failure], world: str, alone: bool
) -> Iterable[FailureRecord]:
    """The failures of a plan: the first that is worth shrinking with its small plan, the others as they were seen.

    alone: whether a run has the machine for itself.
    """
    small, text, now = dict[Kind, Failure](), "", time.monotonic()
    worth = [kind for kind in broken if worth_shrinking(task.seen.get(kind.place, 0))]
    until = now + min(ALONE_SHRINK_S if alone else SHRINK_S, (task.until - CLOSING_S - now) * SHRINK_SHARE)
    if worth and until > now:
        first = min(worth, key=lambda kind: broken[kind].breach.under != "none")
        shrinker = PlayedShrinker(again, load_profile(task.profile), 1 if alone else BESIDE)
        made = shrinker.shrink(first, [broken[first]], until)
        small, text = ({} if made.told is None else made.broken), f"\n{made.sentence}"
    entries = max((failure.entries for failure in broken.values()), default=0)
    for kind, seen in {**broken, **small}.items():
        record = record_of(seen, world, shrunk=kind in small)
        said = record.text + text if kind in small else record.text
        yield replace(record, entries_before=entries, text=said, deterministic=False)


def false_statement(task: NightlyTask, runs: ServerRuns) -> Line:
    """Change one statement in the history of a run and say whether judges notice: the canary without mutants."""
    plan = runs.plan(task.first)
    plan = replace(plan, writes=plan.writes[:1])  # One step of a table's run is enough here.
    return canary_line(find_false_statement(runs.again(plan).history))


def stored_again(failure: StoredFailure, profile: Profile, real: Processes | ServerRuns) -> Line:
    """The status of a stored failure after more runs: with real processes, or on the night's system until it fails.

    In real time a run without a violation is no trouble.
    """
    plan = plan_of(failure)
    if isinstance(real, Processes):
        again = with_processes(real, plan, failure.guarantee, profile, REAL_TIMES + 1)
    else:

        def run(fresh: bool) -> History:
            return real.again(plan, fresh=fresh).history

        again = played(run, plan, profile, failure.guarantee, failure.cause, SERVER_TIMES, enough=1)
    return {"status": again.status, "trouble": ""}
