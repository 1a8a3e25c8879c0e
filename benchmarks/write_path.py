"""Many seeds of the write path, judged: what happened, what was violated, and whether the two modes agree.

A run is counted where its plan says so, "an executor was killed" only when it was. Late writes are counted apart,
because nobody promises that there are none.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter

from marker_sim.campaign.runs import compare_modes, execute, promised_breach
from marker_sim.faults.row import BATCHED_STORAGES
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.search.seeds import plan_seed
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference

PLACES = tuple(
    (mode, storage) for mode in ("timeline", "direct") for storage in ("s3", "local", "hdfs", "s3-unconditional")
)
NO_FAULT = ("end", "end-of-run", "with-its-driver", "second-server")
LATE = "G20"


def events_of(history: History, seen: Counter[str]) -> None:
    """Count what a reader wants to know happened."""
    for event in history.events:
        if event.kind == "fault" and event.value not in NO_FAULT:
            whom = event.process.partition("#")[0].partition("-")[0]
            seen[f"fault {event.operation}" + (f" of {whom}" if event.operation == "kill" else "")] += 1
        elif event.kind in ("ok", "info") and event.operation in ("commit", "rollback", "sweep", "attempt", "finalize"):
            seen[f"{event.operation} {event.kind}"] += 1
        elif event.kind == "invoke" and event.operation in ("rollback", "attempt"):
            seen[f"{event.operation} begun"] += 1
        elif event.operation == "job-failed":
            seen["write given up"] += 1


def swarm(runs: int, seed: int) -> None:
    """Plans of writes over all modes and storages."""
    profile, system = load_profile("reference"), reference()
    seen: Counter[str] = Counter()
    late: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    violated, steps, began = 0, 0, time.perf_counter()
    gc.disable()
    for number in range(runs):
        mode, storage = PLACES[number % len(PLACES)]
        plan = make_write_plan(plan_seed(seed, number // len(PLACES)), mode, storage)
        history, made = execute(plan, system)
        steps += made
        events_of(history, seen)
        for finding in judge(history):
            judged[finding.guarantee] += finding.judged
            if finding.guarantee == LATE:
                late.update(breach.under for breach in finding.breaches)
            breach = promised_breach(finding, plan, profile)
            if breach is not None:
                violated += 1
                print(f"VIOLATED {finding.guarantee} seed {plan.seed} {mode} {storage}: {breach.message}")
        if number % 200 == 0:
            gc.collect()
    print(f"{runs} runs, {steps} steps in {time.perf_counter() - began:.0f} s, {violated} violations")
    for counts in (seen, judged):
        print("  " + ", ".join(f"{name} {counts[name]}" for name in sorted(counts)))
    print(f"  late writes: {late.total()}, under " + ", ".join(f"{name} {late[name]}" for name in sorted(late)))


def pairs(count: int, seed: int) -> None:
    """The same plans in both modes, until `count` pairs could be compared."""
    system = reference()
    compared = faultless = tried = differ = 0
    while compared < count:
        storage = BATCHED_STORAGES[tried % len(BATCHED_STORAGES)]
        first, second, finding = compare_modes(make_write_plan(plan_seed(seed, tried), "direct", storage), system)
        tried += 1
        if finding.judged:
            compared += 1
            both = (*first.events, *second.events)
            faultless += not any(e.kind == "fault" and e.value not in NO_FAULT for e in both)
        for breach in finding.breaches:
            differ += 1
            print(f"DIFFERENT seed {plan_seed(seed, tried - 1)} {storage}: {breach.message}")
    print(f"{compared} pairs compared of {tried} run, {faultless} of them without a fault, {differ} differences")


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5_000, help="plans of writes to run and judge")
    parser.add_argument("--pairs", type=int, default=200, help="pairs of modes to compare")
    parser.add_argument("--seed", type=int, default=3_000_000)
    given = parser.parse_args()
    swarm(given.runs, given.seed)
    pairs(given.pairs, given.seed)


if __name__ == "__main__":
    main()
