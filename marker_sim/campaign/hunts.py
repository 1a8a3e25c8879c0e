"""Campaigns against mutants: the ways to search for one, and all that is measured about it.

Each way hunts it with the mutant's own guarantee judged alone:

    swarm        plans from seeds, of operations or of writes, whichever the guarantee is about, round COMBINATIONS
    machine      the Hypothesis state machine of the write path, round COMBINATIONS in slices; it has writes alone
    exhaustive   every single crash of the short workloads of sources/exhaustive.py, round the workloads

Times are process time of one core. A hunt ends with the first breach of a promise, or when its seconds are over.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import Phase, Verbosity

from marker_sim.campaign.machines.machine import attack, machine_for
from marker_sim.campaign.machines.rules import WritePathMachine
from marker_sim.campaign.pieces import Piece, PieceResult, SearchSettings, Source, explore
from marker_sim.campaign.runs import MODES_AGREE, comparable, compare_modes, execute, promised_breach
from marker_sim.campaign.simulated_failure import smaller
from marker_sim.campaign.sources.exhaustive import Crashes, Space
from marker_sim.campaign.sources.swarm import Swarm
from marker_sim.judges import judge
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.judges.violations import GuaranteeViolation
from marker_sim.mutants import Mutant
from marker_sim.mutants.load import load_mutant
from marker_sim.outcome.failure import Failure, Kind
from marker_sim.plan import Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System

COMBINATIONS = (
    ("timeline", "s3"),
    ("timeline", "local"),
    ("timeline", "hdfs"),
    ("direct", "s3"),
    ("direct", "local"),
    ("timeline", "s3-unconditional"),
)
MACHINE_SLICE = 25
PIECES = 64
MATRIX_SEEDS = 4
SHRINK_SHARE = 0.15
SHRINK_MAX_S = 10.0
SHRINK_RUNS = 4_000


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
        end = 0
        for at in range(len(space.parts)):
            begin, end = end, end + len(space.points_of(at))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The results for one mutant.

    searches: what each needed, as mutants.json has it.
    plan: the shrunk one, None for a survivor.
    cells: by guarantee, on how many of `runs` plans its judge alone saw a promise broken.
    entries_found: of the plan before it was shrunk.
    message: the breach.
    """

    mutant: Mutant
    searches: dict[str, dict[str, Any]]
    cells: dict[str, int]
    runs: int
    entries_found: int
    plan: Plan | None
    message: str

    @property
    def killed(self) -> bool:
        """Whether any search caught it by its own guarantee."""
        return any(times["caught"] for times in self.searches.values())

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            **{name: getattr(self.mutant, name) for name in ("name", "record", "module", "kills")},
            "killed": self.killed,
            "runs": self.runs,
            "cells": {name: count for name, count in self.cells.items() if count},
            "searches": self.searches,
            "entries_found": self.entries_found,
            "entries": self.plan.entries if self.plan else None,
            "plan": self.plan.to_dict() if self.plan else None,
            "message": self.message,
        }


def kill(
    mutant: Mutant,
    seeds: int = 1,
    budget_s: float = 60.0,
    searches: Sequence[Search] = SEARCHES,
    shrinking: bool = True,
    plans: int | None = None,
) -> Kill:
    """The results for a mutant: hunted by every search, judged by every guarantee, its first failing plan shrunk.

    seeds: how many ranges of seeds a search without its own number has.
    budget_s: process time, divided by the searches' shares; an unused share is not passed on.
    plans: how many each hunt runs at most, instead of seconds; then only times differ between calls.
    """
    system = load_mutant(mutant)
    times, caught = dict[str, dict[str, Any]](), list[Failure]()
    for search in searches:
        deadline, found = time.process_time() + budget_s * search.share, list[Found]()
        while len(found) < (search.ranges or seeds) and (left_s := deadline - time.process_time()) > 0:
            found.append(search.hunt(mutant, system, len(found), Limit(left_s, plans)))
        caught += [each.failure for each in found if each.failure is not None]
        times[search.name] = _times(found)
    cells, runs = matrix_row(system, [failure.plan for failure in caught if failure.plan is not None])
    first = caught[0] if caught else None
    plan = first.plan if first else None
    if plan is not None and shrinking:
        share_s = min(SHRINK_MAX_S, budget_s * SHRINK_SHARE) if plans is None else math.inf
        kind = Kind(mutant.kills, plan.mode, plan.storage, "")
        small = smaller(kind, plan, system, load_profile("reference"), share_s, SHRINK_RUNS)
        plan = small.plan if small else plan
    return Kill(
        mutant=mutant,
        searches=times,
        cells=cells,
        runs=runs,
        entries_found=first.entries if first else 0,
        plan=plan,
        message=first.message if first else "",
    )


def _times(found: Sequence[Found]) -> dict[str, Any]:
    """The times of a search over all seeds: the median where most caught the mutant, the worst where all did."""
    seconds = sorted(each.seconds for each in found if each.failure is not None)
    plans = [each.plans for each in found if each.failure is not None]
    return {
        "ranges": len(found),
        "caught": len(seconds),
        "median_s": statistics.median(seconds) if 2 * len(seconds) > len(found) else None,
        "worst_s": seconds[-1] if found and len(seconds) == len(found) else None,
        "median_plans": statistics.median(plans) if plans else None,
        "worst_plans": max(plans, default=None),
    }


def matrix_row(system: System, more: Iterable[Plan]) -> tuple[dict[str, int], int]:
    """For each guarantee the number of plans that break it, judged alone; and the number of plans.

    The plans are the first of both generators everywhere, and `more`. Judges share nothing but the history, so one run
    serves them all; G21 compares a run of its own in the other mode.
    """
    profile = load_profile("reference")
    cells = dict.fromkeys((guarantee.id for guarantee in GUARANTEES), 0)
    plans = [
        make(seed, mode, storage)
        for seed in range(MATRIX_SEEDS)
        for mode, storage in COMBINATIONS
        for make in (make_plan, make_write_plan)
    ]
    plans += more
    for plan in plans:
        findings = [*judge(execute(plan, system)[0])]
        if comparable(plan, system):
            findings.append(compare_modes(plan, system)[2])
        for finding in findings:
            cells[finding.guarantee] += promised_breach(finding, plan, profile) is not None
    return cells, len(plans)
