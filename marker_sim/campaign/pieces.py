"""A piece of a search: some of its runs, explored by one process, and their results.

Run n is in the place (mode and storage) n modulo the number of places and in turn n divided by it; `plan_seed` makes
the plan of a turn. So a run depends only on its number, not on the process or on earlier results, and pieces merged in
the order of their numbers give what one process would have given.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from marker_sim.campaign.coverage.determinism_check import digest
from marker_sim.campaign.coverage.goals import LOOK_EVERY
from marker_sim.campaign.run_rows import RunRow, run_row
from marker_sim.campaign.runs import MODES_AGREE, comparable, compare_modes, execute
from marker_sim.campaign.servability import cannot_serve, findings_in, lacking
from marker_sim.campaign.statistics import Statistics
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.baselines.baseline import Known, counts_against
from marker_sim.judges.findings import UNEXPLAINED, Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.seeds import plan_seed
from marker_sim.system import System
from marker_sim.targets.target import CampaignRequest, PlayedRun
from marker_sim.worker_pool import portable

PIECE = 48
RECHECK_EVERY = 20
WRITES_EVERY = 3
PAIRS_EVERY = 12
COLLECT_EVERY = 200
ELSEWHERE = 16  # Runs of a campaign that another process makes again.
_DIGESTS = 2 * ELSEWHERE * RECHECK_EVERY

NO_TIME = "there was no time left"
NONE_SMALLER = "no smaller plan was found that breaks it"

Kind = tuple[str, str, str, str]  # Guarantee, mode, storage and cause.


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What all pieces of a search have in common.

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
    """Runs `first` to `first + count`, as far as they begin before `until` (time.monotonic(), that of all processes).

    known: kinds of violation that earlier pieces found; their first run is not this piece's.
    """

    settings: SearchSettings
    first: int
    count: int
    until: float = math.inf
    known: frozenset[Kind] = frozenset()


class Broken(NamedTuple):
    """The first run with a kind of violation. plan: None where a plan does not determine a run."""

    number: int
    plan: Plan | None
    history: History
    breach: Breach


class Story(NamedTuple):
    """What one defect does: the kind of violation that its plan was made small for.

    confirmed: how often that plan fails in real time, "" where once is always.
    """

    kind: Kind
    confirmed: str = ""


class Rechecked(NamedTuple):
    """A run that was repeated.

    digest: of its history, "" where it is not needed.
    differs: whether the history changed.
    """

    plan: Plan
    digest: str
    differs: bool


def first_of_each_kind(
    number: int, plan: Plan | None, history: History, findings: Iterable[Finding], profile: Profile
) -> dict[Kind, Broken]:
    """The first breach of each kind that a profile holds against the system."""
    place, found = history.header, dict[Kind, Broken]()
    for finding in findings:
        for breach in profile.broken_by(finding, place.mode, place.storage):
            kind = (finding.guarantee, place.mode, place.storage, breach.cause)
            found.setdefault(kind, Broken(number, plan, history, breach))
    return found


@dataclass(slots=True, kw_only=True)
class PieceResult:
    """The results of a piece.

    found: the first run of each kind.
    rechecked: by number.
    last: the last history.
    unsupported: modes and storages of runs in which the system needed an operation that the storage lacks, which one.
    stopped: at the first violation.
    listed: a row of each run, when that is wanted.
    error: the reason of an early end, with the runs before it counted.
    """

    statistics: Statistics = field(default_factory=Statistics)
    steps: int = 0
    found: dict[Kind, Broken] = field(default_factory=dict)
    rechecked: dict[int, Rechecked] = field(default_factory=dict)
    last: History | None = None
    unsupported: dict[tuple[str, str], str] = field(default_factory=dict)
    stopped: bool = False
    interrupted: bool = False
    listed: list[RunRow] = field(default_factory=list)
    error: Exception | None = None

    def run(self, number: int, plan: Plan, system: System, settings: SearchSettings, look: bool) -> None:
        """Run and judge one plan; `look`: count its sights."""
        history, steps = execute(plan, system)
        if not self.count(number, plan, history, steps, system, settings):
            return
        if look:
            self.statistics.look(history)
        if number % RECHECK_EVERY == 0:
            made = digest(history) if number < _DIGESTS else ""
            differs = execute(plan, system)[0].events != history.events
            self.rechecked[number] = Rechecked(plan, made, differs)

    def count(
        self, number: int, plan: Plan, history: History, steps: int, system: System, settings: SearchSettings
    ) -> bool:
        """Judge and count the run of a plan; False when the system cannot be judged there."""
        findings = findings_in(history, system, settings.guarantees)
        if not findings:
            self.unsupported.setdefault((plan.mode, plan.storage), lacking(system, history))
            return False
        self.steps += steps
        self.last = history
        self.statistics.add(history, findings)
        self._keep(first_of_each_kind(number, plan, history, findings, settings.profile))
        if settings.listing:
            turn, place = divmod(number, len(settings.places))
            self.listed.append(run_row(turn, place, plan, history, steps, findings, settings.profile))
        return True

    def _keep(self, broken: dict[Kind, Broken]) -> None:
        """Keep the first run of each kind."""
        for kind, each in broken.items():
            self.found.setdefault(kind, each)

    def add_played(
        self, number: int, played: PlayedRun, guarantees: frozenset[str] | None, profile: Profile
    ) -> dict[Kind, Broken]:
        """Judge and count a run that took real time; the first breach in it of each kind."""
        history = played.history
        findings = judge(history, guarantees)
        self.statistics.add(history, findings)
        for name, count in sorted(played.counts.items()):
            self.statistics.reach(name, count)
        self.steps += sum(event.kind == "invoke" for event in history.events)
        self.last = history
        broken = first_of_each_kind(number, played.plan, history, findings, profile)
        self._keep(broken)
        return broken

    def run_pair(self, number: int, plan: Plan, system: System, settings: SearchSettings) -> None:
        """Run a plan in both marker modes and judge that they agree."""
        first, second, finding = compare_modes(plan, system)
        if cannot_serve(system, first) or cannot_serve(system, second):
            return  # Single runs show which storage the system cannot use.
        self.statistics.add_pair(first, second, finding)
        for breach in settings.profile.broken_by(finding, plan.mode, plan.storage):
            kind = (finding.guarantee, "both", plan.storage, breach.cause)
            self.found.setdefault(kind, Broken(number, plan, second, breach))


@dataclass(slots=True, kw_only=True)
class SearchState:
    """The state of one campaign.

    began: time.monotonic().
    found: the first run of each kind of violation.
    small: the shrunk ones; None for one that broke the promise only sometimes.
    large: why others were not made small, or why a shrunk one may become smaller yet.
    stories: the failure that each kind is told with, by what broke in the runs of its small plan.
    trouble: why the kit could not finish, "" when it did.
    listed: a row of each run, when that is wanted.
    """

    request: CampaignRequest
    progress: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    statistics: Statistics = field(default_factory=Statistics)
    steps: int = 0
    found: dict[Kind, Broken] = field(default_factory=dict)
    small: dict[Kind, Broken | None] = field(default_factory=dict)
    large: dict[Kind, str] = field(default_factory=dict)
    stories: dict[Kind, Story] = field(default_factory=dict)
    last: History | None = None
    trouble: str = ""
    listed: list[RunRow] = field(default_factory=list)

    def line(self, runs: str, steps: str) -> str:
        """How far it is. runs, steps: what these are called."""
        statistics, request, seconds = self.statistics, self.request, time.monotonic() - self.began
        left = "" if request.budget_s == math.inf else f"; {left_of(request.budget_s - seconds)}"
        of = "" if request.runs is None else f" of {request.runs:,}"
        rates = rates_of({runs: statistics.runs, steps: self.steps}, seconds)
        causes = {self.story_of(kind).kind[::3] for kind in self.found}
        broken = ", ".join(sorted({kind[0] for kind in self.found}, key=lambda name: int(name[1:])))
        said = f"{len(causes)} cause{'' if len(causes) == 1 else 's'} so far: {broken}" if broken else "none violated"
        return f"{statistics.runs:,}{of} {runs}; {rates}; {sum(statistics.faults.values()):,} faults{left}; {said}"

    def add(self, piece: PieceResult) -> dict[Kind, Broken]:
        """Add the next piece; the kinds of violation that are new with it, or have a plan now."""
        self.statistics.merge(piece.statistics)
        self.steps += piece.steps
        self.last = piece.last or self.last
        self.listed += piece.listed
        known = {kind for kind, broken in self.found.items() if broken.plan is not None}
        new = {
            kind: broken
            for kind, broken in piece.found.items()
            if kind not in known and (kind not in self.found or broken.plan is not None)
        }
        self.found |= new
        return new

    def keep(self, kind: Kind, broken: Broken) -> None:
        """A plan that was made small, unless a smaller one of the same kind is known: losses stand for each other."""
        known = self.small.get(kind)
        if known and known.plan and broken.plan and known.plan.entries < broken.plan.entries:
            return
        self.small[kind] = broken

    def tell(self, kind: Kind, also: Iterable[Kind], confirmed: str = "") -> None:
        """A small plan for `kind` breaks `also` besides: that is one story, unless another was told of them before."""
        for each in (kind, *also):
            if each in self.found:
                self.stories.setdefault(each, Story(kind, confirmed))

    def story_of(self, kind: Kind) -> Story:
        """The story of a kind of violation.

        One that was not made small is told with what broke in the same run, or by the same cause; else by itself.
        """
        if kind in self.stories:
            return self.stories[kind]
        run, cause = self.found[kind].number, kind[3]
        beside = [each for each in self.stories if self.found[each].number == run]
        beside += [each for each in self.stories if each[3] == cause != UNEXPLAINED]
        if beside:
            return self.stories[beside[0]]
        return Story(next(each for each, broken in self.found.items() if broken.number == run))


def rates_of(counts: Mapping[str, int], seconds: float) -> str:
    """How many of each a second, in words."""
    rates = ((name, count / max(seconds, 0.001)) for name, count in counts.items())
    return ", ".join(f"{rate:,.{0 if rate >= 10 else 1}f} {name}/s" for name, rate in rates)


def left_of(seconds: float) -> str:
    """The time left of a budget in words."""
    return f"{seconds / 60:.0f} min left" if seconds >= 600 else f"{max(0.0, seconds):.0f} s left"


def explore(piece: Piece, system: System) -> PieceResult:
    """Run and judge a piece. Errors are in `error` and `interrupted` of the result, unless they end the process."""
    seen, settings = PieceResult(), piece.settings
    try:
        for number in range(piece.first, piece.first + piece.count):
            if time.monotonic() > piece.until:
                break
            _explore_one(seen, number, system, settings)
            if settings.stop_at_first and stops(seen.statistics, seen.found, settings):
                seen.stopped = True
                break
            if number % COLLECT_EVERY == COLLECT_EVERY - 1:
                gc.collect()
    except KeyboardInterrupt:
        seen.interrupted = True
    except Exception as error:
        seen.error = portable(error)
    seen.found = {kind: broken for kind, broken in seen.found.items() if kind not in piece.known}
    return seen


def _explore_one(seen: PieceResult, number: int, system: System, settings: SearchSettings) -> None:
    turn, place = divmod(number, len(settings.places))
    mode, storage = settings.places[place]
    only_pairs = settings.guarantees == frozenset({MODES_AGREE})
    make = make_write_plan if only_pairs or turn % WRITES_EVERY == 1 else make_plan
    plan = make(plan_seed(settings.seed, turn), mode, storage)
    seen.run(number, plan, system, settings, look=turn % LOOK_EVERY == 0)
    pairs = settings.guarantees is None or MODES_AGREE in settings.guarantees
    due = only_pairs or (turn % PAIRS_EVERY == 1 and mode == settings.places[0][0])
    if pairs and due and comparable(plan, system):
        seen.run_pair(number, plan, system, settings)


def stops(statistics: Statistics, found: Mapping[Kind, Broken], settings: SearchSettings | CampaignRequest) -> bool:
    """Whether a violation was found that is not in the baseline."""
    if settings.baseline is None or not found:
        return bool(found)
    return counts_against(statistics.rows(settings.profile), settings.baseline, settings.profile)


@contextmanager
def collected_by_hand() -> Iterator[None]:
    """Collect garbage only on request, and never objects that existed before.

    A run makes a few hundred cycles: collecting them in between costs a fifth of the time, walking all loaded modules
    each time a tenth.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
