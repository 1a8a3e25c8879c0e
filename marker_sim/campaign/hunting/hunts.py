"""The ways to search for a mutant, as data: each hunts it with the mutant's own guarantee judged alone.

    swarm        plans from seeds, of operations or of writes, whichever the guarantee is about, round COMBINATIONS
    machine      the Hypothesis state machine of the write path, round COMBINATIONS in slices; it has writes alone
    exhaustive   every single crash of the short workloads of sources/exhaustive.py, round the workloads

Times are process time of one core. A hunt ends with the first breach of a promise, or when its seconds are over.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from hypothesis import Phase, Verbosity

from marker_sim.campaign.machine import attack, machine_for
from marker_sim.campaign.machine_rules import WritePathMachine
from marker_sim.campaign.pieces import Piece, PieceResult, SearchSettings, Source, explore
from marker_sim.campaign.runs import MODES_AGREE
from marker_sim.campaign.sources.exhaustive import Crashes, Space
from marker_sim.campaign.sources.swarm import Swarm
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.judges.violations import GuaranteeViolation
from marker_sim.mutants.mutant import Mutant
from marker_sim.outcome.failure import Failure
from marker_sim.plan import Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.system import System

COMBINATIONS = (
    ("timeline", "s3"),
    ("timeline", "local"),
    ("timeline", "hdfs"),
    ("direct", "s3"),
    ("direct", "local"),
    ("timeline", "s3-unconditional"),
)
DESK = "marker_sim.campaign.hunting.hunts:HuntDesk"
MACHINE_SLICE = 25
PIECES = 64


class Found(NamedTuple):
    """The result of a hunt.

    failure: what caught the mutant, None for a survivor.
    plans: runs it took.
    """

    failure: Failure | None
    seconds: float
    plans: int

    @property
    def plan(self) -> Plan | None:
        """The plan that broke the promise."""
        return self.failure.plan if self.failure else None


class Limit(NamedTuple):
    """The limits of a hunt, whichever comes first: seconds of process time, and a number of plans, None for any."""

    seconds: float
    plans: int | None = None

    @property
    def until(self) -> float:
        """The end of the seconds on the clock of time.process_time()."""
        return math.inf if self.plans is not None else time.process_time() + self.seconds


class Search(NamedTuple):
    """A way to hunt, with its share of the budget and the number of its repetitions.

    ranges: how many ranges of seeds it searches, 0 for the given number.
    share: of a mutant's budget.
    hunt: (mutant, its system, number of the range, limit) -> its result.
    """

    name: str
    ranges: int
    share: float
    hunt: Callable[[Mutant, System, int, Limit], Found]


def settings_of(mutant: Mutant, search: int) -> SearchSettings:
    """The settings to hunt a mutant by its own guarantee. search: the seed."""
    return SearchSettings(
        places=COMBINATIONS,
        seed=search,
        guarantees=frozenset({mutant.kills}),
        profile=load_profile("reference"),
        stop_at_first=True,
    )


def swarm_of(mutant: Mutant, system: System, search: int) -> Swarm:
    """The plans to hunt a mutant with. search: the seed."""
    return Swarm(system, settings_of(mutant, search), (make_write_plan if mutant.of_writes else make_plan,))


def swarm(mutant: Mutant, system: System, number: int, limit: Limit, begin: int = 0) -> Found:
    """The result of hunting with the plans of a range of seeds, from a turn on."""
    return _explored(mutant, swarm_of(mutant, system, number), limit, number, begin)


def exhaustive(mutant: Mutant, system: System, number: int, limit: Limit) -> Found:
    """The result of hunting with every single crash, a few of each workload at a time; modes are not compared."""
    space = Space(system)
    cases = space.cases(round_the_space(space) if mutant.kills != MODES_AGREE else ())
    return _explored(mutant, Crashes(space, cases), limit, number)


def round_the_space(space: Space) -> Iterator[int]:
    """The numbers of all single crashes, a few of each workload at a time."""
    for turn in range(PIECES):
        for begin, end in pairwise((0, *space.ends)):
            yield from range(begin + turn, end, PIECES)


def machine(mutant: Mutant, system: System, number: int, limit: Limit) -> Found:
    """The result of hunting with the state machine; modes are not compared."""
    began, until, runs = time.process_time(), limit.until, 0
    if mutant.kills == MODES_AGREE:
        return Found(None, 0.0, 0)
    asked, quiet = settings_of(mutant, number).guarantees, Verbosity.quiet
    with TemporaryDirectory() as plans:
        for turn in count():
            place, chaos_seed = COMBINATIONS[turn % len(COMBINATIONS)], plan_seed(number, turn)
            made = machine_for(
                WritePathMachine, system, *place, plans=Path(plans), guarantees=asked, chaos_seed=chaos_seed
            )
            examples = MACHINE_SLICE if limit.plans is None else min(MACHINE_SLICE, limit.plans - runs)
            with suppress(GuaranteeViolation):
                attack(made, max_examples=examples, database=None, phases=[Phase.generate], verbosity=quiet)
            runs += made.seen.examples
            if made.seen.judged.found or runs >= (limit.plans or math.inf) or time.process_time() > until:
                return _found(made.seen.judged, began, runs)
    raise AssertionError("the slices have no end")


def _explored(mutant: Mutant, source: Source, limit: Limit, search: int, begin: int = 0) -> Found:
    began, many = time.process_time(), limit.plans or sys.maxsize
    piece = Piece(
        settings=settings_of(mutant, search), first=begin, count=many, until=limit.until, clock=time.process_time
    )
    seen = explore(piece, source)
    seen.raise_error()
    return _found(seen, began, seen.taken)


def _found(seen: PieceResult, began: float, runs: int) -> Found:
    return Found(next(iter(seen.found.values()), None), time.process_time() - began, runs)


SEARCHES = (
    Search("swarm", 0, 0.6, swarm),
    Search("machine", 1, 0.1, machine),
    Search("exhaustive", 1, 0.15, exhaustive),
)


class HuntTask(Protocol):
    """The task of a process: one mutant to hunt."""

    def do(self) -> Any: ...


class HuntDesk(Keeper):
    """The state of a worker process, for planted mutants and generated ones alike."""

    def do(self, task: HuntTask) -> Any:
        """The result of a task."""
        return task.do()
