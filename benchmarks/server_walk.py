"""The walk of a server alone, for as long as it may take: each storage call of a short workload and what came of it.

    python benchmarks/server_walk.py --sut hudi:1.2.0 --minutes 8
    python benchmarks/server_walk.py --sut http --start 'server --port {port} --dir {storage}' --storage s3

A campaign spends most of its time on other plans and on making small what it found; this says how complete a walk is
and what breaks, a line for each call at which something broke. Ends with 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from marker_sim.campaign.played_shrinking import broken_in
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.result import KEPT, NO_ANSWER, NOT_MET
from marker_sim.report.notes import walk_line
from marker_sim.search.walks import Walk
from marker_sim.targets.http_plans import ServerPlans
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, RealRuns, ServerOptions

THREADS, INTERVAL_MS, RUN_S, POLL_S = 2, 25, 60.0, 0.02


def main() -> int:
    """Walk and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sut", default="http")
    parser.add_argument("--start", default="")
    parser.add_argument("--storage", default="local")
    parser.add_argument("--profile", default="", help="the target's own when it is not given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--lanes", type=int, default=2, help="points at a time, as many as the target plays at most")
    given = parser.parse_args()
    target, until = parse_target(given.sut), time.monotonic() + given.minutes * 60
    profile = load_profile(given.profile or target.can.profile)
    walk, lock, took = Walk(given.storage, THREADS, INTERVAL_MS, given.seed), threading.Lock(), list[float]()

    def lane(runs: RealRuns) -> None:
        while time.monotonic() < until:
            with lock:
                plan = walk.next()
                patient = plan is None or walk.patient(plan)
            if plan is None:
                if len(took) > 2:
                    return  # Another lane has the last one.
                time.sleep(POLL_S)
                continue
            began = time.monotonic()
            assert isinstance(runs, ServerPlans)
            played = runs.again(plan, began + RUN_S, patient=patient)
            kinds = broken_in(played.history, plan, profile)
            with lock:
                took.append(time.monotonic() - began)
                struck, broken = plan.faults[-1] in played.struck, {kind.guarantee for kind in kinds}
                walk.took(plan, played.calls, struck, broken, played.hung)

    with tempfile.TemporaryDirectory() as folder:
        request = CampaignRequest(
            target=target, modes=("timeline",), storages=(given.storage,), seed=given.seed,
            profile=profile, budget_s=given.minutes * 60, server=ServerOptions(start=given.start), report=Path(folder),
        )  # fmt: skip
        with request.target.real_runs(request, lambda line: None) as runs:
            threads = [threading.Thread(target=lane, args=(runs,)) for _ in range(given.lanes)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    rows = walk.rows()
    print(f"{len(took)} points, {sum(took) / len(took):.2f} s each in one of {given.lanes} lanes")
    print(walk_line(rows))
    bases = Counter(row.base for row in rows)
    print("calls: " + "; ".join(f"{base} {count}" for base, count in bases.items()))
    fine = "", KEPT, NOT_MET, NO_ANSWER
    broken = Counter((what, fate, row.call) for row in rows for fate, what in row.fates.items() if what not in fine)
    for (what, fate, call), count in sorted(broken.items()):
        print(f"{what}: {fate} at {call}" + (f", {count} times" if count > 1 else ""))
    return int(bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
