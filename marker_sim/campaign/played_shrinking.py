"""Plans that failed against real processes made small, where one run proves nothing.

A smaller plan is kept when it breaks the same guarantee in two of two runs or three of four, and one of few entries,
whose runs are short, when it does in five of six. Two runs go on beside each other. Whoever gets the plan wants to see
it fail, so the result is the last of those kept that breaks in eight of ten runs, and the most reliable one where none
does. What else breaks in its runs most likely has the same cause, so it is not made small again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest

from marker_sim.campaign.pieces import Broken, Kind, first_of_each_kind
from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan
from marker_sim.search.shrinking.by_evidence import candidates
from marker_sim.search.shrinking.shrinker import shrink

PAIR = 2
LAST_RUNS = 10
RELIABLE = 8  # Of the last runs.
FEW = 12  # Entries of a plan that has to break in five of six runs.
CLOSING_SHARE = 0.3  # Of the time, for the last runs.
PLANS_MAX = 2  # Failing plans whose candidates are tried.
EVIDENCE_SHARE = 0.6  # Of the time, for the candidates that the evidence names.
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

    def shrink(
        self, kind: Kind, seen: Sequence[Broken], until: float, over: float | None = None, runs_max: int = 2_000
    ) -> SmallPlan:
        """The smallest plan found until a time that breaks the guarantee, in the mode and on the storage, of `kind`.

        seen: runs of plans in which it broke.
        over: until when the last runs may go on.
        """
        began = time.monotonic()
        last = until - (until - began) * CLOSING_SHARE
        ordered = sorted(seen, key=lambda broken: _plan_of(broken).asked)[:PLANS_MAX]
        kept = [_plan_of(ordered[0])]

        def fails(candidate: Plan) -> bool:
            failed = self._fails(candidate, kind, until)
            if failed:
                kept.append(candidate)
            return failed

        self._first(ordered, fails, began + (last - began) * EVIDENCE_SHARE)
        shrink(kept[-1], fails, runs_max, max(0.0, last - time.monotonic()), simulated=False)
        self._probing = True
        return self._most_reliable(kept, kind, until if over is None else over)

    def _most_reliable(self, kept: list[Plan], kind: Kind, until: float) -> SmallPlan:
        """The last of the plans that were kept that breaks often enough, else the one that breaks most often.

        It is looked for from the last one back in growing steps, then between the last two of them.
        """
        best, back, rare = self._last_runs(kept[-1], kind, until), 1, 0
        while best.failed < RELIABLE and back < len(kept) and time.monotonic() < until:
            rare, back = back, min(2 * back, len(kept))
            seen = self._last_runs(kept[-back], kind, until)
            if seen.failed * best.runs > best.failed * seen.runs:
                best = seen
        while best.failed >= RELIABLE and back - rare > 1 and time.monotonic() < until:
            middle = (back + rare) // 2
            seen = self._last_runs(kept[-middle], kind, until)
            back, rare, best = (middle, rare, seen) if seen.failed >= RELIABLE else (back, middle, best)
        return best

    def _last_runs(self, plan: Plan, kind: Kind, until: float) -> SmallPlan:
        """Ten runs; fewer when the time is over, or when too many of them kept the guarantee."""
        failed, beside, runs = 0, dict[Kind, Broken](), 0
        while runs < LAST_RUNS and runs - failed <= LAST_RUNS - RELIABLE and (not runs or time.monotonic() < until):
            for seen in self._pair(plan, until):
                failed += any(each[0] == kind[0] for each in seen)
                beside = {**seen, **beside}
                runs += 1
        return SmallPlan(plan=plan, broken=beside, failed=failed, runs=runs)

    def _first(self, seen: list[Broken], fails: Callable[[Plan], bool], until: float) -> None:
        """Candidates of all runs in turn until one fails."""
        turns = [((broken, candidate) for candidate in _candidates(broken)) for broken in seen]
        for each in (each for turn in zip_longest(*turns) for each in turn if each is not None):
            if time.monotonic() > until:
                break
            broken, candidate = each
            self._probing = any(
                broken.history.events[index].process.startswith(PROBES) for index in broken.breach.evidence
            )
            if candidate.entries < _plan_of(broken).entries and fails(candidate):
                return

    def _fails(self, plan: Plan, kind: Kind, until: float) -> bool:
        failed = runs = 0
        while runs - failed <= 1:
            failed += self._count(plan, kind, until)
            runs += PAIR
            if failed >= (5 if plan.entries <= FEW else 2 if failed == runs else 3):
                return True
        return False

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


def _plan_of(broken: Broken) -> Plan:
    assert broken.plan is not None, "a round without a plan cannot be made smaller"
    return broken.plan


def _candidates(broken: Broken) -> Iterable[Plan]:
    evidence = tuple(broken.history.events[index] for index in broken.breach.evidence)
    return candidates(_plan_of(broken), evidence, broken.breach.under)


def broken_in(history: History, plan: Plan | None, profile: Profile) -> dict[Kind, Broken]:
    """The first breach of each kind in a run that is judged now."""
    return first_of_each_kind(0, plan, history, judge(history, None), profile)
