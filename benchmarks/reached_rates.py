"""How rarely each goal of campaign/coverage/goals.py is reached, in which place and with which kind of system.

    python benchmarks/reached_rates.py [--seeds 60] [--first 0] [--sut reference,package.module:factory]

One line a coverage goal: the declared `one_in`; then for each system, with all its places together, and for the place
in which it is rarest: times reached of applicable runs, or "-" where it is not a goal of such a system. A mark follows
a goal that is rarer than declared, or that a system reached though it is not its goal. Then the rarest faults that are
asked for, and the cost of sampling, as a share of running and judging.
"""

from __future__ import annotations

import argparse
import time

from marker_sim.faults import FaultKind, drawable
from marker_sim.loading import load_system
from marker_sim.plan import PLACES
from marker_sim.system import System
from properties.correct.shape import SYSTEMS
from properties.faces.campaign import GOALS, LOOK_EVERY, CoverageGoal, execute, findings_in
from properties.faces.outcome import Statistics
from properties.faces.search import make_plan, make_write_plan
from properties.faces.targets import served

_Place = tuple[str, str]
_COST = {"running": 0.0, "looking": 0.0}


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=60, help="of each kind of plan, in each mode on each storage")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sut", default=",".join(("reference", *SYSTEMS)))
    given = parser.parse_args()
    systems = [load_system(name) for name in given.sut.split(",")]
    counted = [(system, places_of(system, range(given.first, given.first + given.seeds))) for system in systems]
    for goal in GOALS:
        print(f"{goal.name:30} {goal.one_in:4}  {' '.join(_cell(goal, *each) for each in counted)}")
    for plans in ("operations", "writes"):
        rare = sorted(each for system, places in counted for each in _faults(system, places, plans))
        print(f"rarest faults in {plans}:", "; ".join(f"{said} {rate:.4f}" for rate, said in rare[:8]))
    share = _COST["looking"] / LOOK_EVERY / _COST["running"]
    print(f"looking at one turn in {LOOK_EVERY} costs {share:.2%} of running and judging")


def places_of(system: System, seeds: range) -> dict[_Place, Statistics]:
    """Statistics of a system in every place that it serves, without those that lack what it needs."""
    found: dict[_Place, Statistics] = {}
    for place in PLACES:
        statistics, left_out = Statistics(), False
        for seed in seeds if served(system, *place) else ():
            for make in (make_plan, make_write_plan):
                began = time.process_time()
                history, _ = execute(make(seed, *place), system)
                findings = findings_in(history, system)
                if not findings:
                    left_out = True
                    break
                statistics.add(history, findings)
                ran = time.process_time()
                statistics.count_coverage(history)
                _COST["running"] += ran - began
                _COST["looking"] += time.process_time() - ran
            if left_out:
                break
        if statistics.runs and not left_out:
            found[place] = statistics
    return found


def _cell(goal: CoverageGoal, system: System, places: dict[_Place, Statistics]) -> str:
    name = system.name.partition(":")[0].rpartition(".")[2]
    rates = {
        f"{mode}/{storage}": (goal.times(s), goal.eligible_runs(s.looked)) for (mode, storage), s in places.items()
    }
    rates = {place: rate for place, rate in rates.items() if rate[1]}
    times, looked = (sum(rate[n] for rate in rates.values()) for n in (0, 1))
    if goal.why_not(system):
        return f"{name} -{f' REACHED {times}' if times else ''}"
    if not looked:
        return f"{name} nowhere"
    place, (least, of) = min(rates.items(), key=lambda item: item[1][0] / item[1][1])
    due = sum(goal.expected(s.looked, system.layout != "hudi") for s in places.values())
    return f"{name} {times}/{looked}, {place} {least}/{of}{' RARER' if times < due else ''};"


def _faults(system: System, places: dict[_Place, Statistics], plans: str) -> list[tuple[float, str]]:
    rates = []
    for (mode, storage), statistics in places.items():
        writes = plans == "writes"
        others = set(drawable(mode, storage, writes=False)) if writes else set()
        for kind in drawable(mode, storage, writes=writes):
            if kind not in others and (system.layout == "hudi" or kind is not FaultKind.TYPE_DAMAGED):
                runs = statistics.runs / 2 if writes else statistics.runs
                rates.append((statistics.faults.get(kind.value, 0) / runs, f"{kind.value} {mode}/{storage}"))
    return rates


if __name__ == "__main__":
    main()
