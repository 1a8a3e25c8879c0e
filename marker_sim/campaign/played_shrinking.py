"""Shrinking of plans that failed in real time, where a single run proves nothing.

A smaller plan is kept when it breaks the same guarantee in two of two runs or three of four, and one of few entries,
whose runs are short, when it does in four of four or five of six. Two runs are made at once, or more if they mostly
wait for answers. Its receiver should see it fail, so the result is the last of those kept that
breaks in eight of ten runs, and the most reliable one where none does. Other guarantees that break in its runs most
likely have the same cause, and are not shrunk again.

Where a run takes a quarter of a minute and the machine for itself, as a table on Spark does, one of two runs is enough,
and three of four in the end. No run begins without enough time left, and a run that the end of the time cut off decides
nothing: it counts neither as broken nor as kept.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import zip_longest

from marker_sim.campaign.runs import LOST, broken_in
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.failure import INTERRUPTED, NO_TIME, NONE_SMALLER, Failure, Kind
from marker_sim.plan import Plan
from marker_sim.search.shrinking import by_history, jobs
from marker_sim.search.shrinking.shrinker import Watch, shrink
from marker_sim.worlds.played import PlayedRun

BESIDE = 2  # Runs at the same time.
WAITING = ("G6", "G7")  # Runs that break one of them mostly wait, idle, for the bound of an answer.
LAST_RUNS, FEW_LAST_RUNS = 10, 4
RELIABLE, FEW_RELIABLE = 8, 3  # Failing runs required of the last runs.
RUNS_MAX = 2_000  # Runs of smaller plans while one failure is shrunk.
KEPT_MAX = 1  # Runs of an accepted candidate that may keep the guarantee.
ENTRY_S, FRAME = 5.0, 2  # Time of a slow run for each entry, and a constant number of additional entries.
FEW = 12  # A plan with at most this many entries has to break in five of six runs.
CLOSING_SHARE = 0.3  # Share of the time for the last runs.
PLANS_MAX = 2  # Number of failing plans whose candidates are tried.
EVIDENCE_SHARE = 0.6  # Share of the time for the candidates that the evidence names.
PROBES = ("probe-", "once-")
Again = Callable[[Plan, float, bool, bool], PlayedRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPlan:
    """The result of shrinking: a plan and how often it fails.

    broken: the first breach of each kind in the counted runs.
    failed, runs: in how many of them a guarantee broke that it was made small for.
    told: the kind of breach that is most frequent, None without any.
    stopped: why it is not smaller, "" if no candidate was left.
    """

    plan: Plan
    broken: dict[Kind, Failure]
    told: Kind | None
    failed: int
    runs: int
    stopped: str = ""

    @property
    def sentence(self) -> str:
        """The sentence that says how often the plan fails, "" when there was no time to see."""
        if not self.runs:
            return ""
        seldom = "" if self.failed else "; the evidence is of a run that had its timing"
        return f"breaks in {self.failed} of {self.runs} runs{seldom}"

    def failure(self, given: Failure) -> Failure:
        """The failure that it shows, with its plan; given: the one that was made small, where it shows none."""
        shown = given if self.told is None else self.broken[self.told]
        return replace(shown, plan=self.plan, confirmed=self.sentence, large=self.stopped)


class PlayedShrinker:
    """Shrinks plans by playing smaller ones several times.

    again: runs a plan until a time (time.monotonic), on fresh servers if asked for, with probes at its end or not; from
        several threads at a time.
    at_once: from how many threads, when runs wait most of the time; 1 for runs that are slow.
    watch: receives each candidate.
    cause: by which alone smaller plans may break it, "" for any.
    """

    def __init__(
        self, again: Again, profile: Profile, at_once: int = BESIDE, watch: Watch | None = None, cause: str = ""
    ) -> None:
        self._again = again
        self._watch = watch
        self._cause = cause
        self._at_once = at_once
        self._profile = profile
        self._fresh = False
        self._probing = True
        self._wanted: frozenset[str] = frozenset()
        self._slow = at_once == 1
        self._beside = BESIDE
        self._last_runs_max, self._reliable = (FEW_LAST_RUNS, FEW_RELIABLE) if self._slow else (LAST_RUNS, RELIABLE)
        self._entry_s, self._wait_s, self._longest_s = ENTRY_S, 0.0, math.inf

    def shrink(self, kind: Kind, seen: Sequence[Failure], until: float, over: float | None = None) -> SmallPlan:
        """The smallest plan that breaks the guarantee, mode and storage of `kind`, as found until a time.

        seen: runs of plans in which it broke.
        over: until when the last runs may go on.
        An interrupt ends it with what was found by then, if there is a `watch`; else it is raised.
        """
        began = time.monotonic()
        ordered = sorted(seen, key=lambda broken: (broken.own_plan.asked, broken.own_plan.entries))[:PLANS_MAX]
        kept = [self._counted(ordered[0].own_plan, ())]
        self._wanted = self._as_seen_in(ordered, kind[0])
        self._beside = self._at_once if kind[0] in WAITING or self._slow else BESIDE
        self._expect(kind[0], ordered[0])

        def fails(candidate: Plan, last: float) -> bool:
            failing = self._failing(candidate, last, until)
            kept.extend([] if failing is None else [failing])
            if self._watch is not None:
                self._watch(candidate, failing is not None)
            return failing is not None

        try:
            self._first(ordered, fails, began + (until - began) * EVIDENCE_SHARE)
            last = until - self._closing_s(kept[-1].plan, until - began)
            left_s = max(0.0, last - time.monotonic())
            shrink(kept[-1].plan, lambda plan: fails(plan, last), RUNS_MAX, left_s, simulated=False)
            ended = not self._has_room(kept[-1].plan, last)
        except KeyboardInterrupt:
            if self._watch is None:
                raise
            return replace(kept[-1], stopped=INTERRUPTED)
        small = self._most_reliable(kept, until if over is None else over)
        none = NONE_SMALLER if small.plan == kept[0].plan else ""
        return replace(small, stopped=NO_TIME if ended else none)

    def _as_seen_in(self, seen: Sequence[Failure], guarantee: str) -> frozenset[str]:
        """The guarantees that a smaller plan may break instead: those broken by the same loss in the same runs."""
        if guarantee not in LOST:
            return frozenset((guarantee,))
        beside = {kind[0] for each in seen for kind in broken_in(each.history, each.plan, self._profile)}
        return frozenset((guarantee, *(LOST & beside)))

    def _most_reliable(self, kept: list[SmallPlan], until: float) -> SmallPlan:
        """The last of the kept plans that fails often enough, else the one that fails most often.

        It is looked for from the last one back in growing steps, then between the last two of them. Where none breaks
        any more, the plan that was given stands, with its own runs.
        """
        best, back, rare = self._last_runs(kept[-1], until), 1, 0
        seen = best
        while best.failed < self._reliable and back < len(kept) and self._has_room(kept[-back].plan, until):
            rare, back = back, min(2 * back, len(kept))
            seen = self._last_runs(kept[-back], until)
            if seen.failed * best.runs > best.failed * seen.runs:
                best = seen
        while best.failed >= self._reliable and back - rare > 1 and self._has_room(best.plan, until):
            middle = (back + rare) // 2
            seen = self._last_runs(kept[-middle], until)
            back, rare, best = (middle, rare, seen) if seen.failed >= self._reliable else (back, middle, best)
        given = seen if seen.plan == kept[0].plan else kept[0]
        return best if best.failed else given

    def _last_runs(self, kept: SmallPlan, until: float) -> SmallPlan:
        """A plan with its ten last runs (four slow ones); fewer when time is over, or when too many kept the guarantee.

        Without time for one, the runs for which the plan was kept count. The last of them have probes, which show other
        breaches.
        """
        spare, seen, small = self._last_runs_max - self._reliable, list[dict[Kind, Failure]](), kept
        needed = self._probing
        while self._has_room(kept.plan, until):
            self._probing = needed or len(seen) + self._beside >= self._last_runs_max
            some = self._some(kept.plan, until)
            seen += some
            small = self._counted(kept.plan, seen) if seen else kept
            if not some or len(seen) >= self._last_runs_max or small.runs - small.failed > spare:
                break
        self._probing = needed
        return small

    def _first(self, seen: list[Failure], fails: Callable[[Plan, float], bool], until: float) -> None:
        """Try the candidates of all runs in turn, each candidate once, until one fails."""
        tried = set[Plan]()
        turns = [((broken, candidate) for candidate in _candidates(broken)) for broken in seen]
        for each in (each for turn in zip_longest(*turns) for each in turn if each is not None):
            broken, candidate = each
            if not self._has_room(candidate, until):
                break
            self._probing = any(
                broken.history.events[index].process.startswith(PROBES) for index in broken.breach.evidence
            )
            if candidate.entries < broken.own_plan.entries and candidate not in tried and fails(candidate, until):
                return
            tried.add(candidate)

    def _failing(self, plan: Plan, last: float, until: float) -> SmallPlan | None:
        """The runs of a candidate that fails often enough; None for others, and when no run was conclusive.

        last: until when a run has to be over, most likely.
        """
        seen: list[dict[Kind, Failure]] = []
        while self._has_room(plan, last):
            some = self._some(plan, until)
            seen += some
            small = self._counted(plan, seen)
            if self._often(small):
                return small
            if not some or small.runs - small.failed > KEPT_MAX:
                break
        return None

    def _often(self, small: SmallPlan) -> bool:
        """Whether a candidate broke the guarantee in enough of its runs."""
        always = small.failed == small.runs
        if self._slow:
            return small.failed > 0
        few, many = (4, 2) if always else (5, 3)
        return small.failed >= (many if small.plan.entries > FEW else few)

    def _counted(self, plan: Plan, seen: Sequence[dict[Kind, Failure]]) -> SmallPlan:
        """A plan with the number of its runs and of those that failed."""
        wanted = [
            [kind for kind in broken if kind[0] in self._wanted and self._cause in ("", kind.cause)] for broken in seen
        ]
        told = Counter(kind for kinds in wanted for kind in kinds).most_common(1)
        return SmallPlan(
            plan=plan,
            broken={kind: each for broken in reversed(seen) for kind, each in broken.items()},
            told=told[0][0] if told else None,
            failed=sum(map(bool, wanted)),
            runs=len(seen),
        )

    def _expect(self, guarantee: str, broken: Failure) -> None:
        """Set the expected duration of runs from a failing one: waiting for an answer takes as long in a small plan."""
        if self._slow:
            return
        events, bound_ms = broken.history.events, broken.history.header.answer_bound_ms
        self._longest_s = (events[-1].time_ns - events[0].time_ns) / 1e9 if events else 0.0
        self._wait_s = bound_ms / 1000 if guarantee in WAITING and bound_ms else 0.0
        self._entry_s = max(0.0, self._longest_s - self._wait_s) / (broken.own_plan.entries + FRAME)

    def _closing_s(self, plan: Plan, seconds: float) -> float:
        """The seconds reserved for the last runs; 0 where no candidate would fit before them."""
        closing_s, run_s = seconds * CLOSING_SHARE, self._run_s(plan)
        if self._slow or run_s < closing_s:
            return min(closing_s, run_s * self._last_runs_max)
        return run_s if 2 * run_s < seconds else 0.0

    def _run_s(self, plan: Plan) -> float:
        """The likely duration of a run of a failing plan."""
        return min(self._longest_s, self._wait_s + self._entry_s * (plan.entries + FRAME))

    def _has_room(self, plan: Plan, until: float) -> bool:
        """Whether one more run is likely to fit."""
        return time.monotonic() + self._run_s(plan) < until

    def _some(self, plan: Plan, until: float) -> list[dict[Kind, Failure]]:
        """The failures of runs played at the same time, without runs that the kit or the time cut short."""

        def run(_: int) -> dict[Kind, Failure] | None:
            try:
                played = self._again(plan, until, fresh, self._probing)
                return None if played.cut else broken_in(played.history, plan, self._profile)
            except HarnessError:
                return None

        fresh, began = self._fresh, time.monotonic()
        if self._beside == 1:  # Only this thread receives Ctrl-C.
            made = [run(0)]
        else:
            with ThreadPoolExecutor(self._beside) as pool:
                made = list(pool.map(run, range(self._beside)))
        seen, took_s = [each for each in made if each is not None], time.monotonic() - began
        if seen:
            self._longest_s = max(self._longest_s, took_s)
            self._entry_s = max(0.0, took_s - self._wait_s) / (plan.entries + FRAME)
        self._fresh = any(made)  # A server may keep wrong state after a failure.
        return seen


def _candidates(broken: Failure) -> Iterator[Plan]:
    plan, history, breach = broken.own_plan, broken.history, broken.breach
    if jobs.are_jobs(plan):
        yield from jobs.candidates(plan, history, breach.evidence)
        return
    yield from by_history.candidates(plan, history, breach.evidence, breach.under)
