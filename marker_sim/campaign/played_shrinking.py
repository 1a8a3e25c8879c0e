"""Plans that failed against real processes made small, where one run proves nothing.

A smaller plan is kept when it breaks the same guarantee in two of two runs or three of four, and one of few entries,
whose runs are short, when it does in four of four or five of six. Two runs go on beside each other, or more that wait
for an answer most of the time. Whoever gets the plan wants to see it fail, so the result is the last of those kept that
breaks in eight of ten runs, and the most reliable one where none does. What else breaks in its runs most likely has the
same cause, so it is not made small again.

Where a run takes a quarter of a minute and the machine for itself, as a table on Spark does, one of two runs is enough,
and three of four in the end; none begins that the time has no room for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest

from marker_sim.campaign.pieces import Broken, Kind, first_of_each_kind
from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan
from marker_sim.search.shrinking import by_evidence, by_history, tables
from marker_sim.search.shrinking.shrinker import shrink

BESIDE = 2  # Runs beside each other.
WAITING = ("G6", "G7")  # A run that breaks one of them waits for ten seconds, in which nobody is busy.
LAST_RUNS, FEW_LAST_RUNS = 10, 4
RELIABLE, FEW_RELIABLE = 8, 3  # Of the last runs.
SLOW_TRIES = 2
ENTRY_S, FRAME = 5.0, 2  # Of a slow run: how long it takes for each entry, and as for how many more.
FEW = 12  # Entries of a plan that has to break in five of six runs.
CLOSING_SHARE = 0.3  # Of the time, for the last runs.
PLANS_MAX = 2  # Failing plans whose candidates are tried.
EVIDENCE_SHARE = 0.6  # Of the time, for the candidates that the evidence names.
LOST = frozenset(("G1", "G2", "G3", "G4", "G11"))  # A name that is gone breaks one of them, by when it is missed.
PROBES = ("probe-", "once-")
Again = Callable[[Plan, float, bool, bool], History]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPlan:
    """What became of a plan.

    broken: what broke in the last runs of it, by kind, as it was seen first.
    failed, runs: in how many of them a guarantee broke that it was made small for.
    told: how it breaks that most often, None when it never did.
    """

    plan: Plan
    broken: dict[Kind, Broken]
    told: Kind | None
    failed: int
    runs: int

    @property
    def sentence(self) -> str:
        """How often it fails, "" when there was no time to see."""
        if not self.runs:
            return ""
        seldom = "" if self.failed else "; the evidence is of a run that had its timing"
        return f"breaks in {self.failed} of {self.runs} runs{seldom}"


class PlayedShrinker:
    """Makes plans small.

    again: runs a plan until a time (time.monotonic), on fresh servers if asked for, with probes at its end or not; from
        several threads at a time. at_once: from how many, when runs wait most of the time; 1 for runs that are slow.
    """

    def __init__(self, again: Again, profile: Profile, at_once: int = BESIDE) -> None:
        self._again = again
        self._at_once = at_once
        self._profile = profile
        self._fresh = False
        self._probing = True
        self._wanted: frozenset[str] = frozenset()
        self._slow = at_once == 1
        self._beside = BESIDE
        self._last_runs_max, self._reliable = (FEW_LAST_RUNS, FEW_RELIABLE) if self._slow else (LAST_RUNS, RELIABLE)
        self._entry_s = ENTRY_S

    def shrink(
        self, kind: Kind, seen: Sequence[Broken], until: float, over: float | None = None, runs_max: int = 2_000
    ) -> SmallPlan:
        """The smallest plan found until a time that breaks the guarantee, in the mode and on the storage, of `kind`.

        seen: runs of plans in which it broke.
        over: until when the last runs may go on.
        """
        began = time.monotonic()
        last = until - (until - began) * CLOSING_SHARE
        ordered = sorted(seen, key=lambda broken: (_plan_of(broken).asked, _plan_of(broken).entries))[:PLANS_MAX]
        kept = [_plan_of(ordered[0])]
        self._wanted = self._as_seen_in(ordered, kind[0])
        self._beside = self._at_once if kind[0] in WAITING or self._slow else BESIDE

        def fails(candidate: Plan) -> bool:
            failed = self._fails(candidate, until)
            if failed:
                kept.append(candidate)
            return failed

        self._first(ordered, fails, began + (last - began) * EVIDENCE_SHARE)
        shrink(kept[-1], fails, runs_max, max(0.0, last - time.monotonic()), simulated=False)
        self._probing = True
        return self._most_reliable(kept, until if over is None else over)

    def _as_seen_in(self, seen: Sequence[Broken], guarantee: str) -> frozenset[str]:
        """The guarantees that a smaller plan may break instead: those that the same loss broke in the same runs."""
        if guarantee not in LOST:
            return frozenset((guarantee,))
        beside = {kind[0] for each in seen for kind in broken_in(each.history, each.plan, self._profile)}
        return frozenset((guarantee, *(LOST & beside)))

    def _most_reliable(self, kept: list[Plan], until: float) -> SmallPlan:
        """The last of the plans that were kept that breaks often enough, else the one that breaks most often.

        It is looked for from the last one back in growing steps, then between the last two of them.
        """
        best, back, rare = self._last_runs(kept[-1], until), 1, 0
        while best.failed < self._reliable and back < len(kept) and time.monotonic() < until:
            rare, back = back, min(2 * back, len(kept))
            seen = self._last_runs(kept[-back], until)
            if seen.failed * best.runs > best.failed * seen.runs:
                best = seen
        while best.failed >= self._reliable and back - rare > 1 and time.monotonic() < until:
            middle = (back + rare) // 2
            seen = self._last_runs(kept[-middle], until)
            back, rare, best = (middle, rare, seen) if seen.failed >= self._reliable else (back, middle, best)
        return best

    def _last_runs(self, plan: Plan, until: float) -> SmallPlan:
        """Ten runs; fewer when the time is over, or when too many of them kept the guarantee."""
        failed, beside, runs, told = 0, dict[Kind, Broken](), 0, Counter[Kind]()
        spare = self._last_runs_max - self._reliable
        while runs < self._last_runs_max and runs - failed <= spare and self._has_room(plan, until, first=not runs):
            for seen in self._some(plan, until):
                wanted = [each for each in seen if each[0] in self._wanted]
                failed += bool(wanted)
                told.update(wanted)
                beside = {**seen, **beside}
                runs += 1
        most = next((each for each, _ in told.most_common(1)), None)
        return SmallPlan(plan=plan, broken=beside, told=most, failed=failed, runs=runs)

    def _first(self, seen: list[Broken], fails: Callable[[Plan], bool], until: float) -> None:
        """Candidates of all runs in turn until one fails."""
        turns = [((broken, candidate) for candidate in _candidates(broken)) for broken in seen]
        for each in (each for turn in zip_longest(*turns) for each in turn if each is not None):
            broken, candidate = each
            if not self._has_room(candidate, until):
                break
            self._probing = any(
                broken.history.events[index].process.startswith(PROBES) for index in broken.breach.evidence
            )
            if candidate.entries < _plan_of(broken).entries and fails(candidate):
                return

    def _fails(self, plan: Plan, until: float) -> bool:
        if self._slow:
            return any(self._has_room(plan, until) and self._count(plan, until) for _ in range(SLOW_TRIES))
        failed = runs = 0
        while runs - failed <= 1:
            failed += self._count(plan, until)
            runs += self._beside
            if failed >= (4 if failed == runs else 5) or (
                plan.entries > FEW and failed >= (2 if failed == runs else 3)
            ):
                return True
        return False

    def _has_room(self, plan: Plan, until: float, first: bool = False) -> bool:
        """Whether one more run most likely fits; of those that are short, any does, and the first of all."""
        if not self._slow:
            return first or time.monotonic() < until
        return time.monotonic() + self._entry_s * (plan.entries + FRAME) < until

    def _count(self, plan: Plan, until: float) -> int:
        return sum(any(each[0] in self._wanted for each in seen) for seen in self._some(plan, until))

    def _some(self, plan: Plan, until: float) -> list[dict[Kind, Broken]]:
        """What breaks in runs beside each other; one that the kit could not complete says nothing."""

        def run(_: int) -> dict[Kind, Broken]:
            try:
                return broken_in(self._again(plan, until, fresh, self._probing), plan, self._profile)
            except HarnessError:
                return {}

        fresh, began = self._fresh, time.monotonic()
        if self._beside == 1:  # Here Ctrl-C is heard.
            seen = [run(0)]
        else:
            with ThreadPoolExecutor(self._beside) as pool:
                seen = list(pool.map(run, range(self._beside)))
        self._entry_s = (time.monotonic() - began) / (plan.entries + FRAME)
        self._fresh = any(seen)  # A server that did wrong once may have kept something of it.
        return seen


def _plan_of(broken: Broken) -> Plan:
    assert broken.plan is not None, "a run without a plan cannot be made smaller"
    return broken.plan


def _candidates(broken: Broken) -> Iterator[Plan]:
    plan, history, breach = _plan_of(broken), broken.history, broken.breach
    if plan.shape is not None:
        yield from tables.candidates(plan, history, breach.evidence)
        return
    yield from by_history.candidates(plan, history, breach.evidence, breach.under)
    evidence = tuple(history.events[index] for index in breach.evidence)
    yield from by_evidence.candidates(plan, evidence, breach.under)


def broken_in(history: History, plan: Plan | None, profile: Profile) -> dict[Kind, Broken]:
    """The first breach of each kind in a run that is judged now."""
    return first_of_each_kind(0, plan, history, judge(history, None), profile)
