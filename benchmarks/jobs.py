"""How much faster a campaign is by several processes: the same runs of the same seed by one and by N, in turns.

    python benchmarks/jobs.py [--runs 2000] [--jobs 2] [--repeats 3] [--seed 12345]

Prints seconds and processor seconds (of this process and its workers) of each, and the ratios. What is compared is
exploring: no canary, no second process, nothing made small. On a busy machine seconds say how busy it was; the ratio of
processor seconds says what spreading costs in itself, 1.0 is nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from marker_sim.campaign.engine import run_campaign
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import MODES, STORAGES
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest


def explore(runs: int, seed: int, jobs: int) -> tuple[float, float]:
    """Seconds and processor seconds of one campaign."""
    began, before = time.perf_counter(), sum(os.times()[:4])
    request = CampaignRequest(
        target=parse_target("reference"),
        modes=MODES,
        storages=STORAGES,
        seed=seed,
        profile=load_profile("reference"),
        runs=runs,
        canaries=False,
        jobs=jobs,
    )
    campaign = run_campaign(request, lambda line: None)
    assert campaign.runs == runs, campaign.trouble
    return time.perf_counter() - began, sum(os.times()[:4]) - before


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=12345)
    given = parser.parse_args()
    taken: dict[int, list[tuple[float, float]]] = {1: [], given.jobs: []}
    for _ in range(given.repeats):
        for jobs, each in taken.items():
            each.append(explore(given.runs, given.seed, jobs))
            print(f"--jobs {jobs}: {each[-1][0]:6.1f} s, {each[-1][1]:6.1f} s of processor time", flush=True)
    one, many = (([s for s, _ in each], [cpu for _, cpu in each]) for each in taken.values())
    print(
        f"--jobs {given.jobs} is {statistics.median(one[0]) / statistics.median(many[0]):.2f} times as fast, and takes"
    )
    print(f"{statistics.median(many[1]) / statistics.median(one[1]):.2f} times the processor time")


if __name__ == "__main__":
    main()
