"""The probability of a violation along its run: when it became likely, and by which event.

A point is a number of events. Runs that follow the failing one for that many events, and then draw anew what was still
undecided, break the same guarantee with the share of the point. Points are first spaced evenly, then more closely where
the share rises most, until the rise is at one event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from marker_sim.history import Event
from marker_sim.judges.violations import format_event

# A smaller rise between two points of 20 runs each may be chance (p > 0.001 for the least likely shares).
DECISIVE = 0.5
ALWAYS = 0.9


class CurvePoint(NamedTuple):
    """The runs that follow the failing one for a number of events: how many there were, and how many were violated."""

    events: int
    violated: int
    runs: int

    @property
    def share(self) -> float:
        """The share of runs that broke the guarantee."""
        return self.violated / self.runs


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodCurve:
    """The points of a run by their numbers of events, and the largest rise.

    seed: of the runs. total: the number of events of the failing run.
    before, after: the points around the largest rise; the events between them made the violation likely.
    moment: the last of these events, as text.
    """

    guarantee: str
    seed: int
    total: int
    points: tuple[CurvePoint, ...]
    before: CurvePoint
    after: CurvePoint
    moment: str

    @property
    def event(self) -> int:
        """The index of the last event of the rise."""
        return self.after.events - 1

    @property
    def moves(self) -> bool:
        """Whether anything along the run made the violation likelier, so that there is something to draw."""
        return self.points[0].share < ALWAYS and self.after.share > self.before.share

    @property
    def sentence(self) -> str:
        """When the violation became likely, in one line."""
        first, last, runs = self.points[0], self.points[-1], self.points[0].runs
        what, often = f"P({self.guarantee} violated)", f"{runs} runs a point"
        if first.share >= ALWAYS:
            return f"{what} is {first.share:.2g} from the first event on, whatever is drawn ({often})"
        rise = f"from {self.before.share:.2g} to {self.after.share:.2g} at event {self.event}: {self.moment}"
        if self.after.share - self.before.share >= DECISIVE:
            return f"{what} rises {rise} ({often})"
        return f"{what} rises little by little from {first.share:.2g} to {last.share:.2g}; most {rise} ({often})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: points as lists of events, violated and runs."""
        return {
            "guarantee": self.guarantee,
            "seed": self.seed,
            "events": self.total,
            "points": [list(point) for point in self.points],
            "rise": {"event": self.event, "from": self.before.share, "to": self.after.share, "moment": self.moment},
            "sentence": self.sentence,
        }


def likelihood_curve(
    guarantee: str,
    seed: int,
    events: Sequence[Event],
    until: int,
    points: int,
    measure: Callable[[int], CurvePoint],
) -> LikelihoodCurve:
    """The curve of a failing run.

    until: the number of events after which nothing is undecided. points: the number of first points, at least 2.
    measure: returns the point for a number of events.
    """
    spaced = {1 + round(number * (until - 1) / (points - 1)) for number in range(points)}
    known = {at: measure(at) for at in sorted(spaced)}
    while True:
        ordered = sorted(known.values())
        before, after = max(pairwise(ordered), key=lambda pair: pair[1].share - pair[0].share)
        middle = (before.events + after.events) // 2
        if middle == before.events:
            break
        known[middle] = measure(middle)
    return LikelihoodCurve(
        guarantee=guarantee,
        seed=seed,
        total=len(events),
        points=tuple(ordered),
        before=before,
        after=after,
        moment=format_event(events[after.events - 1]),
    )
