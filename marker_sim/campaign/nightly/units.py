"""One unit of a stream, done in a worker process (`do`): a JSON-ready dict of counts, and every kind of violation.

runs, steps, judged ...  the counts of `RunCounts`
not_goals               coverage goals that do not apply to the system
goals                   what has to be reached in a night with such units
quiet                   why the unit alone would be inconclusive
sightings               FailureRecord, at most one for each guarantee, mode, storage and cause
trouble                 why the kit could not finish the unit, "" when it did; it is not run again

A unit of a foreign system is a campaign, so its failures are shrunk there at once, as those of Spark are; those of real
processes are shrunk in the simulated world.
`ROWS`, a row of each run where that is wanted, is no part of the line: it goes to the tables (parquet.py).
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache

from marker_sim.campaign.coverage.canary import draw
from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.nightly.failures import stored_plan
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.campaign.nightly.opening import FOREIGN, request_on
from marker_sim.campaign.pieces import (
    Piece,
    PieceResult,
    SearchSettings,
    Source,
    collected_by_hand,
    explore,
    worth_shrinking,
)
from marker_sim.campaign.planned_runs import hunt_canary
from marker_sim.campaign.replay import replayed, with_processes
from marker_sim.campaign.runs import LEFT_OUT, failure_of
from marker_sim.campaign.simulated_failure import smaller
from marker_sim.campaign.sources.exhaustive import Crashes, Space
from marker_sim.campaign.sources.swarm import Processes, ProcessRuns
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system
from marker_sim.outcome.failure import SERVER, SPARK, Failure, FailureRecord, Kind, record_of
from marker_sim.outcome.result import Campaign, Canary, RunRow
from marker_sim.outcome.statistics import RunCounts
from marker_sim.plan import MODES, PLACES, STORAGES, Plan
from marker_sim.report.pictures.picture import lane_picture
from marker_sim.search.seeds import plan_seed
from marker_sim.surroundings.files import scratch_directory
from marker_sim.system import System
from marker_sim.targets.jvm.reference_spark import BOTH, on_spark
from marker_sim.targets.python import served
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import JOBS, CampaignRequest, ServerOptions

# The stream of the unit that counts the crash points of the exhaustive search (`points`).
SPACE = "space"
ROWS = "rows"
SHRINK_S, SHRINKS_S = 5.0, 300.0  # Limits for one violation, and for all violations of a unit.
CANARY_S = 60.0
REAL = {"real-local": "local", "real-s3": "s3"}
# Limits of a campaign in real time: one for systems that have the machine for themselves; for servers a maximum, and a
# share of the rest of the night, but no less than a few runs take.
ALONE_UNIT_S = 600.0
SERVER_UNIT_S = 60.0
UNIT_SHARE = 0.5
LEAST_S = 15.0
# How often a plan that failed is run again.
REAL_TIMES = 2
SERVER_TIMES = 5
_FOREVER_S = 1e9


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
    records = _simulated(task, campaign.failures, system, not campaign.statistics.differences)
    return _of_campaign(task, campaign, records) | {
        "not_goals": list(campaign.not_applicable),
        "quiet": [gap.sentence for gap in campaign.gaps],
    }


def _of_campaign(task: NightlyTask, campaign: Campaign, records: Iterable[FailureRecord]) -> Line:
    counts = campaign.statistics.by_profile(load_profile(task.profile))
    return _line(task, counts, records, campaign.listed) | {"trouble": campaign.trouble}


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
    return again, _recorded(small or again, "simulated", shrunk=small is not None)


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


def in_real_time(task: NightlyTask, sut: str, storage: str) -> Line:
    """A campaign of plans by number against a system in real time, which makes its failures small at once.

    It has fewer plans than the task asked for where their time was over.
    """
    left_s = task.until - time.monotonic()
    with scratch_directory() as logs:
        request = request_on(sut, storage, task.server, task.profile, task.seed, logs)
        alone = request.target.can.alone
        own_s = ALONE_UNIT_S if alone else min(SERVER_UNIT_S, max(LEAST_S, left_s * UNIT_SHARE))
        request = replace(
            request,
            first=task.first,
            runs=task.count,
            budget_s=min(own_s, left_s),
            seen=task.seen,
            canaries=task.stream in FOREIGN,
        )
        campaign = run_campaign(request, lambda _: None)
    world = SPARK if request.target.can.world == JOBS else SERVER
    records = [_real_record(failure, world) for failure in campaign.failures]
    return _of_campaign(task, campaign, records) | {
        "count": task.count if campaign.trouble else campaign.runs,
        "goals": list(request.target.goals(request)),
        "canary": {} if campaign.canary is None else _planted(campaign.canary),
    }


def _recorded(failure: Failure, world: str, *, shrunk: bool) -> FailureRecord:
    """The stored form of a failure, with the picture of its run if its plan is small."""
    record = record_of(failure, world, shrunk=shrunk)
    return replace(record, picture=lane_picture(failure.history, failure.evidence)._asdict()) if shrunk else record


def _real_record(failure: Failure, world: str) -> FailureRecord:
    record = _recorded(failure, world, shrunk=bool(failure.confirmed))
    said = f"{record.text}\n{failure.confirmed}" if failure.confirmed else record.text
    return replace(record, text=said, deterministic=False)


def canary(task: NightlyTask) -> Line:
    """The result of a planted defect, the mutant that seed and number draw, in a JSON-ready dict."""
    system, profile = load_system(task.sut), load_profile(task.profile)
    seed = plan_seed(task.seed, task.first)
    drawn = draw(seed, _places(system), None, profile)
    if drawn is None:
        return {"mutant": "", "caught": "", "plans": 0, "trouble": ""}
    return _planted(hunt_canary(*drawn, seed, profile, time.monotonic() + CANARY_S)) | {"trouble": ""}


def _planted(canary: Canary) -> Line:
    """caught: by which guarantee, "" when by none."""
    return {"mutant": canary.mutant, "caught": canary.guarantee if canary.caught else "", "plans": canary.plans}


def stored(task: NightlyTask) -> Line:
    """The status of a stored failure after more runs, in real time until it fails, by the system of the night."""
    assert task.failure is not None
    plan = stored_plan(task.failure)
    on_server = plan.server is not None
    if on_server:
        plan = replace(plan, server=task.server)
    again = replayed(plan, task.sut, load_profile(task.profile), SERVER_TIMES if on_server else None, enough=1)
    return {"status": again.status, "trouble": again.why}


def _places(system: System) -> list[tuple[str, str]]:
    return [(mode, storage) for mode, storage in PLACES if served(system, mode, storage)]


@cache
def space_of(sut: str) -> Space:
    """The exhaustive search of a system."""
    return Space(load_system(sut))


@cache
def _processes(sut: str) -> Processes:
    """What all units with real processes share; it ends with the worker."""
    return Processes(sut)


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
            return exhaustive(task, space_of(task.sut))
        case "spark":
            return in_real_time(task, on_spark(task.sut), BOTH)
        case "real-local" | "real-s3":
            return processes(task, _processes(task.sut))
    return in_real_time(task, task.sut, FOREIGN[task.stream])
