"""One unit of a stream, done in a worker process (`do`): a JSON-ready dict of counts, and every kind of violation.

runs, steps, judged ...  the counts of `RunCounts`
not_goals               coverage goals that do not apply to the system
goals                   what has to be reached in a night with such units
quiet                   why the unit alone would be inconclusive
sightings               FailureRecord, at most one for each guarantee, mode, storage and cause
trouble                 why the kit could not finish the unit, "" when it did; it is not run again

Failures of servers and of Spark are shrunk there at once, those of real processes in the simulated world.
`ROWS`, a row of each run where that is wanted, is no part of the line: it goes to the tables (parquet.py).
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from marker_sim.campaign.coverage.canary import draw, find_false_statement
from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.nightly.failures import plan_of
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.campaign.nightly.opening import FOREIGN
from marker_sim.campaign.pieces import Piece, PieceResult, SearchSettings, Source, collected_by_hand, explore
from marker_sim.campaign.planned_runs import hunt_canary
from marker_sim.campaign.played_shrinking import BESIDE, PlayedShrinker
from marker_sim.campaign.replay import played, simulated, with_processes
from marker_sim.campaign.runs import LEFT_OUT, failure_of, smaller
from marker_sim.campaign.sources.exhaustive import Crashes, Space
from marker_sim.campaign.sources.played import CLOSING_S, Processes, ProcessRuns, ServerRuns, SparkRuns
from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system
from marker_sim.outcome.failure import Failure, FailureRecord, Kind, record_of
from marker_sim.outcome.result import RunRow
from marker_sim.outcome.statistics import RunCounts
from marker_sim.plan import MODES, PLACES, STORAGES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.system import System
from marker_sim.targets.python import served
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, ServerOptions

# The stream of the unit that counts the crash points of the exhaustive search (`points`).
SPACE = "space"
ROWS = "rows"
SHRINK_S, SHRINKS_S = 5.0, 300.0  # Limits for one violation, and for all violations of a unit.
CANARY_S = 60.0
REAL = {"real-local": "local", "real-s3": "s3"}
# Time for shrinking in real time: a maximum, and a share of the rest of the night.
SERVER_SHRINK_S = 30.0
ALONE_SHRINK_S = 300.0
SHRINK_SHARE = 0.25
# How often a plan that failed is run again.
REAL_TIMES = 2
SERVER_TIMES = 5
_FOREVER_S = 1e9
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyTask:
    """The task of a worker: the numbers first to first + count of `stream`, of the search with `seed`.

    until: time.monotonic() after which plans are not shrunk any more.
    seen: how often each kind of violation occurred this night.
    failure: a stored failure to run again instead.
    listing: whether there is to be a row of each run.
    space: the space of the stream's numbers, "" for a stream with only one.
    server: how a foreign server is started.
    """

    stream: str
    first: int
    count: int
    sut: str
    profile: str
    until: float
    seed: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    failure: FailureRecord | None = None
    listing: bool = False
    space: str = ""
    server: ServerOptions = field(default_factory=ServerOptions)


def worth_shrinking(seen: int) -> bool:
    """Whether the next violation of a kind that occurred `seen` times is shrunk: the 1st, 2nd, 4th, 8th and so on.

    So a frequent defect costs little, and another one of its kind is still found.
    """
    return seen & (seen + 1) == 0


def unit(task: NightlyTask, source: Source, records: Callable[[PieceResult], Iterable[FailureRecord]]) -> Line:
    """The result of a source's runs as a JSON-ready dict. records: one for each failure."""
    profile = load_profile(task.profile)
    settings = SearchSettings(places=(), seed=task.seed, guarantees=None, profile=profile, listing=task.listing)
    with collected_by_hand():
        seen = explore(Piece(settings=settings, first=task.first, count=task.count), source)
    seen.raise_error()
    if seen.left_out:
        seen.statistics.reached[LEFT_OUT] += seen.left_out
    return _line(task, seen.statistics.by_profile(profile), records(seen), seen.listed)


def _line(task: NightlyTask, counts: RunCounts, records: Iterable[FailureRecord], listed: Iterable[RunRow]) -> Line:
    rows = {ROWS: tuple(listed)} if task.listing else {}
    return counts.counts() | {"sightings": [asdict(record) for record in records], "trouble": ""} | rows


def swarm(task: NightlyTask) -> Line:
    """Turns of the swarm: each number's plans in every mode and on every storage model that the system supports."""
    system, profile = load_system(task.sut), load_profile(task.profile)
    request = CampaignRequest(
        target=parse_target(task.sut),
        modes=MODES,
        storages=STORAGES,
        budget_s=_FOREVER_S,
        seed=task.seed,
        first=task.first,
        profile=profile,
        runs=task.count * len(_places(system)),
        shrinking=False,
        canaries=False,
        listing=task.listing,
    )
    campaign = run_campaign(request, lambda _: None)
    counts = campaign.statistics.by_profile(profile)
    records = _simulated(task, campaign.failures, system, not counts.differences)
    return _line(task, counts, records, campaign.listed) | {
        "not_goals": list(campaign.not_applicable),
        "quiet": [gap.sentence for gap in campaign.gaps],
        "trouble": campaign.trouble,
    }


def exhaustive(task: NightlyTask, space: Space) -> Line:
    """The result of numbered runs of the exhaustive search; for the stream `SPACE` how many crash points there are."""
    if task.stream == SPACE:
        return {"points": space.size, "digest": space.digest}
    if task.space.split(".")[:2] != [str(space.size), space.digest]:
        raise HarnessError(
            f"the crash points are not those that were counted: {space.size}.{space.digest}, {task.space}"
        )

    def records(seen: PieceResult) -> list[FailureRecord]:
        return _simulated(task, seen.found.values(), space.system, not seen.statistics.differences)

    line = unit(task, Crashes(space), records)
    line["differences"] += sum(not each["deterministic"] for each in line["sightings"])
    return line


def _simulated(
    task: NightlyTask, failures: Iterable[Failure], system: System, deterministic: bool
) -> list[FailureRecord]:
    """The failures in stored form. deterministic: whether every repeated run gave the same history."""
    found, until = [], time.monotonic() + SHRINKS_S
    for failure in sorted(failures, key=lambda failure: (*failure.kind[:2], failure.seed)):
        again, record = simulated_again(task, failure.kind, failure.own_plan, system, until)
        if record is None or again is None:  # The system is not deterministic.
            record = record_of(failure, "simulated", shrunk=False)
            text = f"{record.text}\nseen once, and not again when the plan was repeated"
            found.append(replace(record, text=text, deterministic=False))
        else:
            steady = deterministic and again.history.events == failure.history.events
            found.append(replace(record, deterministic=steady))
    return found


def simulated_again(
    task: NightlyTask, kind: Kind, plan: Plan, system: System, until: float
) -> tuple[Failure | None, FailureRecord | None]:
    """The failure of a plan when it is run again in the simulated world, with its record; None where it does not fail.

    Its plan is made small where one more of its kind is worth it, and until a time (time.monotonic).
    """
    profile = load_profile(task.profile)
    again = failure_of(kind, plan, system, profile)
    if again is None:
        return None, None
    left_s = min(SHRINK_S, min(until, task.until) - time.monotonic())
    worth = left_s > 0 and worth_shrinking(task.seen.get(kind.place, 0))
    small = smaller(kind, plan, system, profile, left_s) if worth else None
    return again, record_of(small or again, "simulated", shrunk=small is not None)


def processes(task: NightlyTask, real: Processes) -> Line:
    """Plans run with real processes, by number.

    A violation is stored as the simulated world shows it, or as it was with a word on how often it comes.
    """
    profile = load_profile(task.profile)

    def records(seen: PieceResult) -> Iterable[FailureRecord]:
        for failure in sorted(seen.found.values(), key=lambda failure: failure.kind):
            plan = failure.own_plan
            _, record = simulated_again(task, failure.kind._replace(cause=""), plan, real.system, task.until)
            if record is None:
                record = record_of(failure, "real", shrunk=False)
                again = with_processes(real, plan, failure.guarantee, profile, REAL_TIMES).broken
                often = f"{again + 1} of {REAL_TIMES + 1} runs"
                text = f"{record.text}\nseen with real processes in {often}, and not in the simulated world"
                record = replace(record, text=text)
            yield record

    return unit(task, ProcessRuns(real, task.seed, REAL[task.stream]), records)


def in_real_time(task: NightlyTask, runs: SparkRuns | ServerRuns) -> Line:
    """Plans as Spark applications or on servers, by number; of each kind of failure the 1st, 2nd, 4th ... is shrunk."""
    return unit(task, runs, lambda seen: _made_small(task, runs, seen.found)) | {"goals": list(runs.goals)}


def _made_small(
    task: NightlyTask, runs: SparkRuns | ServerRuns, broken: dict[Kind, Failure]
) -> Iterable[FailureRecord]:
    """The failures of a unit: the first that is worth shrinking with its small plan, the others as they were seen."""
    small, text, now = dict[Kind, Failure](), "", time.monotonic()
    worth = [kind for kind in broken if worth_shrinking(task.seen.get(kind.place, 0))]
    most_s = ALONE_SHRINK_S if runs.alone else SERVER_SHRINK_S
    until = now + min(most_s, (task.until - CLOSING_S - now) * SHRINK_SHARE)
    if worth and until > now:
        first = min(worth, key=lambda kind: broken[kind].breach.under != "none")
        shrinker = PlayedShrinker(runs.again, load_profile(task.profile), 1 if runs.alone else BESIDE)
        made = shrinker.shrink(first, [broken[first]], until)
        small, text = ({} if made.told is None else made.broken), f"\n{made.sentence}"
    entries = max((failure.entries for failure in broken.values()), default=0)
    for kind, seen in {**broken, **small}.items():
        record = record_of(seen, runs.world, shrunk=kind in small)
        said = record.text + text if kind in small else record.text
        yield replace(record, entries_before=entries, text=said, deterministic=False)


def canary(task: NightlyTask) -> Line:
    """The result of a planted defect: of the mutant that seed and number draw, or of a false statement about a run.

    A JSON-ready dict; caught: by which guarantee, "" when by none.
    """
    if parse_target(task.sut).can.plans:
        system, profile = load_system(task.sut), load_profile(task.profile)
        seed = plan_seed(task.seed, task.first)
        drawn = draw(seed, _places(system), None, profile)
        planted = drawn and hunt_canary(*drawn, seed, profile, time.monotonic() + CANARY_S)
    else:
        runs = _servers(task, FOREIGN[task.space])
        plan = runs.plan(task.first)
        plan = replace(plan, writes=plan.writes[:1])  # One step of a table's run is enough here.
        planted = find_false_statement(runs.again(plan).history)
    if planted is None:
        return {"mutant": "", "caught": "", "plans": 0, "trouble": ""}
    caught = planted.guarantee if planted.caught else ""
    return {"mutant": planted.mutant, "caught": caught, "plans": planted.plans, "trouble": ""}


def stored(task: NightlyTask) -> Line:
    """The status of a stored failure after more runs, in real time until it fails.

    In real time a run without a violation is no trouble.
    """
    failure = task.failure
    assert failure is not None
    plan, profile, guarantee = plan_of(failure), load_profile(failure.profile), failure.guarantee
    if failure.world == "simulated":
        steady, system = failure.deterministic, load_system(failure.sut)
        again = simulated(plan, system, guarantee, failure.cause, profile, steady=steady)
        return {"status": again.status, "trouble": again.why}
    if parse_target(task.sut).can.plans:
        again = with_processes(_kept(Processes, task.sut), plan, guarantee, profile, REAL_TIMES + 1)
    else:
        runs = _servers(task, failure.storage)

        def run(fresh: bool) -> History:
            return runs.again(plan, fresh=fresh).history

        profile = load_profile(task.profile)
        again = played(run, plan, profile, guarantee, failure.cause, SERVER_TIMES, enough=1)
    return {"status": again.status, "trouble": ""}


def _places(system: System) -> list[tuple[str, str]]:
    return [(mode, storage) for mode, storage in PLACES if served(system, mode, storage)]


def _servers(task: NightlyTask, storage: str) -> ServerRuns:
    runs = _kept(ServerRuns, task.sut, storage, task.server, task.profile, task.seed)
    runs.until = task.until
    return runs


class _Shelf(Keeper):
    """What units of one kind share in a process; that of the previous kind is closed."""

    key: tuple[Any, ...] = ()
    kept: Any = None

    def get(self, key: tuple[Any, ...]) -> Any:
        """What the first of `key` makes of the rest."""
        if self.key != key:
            self._stack.close()
            self.key, make = (), key[0]
            self.kept = make(*key[1:])
            if isinstance(self.kept, AbstractContextManager):
                self._stack.enter_context(self.kept)
            self.key = key
        return self.kept


@cache
def _shelf() -> _Shelf:
    return _Shelf()


def _kept(make: Callable[..., Kept], *of: Any) -> Kept:
    """The expensive resource that units of one kind share."""
    kept: Kept = _shelf().get((make, *of))
    return kept


def space_of(sut: str) -> Space:
    """The exhaustive search of a system."""
    return Space(load_system(sut))


def do(task: NightlyTask) -> Line:
    """The answer to a task; `trouble` in it is an error, `refused` the reason why the system cannot be judged."""
    try:
        return _done(task)
    except (HarnessError, UsageError) as error:
        refused = isinstance(error, UsageError) and task.failure is None
        return {"refused" if refused else "trouble": str(error)}
    except Exception as error:
        traceback.print_exc()
        sys.stderr.flush()
        return {"trouble": f"unexpected {type(error).__name__}: {error}; its traceback is in the worker's log"}


def _done(task: NightlyTask) -> Line:
    match task.stream:
        case "stored":
            return stored(task)
        case "canary":
            return canary(task)
        case "swarm":
            return swarm(task)
        case "exhaustive" | "space":
            return exhaustive(task, _kept(space_of, task.sut))
        case "spark":
            return in_real_time(task, _kept(SparkRuns, task.sut, task.seed))
        case "real-local" | "real-s3":
            return processes(task, _kept(Processes, task.sut))
    return in_real_time(task, _servers(task, FOREIGN[task.stream]))
