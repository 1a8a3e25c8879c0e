"""The runs of a campaign in real time: drawn one by one, judged, a few played at the same time.

A number of runs asks for plans by number, which do not depend on what other runs met; else the target draws.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from marker_sim.campaign.coverage.canary import find_false_statement
from marker_sim.campaign.pieces import NumberedRun, PieceResult, SearchState, stops
from marker_sim.campaign.played_shrinking import WAITING, PlayedShrinker
from marker_sim.errors import HarnessError
from marker_sim.outcome.failure import Failure, Kind
from marker_sim.outcome.result import Campaign
from marker_sim.plan import Plan
from marker_sim.surroundings.worker_pool import Keeper, TaskPool, as_done
from marker_sim.targets.target import RealRuns
from marker_sim.worlds.played import PlayedRun

SHRINK_SHARE, WAITING_SHARE = 0.5, 0.7  # Shares of the budget; the second if each run waits for an answer.
CLOSING_S = 2.0
AGAIN_SHARE, AGAIN_LEAST = 0.4, 0.2  # Of the time that shrinking left, if that is so much of the budget.
LITTLE = 6  # Entries of a plan that is soon read; larger ones are made small before.
FIRST_SHARE = 0.7  # Share of the remaining time for the next failure, which often is the only cause.


class PlanByNumber(NamedTuple):
    """A plan that its number determines."""

    number: int
    plan: Plan

    @property
    def line(self) -> str:
        """The progress line of the plan."""
        return f"plan {self.number}"


class PlayedRuns(Keeper):
    """The runs of one campaign. A context manager that owns the storage and the processes that they need."""

    _runs: RealRuns

    def __init__(self, search: SearchState) -> None:
        super().__init__()
        self._search = search
        self._at_once = search.request.runs is not None or search.request.stop_at_first  # No run after shrinking.
        self._number = 0
        self._begun = 0
        self._resumed = 0
        self._drawn = ""
        self._reserved = 0.0
        self._broken: dict[Kind, list[Failure]] = {}

    def __enter__(self) -> PlayedRuns:
        search = self._search
        self._runs = self._stack.enter_context(search.request.target.real_runs(search.request, search.progress))
        return self

    @property
    def worth_keeping(self) -> bool:
        """Whether there is anything to report when the campaign ends early."""
        return bool(self._search.found)

    def pieces(self) -> Iterator[PieceResult]:
        """The result of each run, judged when it ends."""
        try:
            for drawn, played in self._ended():
                piece, broken = self._judged(played)
                if not isinstance(drawn, PlanByNumber):
                    self._runs.took(drawn, played, broken)
                yield piece
        except OSError as error:
            raise HarnessError(f"the kit's own files failed: {error.strerror or error} ({error.filename})") from error

    def merged(self, piece: PieceResult, new: dict[Kind, Failure]) -> None:
        """Take in a counted run: show the progress."""
        search = self._search
        self._say()
        if any(search.shrinks(kind) and each.plan is not None for kind, each in new.items()):
            waits = self._runs.at_once > 1 and any(kind[0] in WAITING for kind in new)
            self._reserved = max(self._reserved, WAITING_SHARE if waits else SHRINK_SHARE)
            self._runs.reserve(self._reserved)

    def resumes(self) -> bool:
        """Whether runs go on after shrinking, which took less than was reserved."""
        request, before = self._search.request, self._resumed
        left = 1 - (time.monotonic() - self._search.began) / request.budget_s
        if self._at_once or left < AGAIN_LEAST or before == self._number:
            return False
        self._resumed, self._reserved = self._number, AGAIN_SHARE * left
        self._runs.reserve(self._reserved)
        return True

    def shrink(self) -> None:
        """Shrink the failures, those that are told first, and that take little time, before others; what a small plan
        also breaks is not shrunk separately.
        """
        search, request = self._search, self._search.request
        if not request.shrinking:
            return
        shrinker = PlayedShrinker(self._runs.again, request.profile, self._runs.at_once)
        share_s = (1 if self._at_once else self._reserved) * request.budget_s
        until = min(search.began + request.budget_s, time.monotonic() + share_s) - CLOSING_S
        found = ((kind, broken) for kind, broken in search.found.items() if kind not in search.large)
        planned = [(kind, broken) for kind, broken in found if broken.plan is not None and search.shrinks(kind)]
        planned.sort(
            key=lambda each: (
                each[1].hostile,
                each[0][0] in WAITING,
                each[1].entries <= LITTLE,
                each[1].breach.under != "none",
            )
        )
        left = [kind for kind, _ in planned]
        unseen: dict[Kind, str] = {}
        while left and time.monotonic() < until:
            kind = left.pop(0)
            broken, left_s = search.found[kind], until - time.monotonic()
            share_s = left_s * share_of(kind, [each for each in left if each[:3] != kind[:3]])
            search.progress(f"shrinking {kind[0]}, {broken.entries} entries")
            seen = self._broken.get(kind) or [broken]
            if broken.breach.under == "none":  # What needs no fault is told as that, not by a smaller plan with one.
                seen = [each for each in seen if each.breach.under == "none"] or [broken]
            small = shrinker.shrink(kind, seen, time.monotonic() + share_s, until)
            same = [each for each in (kind, *left, *unseen) if each in small.broken or each[:3] == kind[:3]]
            search.large[kind] = small.stopped
            if small.told is None:
                unseen[kind] = small.sentence
                continue
            search.found.setdefault(small.told, broken)
            for each in (small.told, *same):
                if each in small.broken:
                    search.keep(each, small.broken[each], small.sentence)
                    search.large[each] = small.stopped
                else:
                    search.large[each] = f"{small.told[0]} was, and most likely has the same cause"
            left = [each for each in left if each not in same]
        for kind, sentence in unseen.items():
            if not search.found[kind].confirmed:
                search.found[kind] = replace(search.found[kind], confirmed=sentence)

    def check(self) -> None:
        """Nothing: runs in real time cannot be repeated exactly, so there is none to compare."""

    def complete(self, campaign: Campaign) -> Campaign:
        """The result completed by the target, with whether the judges detect a false statement in the last history."""
        planted = find_false_statement(campaign.last) if self._search.request.canaries else None
        return replace(self._runs.complete(campaign), canary=planted)

    def _next(self) -> Any:
        """The next run; None after a violation that ends the campaign."""
        search = self._search
        if search.request.stop_at_first and stops(search.statistics, search.found, search.request):
            return None
        drawn = self._runs.draw(search.statistics.reached) if search.request.runs is None else self._by_number()
        if drawn is not None:
            self._drawn = drawn.line
            self._say()
        return drawn

    def _by_number(self) -> PlanByNumber | None:
        """The plan with the next number; None when all were given, or no time is left for one that takes as long."""
        search, request = self._search, self._search.request
        spent_s, until_s = time.monotonic() - search.began, request.budget_s * (1 - self._reserved) - CLOSING_S
        each_s = spent_s * self._runs.lanes / max(1, self._number)
        if self._begun == request.runs or (self._begun and spent_s + each_s > until_s):
            return None
        self._begun += 1
        number = request.first + self._begun
        return PlanByNumber(number, request.target.plan_of(request, number))

    def _play(self, drawn: Any) -> PlayedRun:
        if not isinstance(drawn, PlanByNumber):
            return self._runs.play(drawn)
        until = self._search.began + self._search.request.budget_s - CLOSING_S
        return self._runs.again(drawn.plan, until)

    def _say(self) -> None:
        self._search.progress(f"{self._search.line(*self._runs.counts)}; {self._drawn}")

    def _ended(self) -> Iterator[tuple[Any, PlayedRun]]:
        """The runs as they end, with `lanes` of them at a time, until no further one fits.

        A single lane is this thread, which receives Ctrl-C. Runs that are under way when this is left end at once,
        which the pool waits for.
        """
        runs = self._runs
        with TaskPool(self._play, runs.lanes if runs.lanes > 1 else 0) as pool:
            try:
                yield from as_done(self._next, pool)
            except BaseException:
                if runs.lanes > 1:
                    runs.close()
                raise

    def _judged(self, played: PlayedRun) -> tuple[PieceResult, Collection[Kind]]:
        """One run as a piece, and what it broke."""
        piece = PieceResult()
        broken = piece.take(numbered(self._number, played), self._search.request)
        for kind, each in broken.items():
            self._broken.setdefault(kind, []).append(each)
        if played.interrupted or played.trouble:
            piece.error = KeyboardInterrupt() if played.interrupted else HarnessError(played.trouble)
        self._number += 1
        return piece, broken.keys()


def numbered(number: int, played: PlayedRun) -> NumberedRun:
    """The judgeable form of a run that was played, without history if it does not count; its steps are its requests."""
    steps = sum(event.kind == "invoke" for event in played.history.events)
    reached = tuple(sorted(played.counts.items()))
    history = None if played.findings == () else played.history
    return NumberedRun(number, played.plan, history, steps, reached=reached, findings=played.findings)


def share_of(kind: Kind, left: Sequence[Kind]) -> float:
    """The share of the time left that one failure gets: most, unless one that takes much longer comes after it."""
    if not left:
        return 1.0
    return FIRST_SHARE if kind[0] in WAITING or not any(each[0] in WAITING for each in left) else 1 - FIRST_SHARE
