"""Every crash point of a short workload with real processes, one by one, and what each left behind.

The workload is a write, a write that is given up, and a write that first rolls it back and then rewrites a file; a
process is killed before and after each effect of driver, executors and timeline server, and the next write recovers.

    python benchmarks/crash_walk.py --mode timeline --storage local
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from properties.faces.judges import load_profile
from properties.faces.worlds import ForkServer
from properties.real.crash_walk import crash_points, walk

FIRST = (Task(partition="p", group="a"), Task(group="b"))
AGAIN = (Task(partition="p", group="a", kind="MERGE"), Task(group="b", kind="APPEND"))


def workload(mode: str, storage: str) -> Plan:
    """The plan that is walked through."""
    return Plan(
        mode=mode,
        storage=storage,
        directories=(),
        writes=(Write(tasks=FIRST), Write(tasks=AGAIN, abandon=True), Write(tasks=AGAIN)),
        merge_on_read=True,
        executors=2,
        interval_ms=10,
        num_threads=2,
    )


def _probed(history: History) -> bool:
    """Whether a reader finds the probe's write to the table: a run that cannot end proves nothing."""
    rows = [e.value for e in history.events if e.operation == "rows"]
    return bool(rows) and all(isinstance(found, tuple) and "/probe/all=4" in found for found in rows)


def main() -> None:
    """Print the points, those that were met, and every violation; exit 1 when there was one or a point was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("direct", "timeline"), default="timeline")
    parser.add_argument("--storage", choices=("local", "s3"), default="local")
    parser.add_argument("--sut", default="reference")
    parser.add_argument("--every", type=int, default=1, help="take each n-th point only")
    given = parser.parse_args()
    profile, plan = load_profile("reference"), workload(given.mode, given.storage)
    met, missed, broken, began = Counter[str](), [], Counter[str](), time.monotonic()
    with ForkServer() as fork_server:
        points = crash_points(plan, fork_server)
        for point, happened, history in walk(plan, points[:: given.every], fork_server, given.sut):
            if happened:
                met[point.who] += 1
            else:
                missed.append(point)
            if not _probed(history):
                broken["no write at the end"] += 1
                print(f"{point}: the last write is not there", flush=True)
            for finding in judge(history):
                if finding.undecided:
                    broken[f"{finding.guarantee} undecided"] += 1
                    print(f"{point}: {finding.guarantee} is undecided: {finding.undecided}", flush=True)
                for breach in finding.breaches:
                    if profile.promise(finding.guarantee, given.mode, given.storage, breach.under).promised:
                        broken[finding.guarantee] += 1
                        print(f"{point}: {finding.guarantee} {breach.message}", flush=True)
    spent = time.monotonic() - began
    print(f"{given.mode} on {given.storage}: {len(points)} crash points, {dict(met)} walked in {spent:.0f} s")
    print(f"not met: {missed or 'none'}; violations: {dict(broken) or 'none'}")
    sys.exit(1 if broken or missed else 0)


if __name__ == "__main__":
    main()
