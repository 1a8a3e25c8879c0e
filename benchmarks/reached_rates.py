"""How often each goal of campaign/coverage/goals.py is reached in runs of the reference, beside what is declared for
it.

    python benchmarks/reached_rates.py [--seeds 60] [--first 0]

One line a coverage goal: applicable runs, times reached, one in how many, and the declared `one_in`; then the cost of
sampling, as a share of running and judging.
"""

from __future__ import annotations

import argparse
import time

from marker_sim.campaign.coverage.goals import GOALS, LOOK_EVERY
from marker_sim.campaign.runs import execute
from marker_sim.campaign.statistics import Statistics
from marker_sim.judges import judge
from marker_sim.plan import MODES, STORAGES
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=60, help="of each kind of plan, in each mode on each storage")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    system, statistics = reference(), Statistics()
    running = looking = 0.0
    for seed in range(given.first, given.first + given.seeds):
        for mode in MODES:
            for storage in STORAGES:
                for make in (make_plan, make_write_plan):
                    began = time.process_time()
                    history, _ = execute(make(seed, mode, storage), system)
                    statistics.add(history, judge(history))
                    ran = time.process_time()
                    statistics.look(history)
                    running += ran - began
                    looking += time.process_time() - ran
    for goal in GOALS:
        looked, times = goal.looked(statistics), goal.times(statistics)
        seen = f"{looked / times:8.1f}" if times else "   never"
        print(f"{goal.name:30} {looked:6} {times:6} {seen} {goal.one_in:6}")
    print(f"looking at one turn in {LOOK_EVERY} costs {looking / LOOK_EVERY / running:.2%} of running and judging")


if __name__ == "__main__":
    main()
