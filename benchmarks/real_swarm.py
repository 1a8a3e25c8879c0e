"""Plans of the seeded swarm, run with real processes: how many, which faults happened, and whether every judge holds.

The plans are those that the simulated world runs; a fault arms at the same actor's n-th seam call.

    python benchmarks/real_swarm.py --plans 40 --storage local --seed 1
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.worlds.processes.cluster import ProcessCluster
from marker_sim.worlds.processes.fork_server import ForkServer

MODES = ("direct", "timeline")
ENTRIES_MAX = 60


def _plans(seed: int, storage: str) -> list[Plan]:
    """The plans of a seed: writes and operations in both modes, those of thousands of tasks left out."""
    plans = [make(seed, mode, storage) for mode in MODES for make in (make_write_plan, make_plan)]
    return [plan for plan in plans if plan.entries <= ENTRIES_MAX]


def main() -> None:
    """Print a line for each violation and the totals; exit 1 when there was one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=40)
    parser.add_argument("--storage", choices=("local", "s3"), default="local")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    declared, fired, judged = Counter[str](), Counter[str](), Counter[str]()
    broken, unpromised, undecided = Counter[str](), Counter[str](), Counter[str]()
    profile = load_profile("reference")
    runs, turn, events, began = 0, 0, 0, time.monotonic()
    with ForkServer() as fork_server:
        while runs < given.plans:
            for plan in _plans(plan_seed(given.seed, turn), given.storage):
                history = ProcessCluster(plan, "reference", fork_server).run()
                runs += 1
                events += len(history.events)
                declared.update(fault.kind.value for fault in plan.faults)
                fired.update(e.operation for e in history.events if e.kind == "fault" and _happened(e.value))
                for finding in judge(history):
                    judged[finding.guarantee] += finding.judged
                    if finding.undecided:
                        undecided[finding.guarantee] += 1
                    for breach in finding.breaches:
                        promised = profile.promise(finding.guarantee, plan.mode, plan.storage, breach.under).promised
                        if not promised:
                            unpromised[finding.guarantee] += 1
                            continue
                        broken[finding.guarantee] += 1
                        kind = "writes" if plan.writes else "operations"
                        print(f"seed {plan.seed} {plan.mode} {kind}: {finding.guarantee} {breach.message}", flush=True)
            turn += 1
    spent = time.monotonic() - began
    print(f"{given.storage}: {runs} plans ({turn} seeds of {given.seed}), {events:,} events, {spent:.0f} s")
    print("faults, declared and happened:")
    for kind in sorted(declared | fired):
        print(f"  {kind:20} {declared[kind]:5} {fired[kind]:5}")
    print("judged: " + ", ".join(f"{name} {count:,}" for name, count in judged.items() if count))
    print("not promised, and seen: " + (", ".join(f"{k} {v}" for k, v in sorted(unpromised.items())) or "nothing"))
    print("plans that left it undecided: " + (", ".join(f"{k} {v}" for k, v in sorted(undecided.items())) or "none"))
    print(f"violations: {sum(broken.values())}")
    sys.exit(1 if broken else 0)


def _happened(value: object) -> bool:
    """Whether a fault event is the beginning of a fault, and not its end or a consequence."""
    return value not in ("end", "end-of-run", "with-its-driver")


if __name__ == "__main__":
    main()
