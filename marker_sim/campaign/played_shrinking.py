"""Plans that failed against real processes made small, where one run proves nothing.

A smaller plan is kept when it breaks the same guarantee in two of two runs, or in two of four when one of the first two
did. Two runs go on beside each other. What else breaks in the runs of the smallest plan most likely has the same cause,
so it is not made small again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from marker_sim.campaign.pieces import Broken, Kind
from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan
from marker_sim.search.shrinking.by_evidence import candidates
from marker_sim.search.shrinking.shrinker import shrink

PAIR = 2
LAST_RUNS = 10
CLOSING_SHARE = 0.2  # Of the time, for the last runs.
EVIDENCE_SHARE = 0.5  # Of the time, for the candidates that the evidence names.
PROBES = ("probe-", "once-")
Again = Callable[[Plan, float, bool, bool], History]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPlan:
    """What became of a plan.

    broken: what broke in the last runs of it, by kind, as it was seen first.
    failed, runs: in how many of them the guarantee broke that it was made small for.
    """

    plan: Plan
    broken: dict[Kind, Broken]
    failed: int
    runs: int

    @property
    def sentence(self) -> str:
        """How often it fails."""
        return f"breaks in {self.failed} of {self.runs} runs"


class PlayedShrinker:
    """Makes plans small.

    again: runs a plan until a time (time.monotonic), on fresh servers if asked for, with probes at its end or not; from
        two threads at a time.
    """

    def __init__(self, again: Again, profile: Profile) -> None:
        self._again = again
        self._profile = profile
        self._fresh = False
        self._probing = True

    def shrink(self, kind: Kind, broken: Broken, until: float, runs_max: int = 2_000) -> SmallPlan:
        """The smallest plan found until a time that breaks the guarantee, in the mode and on the storage, of `kind`."""
        plan, began = broken.plan, time.monotonic()
        assert plan is not None
        evidence = tuple(broken.history.events[index] for index in broken.breach.evidence)
        self._probing = any(event.process.startswith(PROBES) for event in evidence)
        last = until - (until - began) * CLOSING_SHARE

        def fails(candidate: Plan) -> bool:
            return self._fails(candidate, kind, until)

        likely = candidates(plan, evidence, broken.breach.under)
        small = self._first(plan, likely, fails, began + (last - began) * EVIDENCE_SHARE)
        small = shrink(small, fails, runs_max, max(0.0, last - time.monotonic()), simulated=False)
        self._probing = True
        counts, beside, runs = Counter[str](), dict[Kind, Broken](), 0
        while runs < LAST_RUNS and (not runs or time.monotonic() < until):
            for seen in self._pair(small, until):
                counts.update({each[0] for each in seen})
                beside = {**seen, **beside}
                runs += 1
        return SmallPlan(plan=small, broken=beside, failed=counts[kind[0]], runs=runs)

    def _first(self, plan: Plan, likely: Iterable[Plan], fails: Callable[[Plan], bool], until: float) -> Plan:
        """The first candidate that fails, or the plan itself."""
        for candidate in likely:
            if time.monotonic() > until:
                break
            if candidate.entries < plan.entries and fails(candidate):
                return candidate
        return plan

    def _fails(self, plan: Plan, kind: Kind, until: float) -> bool:
        failed = self._count(plan, kind, until)
        return failed == PAIR or (failed > 0 and failed + self._count(plan, kind, until) >= PAIR)

    def _count(self, plan: Plan, kind: Kind, until: float) -> int:
        return sum(any(each[:3] == kind[:3] for each in seen) for seen in self._pair(plan, until))

    def _pair(self, plan: Plan, until: float) -> list[dict[Kind, Broken]]:
        """What breaks in two runs; one that the kit could not complete says nothing."""

        def run(_: int) -> dict[Kind, Broken]:
            try:
                return broken_in(self._again(plan, until, fresh, self._probing), plan, self._profile)
            except HarnessError:
                return {}

        fresh = self._fresh
        with ThreadPoolExecutor(PAIR) as pool:
            seen = list(pool.map(run, range(PAIR)))
        self._fresh = any(seen)  # A server that did wrong once may have kept something of it.
        return seen


def broken_in(history: History, plan: Plan | None, profile: Profile, number: int = 0) -> dict[Kind, Broken]:
    """The first breach of each kind that a profile holds against the system."""
    place, found = history.header, dict[Kind, Broken]()
    for finding in judge(history, None):
        for breach in profile.broken_by(finding, place.mode, place.storage):
            kind = (finding.guarantee, place.mode, place.storage, breach.cause)
            found.setdefault(kind, Broken(number, plan, history, breach))
    return found
