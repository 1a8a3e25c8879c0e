"""Which run comes next: its mode, its shape and its kills, from a seed and from what was met so far.

Before a campaign, `forecast` says what a budget will meet, by the runs that would be chosen if all went as usual. After
it, `deciding` says what was met: a guarantee holds in a mode when each step that decides it was met in that mode at
least once; otherwise its row is inconclusive and names those that were not.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from marker_sim.outcome.result import Deciding
from marker_sim.plan import Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.worlds.spark.hudi.settings import draw_table, has_rewrites, partition_names, shape_of, table_type
from marker_sim.worlds.spark.hudi.steps import (
    RECONCILE,
    REWRITE,
    Stage,
    TableStep,
    WritePhase,
    executor_troubles,
    phases,
    places_of,
    steps_of,
    storage_troubles,
    with_steps,
)
from marker_sim.worlds.spark.hudi.table import Pace

KILLS_MIN, KILLS_MAX = 3, 6
RUNS_WANTED = 4
STAGES: tuple[Stage, ...] = ("write", "rollback")
FIRST_S, EACH_S = 12.0, 14.0
TRIES_MAX = 4
SHAPES = 6  # Drawn for each run.
REWRITES_SHARE = 0.25
# Seconds on two cores: a run before its first step, a cluster of executors, a step of a stage with its recovery.
ROUND_S, CLUSTER_S = 12.0, 8.0
STEP_S = {"write": 14.0, "rollback": 22.0}
ROUNDED_S = 30
ROUNDS_MAX = 200
EXECUTOR_STEPS = frozenset({"executor killed", "executor paused", RECONCILE.name})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRound:
    """A chosen run: its number, and the plan that determines it."""

    number: int
    plan: Plan

    @property
    def steps(self) -> tuple[TableStep, ...]:
        """The steps that its plan takes on the table."""
        return steps_of(self.plan)

    @property
    def line(self) -> str:
        """The line of progress: its number, mode, table type and partitions."""
        return f"run {self.number}: {self.plan.mode}, {table_type(self.plan)}, {shape_of(self.plan).partitions}"


@dataclass(slots=True)
class Choices:
    """Chooses the runs that fit into a budget, one after another.

    met, armed: steps by mode and name, so far.
    """

    version: str
    modes: tuple[str, ...]
    storage: str
    seed: int
    budget_s: float
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    armed: Counter[tuple[str, str]] = field(default_factory=Counter)
    pace: Pace = field(default_factory=Pace)
    _number: int = 0
    _runs: Counter[str] = field(default_factory=Counter)

    def next(self, left_s: float) -> TableRound | None:
        """The next run, None when no further one fits; the first always does."""
        number = self._number
        if number and left_s < FIRST_S + self.pace.estimate_s("write"):
            return None
        self._number += 1
        rng = random.Random(f"{self.seed} {number}")
        mode = max(self.modes, key=lambda each: (len(self._due(each)), -self._runs[each]))
        drawn = self._table(rng, mode)
        shape = replace(shape_of(drawn), cluster=self._clustered(mode))
        self._runs[mode] += 1
        plan = replace(drawn, shape=shape, seed=plan_seed(self.seed, number))
        return TableRound(number=number, plan=with_steps(plan, self._steps(rng, plan)))

    def _due(self, mode: str) -> frozenset[str]:
        """The places of a mode that were not met yet, without those aimed at `TRIES_MAX` times in vain."""
        names = (each.step for each in places_of(mode, self.storage))
        return frozenset(n for n in names if not self.met[mode, n] and self.armed[mode, n] < TRIES_MAX)

    def _table(self, rng: random.Random, mode: str) -> Plan:
        """Of `SHAPES` drawn tables the one with most due places; with rewrites if a kill in one is due, or by luck."""
        due = self._due(mode)
        rewrites = REWRITE in due or (self._has_rewrites(mode) and rng.random() < REWRITES_SHARE)
        number = self._runs[mode]
        drawn = [draw_table(rng, number, self.version, rewrites=rewrites) for _ in range(SHAPES)]
        placed = [replace(plan, mode=mode, storage=self.storage) for plan in drawn]
        return max(placed, key=lambda plan: sum(each.name in due for each in self._phases(plan)))

    def _phases(self, plan: Plan) -> tuple[WritePhase, ...]:
        # At table version 6 a rollback of log files appends command blocks and deletes nothing.
        shape = shape_of(plan)
        deletes = not plan.merge_on_read or not (shape.version6 or self.version.startswith("0."))
        rewrites = has_rewrites(plan) and self._has_rewrites(plan.mode)
        places = partial(phases, plan.mode, metadata=shape.metadata, deletes=deletes, rewrites=rewrites)
        return tuple(each for stage in STAGES for each in places(stage))

    def _has_rewrites(self, mode: str) -> bool:
        return mode == "timeline" and self.storage == "local"

    def _clustered(self, mode: str) -> bool:
        """Whether executors of a run are processes: in one of `RUNS_WANTED`, and when nothing else is due."""
        due = self._due(mode)
        return self._runs[mode] % RUNS_WANTED == RUNS_WANTED - 1 or (bool(due) and due <= EXECUTOR_STEPS)

    def _steps(self, rng: random.Random, plan: Plan) -> tuple[TableStep, ...]:
        """Kills at the places met least so far, of a write and of a rollback in turn, and what else goes wrong here."""
        mode, clustered, files = plan.mode, shape_of(plan).cluster, len(partition_names(plan))
        if clustered:
            others = list(executor_troubles(rng, files, self.storage))
        else:
            others = list(storage_troubles(rng)) if self.storage == "s3" else []
        there = self._phases(plan)
        found: list[list[TableStep]] = [
            *([each.step(rng, files, self.storage) for each in there if each.stage == stage] for stage in STAGES),
            others,
        ]
        for steps in found:
            rng.shuffle(steps)
            steps.sort(key=lambda step: (self._tried(mode, step.name), step.name != REWRITE))
        turns: list[TableStep] = []
        shares = (1, 0, 2) if clustered else (2, 1, 1)
        while any(found):
            for steps, share in zip(found, shares, strict=True):
                turns += steps[:share]
                del steps[: max(share, 1)]
        turns.sort(key=lambda step: self._tried(mode, step.name))
        kills = int((self.budget_s / RUNS_WANTED - FIRST_S) / EACH_S)
        return tuple(turns[: min(max(kills, KILLS_MIN), KILLS_MAX)])

    def _tried(self, mode: str, name: str) -> tuple[int, int]:
        """The key by which steps are sorted: how often a step was met, then how often it was aimed at."""
        return self.met[mode, name], self.armed[mode, name]


def plan_of_number(version: str, modes: tuple[str, ...], storage: str, seed: int, number: int) -> Plan:
    """The plan of a run of a seed, as if each before it had met all that it aimed at."""
    return next(drawn.plan for drawn in _all_met(Choices(version, modes, storage, seed, 0.0)) if drawn.number == number)


def _all_met(choices: Choices) -> Iterator[TableRound]:
    """The runs as if each met all that it aimed at, without end."""
    while (drawn := choices.next(math.inf)) is not None:
        yield drawn
        choices.met.update((drawn.plan.mode, step.name) for step in drawn.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a budget will meet. enough_s: one that meets each place once. left_out: (mode, place) not met in it."""

    budget_s: float
    enough_s: float
    places: int
    left_out: tuple[tuple[str, str], ...]

    @property
    def sentence(self) -> str:
        """The forecast in one line: the budget that is enough, and what the given one leaves out."""
        wanted = f"a budget of about {self.enough_s:.0f} s meets each of the {self.places} places once"
        if not self.left_out:
            return f"{wanted}; {self.budget_s:.0f} s should do"
        by_mode: dict[str, list[str]] = {}
        for mode, name in self.left_out:
            by_mode.setdefault(mode, []).append(name.removeprefix("driver killed at "))
        lacking = "; ".join(f"{mode} mode: {', '.join(names)}" for mode, names in by_mode.items())
        return f"{wanted}; {self.budget_s:.0f} s leaves out {len(self.left_out)} of them, in {lacking}"


def forecast(version: str, modes: tuple[str, ...], storage: str, seed: int, budget_s: float) -> Forecast:
    """The places that the runs of a seed will meet within a budget, and the budget that meets all."""
    places = [(mode, each.step) for mode in modes for each in places_of(mode, storage)]
    met = _times(version, modes, storage, seed, budget_s, len(places))
    left_out = [place for place in places if met.get(place, math.inf) > budget_s]
    all_met = met if len(met) == len(places) else {}
    enough_s = max(all_met.values(), default=math.inf)
    if left_out:  # More time makes runs longer and fewer.
        enough_s = min(enough_s, max(_times(version, modes, storage, seed, 3_600.0, len(places)).values()))
    enough_s = max(math.ceil(enough_s / ROUNDED_S) * ROUNDED_S, 0)
    return Forecast(budget_s=budget_s, enough_s=enough_s, places=len(places), left_out=tuple(left_out))


def _times(
    version: str, modes: tuple[str, ...], storage: str, seed: int, budget_s: float, wanted: int
) -> dict[tuple[str, str], float]:
    """The time at which each (mode, place) is expected to be met first, in s from the start of the campaign."""
    first: dict[tuple[str, str], float] = {}
    spent_s = 0.0
    for drawn in islice(_all_met(Choices(version, modes, storage, seed, budget_s)), ROUNDS_MAX):
        spent_s += ROUND_S + CLUSTER_S * shape_of(drawn.plan).cluster
        for step in drawn.steps:
            spent_s += STEP_S[step.stage]
            first.setdefault((drawn.plan.mode, step.name), spent_s)
        if len(first) >= wanted:
            break
    return first


def deciding(
    modes: tuple[str, ...],
    storage: str,
    armed: Mapping[tuple[str, str], int],
    met: Mapping[tuple[str, str], int],
) -> tuple[Deciding, ...]:
    """The steps of `places_of`, with how often a campaign tried and met each."""
    return tuple(
        Deciding(
            name=each.step,
            guarantees=each.guarantees,
            mode=mode,
            tried=armed.get((mode, each.step), 0),
            met=met.get((mode, each.step), 0),
        )
        for mode in modes
        for each in places_of(mode, storage)
    )
