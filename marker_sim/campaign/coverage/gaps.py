"""What a campaign missed: coverage goals (goals.py), and how much must have happened: a quiet run is inconclusive.

Each threshold is a ratio with its reason, at half or less of what correct systems of any shape show, so that a slower
or more cautious system passes and an idle one does not; docs/honesty.md has both figures. A campaign is below a
threshold when chance does not explain it: a system with exactly the ratio misses it in at most one campaign of a
thousand (`LUCK`), one with twice the ratio in one of a million, if counts are independent, as runs are; for clustered
counts (creates, and judgements about them) it is more. A campaign of fewer than `RUNS_LEAST` runs must only have
answered creates; one of fewer than `CREATES_LEAST` has no threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from marker_sim.campaign.coverage.goals import GOALS, OPERATIONS, SURE, WRITES
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.outcome.result import CoverageGap, Deciding
from marker_sim.outcome.statistics import Statistics
from marker_sim.system import System

RUNS_LEAST = 100
CREATES_LEAST = 20
LUCK = 7.0  # exp(-7): one in 1,097.
_READS = ("list", "list-data", "list-log", "exists", "delete")
_SERVED = ("timeline/s3/", "timeline/local/")  # On other storages the reference falls back to direct markers.


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityThreshold:
    """A ratio that a campaign must reach for its verdicts to count, such as calls per run.

    measure: how much, of how many.
    small: whether it applies to campaigns of few runs.
    modes: the modes that it concerns, empty for all.
    """

    name: str
    reason: str
    least: float
    measure: Callable[[Statistics], tuple[float, float]]
    small: bool = False
    modes: tuple[str, ...] = ()


def _of(counts: Mapping[str, int], end: str = "", places: tuple[str, ...] = ("",)) -> int:
    return sum(count for kind, count in counts.items() if kind.startswith(places) and kind.endswith(end))


def _ok(statistics: Statistics, *operations: str) -> int:
    return sum(statistics.operations[name]["ok"] for name in operations if name in statistics.operations)


def _asked(statistics: Statistics, *operations: str) -> int:
    return sum(statistics.operations[name].total() for name in operations if name in statistics.operations)


THRESHOLDS: tuple[ActivityThreshold, ...] = (
    ActivityThreshold(
        name="creates answered per run",
        reason="only answered creates can be lost",
        least=4.0,
        measure=lambda runs: (_ok(runs, "create"), _of(runs.made)),
        small=True,
    ),
    ActivityThreshold(
        name="share of creates that succeed",
        reason="a system that refuses most requests keeps every promise trivially",
        least=0.4,
        measure=lambda runs: (_ok(runs, "create"), _asked(runs, "create")),
        small=True,
    ),
    ActivityThreshold(
        name="share of lists, existence checks and deletions that succeed",
        reason="only answered lists and deletions can be judged",
        least=0.4,
        measure=lambda runs: (_ok(runs, *_READS), _asked(runs, *_READS)),
    ),
    ActivityThreshold(
        name="share of runs with a fault",
        reason="without faults only the normal path is judged",
        least=0.5,
        measure=lambda runs: (runs.with_fault, _of(runs.made)),
    ),
    ActivityThreshold(
        name="share of runs with a server in which one was killed",
        reason="durability is judged by what is stored after a kill",
        least=0.03,
        measure=lambda runs: (_of(runs.deaths, "/server", _SERVED), _of(runs.made, places=_SERVED)),
        modes=("timeline",),
    ),
    ActivityThreshold(
        name="completed commits per run of writes",
        reason="reconcile, sweep and rows are judged at commits",
        least=0.5,
        measure=lambda runs: (_ok(runs, "commit"), _of(runs.made, "writes")),
    ),
    ActivityThreshold(
        name="share of runs of writes in which a driver was killed",
        reason="rollbacks are judged by what a dead driver left behind",
        least=0.15,
        measure=lambda runs: (_of(runs.deaths, "/writes/driver"), _of(runs.made, "writes")),
    ),
)


def too_few(done: float, due: float) -> bool:
    """Whether a count is too low to be chance: a Poisson count of the mean `due` is hardly ever as low.

    Chernoff's bound: it is at most `done` with a probability of exp(done - due - done log(done / due)) or less.
    """
    return done < due and due - done + (done * log(done / due) if done else 0.0) >= LUCK


def below_thresholds(statistics: Statistics, layout: str) -> tuple[CoverageGap, ...]:
    """A gap for each threshold that a campaign missed; none about guarantees that never applied."""
    gaps = []
    for threshold in THRESHOLDS:
        done, of = threshold.measure(statistics)
        enough = statistics.runs >= (CREATES_LEAST if threshold.small else RUNS_LEAST)
        if enough and too_few(done, threshold.least * of):
            figures = f"{done / of:.2f}, required {threshold.least:g}"
            why = f"{threshold.name}: {figures} ({threshold.reason})"
            gaps.append(CoverageGap(sentence=why, modes=threshold.modes))
    places = sorted({kind.rpartition("/")[0] for kind in statistics.made}) if layout == "hudi" else []
    for place in places:
        made = _of(statistics.made, places=(f"{place}/",))
        mode, storage = place.split("/")
        gaps += _seldom_judged(statistics, mode, storage, made)
    return tuple(gaps)


def _seldom_judged(statistics: Statistics, mode: str, storage: str, made: int) -> Iterator[CoverageGap]:
    for guarantee in GUARANTEES:
        least, judged = guarantee.judged_least, statistics.judged_in(guarantee.id, mode, storage)
        if least is not None and judged is not None and too_few(judged, least * made):
            yield CoverageGap(
                sentence=f"{guarantee.id} was judged {judged} times in {made} runs in {mode} mode on {storage},"
                f" required {least:g} per run",
                guarantees=(guarantee.id,),
                modes=(mode,),
                storages=(storage,),
            )


class CoverageGoals(NamedTuple):
    """The coverage goals that a campaign reached and missed.

    counts: how often.
    gaps: goals that were missed although they were expected.
    too_rare: names of goals that were missed and need not have been reached.
    not_applicable: those that are not goals of such a system, with the reason.
    deciding: all others.
    """

    counts: dict[str, int]
    gaps: tuple[CoverageGap, ...]
    too_rare: tuple[str, ...]
    not_applicable: dict[str, str]
    deciding: tuple[Deciding, ...]


def reached(
    statistics: Statistics, combinations: Iterable[tuple[str, str]], system: System, write_plans: bool
) -> CoverageGoals:
    """The coverage goals that a campaign reached and missed, of those that its modes, storages and system allow.

    write_plans: whether the campaign made only plans of writes.
    """
    pairs = tuple(combinations)
    kinds = (WRITES,) if write_plans else (OPERATIONS, WRITES)
    counts: dict[str, int] = {}
    gaps: list[CoverageGap] = []
    too_rare: list[str] = []
    not_applicable: dict[str, str] = {}
    deciding: list[Deciding] = []
    for goal in GOALS:
        places = [pair for pair in pairs if any(goal.applies(*pair, kind) for kind in kinds)]
        if not places:
            continue
        times, looked = goal.times(statistics), goal.eligible_runs(statistics.looked)
        expected = goal.expected(statistics.looked, system.layout != "hudi")
        if why := goal.why_not(system):
            not_applicable[goal.name] = why
            continue
        mode = goal.modes[0] if len(goal.modes) == 1 else ""
        deciding.append(
            Deciding(name=goal.name, guarantees=goal.guarantees, mode=mode, tried=looked, met=times, expected=expected)
        )
        if times:
            counts[goal.name] = times
        elif expected < SURE:
            too_rare.append(goal.name)
        else:
            gaps.append(
                CoverageGap(
                    sentence=f"{goal.name}: {goal.sentence}"
                    f" (0 of {looked} sampled runs, expected at least {expected:.0f})",
                    guarantees=goal.guarantees,
                    modes=tuple(sorted({mode for mode, _ in places})),
                    storages=tuple(sorted({storage for _, storage in places})),
                )
            )
    return CoverageGoals(counts, tuple(gaps), tuple(too_rare), not_applicable, tuple(deciding))
