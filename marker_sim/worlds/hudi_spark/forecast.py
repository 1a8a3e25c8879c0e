"""What a budget will meet, said before a campaign begins: the runs that would be chosen if all went as usual."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from marker_sim.worlds.hudi_spark.choices import Choices
from marker_sim.worlds.hudi_spark.deciding_faults import places_of
from marker_sim.worlds.hudi_spark.settings import shape_of

# Seconds on two cores: a run before its first step, a cluster of executors, a step of a stage with its recovery.
ROUND_S, CLUSTER_S = 12.0, 8.0
STEP_S = {"write": 14.0, "rollback": 22.0}
ROUNDED_S = 30
ROUNDS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """budget_s: the one given. enough_s: one that meets each place once. left_out: (mode, place) not met by then."""

    budget_s: float
    enough_s: float
    places: int
    left_out: tuple[tuple[str, str], ...]

    @property
    def sentence(self) -> str:
        """One line for whoever gave the budget."""
        wanted = f"a budget of about {self.enough_s:.0f} s meets each of the {self.places} places once"
        if not self.left_out:
            return f"{wanted}; {self.budget_s:.0f} s should do"
        by_mode: dict[str, list[str]] = {}
        for mode, name in self.left_out:
            by_mode.setdefault(mode, []).append(name.removeprefix("driver killed at "))
        lacking = "; ".join(f"{mode} mode: {', '.join(names)}" for mode, names in by_mode.items())
        return f"{wanted}; {self.budget_s:.0f} s leaves out {len(self.left_out)} of them, in {lacking}"


def forecast(version: str, modes: tuple[str, ...], storage: str, seed: int, budget_s: float) -> Forecast:
    """What the runs of a seed come to within a budget, and how long all of it takes."""
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
    """When each place was met first, in seconds."""
    met: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], float] = {}
    choices = Choices(version, modes, storage, seed, budget_s, (), met, met)
    spent_s = 0.0
    for _ in range(ROUNDS_MAX):
        drawn = choices.next(math.inf)
        assert drawn is not None
        mode = drawn.plan.mode
        spent_s += ROUND_S + CLUSTER_S * shape_of(drawn.plan).cluster
        for step in drawn.steps:
            spent_s += STEP_S[step.stage]
            met[mode, step.name] += 1
            first.setdefault((mode, step.name), spent_s)
        if len(first) >= wanted:
            break
    return first
