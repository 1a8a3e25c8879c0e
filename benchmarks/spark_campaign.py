"""Runs per second of a night on a Spark cluster and in processes of this machine: the same units, in turns.

    python benchmarks/spark_campaign.py --rounds 2

Each measurement is a process of its own: one or two workers (`local-cluster` with as many executors of one core), every
worker warmed up with a small unit, then the units timed. Starting Spark is no part of that and is printed beside it.
Efficiency is the rate on Spark over that of as many processes, from the medians: by the clock, and by processor time of
all processes, the JVMs included, which a machine with other work leaves alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil

from marker_sim.campaign.nightly.nightly_run import SEEDS_ON_SPARK
from marker_sim.campaign.nightly.spark_pool import SparkPool
from marker_sim.campaign.nightly.units import ROWS, NightlyTask, do
from marker_sim.surroundings.worker_pool import TaskPool, WorkerPool

WARM_TURNS = 2
SUT = "reference"


def main() -> int:
    """Measure in turns and print the rates; `--one` measures once and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--units", type=int, default=3, help="for each worker")
    parser.add_argument("--turns", type=int, default=SEEDS_ON_SPARK, help="of a unit")
    parser.add_argument("--one", choices=("processes", "spark"))
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_measure(given.one, given.workers, given.units, given.turns)))
        return 0
    rates, costs = (defaultdict[tuple[str, int], list[float]](list) for _ in range(2))
    starts = []
    for round_number in range(given.rounds):
        for workers in (1, 2):
            for kind in ("processes", "spark"):
                words = [sys.executable, __file__, "--one", kind, "--workers", str(workers)]
                words += ["--units", str(given.units), "--turns", str(given.turns)]
                done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
                said = json.loads(done.stdout.splitlines()[-1])
                rates[kind, workers].append(said["runs"] / said["seconds"])
                costs[kind, workers].append(said["processor_s"] / said["runs"])
                starts += [said["start_s"]] if kind == "spark" else []
                print(f"round {round_number + 1}: {workers} {kind}: {said}", flush=True)
    for workers in (1, 2):
        spark, processes = (statistics.median(rates[kind, workers]) for kind in ("spark", "processes"))
        dear, cheap = (1000 * statistics.median(costs[kind, workers]) for kind in ("spark", "processes"))
        print(
            f"{workers}: {processes:.0f} runs/s in processes, {spark:.0f} on Spark, efficiency {spark / processes:.2f};"
        )
        print(f"   {cheap:.1f} and {dear:.1f} ms of processor a run, efficiency {cheap / dear:.2f}")
    print(f"Spark and its first executor were there after {statistics.median(starts):.1f} s (median)")
    return 0


def _measure(kind: str, workers: int, units: int, turns: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="marker-sim-bench-") as folder:
        directory, scratch = Path(folder) / "night", Path(folder) / "scratch"
        directory.mkdir()
        scratch.mkdir()
        began = time.monotonic()
        master = f"local-cluster[{workers},1,1024]"
        opened = (
            SparkPool(master, do, directory, 0, scratch, SUT)
            if kind == "spark"
            else WorkerPool(do, directory, workers, scratch)
        )
        with opened as pool:
            start_s = time.monotonic() - began
            # The next executor of a cluster is unknown: more units than workers, so that each has had one.
            _play(pool, [_unit(number * WARM_TURNS, WARM_TURNS) for number in range(4 * workers)])
            began, before, first = time.monotonic(), _processor_s(), 1_000
            runs = _play(pool, [_unit(first + number * turns, turns) for number in range(units * workers)])
            spent = {"seconds": time.monotonic() - began, "processor_s": _processor_s() - before}
            return {"runs": runs, **spent, "start_s": start_s}


def _processor_s() -> float:
    """Of this process and all below it, of which none ends in between."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def _unit(first: int, count: int) -> NightlyTask:
    return NightlyTask(
        stream="swarm", first=first, count=count, sut=SUT, profile=SUT, until=0.0, seed=2000, listing=True
    )


def _play(pool: TaskPool, tasks: list[NightlyTask]) -> int:
    """Have all tasks done; how many runs that were, each with a row."""
    runs, left = 0, list(tasks)
    while left or pool.busy:
        while left and pool.idle:
            pool.give(pool.idle[0], left.pop(0))
        for answer in pool.answers(1.0):
            if answer.died or answer.result["trouble"]:
                raise SystemExit(answer.died or answer.result["trouble"])
            assert len(answer.result[ROWS]) == answer.result["runs"]
            runs += answer.result["runs"]
    return runs


if __name__ == "__main__":
    sys.exit(main())
