"""The walk of a server alone, for as long as it may take: each storage call of a short workload and what came of it.

    python benchmarks/server_walk.py --sut hudi:1.2.0 --minutes 8 --out DIR
    python benchmarks/server_walk.py --sut http --start 'server --port {port} --dir {storage}' --storage s3

A campaign spends most of its time on other plans and on making small what it found; this says how complete a walk is
and what breaks, a line for each call at which something broke, and before these a line for each kind of violation and
operation with the fates that cause it. Ends with 1 when a promise was broken. --out writes a report with the smallest
plan of each kind of violation: `replay`, `shrink` and `scenarios.findings --take` read it.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from marker_sim.faults import Call, FaultKind
from marker_sim.judges import judge
from marker_sim.plan import Plan
from properties.faces.judges import Profile, load_profile
from properties.faces.outcome import KEPT, NO_ANSWER, NOT_MET, Campaign, Failure, Kind, Statistics, failures_in
from properties.faces.report import judge_campaign, walk_line, write_outcome
from properties.faces.search import PAIRS, Walk, WalkPoint
from properties.faces.targets import CampaignRequest, RealRuns, ServerOptions, ServerPlans, parse_target

INTERVAL_MS, RUN_S, POLL_S = 25, 60.0, 0.02


def main() -> int:
    """Walk and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sut", default="http")
    parser.add_argument("--start", default="")
    parser.add_argument("--reader", default="", help="as of verify, for a format of its own")
    parser.add_argument("--storage", default="local")
    parser.add_argument("--profile", default="", help="the target's own when it is not given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="of batches; with one, runs differ less")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--out", type=Path, help="directory of the report")
    parser.add_argument("--only", default="", metavar="REGEX", help="only points whose fault, as in plans, matches")
    parser.add_argument("--singles", action="store_true", help="end before pairs of deaths")
    parser.add_argument("--lanes", type=int, default=2, help="points at a time, as many as the target plays at most")
    given = parser.parse_args()
    began, target = time.monotonic(), parse_target(given.sut)
    server = ServerOptions(start=given.start, reader=given.reader)
    profile = load_profile(given.profile or target.can.profile)
    walk = Walk(given.storage, given.threads, INTERVAL_MS, given.seed)
    until = began + given.minutes * 60
    made = WalkRuns(walk=walk, profile=profile, only=given.only, singles=given.singles, until=until)
    with tempfile.TemporaryDirectory() as folder:
        request = CampaignRequest(
            target=target, modes=("timeline",), storages=(given.storage,), seed=given.seed,
            profile=profile, budget_s=given.minutes * 60, server=server, report=Path(folder),
        )  # fmt: skip
        with request.target.real_runs(request, lambda line: None) as runs, ThreadPoolExecutor(given.lanes) as lanes:
            list(lanes.map(made.lane, [runs] * given.lanes))
    rows = walk.rows()
    if given.out is not None:
        campaign = Campaign(
            sut=given.sut, sut_version=target.version, seed=given.seed, duration_s=time.monotonic() - began,
            statistics=made.statistics, failures=tuple(made.found.values()), last=None, walked=rows,
            server=server.to_dict(),
        )  # fmt: skip
        outcome = judge_campaign(campaign, profile, None, given.out, ("python", *sys.argv))
        write_outcome(outcome, given.out)
        print(f"{len(made.found)} kinds of violations are stored in {given.out}")
    count, minutes = len(made.took), (time.monotonic() - began) / 60
    took = f"{sum(made.took) / count:.2f} s each in one of {given.lanes} lanes"
    print(f"{count} points in {minutes:.1f} min, {took}, {_processor_s() / count:.2f} s of processors")
    if not given.only:
        print(walk_line(rows))
    bases = Counter(row.base for row in rows)
    print("calls: " + "; ".join(f"{base} {count}" for base, count in bases.items()))
    for (guarantee, cause, operation), fates in sorted(made.causes.items()):
        told = ", ".join(f"{fate} {count}" for fate, count in fates.most_common())
        print(f"by cause: {guarantee} {cause} at {operation}: {told}")
    fine = "", KEPT, NOT_MET, NO_ANSWER
    broken = Counter((what, fate, row.call) for row in rows for fate, what in row.fates.items() if what not in fine)
    for (what, fate, call), count in sorted(broken.items()):
        print(f"{what}: {fate} at {call}" + (f", {count} times" if count > 1 else ""))
    return int(bool(broken))


@dataclass(slots=True, kw_only=True)
class WalkRuns:
    """The runs of a walk in several lanes, until a time (time.monotonic).

    only: a regular expression of faults as plans have them. singles: the first pair of deaths is the last run.
    took: seconds of each run. found: the smallest plan of each kind of violation.
    causes: how many points broke a guarantee by a cause at an operation, by fate.
    """

    walk: Walk
    profile: Profile
    only: str
    singles: bool
    until: float
    took: list[float] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)
    found: dict[Kind, Failure] = field(default_factory=dict)
    causes: defaultdict[tuple[str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lane(self, runs: RealRuns) -> None:
        """Run plans, one after the other."""
        while time.monotonic() < self.until:
            with self._lock:
                plan = self._next()
            if plan is not None:
                self._run(plan, runs)
            elif len(self.took) > 2:
                return  # Another lane has the last one.
            else:
                time.sleep(POLL_S)

    def _next(self) -> Plan | None:
        """The next plan whose point is wanted; the runs that number the calls always are."""
        while (plan := self.walk.next()) is not None:
            fault = plan.faults[-1]
            if fault.kind is FaultKind.SLOW_STORAGE or re.search(self.only, json.dumps(fault.to_dict())):
                return plan
            self.walk.took(plan, (), False, ())
        return None

    def _run(self, plan: Plan, runs: RealRuns) -> None:
        start = time.monotonic()
        with self._lock:
            patient, point = self.walk.patient(plan), self.walk.point(plan)
            if self.singles and point is not None and point.base == PAIRS:
                self.until = 0.0
        assert isinstance(runs, ServerPlans)
        played = runs.again(plan, start + RUN_S, patient=patient)
        findings = judge(played.history, None)
        broken = failures_in(played.history, findings, self.profile, plan)
        with self._lock:
            self.took.append(time.monotonic() - start)
            struck = plan.faults[-1] in played.struck
            self.walk.took(plan, played.calls, struck, {kind.guarantee for kind in broken}, played.hung)
            self.statistics.add(played.history, findings)
            for kind, failure in broken.items():
                operation, fate = _at(point) if point else ("", "no fault")
                self.causes[kind.guarantee, kind.cause, operation][fate] += 1
                if kind not in self.found or failure.entries < self.found[kind].entries:
                    self.found[kind] = failure


def _at(point: WalkPoint) -> tuple[str, str]:
    """The operation of a point's call, and what happens to it."""
    trigger = point.fault.trigger
    assert isinstance(trigger, Call)
    return trigger.operations[0], point.fate


def _processor_s() -> float:
    """The processor time of this process and of the servers that ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    raise SystemExit(main())
