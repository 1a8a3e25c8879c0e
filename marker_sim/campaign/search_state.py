"""The state of one campaign: its counts and failures so far, and the shrunk plans."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from marker_sim.campaign.pieces import PieceResult
from marker_sim.history import History
from marker_sim.outcome.failure import NO_TIME, Failure, Kind, stories
from marker_sim.outcome.result import RunRow
from marker_sim.outcome.statistics import Statistics
from marker_sim.search.shrinking.shrinker import SMALL
from marker_sim.targets.target import CampaignRequest


@dataclass(slots=True, kw_only=True)
class SearchState:
    """The state of one campaign.

    began: time.monotonic().
    found: the first run of each kind of violation, or that of its small plan.
    large: why others were not made small, or why a small one may become smaller yet.
    trouble: why the kit could not finish, "" when it did.
    listed: a row of each run, when that is wanted.
    """

    request: CampaignRequest
    progress: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    statistics: Statistics = field(default_factory=Statistics)
    found: dict[Kind, Failure] = field(default_factory=dict)
    large: dict[Kind, str] = field(default_factory=dict)
    last: History | None = None
    trouble: str = ""
    listed: list[RunRow] = field(default_factory=list)

    def line(self, runs: str, steps: str) -> str:
        """The progress line. runs, steps: the words for these in it."""
        statistics, request, seconds = self.statistics, self.request, time.monotonic() - self.began
        left = "" if request.budget_s == math.inf else f"; {left_of(request.budget_s - seconds)}"
        of = "" if request.runs is None else f" of {request.runs:,}"
        rates = rates_of({runs: statistics.runs, steps: statistics.steps}, seconds)
        causes = len(stories(self.failures()))
        broken = ", ".join(sorted({kind.guarantee for kind in self.found}, key=lambda name: int(name[1:])))
        said = f"{causes} cause{'' if causes == 1 else 's'} so far: {broken}" if broken else "none violated"
        return f"{statistics.runs:,}{of} {runs}; {rates}; {sum(statistics.faults.values()):,} faults{left}; {said}"

    def add(self, piece: PieceResult) -> dict[Kind, Failure]:
        """Add the next piece; returns the kinds of violation that are new, or have a plan now."""
        self.statistics.merge(piece.statistics)
        self.last = piece.last or self.last
        self.listed += piece.listed
        known = {kind for kind, failure in self.found.items() if failure.plan is not None}
        new = {
            kind: failure
            for kind, failure in piece.found.items()
            if kind not in known and (kind not in self.found or failure.plan is not None)
        }
        self.found |= new
        return new

    def keep(self, kind: Kind, small: Failure, confirmed: str = "") -> None:
        """Replace the run of a failure by that of a smaller plan, unless there is a still smaller one.

        confirmed: how often the small plan fails.
        """
        known = self.found[kind]
        if known.entries_before and known.entries < small.entries:
            return
        before = known.entries_before or known.entries
        self.found[kind] = replace(
            small,
            kind=kind,
            number=known.number,
            entries_before=before if small.entries < before else 0,
            confirmed=confirmed,
            story=known.story,
        )

    def join_story(self, kind: Kind, also: Iterable[Kind]) -> None:
        """Record that the small plan for `kind` also breaks `also`: one story, unless they belong to one already."""
        for each in (kind, *also):
            if each in self.found and self.found[each].story is None:
                self.found[each] = replace(self.found[each], story=kind)

    def failures(self) -> tuple[Failure, ...]:
        """The failures, shortest plan first. One that was not shrunk is joined with others of the same run."""
        told = {each.number: each.story for each in reversed(self.found.values()) if each.story is not None}
        for kind, failure in self.found.items():
            told.setdefault(failure.number, kind)
        found = []
        for kind, failure in self.found.items():
            why = self.large.get(kind, NO_TIME) if self.request.shrinking and failure.entries > SMALL else ""
            found.append(replace(failure, story=failure.story or told[failure.number], large=why))
        return tuple(sorted(found, key=lambda failure: failure.entries))


def rates_of(counts: Mapping[str, int], seconds: float) -> str:
    """The rates per second, in words."""
    rates = ((name, count / max(seconds, 0.001)) for name, count in counts.items())
    return ", ".join(f"{rate:,.{0 if rate >= 10 else 1}f} {name}/s" for name, rate in rates)


def left_of(seconds: float) -> str:
    """The time left of a budget in words."""
    return f"{seconds / 60:.0f} min left" if seconds >= 600 else f"{max(0.0, seconds):.0f} s left"
