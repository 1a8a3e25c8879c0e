"""The loop of every search: numbered runs of a source, judged, counted and kept by one rule, piece by piece.

    source ─► NumberedRun ─► PieceResult.take ─► statistics, the first failure of each kind ─► SearchState

A run depends only on its number, not on the process or on earlier results, so pieces merged in the order of their
numbers give what one process would have given.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from marker_sim.campaign.runs import compare_modes, digest, lacking, reusing, same_again
from marker_sim.history import History
from marker_sim.judges import judge, modes_agree
from marker_sim.judges.findings import Finding, by_number
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.failure import NO_TIME, Failure, Kind, failures_in, stories
from marker_sim.outcome.result import RunRow, run_row
from marker_sim.outcome.statistics import BOTH, Statistics
from marker_sim.plan import Plan
from marker_sim.search.shrinking import SMALL
from marker_sim.surroundings.worker_pool import portable
from marker_sim.system import System
from marker_sim.targets.target import CampaignRequest

if TYPE_CHECKING:
    from marker_sim.judges.baselines.baseline import Known

PIECE = 48
RECHECK_EVERY = 20
ANEW_EVERY = 3 * RECHECK_EVERY  # Runs of programs: starting them takes longer than the run.
COLLECT_EVERY = 200
ELSEWHERE = 16  # Number of runs that are repeated in another process.
_DIGESTS = 2 * ELSEWHERE * RECHECK_EVERY


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """The settings that all pieces of a search share.

    places: modes and storages.
    guarantees: None for all.
    stop_at_first: whether a piece ends with its first run that breaks a promise and is not in the baseline.
    listing: whether there is to be a row of each run.
    """

    places: tuple[tuple[str, str], ...]
    seed: int
    guarantees: frozenset[str] | None
    profile: Profile
    stop_at_first: bool = False
    baseline: frozenset[Known] | None = None
    listing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Runs `first` to `first + count` of a source, as far as they begin before `until` on `clock`.

    clock: by default that of all processes.
    known: kinds of violation that earlier pieces found; their first run is not this piece's.
    """

    settings: SearchSettings
    first: int
    count: int
    until: float = math.inf
    clock: Callable[[], float] = time.monotonic
    known: frozenset[Kind] = frozenset()


class NumberedRun(NamedTuple):
    """A run that a source made from a number, ready to be judged.

    number: of the source; place: number and run of its row in tables.
    plan: None where a plan does not determine the run.
    history: None when nothing was run, and `reached` says why.
    steps: of the world.
    pair: the same plan with direct and with timeline-server markers, to compare them (G21).
    look: whether its coverage marks are counted.
    again: whether it is run again, which must give the same history.
    reached: what happened besides, how often.
    findings: of the judges, None where they were not asked yet.
    """

    number: int
    plan: Plan | None
    history: History | None
    steps: int = 0
    place: tuple[int, int] = (0, 0)
    pair: tuple[History, History] | None = None
    look: bool = False
    again: bool = False
    reached: tuple[tuple[str, int], ...] = ()
    findings: tuple[Finding, ...] | None = None


class Source(Protocol):
    """Where numbered runs come from (sources/). system: None for one that is not loaded into this process."""

    @property
    def system(self) -> System | None: ...

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The runs of the numbers from `first` on, made one by one as they are asked for."""
        ...


@dataclass(slots=True, kw_only=True)
class PieceResult:
    """The results of a piece.

    taken: runs that the source made.
    found: the first run of each kind.
    rechecked: by number, the plan of each repeated run, with the digest of its history, "" where it is not needed.
    last: the last history.
    unsupported: modes and storages of runs in which the system needed an operation that the storage lacks, which one;
        left_out: how many runs.
    stopped: at the first violation.
    doubted: a run was not the same again, because a program that played another process before did not forget it.
    listed: a row of each run, when that is wanted.
    error: the reason of an early end, with the runs before it counted.
    """

    statistics: Statistics = field(default_factory=Statistics)
    taken: int = 0
    found: dict[Kind, Failure] = field(default_factory=dict)
    rechecked: dict[int, tuple[Plan, str]] = field(default_factory=dict)
    last: History | None = None
    unsupported: dict[tuple[str, str], str] = field(default_factory=dict)
    left_out: int = 0
    stopped: bool = False
    doubted: bool = False
    listed: list[RunRow] = field(default_factory=list)
    error: Exception | KeyboardInterrupt | None = None

    def take(
        self, run: NumberedRun, settings: SearchSettings | CampaignRequest, system: System | None = None
    ) -> dict[Kind, Failure]:
        """Judge and count a run, keep the first failure of each kind; returns everything that it broke.

        system: what ran it, to run it again and to see what it could not do; None for one outside.
        """
        self.taken += 1
        if run.history is None:
            self._reach(run)
            return {}
        broken = self._take_single(run, run.history, settings, system)
        if run.pair is not None and not any(lacking(system, history) for history in run.pair):
            broken |= self._take_pair(run, *run.pair, settings.profile, system)
        for kind, failure in broken.items():
            self.found.setdefault(kind, failure)
        return broken

    def _take_single(
        self, run: NumberedRun, history: History, settings: SearchSettings | CampaignRequest, system: System | None
    ) -> dict[Kind, Failure]:
        missing = lacking(system, history)
        if missing:
            self.unsupported.setdefault((history.header.mode, history.header.storage), missing)
            self.left_out += 1
            return {}
        findings = judge(history, settings.guarantees) if run.findings is None else run.findings
        self.last = history
        self.statistics.add(history, findings)
        self.statistics.steps += run.steps
        self._reach(run)
        if run.look:
            self.statistics.count_coverage(history)
        if run.plan is not None and settings.listing:
            self.listed.append(run_row(*run.place, run.plan, history, run.steps, findings, settings.profile))
        broken = failures_in(history, findings, settings.profile, run.plan, run.number)
        outside = None if system is None else system.outside
        anew = outside is not None and outside.reused and bool(broken.keys() - self.found.keys())
        if (run.again or anew) and run.plan is not None and system is not None:
            same = same_again(run.plan, history, system, not anew and run.number % ANEW_EVERY != 0)
            self.doubted = self.doubted or (not same and outside is not None and outside.stop_reuse())
            self.statistics.differences += not same
            self.rechecked[run.number] = run.plan, digest(history) if run.number < _DIGESTS else ""
        return broken

    def _take_pair(
        self, run: NumberedRun, first: History, second: History, profile: Profile, system: System | None
    ) -> dict[Kind, Failure]:
        plan, finding = run.plan, modes_agree(first, second)
        assert plan is not None, "a pair is of one plan"
        if finding.breaches and system is not None and system.outside is not None:
            with reusing(system, False):
                first, second, finding = compare_modes(plan, system)
        self.statistics.add_pair(first, second, finding)
        return failures_in(second, (finding,), profile, plan, run.number, BOTH)

    def _reach(self, run: NumberedRun) -> None:
        for name, count in run.reached:
            self.statistics.reached[name] += count

    def raise_error(self) -> None:
        """Raise the error that ended the piece early, if there is one."""
        if self.error is not None:
            raise self.error


def explore(piece: Piece, source: Source) -> PieceResult:
    """Run and judge a piece. Errors are in `error` of the result, unless they end the process."""
    seen, settings = PieceResult(), piece.settings
    try:
        runs = source.runs(piece.first, piece.count)
        while piece.clock() <= piece.until and (run := next(runs, None)) is not None:
            seen.take(run, settings, source.system)
            if seen.doubted:
                return explore(piece, source)
            if settings.stop_at_first and stops(seen.statistics, seen.found, settings):
                seen.stopped = True
                break
            if (piece.first + seen.taken) % COLLECT_EVERY == 0:
                gc.collect()
    except KeyboardInterrupt as error:
        seen.error = error
    except Exception as error:
        seen.error = portable(error)
    seen.found = {kind: failure for kind, failure in seen.found.items() if kind not in piece.known}
    return seen


def worth_shrinking(seen: int) -> bool:
    """Whether the next violation of a kind that occurred `seen` times is shrunk: the 1st, 2nd, 4th, 8th and so on.

    So a frequent defect costs little, and another one of its kind is still found.
    """
    return seen & (seen + 1) == 0


def stops(statistics: Statistics, found: Mapping[Kind, Failure], settings: SearchSettings | CampaignRequest) -> bool:
    """Whether a violation was found that is not in the baseline."""
    if settings.baseline is None or not found:
        return bool(found)
    from marker_sim.judges.baselines.baseline import counts_against

    return counts_against(statistics.rows(settings.profile), settings.baseline, settings.profile)


@contextmanager
def collected_by_hand() -> Iterator[None]:
    """A context in which garbage is collected only on request, and never objects made before it.

    A run makes a few hundred cycles: collecting them in between costs a fifth of the time, walking all loaded modules
    each time a tenth. Objects that other code has excluded before stay excluded afterwards.
    """
    frozen_before = gc.get_freeze_count()
    collect_by_hand()
    try:
        yield
    finally:
        gc.enable()
        if not frozen_before:
            gc.unfreeze()


def collect_by_hand() -> None:
    """Begin `collected_by_hand` for the rest of the process."""
    gc.collect()
    gc.freeze()
    gc.disable()


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
        # What is left would be wrong as soon as a line is shown again.
        budget = "" if request.budget_s == math.inf else f"; budget {request.budget_s:g} s"
        of = "" if request.runs is None else f" of {request.runs:,}"
        rates = rates_of({runs: statistics.runs, steps: statistics.steps}, seconds)
        told = len(stories(self.failures()))
        broken = ", ".join(by_number(kind.guarantee for kind in self.found))
        said = f"{told} stor{'y' if told == 1 else 'ies'} so far: {broken}" if broken else "none violated"
        return f"{statistics.runs:,}{of} {runs}; {rates}; {sum(statistics.faults.values()):,} faults{budget}; {said}"

    def shrinks(self, kind: Kind) -> bool:
        """Whether a failure is made small."""
        return self.request.shrinking and worth_shrinking(self.request.seen.get(kind.place, 0))

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
        )

    def failures(self) -> tuple[Failure, ...]:
        """The failures, shortest plan first."""
        unshrunk = {kind: each.entries > SMALL and self.request.shrinking for kind, each in self.found.items()}
        found = (
            replace(each, large=self.large.get(kind, NO_TIME) if unshrunk[kind] else "")
            for kind, each in self.found.items()
        )
        return tuple(sorted(found, key=lambda failure: failure.entries))


def rates_of(counts: Mapping[str, int], seconds: float) -> str:
    """The rates per second, in words."""
    rates = ((name, count / max(seconds, 0.001)) for name, count in counts.items())
    return ", ".join(f"{rate:,.{0 if rate >= 10 else 1}f} {name}/s" for name, rate in rates)
