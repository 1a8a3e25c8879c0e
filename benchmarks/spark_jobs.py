"""Jobs of the reference on a Spark cluster under faults, and what came of them: a row for each mode, storage and plan.

    python benchmarks/spark_jobs.py --seed 7 --rounds 1 --mode both --storage both

`tasks` plans let an application suffer everything but its driver's death, `driver` plans let drivers die. A row says
how many jobs began, which faults happened, how many copies of a task succeeded beside it, how many data files no commit
names after the next write, and which promised guarantees were broken. Ends with 1 when one was, a stray was found, or a
fault of a plan never struck.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from marker_sim.history import write_jsonl
from marker_sim.judges import judge
from properties.faces.judges import load_profile
from properties.faces.outcome import failures_in
from properties.faces.search import plan_seed
from properties.faces.surroundings import find_java, spark_home
from properties.faces.worlds import DRIVER, LocalFront, Standalone, driver_plan, run_spark, task_plan
from scenarios.spark_counts import SparkCounts, count

PROFILE = load_profile("reference")
PLANS = {"tasks": task_plan, "driver": driver_plan}


def main() -> int:
    """Run the plans; 1 when something is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--mode", choices=("direct", "timeline", "both"), default="both")
    parser.add_argument("--storage", choices=("local", "s3", "both"), default="both")
    parser.add_argument("--plan", choices=("tasks", "driver", "both"), default="both")
    parser.add_argument("--sut", default="reference")
    given = parser.parse_args()
    modes = ("direct", "timeline") if given.mode == "both" else (given.mode,)
    storages = ("local", "s3") if given.storage == "both" else (given.storage,)
    plans = tuple(PLANS) if given.plan == "both" else (given.plan,)
    scratch = Path(tempfile.mkdtemp(prefix="marker-sim-spark-jobs-"))
    bad = 0
    with (
        LocalFront(scratch / "files") as front,
        Standalone(scratch / "cluster", java=find_java(), home=spark_home(), door=front) as cluster,
    ):
        for kind in plans:
            for mode in modes:
                for storage in storages:
                    bad += _row(kind, mode, storage, given, cluster, scratch)
    if not bad:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if bad else 0


def _row(kind: str, mode: str, storage: str, given: argparse.Namespace, cluster: Standalone, scratch: Path) -> int:
    total, drivers, began = SparkCounts(), 0, time.monotonic()
    broken: list[str] = []
    missed: list[object] = []
    for number in range(given.rounds):
        plan = PLANS[kind](plan_seed(given.seed, number), mode, storage)
        logs = scratch / f"{kind}-{mode}-{storage}-{number}"
        run = run_spark(plan, cluster, logs, given.sut)
        counts = count(run.history)
        total.add(counts)
        drivers += len({event.process for event in run.history.events if event.role == DRIVER})
        missed += run.missed
        found = [
            f"{failure.guarantee}: {failure.message} {failure.evidence}"
            for failure in failures_in(run.history, judge(run.history), PROFILE).values()
        ]
        broken += found
        if found or counts.strays:
            write_jsonl(run.history, logs / "history.jsonl")
            print(f"   seed {plan.seed}: history in {logs / 'history.jsonl'}")
    took = time.monotonic() - began
    print(
        f"{kind} {mode} {storage}: {total.jobs} jobs, {total.completed} completed, {drivers} drivers, {total.rollbacks}"
        f" rollbacks, {total.attempts} attempts, {total.copies} copies beside, {total.again} again, {total.late} late"
        f" ones taken back; strays {len(total.strays)}, late files that no driver knew of"
        f" {len(total.unlisted)}, of attempts that died {len(total.abandoned)}, promises broken"
        f" {len(broken)}; {took:.0f} s"
    )
    print(f"   driver kills {dict(sorted(total.kills.items()))}; faults {dict(sorted(total.faults.items()))}")
    for line in (*(f"   not struck: {fault}" for fault in missed), *(f"   {line}" for line in broken)):
        print(line)
    for stray in total.strays:
        print(f"   stray: {stray}")
    sys.stdout.flush()
    return len(total.strays) + len(broken) + len(missed)


if __name__ == "__main__":
    sys.exit(main())
