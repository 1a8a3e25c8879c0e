"""The runs of a campaign that are plans of a seed: run piece by piece in worker processes, and shrunk.

Runs go round the modes and storages asked for, without those in which a single call of the system needs what the
storage does not offer; one plan in `WRITES_EVERY` is of writes, the others of operations.
One run in `RECHECK_EVERY`, and every new kind of failure, is run again and must give the same history, some of them in
another process as well; otherwise the system is reported as not deterministic, and its results are not reliable.
The first turns, and then one in `LOOK_EVERY`, are looked at for coverage goals (goals.py) and where faults struck
(fault_matrix.py); all of them are compared with the activity thresholds (gaps.py).

With a number of runs and no seconds it is a function of the seed: it reads no clock, and pieces are merged in their
order for any number of processes.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from marker_sim.campaign.coverage import canary
from marker_sim.campaign.coverage.fault_matrix import fault_rows
from marker_sim.campaign.coverage.gaps import below_thresholds, reached
from marker_sim.campaign.coverage.goals import SURE
from marker_sim.campaign.pieces import (
    ELSEWHERE,
    PIECE,
    Piece,
    PieceResult,
    SearchSettings,
    SearchState,
    collect_by_hand,
    collected_by_hand,
    explore,
)
from marker_sim.campaign.runs import (
    MODES_AGREE,
    NO_FACTORY,
    digest,
    execute,
    lacking,
    lacks,
    reusing,
    same_again,
)
from marker_sim.campaign.sources.swarm import Swarm
from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind, drawable
from marker_sim.judges.promises.profiles import Profile
from marker_sim.mutants import Mutant
from marker_sim.mutants.load import load_mutant
from marker_sim.outcome.failure import NONE_SMALLER, Failure, Kind, stories
from marker_sim.outcome.result import Campaign, Canary
from marker_sim.outcome.statistics import BOTH
from marker_sim.plan import Plan
from marker_sim.search.shrinking import RUNS_MAX
from marker_sim.surroundings.worker_pool import Keeper, TaskPool, WorkerPool, in_order, workers
from marker_sim.system import System
from marker_sim.targets.python import LoadedTarget, served, served_places, try_every_call
from marker_sim.targets.table import parse_target

PROGRESS_EVERY_S = 0.5
# Share of a budget in seconds that is reserved for shrinking after the first failure.
SHRINK_SHARE = 0.2
# Of what decides a guarantee, which must be met before it holds; a number of runs is the user's own measure.
DECIDED_SHARE = 0.5
SHRINK_MAX_S = 10.0
SHRINK_MIN_S = 6.0
# The same for a budget in runs.
SHRINK_RUNS = 2_000
OTHERS_MAX = 4  # Failures shrunk besides the first of each guarantee.
CANARY_SHARE = 0.05
CANARY_MIN_S = 10.0
FAULT_ONE_IN = 120  # As `one_in` of a goal, margin of two: the rarest kind in its rarest place.
ELSEWHERE_MIN_S = 20.0
_NO_END = 1 << 62
NOT_DETERMINISTIC = "the same plan gave a different history: the system under test is not deterministic"
DROPPED = "they were made on such a storage, of which a rare call showed what it lacks"
Task = tuple[str, Callable[..., Any]]  # The name of a system, and what is done with it, as `system`.


class PlannedRuns(Keeper):
    """The plans of one campaign. A context manager that starts and ends the worker processes."""

    def __init__(self, search: SearchState, system: System) -> None:
        super().__init__()
        request = search.request
        self._search, self._request, self._system = search, request, system
        asked = served_places(system, request.modes, request.storages)
        tried = {place: lacking(system, try_every_call(system, *place)) for place in asked}
        self._unsupported = {place: why for place, why in tried.items() if why}
        self._settings = SearchSettings(
            places=tuple(place for place in asked if not tried[place]) or asked,
            seed=request.seed,
            guarantees=request.guarantees,
            profile=request.profile,
            stop_at_first=request.stop_at_first,
            baseline=request.baseline,
            listing=request.listing,
        )
        self._canary: Canary | None = None
        self._again: list[Plan] = []
        self._digests: list[str] = []
        self._shown = 0.0
        self._dropped = 0  # Runs in places that turned out to lack something.
        self._until = math.inf  # Of shrinking.

    def __enter__(self) -> PlannedRuns:
        with ExitStack() as stack:
            stack.enter_context(collected_by_hand())
            self._pool: TaskPool = stack.enter_context(workers(on_own_system, self._request.jobs, self._do))
            self._stack = stack.pop_all()
        return self

    @property
    def worth_keeping(self) -> bool:
        """Whether there is anything to report when the campaign ends early."""
        return self._search.statistics.runs > 0

    def pieces(self) -> Iterator[PieceResult]:
        """The results of the plans, in their order; a canary is hunted before the first one."""
        if self._request.canaries:
            self._plant()
        yield from in_order(self._tasks(), self._pool)

    def merged(self, piece: PieceResult, new: dict[Kind, Failure]) -> None:
        """Take in a counted piece: check repeated runs and show the progress. new: new kinds of violation."""
        self._unsupported = {**piece.unsupported, **self._unsupported}
        self._dropped += piece.left_out
        failing = {broken.number: broken for kind, broken in new.items() if kind[1] != BOTH}
        for number in sorted({*piece.rechecked, *failing}):
            self._recheck(number, piece, failing.get(number))
        now, search = time.monotonic(), self._search
        if now - self._shown > PROGRESS_EVERY_S:
            self._shown = now
            search.progress(search.line("runs", "steps"))

    def shrink(self) -> None:
        """Shrink the first failure of each guarantee, and of those that share no cause with them, a few others.
        Of what a baseline does not have, the first of each cause, because a small plan shows whether it is new.

        The small plan of another one mostly breaks what one of the first does, and shows that it has the same defect.
        """
        if not (self._request.shrinking and self._search.found):
            return
        first: dict[tuple[str, ...], Kind] = {}
        for kind in self._search.found:
            new = self._request.baseline and not any(each.covers(kind) for each in self._request.baseline)
            first.setdefault(kind[::3] if new else kind[:1], kind)
        self._until = max(self._search.began + self._request.budget_s, time.monotonic() + SHRINK_MIN_S)
        self._shrink_each(first[key] for key in sorted(first, key=len, reverse=True))
        others = [story[0].kind for story in stories(self._search.failures()) if story[0].rank[0]]
        self._shrink_each(others[:OTHERS_MAX])

    def _shrink_each(self, kinds: Iterable[Kind]) -> None:
        """Shrink one failure after the other; those for which no time is left stay as they are."""
        from marker_sim.campaign.simulated_failure import smaller

        search = self._search
        plans = {kind: plan for kind in kinds if (plan := search.found[kind].plan) is not None}

        def tasks() -> Iterator[Task]:
            for done, (kind, plan) in enumerate(plans.items()):
                seconds, runs = self._limits(len(plans), done)
                if seconds <= 0:
                    return
                which = f"{kind[0]} ({done + 1} of {len(plans)}) in {kind[1]} mode on {kind[2]}"
                search.progress(f"shrinking {which}, {plan.entries} entries")
                do = partial(smaller, kind, plan, profile=self._request.profile, budget_s=seconds, runs_max=runs)
                yield self._request.target.sut, do

        shrunk = in_order(tasks(), self._pool)
        for kind, small in zip(plans, shrunk, strict=False):
            if small is not None and small.plan != plans[kind]:
                search.keep(kind, small)
                search.large[kind] = ""
            else:
                search.large[kind] = NONE_SMALLER
            rest = f"the first failure of {kind[0]} was, in {kind[1]} mode on {kind[2]}"
            alike = (each for each in search.found if each[0] == kind[0] and each != kind)
            search.large |= {each: rest for each in alike if not search.found[each].entries_before}

    def resumes(self) -> bool:
        """Never: a share of the time is for shrinking."""
        return False

    def check(self) -> None:
        """Compare some runs with the same plans in another process."""
        request = self._request
        elsewhere = not isinstance(request.target, LoadedTarget)
        if elsewhere and request.canaries and request.budget_s >= ELSEWHERE_MIN_S and not self._search.trouble:
            times, differences = differ_elsewhere(request.target.sut, self._again, self._digests)
            statistics = self._search.statistics
            statistics.reruns["elsewhere"] += times
            statistics.differences += differences

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result: coverage goals missed, where faults struck, how much happened."""
        statistics = campaign.statistics
        places = tuple(place for place in self._settings.places if place not in self._unsupported)
        statistics.leave_out(self._unsupported.keys())
        met = reached(statistics, places, self._system, self._settings.guarantees == frozenset({MODES_AGREE}))
        dict.update(statistics.reached, met.counts)  # A goal counts where it applies.
        gaps = (*met.gaps, *below_thresholds(statistics, self._system.layout))
        unsteady = (NOT_DETERMINISTIC,) if statistics.differences else ()
        unmet = self._faults_unmet()
        dropped = (f"{self._dropped:,} runs: {DROPPED}",) if self._dropped else ()
        return replace(
            campaign,
            sut_version=self._system.version,
            not_reached=(*unsteady, *(name for name, due in unmet.items() if due), *(gap.sentence for gap in gaps)),
            gaps=gaps,
            deciding=met.deciding,
            floor=DECIDED_SHARE if self._request.runs is None else 0.0,
            too_rare=(*(name for name, due in unmet.items() if not due), *met.too_rare),
            not_applicable=met.not_applicable,
            fault_rows=fault_rows(statistics, places),
            left_out=(*self._left_out(), *dropped),
            canary=self._canary,
            listed=tuple(self._search.listed),
        )

    def _do(self, task: Task) -> Any:
        return task[1](system=self._system)

    def _tasks(self) -> Iterator[Task]:
        """The tasks of the search, piece by piece; once there are failures, a share of the time is for shrinking."""
        search, request = self._search, self._request
        begin = request.first * len(self._settings.places)
        end = _NO_END if request.runs is None else begin + request.runs
        share = SHRINK_SHARE if request.shrinking else 0.0
        size = PIECE if self._system.outside is None else PIECE // 4  # Programs are slow, and progress is shown.

        def until() -> float:
            return search.began + request.budget_s * (1.0 - (share if search.found else 0.0))

        for start in range(begin, end, size):
            if time.monotonic() > until():
                return
            count, known = min(size, end - start), frozenset(search.found)
            piece = Piece(settings=self._settings, first=start, count=count, until=until(), known=known)
            yield request.target.sut, partial(explored, piece)

    def _plant(self) -> None:
        """Hunt a canary, for a share of the budget, or for CANARY_MIN_S where that is longer."""
        settings = self._settings
        drawn = canary.draw(settings.seed, settings.places, settings.guarantees, settings.profile)
        if drawn is not None:
            until = self._search.began + max(CANARY_MIN_S, self._request.budget_s * CANARY_SHARE)
            self._canary = hunt_canary(*drawn, settings.seed, settings.profile, until)

    def _recheck(self, number: int, piece: PieceResult, broken: Failure | None) -> None:
        """Count a repeated run; a failing run that was not repeated yet is repeated now."""
        again, statistics = piece.rechecked.get(number), self._search.statistics
        plan, made = again or (None, "")
        if broken is not None:
            plan, made = broken.plan, digest(broken.history)
            if again is None and plan is not None:
                statistics.differences += not same_again(plan, broken.history, self._system, False)
        statistics.reruns["passing" if broken is None else "failures"] += 1
        if made and plan is not None and len(self._again) < ELSEWHERE:
            self._again.append(plan)
            self._digests.append(made)

    def _limits(self, failures: int, done: int = 0) -> tuple[float, int]:
        """The seconds and runs for shrinking one of so many failures, of which some are done; no seconds when time is
        over.
        """
        request = self._request
        if request.budget_s == math.inf:
            runs = SHRINK_RUNS + int(SHRINK_SHARE * (request.runs or 0))
            return math.inf, min(RUNS_MAX, runs // max(1, failures))
        rounds = math.ceil((failures - done) / request.jobs)
        return min(SHRINK_MAX_S, (self._until - time.monotonic()) / rounds), RUNS_MAX

    def _left_out(self) -> tuple[str, ...]:
        """The modes and storages in which the system cannot be judged, with the reason."""
        unserved = (
            f"{mode} mode on {storage}: {NO_FACTORY}"
            for mode in self._request.modes
            for storage in self._request.storages
            if self._system.factory(mode) and not served(self._system, mode, storage)
        )
        unsupported = (
            f"{mode} mode on {storage}: {lacks(what)}" for (mode, storage), what in self._unsupported.items()
        )
        return tuple(sorted((*unserved, *unsupported)))

    def _faults_unmet(self) -> dict[str, bool]:
        """The possible fault kinds that never struck; each with whether chance cannot explain that in so many runs."""
        statistics, able = self._search.statistics, Counter[FaultKind]()
        for mode, storage in self._settings.places:
            for plans in ("operations", "writes"):
                kinds = drawable(mode, storage, writes=plans == "writes")
                able.update(dict.fromkeys(kinds, statistics.made[f"{mode}/{storage}/{plans}"]))
        if self._system.layout == "names":
            del able[FaultKind.TYPE_DAMAGED]  # Only Hudi's format has type files.
        missed = sorted((kind.value, runs) for kind, runs in able.items() if kind.value not in statistics.faults)
        return {f"fault {name}": runs >= SURE * FAULT_ONE_IN for name, runs in missed}


def hunt_canary(mutant: Mutant, place: tuple[str, str], seed: int, profile: Profile, deadline: float) -> Canary:
    """The result of hunting a canary as the system under test is hunted: until it is caught, PLANS_MAX or a time."""
    asked = frozenset({mutant.kills})
    settings = SearchSettings(places=(place,), seed=seed, guarantees=asked, profile=profile, stop_at_first=True)
    piece = Piece(settings=settings, first=0, count=canary.PLANS_MAX, until=deadline)
    seen = explore(piece, Swarm(load_mutant(mutant), settings))
    seen.raise_error()
    return Canary(mutant=mutant.name, guarantee=mutant.kills, plans=seen.statistics.runs, caught=bool(seen.found))


def differ_elsewhere(sut: str, plans: Sequence[Plan], digests: Sequence[str]) -> tuple[int, int]:
    """How many plans were run in another process, and how many of them gave another history there.

    It has another hash seed: only this shows whether a system depends on the order of a set, or on other properties of
    a process. HarnessError when the process fails.
    """
    if not plans:
        return 0, 0
    other = "4242" if os.environ.get("PYTHONHASHSEED") != "4242" else "1"
    tasks = [(sut, partial(_digest_of, plan)) for plan in plans]
    try:
        with TemporaryDirectory() as folder, WorkerPool(on_own_system, Path(folder), 1, hash_seed=other) as pool:
            found = list(in_order(tasks, pool))
    except Exception as error:  # Of the system too, which did not raise it here.
        raise HarnessError(f"plans could not be run again in another process: {error}") from error
    return len(plans), sum(one != two for one, two in zip(digests, found, strict=True))


def _digest_of(plan: Plan, system: System) -> str:
    with reusing(system, True):
        return digest(execute(plan, system)[0])


def explored(piece: Piece, system: System) -> PieceResult:
    """The result of a piece of the swarm."""
    with reusing(system, True):
        return explore(piece, Swarm(system, piece.settings))


def on_own_system(task: Task) -> Any:
    """The result of a task in a worker process, which loads the system of this name once."""
    return task[1](system=_loaded(task[0]))


@cache
def _loaded(sut: str) -> System:
    system = parse_target(sut).load()
    assert system is not None, "only plans are given to workers"
    collect_by_hand()
    return system
