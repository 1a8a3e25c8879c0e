"""How much must have happened in a campaign: a quiet run is inconclusive, not green.

Each threshold is a ratio with its reason, at half or less of what correct systems of any shape show, so that a slower
or more cautious system passes and an idle one does not; docs/honesty.md has both figures. A campaign is below a
threshold when chance does not explain it: a system with exactly the ratio misses it in at most one campaign of a
thousand (`LUCK`), one with twice the ratio in one of a million, if counts are independent, as runs are; for clustered
counts (creates, and judgements about them) it is more. A campaign of fewer than `RUNS_LEAST` runs must only have
answered creates; one of fewer than `CREATES_LEAST` has no threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log

from marker_sim.campaign.result import CoverageGap
from marker_sim.campaign.statistics import Statistics
from marker_sim.judges.guarantees import GUARANTEES

RUNS_LEAST = 100
CREATES_LEAST = 20
LUCK = 7.0  # exp(-7): one in 1,097.
_SERVED = ("timeline/s3/", "timeline/local/")  # Elsewhere the reference falls back to direct markers.


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityThreshold:
    """A ratio that must be reached.

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


def _made(statistics: Statistics, plans: str = "") -> int:
    return sum(count for kind, count in statistics.made.items() if kind.endswith(plans))


def _ok(statistics: Statistics, *operations: str) -> int:
    return sum(statistics.operations[name]["ok"] for name in operations if name in statistics.operations)


def _asked(statistics: Statistics, *operations: str) -> int:
    return sum(statistics.operations[name].total() for name in operations if name in statistics.operations)


def _creates_a_run(statistics: Statistics) -> tuple[float, float]:
    return _ok(statistics, "create"), _made(statistics)


def _creates_ok(statistics: Statistics) -> tuple[float, float]:
    return _ok(statistics, "create"), _asked(statistics, "create")


def _reads_ok(statistics: Statistics) -> tuple[float, float]:
    names = ("list", "list-data", "list-log", "exists", "delete")
    return _ok(statistics, *names), _asked(statistics, *names)


def _with_fault(statistics: Statistics) -> tuple[float, float]:
    return statistics.with_fault, _made(statistics)


def _server_deaths(statistics: Statistics) -> tuple[float, float]:
    died = sum(c for kind, c in statistics.deaths.items() if kind.startswith(_SERVED) and kind.endswith("/server"))
    return died, sum(c for kind, c in statistics.made.items() if kind.startswith(_SERVED))


def _commits(statistics: Statistics) -> tuple[float, float]:
    return _ok(statistics, "commit"), _made(statistics, "writes")


def _driver_deaths(statistics: Statistics) -> tuple[float, float]:
    died = sum(count for kind, count in statistics.deaths.items() if kind.endswith("/writes/driver"))
    return died, _made(statistics, "writes")


THRESHOLDS: tuple[ActivityThreshold, ...] = (
    ActivityThreshold(
        name="creates answered per run",
        reason="only answered creates can be lost",
        least=4.0,
        measure=_creates_a_run,
        small=True,
    ),
    ActivityThreshold(
        name="share of creates that succeed",
        reason="a system that refuses most requests keeps every promise trivially",
        least=0.4,
        measure=_creates_ok,
        small=True,
    ),
    ActivityThreshold(
        name="share of lists, existence checks and deletions that succeed",
        reason="only answered lists and deletions can be judged",
        least=0.4,
        measure=_reads_ok,
    ),
    ActivityThreshold(
        name="share of runs with a fault",
        reason="without faults only the normal path is judged",
        least=0.5,
        measure=_with_fault,
    ),
    ActivityThreshold(
        name="share of runs with a server in which one was killed",
        reason="durability is judged by what is stored after a kill",
        least=0.03,
        measure=_server_deaths,
        modes=("timeline",),
    ),
    ActivityThreshold(
        name="completed commits per run of writes",
        reason="reconcile, sweep and rows are judged at commits",
        least=0.5,
        measure=_commits,
    ),
    ActivityThreshold(
        name="share of runs of writes in which a driver was killed",
        reason="rollbacks are judged by what a dead driver left behind",
        least=0.15,
        measure=_driver_deaths,
    ),
)


def too_few(done: float, due: float) -> bool:
    """Whether chance does not explain so few: a Poisson count of the mean `due` is hardly ever as low.

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
        made = sum(count for kind, count in statistics.made.items() if kind.startswith(f"{place}/"))
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
