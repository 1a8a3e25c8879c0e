"""The ways to search for a mutant, as data: each hunts it with the mutant's own guarantee judged alone.

    swarm        plans from seeds, of operations or of writes, whichever the guarantee is about, round COMBINATIONS
    machine      the Hypothesis state machine of the write path, round COMBINATIONS in slices; it has writes alone
    exhaustive   every single crash of the short workloads of campaign/exhaustive.py, round the workloads

Times are process time of one core. A hunt ends with the first breach of a promise, or when its seconds are over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from hypothesis import Phase, Verbosity

from marker_sim.campaign.exhaustive import Space, examine
from marker_sim.campaign.machine import attack, machine_for
from marker_sim.campaign.machine_rules import WritePathMachine
from marker_sim.campaign.runs import MODES_AGREE, findings_of, promised_breach
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.judges.violations import GuaranteeViolation
from marker_sim.mutants.mutant import Mutant
from marker_sim.plan import Plan
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.seeds import plan_seed
from marker_sim.system import System

COMBINATIONS = (
    ("timeline", "s3"),
    ("timeline", "local"),
    ("timeline", "hdfs"),
    ("direct", "s3"),
    ("direct", "local"),
    ("timeline", "s3-unconditional"),
)
DESK = "marker_sim.mutants.hunts:HuntDesk"
MACHINE_SLICE = 25
PIECES = 64


class Found(NamedTuple):
    """How a hunt ended.

    plans: runs it took.
    plan: the one that broke the promise, where the search has it.
    """

    caught: bool
    seconds: float
    plans: int
    plan: Plan | None = None
    message: str = ""


class Limit(NamedTuple):
    """When a hunt ends without a catch: after so many seconds of process time, or so many plans; None for no number."""

    seconds: float
    plans: int | None = None

    def reached(self, began: float, plans: int) -> bool:
        """Whether it is over. began: time.process_time() then."""
        return plans >= self.plans if self.plans is not None else time.process_time() - began > self.seconds


class Search(NamedTuple):
    """A way to hunt.

    ranges: how many ranges of seeds it searches, 0 for the given number.
    share: of a mutant's budget.
    hunt: (mutant, its system, number of the range, limit) -> how it ended.
    """

    name: str
    ranges: int
    share: float
    hunt: Callable[[Mutant, System, int, Limit], Found]


def swarm_plan(mutant: Mutant, search: int, turn: int) -> Plan:
    """The plan of the swarm for a mutant at a turn of a search; search: the seed."""
    make = make_write_plan if mutant.of_writes else make_plan
    mode, storage = COMBINATIONS[turn % len(COMBINATIONS)]
    return make(plan_seed(search, turn // len(COMBINATIONS)), mode, storage)


def swarm(mutant: Mutant, system: System, number: int, limit: Limit, begin: int = 0) -> Found:
    """Hunt with the plans of a range of seeds, from a turn on."""
    profile, began = load_profile("reference"), time.process_time()
    for runs in count(1):
        plan = swarm_plan(mutant, number, begin + runs - 1)
        for finding in findings_of(plan, system, mutant.kills)[1]:
            breach = promised_breach(finding, plan, profile)
            if breach is not None:
                return Found(True, time.process_time() - began, runs, plan, breach.message)
        if limit.reached(began, runs):
            break
    return Found(False, time.process_time() - began, runs)


def machine(mutant: Mutant, system: System, number: int, limit: Limit) -> Found:
    """Hunt with the state machine; it has no pairs of modes to compare."""
    began, runs = time.process_time(), 0
    if mutant.kills == MODES_AGREE:
        return Found(False, 0.0, 0)
    with TemporaryDirectory() as plans:
        for turn in count():
            mode, storage = COMBINATIONS[turn % len(COMBINATIONS)]
            chaos_seed = plan_seed(number, turn)
            made = machine_for(
                WritePathMachine,
                system,
                mode,
                storage,
                plans=Path(plans),
                guarantees=frozenset({mutant.kills}),
                chaos_seed=chaos_seed,
            )
            message = ""
            try:
                attack(
                    made,
                    max_examples=MACHINE_SLICE if limit.plans is None else min(MACHINE_SLICE, limit.plans - runs),
                    database=None,
                    phases=[Phase.generate],
                    verbosity=Verbosity.quiet,
                )
            except GuaranteeViolation as broken:
                message = str(broken).splitlines()[0]
            runs += made.seen.examples
            if message or limit.reached(began, runs):
                return Found(bool(message), time.process_time() - began, runs, None, message)
    raise AssertionError("the slices have no end")


def exhaustive(mutant: Mutant, system: System, number: int, limit: Limit) -> Found:
    """Hunt with every single crash, a few of each workload at a time; it has no pairs of modes to compare."""
    profile, began, runs = load_profile("reference"), time.process_time(), 0
    asked, pieces = frozenset({mutant.kills}), PIECES if mutant.kills != MODES_AGREE else 0
    space = Space(system)
    for case in chain.from_iterable(space.cases(depths=(1,), shard=(piece, PIECES)) for piece in range(pieces)):
        runs += 1
        for _, breach in examine(case, system, profile, asked).breaches:
            return Found(True, time.process_time() - began, runs, case.plan, breach.message)
        if limit.reached(began, runs):
            break
    return Found(False, time.process_time() - began, runs)


SEARCHES = (
    Search("swarm", 0, 0.6, swarm),
    Search("machine", 1, 0.1, machine),
    Search("exhaustive", 1, 0.15, exhaustive),
)


class HuntTask(Protocol):
    """The task of a process: one mutant, hunted."""

    def do(self) -> Any: ...


class HuntDesk:
    """A worker's, for tasks of either kind of mutant."""

    def __enter__(self) -> HuntDesk:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left."""

    def do(self, task: HuntTask) -> Any:
        """One mutant."""
        return task.do()
