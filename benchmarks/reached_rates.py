"""How often each milestone of search/reached.py shows, in runs of the reference, beside what is declared of it.

    python benchmarks/reached_rates.py [--seeds 60] [--first 0]

One line a milestone: runs that it applies to, times seen, one in how many, and the declared `one_in`; then the cost of
looking, as a share of running and judging.
"""

from __future__ import annotations

import argparse
import time

from marker_sim.judges import judge
from marker_sim.judges.tally import Tally
from marker_sim.plan import MODES, STORAGES
from marker_sim.search.reached import LOOK_EVERY, MILESTONES
from marker_sim.search.runs import execute
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=60, help="of each kind of plan, in each mode on each storage")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    system, tally = reference(), Tally()
    running = looking = 0.0
    for seed in range(given.first, given.first + given.seeds):
        for mode in MODES:
            for storage in STORAGES:
                for make in (make_plan, make_write_plan):
                    began = time.process_time()
                    history, _ = execute(make(seed, mode, storage), system)
                    tally.add(history, judge(history))
                    ran = time.process_time()
                    tally.look(history)
                    running += ran - began
                    looking += time.process_time() - ran
    for milestone in MILESTONES:
        looked, times = milestone.looked(tally), milestone.times(tally)
        seen = f"{looked / times:8.1f}" if times else "   never"
        print(f"{milestone.name:30} {looked:6} {times:6} {seen} {milestone.one_in:6}")
    print(f"looking at one turn in {LOOK_EVERY} costs {looking / LOOK_EVERY / running:.2%} of running and judging")


if __name__ == "__main__":
    main()
