"""One unit of a stream, done in a worker process: a JSON-ready dict of counts, and every new kind of violation.

runs, steps, judged ...  the counts of `RunCounts`
not_goals               coverage goals that do not apply to the system
goals                   what has to be reached in a night with such units
quiet                   why the unit alone would be inconclusive
sightings               FailureRecord, at most one for each guarantee, mode, storage and cause
trouble                 why the kit could not finish the unit, "" when it did; it is not run again

`ROWS`, a row of each run where that is wanted, is no part of the line: it goes to the tables (parquet.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace

from marker_sim.campaign.coverage.canary import draw
from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.nightly.failures import StoredFailure, plan_of
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.campaign.pieces import Piece, PieceResult, SearchSettings, Source, collected_by_hand, explore
from marker_sim.campaign.planned_runs import hunt_canary
from marker_sim.campaign.replay import simulated
from marker_sim.campaign.runs import LEFT_OUT, failure_of, smaller
from marker_sim.campaign.sources.exhaustive import Crashes, Space
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system
from marker_sim.outcome.failure import Failure, FailureRecord, Kind, record_of
from marker_sim.outcome.result import Canary, RunRow
from marker_sim.outcome.statistics import RunCounts
from marker_sim.plan import MODES, PLACES, STORAGES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.system import System
from marker_sim.targets.python import served
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, ServerOptions

# The stream of the unit that counts the crash points of the exhaustive search (`points`).
SPACE = "space"
ROWS = "rows"
SHRINK_S, SHRINKS_S = 5.0, 300.0  # Limits for one violation, and for all violations of a unit.
CANARY_S = 60.0
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
    failure: StoredFailure | None = None
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


def canary(task: NightlyTask) -> Line:
    """The result of the planted defect that seed and number draw."""
    system, profile = load_system(task.sut), load_profile(task.profile)
    seed = plan_seed(task.seed, task.first)
    drawn = draw(seed, _places(system), None, profile)
    return canary_line(drawn and hunt_canary(*drawn, seed, profile, time.monotonic() + CANARY_S))


def canary_line(planted: Canary | None) -> Line:
    """The JSON form of a planted defect's result; caught: by which guarantee, "" when by none."""
    if planted is None:
        return {"mutant": "", "caught": "", "plans": 0, "trouble": ""}
    caught = planted.guarantee if planted.caught else ""
    return {"mutant": planted.mutant, "caught": caught, "plans": planted.plans, "trouble": ""}


def stored(task: NightlyTask) -> Line:
    """The status of a stored failure of the simulated world after another run."""
    failure = task.failure
    assert failure is not None
    profile, steady = load_profile(failure.profile), failure.deterministic
    system = load_system(failure.sut)
    again = simulated(plan_of(failure), system, failure.guarantee, failure.cause, profile, steady=steady)
    return {"status": again.status, "trouble": again.why}


def _places(system: System) -> list[tuple[str, str]]:
    return [(mode, storage) for mode, storage in PLACES if served(system, mode, storage)]
