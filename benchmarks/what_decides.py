"""In which share of short campaigns against `marker-sim serve` what decides a guarantee happened, by their histories.

    PYTHONPATH=. python benchmarks/what_decides.py --out DIR [--storage local,s3] [--seeds 5] [--plans 6]

A campaign is the first plans of a seed, so that the load of the machine does not decide how many there are. Histories
stay in DIR, and a campaign that is there is not played again: those of another version are measured by this one.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from marker_sim.history import read_jsonl, write_jsonl
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.conditions import CONDITIONS, conditions_met
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.http_plans import AT_A_TIME, PLANS_DECIDE, decided_by
from marker_sim.targets.target import CampaignRequest, RealRuns, ServerOptions

SERVE = (
    f"{shlex.quote(sys.executable)} -m marker_sim serve --port {{port}} --base {{storage}} --batch-threads {{threads}}"
    " --batch-interval-ms {interval_ms}"
)
STARTS = {"local": SERVE, "s3": f"{SERVE} --s3-endpoint {{endpoint}}"}
PLAN_S = 60.0


def main() -> None:
    """Play what is missing and print a table for each storage."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--storage", default="local,s3")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plans", type=int, default=6)
    given = parser.parse_args()
    for storage in given.storage.split(","):
        folders = [given.out / f"serve-{storage}-{seed}" for seed in range(1, given.seeds + 1)]
        for seed, folder in enumerate(folders, start=1):
            if not (folder / "done").exists():
                play(storage, seed, given.plans, folder)
        show(storage, [campaign(folder) for folder in folders])


def play(storage: str, seed: int, plans: int, folder: Path) -> None:
    """The first plans of a seed."""
    folder.mkdir(parents=True, exist_ok=True)
    request = CampaignRequest(
        target=HttpTarget(), modes=("timeline",), storages=(storage,), seed=seed, profile=load_profile("http"),
        budget_s=plans * PLAN_S, server=ServerOptions(start=STARTS[storage]), report=folder / "report",
    )  # fmt: skip
    with request.target.real_runs(request, lambda line: None) as runs, ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(partial(play_one, runs, request, folder), range(1, plans + 1)))
    (folder / "done").touch()


def play_one(runs: RealRuns, request: CampaignRequest, folder: Path, number: int) -> None:
    """One plan by its number, and its history in a file."""
    plan = request.target.plan_of(request, number)
    write_jsonl(runs.again(plan, time.monotonic() + PLAN_S).history, folder / f"{number:03}.jsonl")


def campaign(folder: Path) -> list[Counter[str]]:
    """What each run of a campaign met."""
    return [conditions_met(read_jsonl(path)) for path in sorted(folder.glob("*.jsonl"))]


def show(storage: str, campaigns: list[list[Counter[str]]]) -> None:
    """Conditions by campaigns and runs, and guarantees by campaigns that met all that decides them."""
    met = [frozenset(name for run in runs for name in run) for runs in campaigns]
    print(f"\non {storage}: campaigns of {len(met)}, runs of {sum(map(len, campaigns))}")
    for name in CONDITIONS:
        shown = sum(name in run for runs in campaigns for run in runs)
        print(f"  {name:34} {sum(name in each for each in met):3} {shown:4}")
    deciding = {name for name in decided_by(ServerOptions(), ()) if name in CONDITIONS}
    for guarantee in sorted({each for name in deciding for each in PLANS_DECIDE[name]}, key=lambda each: int(each[1:])):
        own = {name for name in deciding if guarantee in PLANS_DECIDE[name]}
        print(f"  {guarantee:34} {sum(own <= each for each in met):3}  by {len(own)} conditions")


if __name__ == "__main__":
    main()
