"""A campaign in the simulated world: pieces explored by one process or several, added up, and what broke made small.

Runs go round the modes and storages asked for; one plan in `WRITES_EVERY` is of writes, the others of operations.
One run in `RECHECK_EVERY`, and every new kind of failure, is run again and must give the same history, some of them in
another process as well; a system that does not is reported as not deterministic, and nothing about it can be believed.
One turn in `LOOK_EVERY` is looked at for what had to be reached (reached.py) and where faults struck (cells.py); all of
them are held against the least that must happen (floors.py).

A campaign ends with its seconds or with its number of runs. With a number and no seconds it is a function of the seed:
nothing in it looks at a clock, and pieces are merged in their order, however many processes explored them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from marker_sim.campaign.coverage import canary
from marker_sim.campaign.coverage.activity_thresholds import below_thresholds
from marker_sim.campaign.coverage.determinism_check import differ_elsewhere, digest
from marker_sim.campaign.coverage.fault_matrix import fault_rows
from marker_sim.campaign.coverage.goals import reached
from marker_sim.campaign.pieces import (
    ELSEWHERE,
    PIECE,
    Broken,
    Kind,
    Piece,
    PieceResult,
    SearchSettings,
    collected_by_hand,
    explore,
)
from marker_sim.campaign.result import Campaign, Canary, Failure, Reruns
from marker_sim.campaign.runs import MODES_AGREE, execute, findings_of, promised_breach, served
from marker_sim.campaign.statistics import BOTH, Statistics
from marker_sim.campaign.tasks import DESK, Shrinking, do
from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import FaultKind, drawable
from marker_sim.history import History
from marker_sim.judges.baselines.baseline import Known
from marker_sim.judges.promises.profiles import Profile
from marker_sim.loading import load_system
from marker_sim.mutants.load import load_mutant
from marker_sim.mutants.mutant import Mutant
from marker_sim.plan import Plan
from marker_sim.search.shrinking.shrinker import RUNS_MAX
from marker_sim.system import System
from marker_sim.worker_pool import WorkerPool, in_order, workers

PROGRESS_EVERY_S = 2.0
# Of a budget of seconds, for making small what was found; nothing found, nothing kept back.
SHRINK_SHARE = 0.2
SHRINK_MAX_S = 10.0
SHRINK_MIN_S = 6.0
# The same of a number of runs.
SHRINK_RUNS = 2_000
CANARY_SHARE = 0.05
CANARY_MIN_S = 10.0
RUNS_FOR_REACHED = 1_500  # The rarest kind strikes about once in 85 runs.
ELSEWHERE_MIN_S = 20.0
_NO_END = 1 << 62
NOT_DETERMINISTIC = "the same plan gave a different history: the system under test is not deterministic"


@dataclass(slots=True, kw_only=True)
class _SimulatedSearch:
    """What a campaign has seen so far, added up in the order of its runs."""

    sut: str
    system: System
    settings: SearchSettings
    progress: Callable[[str], None]
    blame: Callable[[Exception], str] | None = None
    began: float = field(default_factory=time.monotonic)
    statistics: Statistics = field(default_factory=Statistics)
    found: dict[Kind, Broken] = field(default_factory=dict)
    small: dict[Kind, Broken | None] = field(default_factory=dict)
    last: History | None = None
    steps: int = 0
    again: list[Plan] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    passing_again: int = 0
    failures_again: int = 0
    differences: int = 0
    elsewhere: int = 0
    unsupported: set[tuple[str, str]] = field(default_factory=set)
    planted: Canary | None = None
    trouble: str = ""
    shown: float = 0.0

    def merge(self, seen: PieceResult) -> None:
        """Add the next piece; raises what ended it early."""
        self.statistics.merge(seen.statistics)
        self.steps += seen.steps
        self.last = seen.last or self.last
        self.unsupported |= seen.unsupported
        new = {kind: broken for kind, broken in seen.found.items() if kind not in self.found}
        self.found |= new
        failing = {broken.number: broken for kind, broken in new.items() if kind[1] != BOTH}
        for number in sorted({*seen.rechecked, *failing}):
            self._recheck(number, seen, failing.get(number))
        if seen.interrupted:
            raise KeyboardInterrupt
        if seen.error is not None:
            raise seen.error
        self._show()

    def _recheck(self, number: int, seen: PieceResult, broken: Broken | None) -> None:
        """Count a run that was made again; one that fails as none did is made again now, if it was not."""
        again = seen.rechecked.get(number)
        if broken is not None and again is None:
            self.differences += execute(broken.plan, self.system)[0].events != broken.history.events
        self.differences += again is not None and again.differs
        self.failures_again += broken is not None
        self.passing_again += broken is None
        made = digest(broken.history) if broken is not None else again.digest if again is not None else ""
        if made and len(self.again) < ELSEWHERE:
            self.again.append(broken.plan if broken is not None else again.plan)  # type: ignore[union-attr]
            self.digests.append(made)

    def _show(self) -> None:
        now = time.monotonic()
        if now - self.shown > PROGRESS_EVERY_S:
            self.shown = now
            rate = self.steps / (now - self.began)
            kinds = len(self.found)
            self.progress(f"{self.statistics.runs} runs, {rate:,.0f} judged steps/s, {kinds} kinds of violation")


def run_simulated(
    *,
    sut: str,
    modes: tuple[str, ...],
    storages: tuple[str, ...],
    seed: int,
    guarantees: frozenset[str] | None,
    profile: Profile,
    progress: Callable[[str], None],
    budget_s: float = math.inf,
    runs_max: int | None = None,
    first: int = 0,
    shrinking: bool = True,
    canaries: bool = True,
    jobs: int = 1,
    stop_at_first: bool = False,
    baseline: frozenset[Known] | None = None,
    blame: Callable[[Exception], str] | None = None,
) -> Campaign:
    """Search for violations for `budget_s` seconds or `runs_max` plans; UsageError when the system cannot be loaded.

    first: the turn of the seed to begin with. shrinking: whether failing plans are made small. canaries: whether one is
    let go first; a piece of a larger campaign does neither, nor compares runs with another process. jobs: processes.
    stop_at_first: at the first violation that is not in the baseline. blame: stores an exception that nobody expected
    and says so in a sentence; without it such a one is raised. Ctrl-C ends it early with what was found so far
    (`Campaign.interrupted`), and so does what goes wrong (`Campaign.trouble`) once something was run.
    """
    system = load_system(sut)
    places = tuple(served_combinations(system, sut, modes, storages))
    settings = SearchSettings(
        places=places,
        seed=seed,
        guarantees=guarantees,
        profile=profile,
        stop_at_first=stop_at_first,
        baseline=baseline,
    )
    search = _SimulatedSearch(sut=sut, system=system, settings=settings, progress=progress, blame=blame)
    begin = first * len(places)
    numbers = range(begin, _NO_END if runs_max is None else begin + runs_max)
    interrupted, share = False, SHRINK_SHARE if shrinking else 0.0
    try:
        with collected_by_hand(), workers(DESK, jobs) as pool:
            _explore_and_note(search, pool, numbers, budget_s, share, canaries)
            if shrinking:
                _shrink_all(search, pool, *_limits(search, budget_s, runs_max))
        if canaries and budget_s >= ELSEWHERE_MIN_S and not search.trouble:
            _compare_elsewhere(search)
    except KeyboardInterrupt:
        interrupted = True
    except HarnessError as error:
        if not search.statistics.runs:
            raise
        search.trouble = search.trouble or str(error)
    search.statistics.leave_out(search.unsupported)
    return _campaign_of(search, interrupted, _unserved(system, modes, storages))


def _campaign_of(search: _SimulatedSearch, interrupted: bool, unserved: list[str]) -> Campaign:
    unsupported = (
        f"{mode} mode on {storage}: the system needs what that storage does not offer"
        for mode, storage in search.unsupported
    )
    return Campaign(
        sut=search.sut,
        sut_version=search.system.version,
        seed=search.settings.seed,
        duration_s=time.monotonic() - search.began,
        runs=search.statistics.runs,
        steps=search.steps,
        statistics=search.statistics,
        failures=_failures(search),
        last=search.last,
        **_met(search),
        left_out=tuple(sorted((*unserved, *unsupported))),
        interrupted=interrupted,
        trouble=search.trouble,
        canary=search.planted,
    )


def _explore_and_note(
    search: _SimulatedSearch, pool: WorkerPool | None, numbers: range, budget_s: float, share: float, canaries: bool
) -> None:
    """Explore, after the canary; what goes wrong once something was run is a note, for what was found counts."""
    try:
        if canaries:
            _plant(search, budget_s)
        _explore_all(search, pool, numbers, budget_s, share)
    except Exception as error:
        known = isinstance(error, HarnessError)
        if not search.statistics.runs or isinstance(error, UsageError) or (search.blame is None and not known):
            raise
        search.trouble = str(error) if known or search.blame is None else search.blame(error)


def _plant(search: _SimulatedSearch, budget_s: float) -> None:
    """Let a canary go, for a share of the budget at most."""
    settings = search.settings
    drawn = canary.draw(settings.seed, settings.places, settings.guarantees, settings.profile)
    if drawn is not None:
        until = search.began + max(CANARY_MIN_S, budget_s * CANARY_SHARE)
        search.planted = let_go(*drawn, settings.seed, settings.profile, until)


def let_go(mutant: Mutant, place: canary.CanaryPlace, seed: int, profile: Profile, deadline: float) -> Canary:
    """Hunt a canary as the system under test is hunted, until it is caught."""
    asked = frozenset({mutant.kills})
    settings = SearchSettings(places=(place,), seed=seed, guarantees=asked, profile=profile, stop_at_first=True)
    piece = Piece(settings=settings, first=0, count=canary.PLANS_MAX, until=deadline)
    seen = explore(piece, load_mutant(mutant))
    if seen.interrupted:
        raise KeyboardInterrupt
    if seen.error is not None:
        raise seen.error
    return Canary(mutant=mutant.name, guarantee=mutant.kills, plans=seen.statistics.runs, caught=bool(seen.found))


def _explore_all(
    search: _SimulatedSearch, pool: WorkerPool | None, numbers: range, budget_s: float, share: float
) -> None:
    """Explore piece by piece; of the seconds, a share to make failures small is kept back once there are any."""

    def until() -> float:
        return search.began + budget_s - (share * budget_s if search.found else 0.0)

    def pieces() -> Iterator[tuple[str, Piece]]:
        for start in range(numbers.start, numbers.stop, PIECE):
            if time.monotonic() > until():
                return
            count = min(PIECE, numbers.stop - start)
            known = frozenset(search.found)
            yield search.sut, Piece(settings=search.settings, first=start, count=count, until=until(), known=known)

    for seen in in_order(pieces(), lambda task: do(task, search.system), pool):
        search.merge(seen)
        if seen.stopped:
            return


def _limits(search: _SimulatedSearch, budget_s: float, runs_max: int | None) -> tuple[float, int]:
    """For how many seconds and runs the first failure of each guarantee may be made small."""
    kinds = max(1, len({kind[0] for kind in search.found}))
    if budget_s == math.inf:
        runs = SHRINK_RUNS + int(SHRINK_SHARE * (runs_max or 0))
        return math.inf, min(RUNS_MAX, runs // kinds)
    left_s = max(SHRINK_MIN_S, search.began + budget_s - time.monotonic())
    return min(SHRINK_MAX_S, left_s / kinds), RUNS_MAX


def _shrink_all(search: _SimulatedSearch, pool: WorkerPool | None, seconds: float, runs: int) -> None:
    """One failure of each kind; the first of each guarantee is shrunk, the others would mostly say the same again."""
    first: dict[str, Kind] = {}
    for kind in search.found:
        first.setdefault(kind[0], kind)
    chosen, profile = list(first.values()), search.settings.profile

    def tasks() -> Iterator[tuple[str, Shrinking]]:
        for kind in chosen:
            plan = search.found[kind].plan
            search.progress(f"shrinking {kind[0]} in {kind[1]} mode on {kind[2]}, {plan.entries} entries")
            yield search.sut, Shrinking(kind=kind, plan=plan, profile=profile, seconds=seconds, runs=runs)

    smaller = in_order(tasks(), lambda task: do(task, search.system), pool)
    for kind, plan in zip(chosen, smaller, strict=True):
        if plan != search.found[kind].plan:
            search.small[kind] = _as_small(search, kind, plan)


def _as_small(search: _SimulatedSearch, kind: Kind, plan: Plan) -> Broken | None:
    """What breaks in a shrunk plan; None when it broke the promise only sometimes."""
    history, findings = findings_of(plan, search.system, kind[0])
    shown = (promised_breach(finding, plan, search.settings.profile, kind[3]) for finding in findings)
    breach = next((breach for breach in shown if breach is not None), None)
    return None if breach is None else Broken(search.found[kind].number, plan, history, breach)


def _failures(search: _SimulatedSearch) -> tuple[Failure, ...]:
    """What was found, the shortest plan first; what could not be made small as it was seen."""
    failures = []
    for kind, broken in search.found.items():
        shown = search.small.get(kind) or broken
        failures.append(
            Failure(
                guarantee=kind[0],
                message=shown.breach.message,
                evidence=shown.breach.evidence,
                history=shown.history,
                plan=shown.plan,
                seed=broken.plan.seed,
                entries_before=broken.plan.entries,
                mode=kind[1],
                cause=kind[3],
            )
        )
    return tuple(sorted(failures, key=lambda failure: failure.plan.entries if failure.plan else 0))


def _compare_elsewhere(search: _SimulatedSearch) -> None:
    """Compare some runs with another process."""
    search.elsewhere, differences = differ_elsewhere(search.sut, search.again, search.digests)
    search.differences += differences


def _met(search: _SimulatedSearch) -> dict[str, Any]:
    """What a campaign says of itself: what was due and not met, where faults struck, how much happened."""
    places, layout = search.settings.places, search.system.layout
    met = reached(search.statistics, places, layout, search.settings.guarantees == frozenset({MODES_AGREE}))
    search.statistics.reached.update(met.counts)
    gaps = (*met.gaps, *below_thresholds(search.statistics, layout))
    unsteady = (NOT_DETERMINISTIC,) if search.differences else ()
    unmet = _faults_unmet(search)
    due = search.statistics.runs >= RUNS_FOR_REACHED
    return {
        "not_reached": (*unsteady, *(unmet if due else ()), *(gap.sentence for gap in gaps)),
        "gaps": gaps,
        "too_rare": met.too_rare if due else (*unmet, *met.too_rare),
        "fault_rows": fault_rows(search.statistics, places),
        "reruns": Reruns(
            passing=search.passing_again,
            failures=search.failures_again,
            elsewhere=search.elsewhere,
            differences=search.differences,
        ),
    }


def _unserved(system: System, modes: tuple[str, ...], storages: tuple[str, ...]) -> list[str]:
    return [
        f"{mode} mode on {storage}: the system has no factory for the markers that are chosen there"
        for mode in modes
        for storage in storages
        if system.factory(mode) and not served(system, mode, storage)
    ]


def served_combinations(
    system: System, sut: str, modes: tuple[str, ...], storages: tuple[str, ...]
) -> list[tuple[str, str]]:
    """The modes and storages that a system has factories for; UsageError when there are none."""
    combinations = [(mode, storage) for mode in modes for storage in storages if served(system, mode, storage)]
    if not combinations:
        raise UsageError(f"{sut} has no factory for {' or '.join(modes)} markers on {', '.join(storages)}; give it one")
    return combinations


def _faults_unmet(search: _SimulatedSearch) -> tuple[str, ...]:
    """Kinds of fault that are possible and never struck."""
    declared = {kind.value for pair in search.settings.places for kind in drawable(*pair)}
    if search.system.layout == "names":
        declared.discard(FaultKind.TYPE_DAMAGED.value)  # Type files are Hudi's; others have none to damage.
    return tuple(f"fault {name}" for name in sorted(declared - set(search.statistics.faults)))
