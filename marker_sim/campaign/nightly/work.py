"""One unit of a stream, done in a worker process: a JSON-ready dict of counts, and every new kind of violation.

runs, steps             their number
judged, violations      by guarantee; violations are those of promised guarantees
unpromised              breaches of guarantees that are not promised
faults, reached         faults that fired and coverage goals that were reached, by name
looked                  number of runs sampled for coverage goals, by mode, storage and kind of plan
reruns, differences     number of repeated runs, and of those with another history
not_goals               coverage goals that are none of such a system
goals                   what has to be reached in a night with such units
quiet                   why the unit alone would be inconclusive
sightings               failures.Sighting, at most one for each guarantee, mode and storage
trouble                 why the kit could not finish the unit, "" when it did; it is not run again

`ROWS`, a row of each run where that is wanted, is no part of the line: it goes to the tables (tables.py).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from marker_sim.campaign.coverage.canary import draw
from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.nightly.failures import (
    FIXED,
    NOT_REPRODUCED,
    VIOLATED,
    Sighting,
    parse_stored,
    plan_of,
    read_sighting,
)
from marker_sim.campaign.planned_runs import let_go
from marker_sim.campaign.replay import undecided
from marker_sim.campaign.result import Campaign, Failure
from marker_sim.campaign.runs import findings_of, make_small, promised_breach
from marker_sim.campaign.statistics import Statistics
from marker_sim.history import History
from marker_sim.judges.findings import Breach
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.judges.violations import violation
from marker_sim.loading import load_system
from marker_sim.plan import MODES, PLACES, STORAGES, Plan
from marker_sim.seeds import plan_seed
from marker_sim.system import System
from marker_sim.targets.python import served
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, ServerOptions

# The stream of the question how many crash points the exhaustive search has; answered by `points`.
SPACE = "space"
ROWS = "rows"
SHRINK_S = 5.0
CANARY_S = 60.0
_FOREVER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyTask:
    """The task of a worker: the numbers first to first + count of `stream`, of the search with `seed`.

    until: time.monotonic() after which plans are not shrunk any more.
    seen: how often each kind of violation occurred this night.
    failure: a stored failure to run again instead, as in its file.
    sighting: one of this unit's sightings to make small instead, as in the unit's answer.
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
    failure: dict[str, Any] | None = None
    sighting: dict[str, Any] | None = None
    listing: bool = False
    space: str = ""
    server: ServerOptions = field(default_factory=ServerOptions)


def worth_shrinking(seen: int) -> bool:
    """Whether the next violation of a kind that occurred `seen` times is shrunk: the 1st, 2nd, 4th, 8th and so on.

    So a frequent defect costs little, and another one of its kind is still found.
    """
    return seen & (seen + 1) == 0


def swarm(task: NightlyTask) -> dict[str, Any]:
    """Turns of the swarm, each in every mode and on every storage model that the system serves."""
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
    shown = sightings(campaign.failures, system, profile, campaign.reruns.differences == 0)
    rows = {ROWS: campaign.listed} if task.listing else {}
    return counted(campaign, profile) | {"sightings": shown, "not_goals": list(campaign.not_applicable)} | rows


def counted(campaign: Campaign, profile: Profile) -> dict[str, Any]:
    """The counts of a campaign."""
    return counts_of(campaign.statistics, campaign.steps, profile) | {
        "reruns": _nonzero(campaign.reruns.to_dict()),
        "differences": campaign.reruns.differences,
        "quiet": [gap.sentence for gap in campaign.gaps],
        "trouble": campaign.trouble,
    }


def counts_of(statistics: Statistics, steps: int, profile: Profile) -> dict[str, Any]:
    """The counts of statistics, without zeros."""
    judged, violations, unpromised, excused = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for row in statistics.rows(profile):
        held = _held(row, profile)
        judged[row.id] += row.judged
        violations[row.id] += held
        unpromised[row.id] += row.violations - held
        excused.update({f"{row.id} {name}": count for name, count in row.excused.items()})
    return {
        "runs": statistics.runs,
        "steps": steps,
        "judged": _nonzero(judged),
        "violations": _nonzero(violations),
        "unpromised": _nonzero(unpromised),
        "excused": _nonzero(excused),
        "faults": _nonzero(statistics.faults),
        "reached": _nonzero(statistics.reached),
        "looked": _nonzero(statistics.looked),
        "differences": 0,
        "sightings": [],
        "trouble": "",
    }


def sightings(
    failures: tuple[Failure, ...], system: System, profile: Profile, deterministic: bool
) -> list[dict[str, Any]]:
    """Failures with their plans as they were found; `shrunk` makes one of them small.

    deterministic: whether every run that was repeated gave the same history.
    """
    found = []
    for failure in sorted(failures, key=lambda failure: (failure.guarantee, failure.mode, failure.seed)):
        plan = failure.plan
        assert plan is not None, "a simulated failure has a plan"
        seen = shrunk_sighting(failure.guarantee, failure.mode, plan, system, profile, 0.0, failure.cause)
        found.append(asdict(replace(seen, deterministic=deterministic) if seen else _once(failure, plan)))
    return found


def shrunk(task: NightlyTask) -> dict[str, Any]:
    """A sighting of a unit with its plan made small; None for one that does not break it again, or no time for it."""
    assert task.sighting is not None
    big, system, profile = read_sighting(task.sighting), load_system(task.sut), load_profile(task.profile)
    plan = Plan.from_dict(big.plan, "the plan of a violation")
    small = shrunk_sighting(big.guarantee, big.mode, plan, system, profile, task.until, big.cause)
    kept = None if small is None or not small.shrunk else asdict(replace(small, deterministic=big.deterministic))
    return {"sighting": kept, "trouble": ""}


def _once(failure: Failure, plan: Plan) -> Sighting:
    """A violation that did not occur again with its plan: the system is not deterministic."""
    breach = Breach(message=failure.message, evidence=failure.evidence, under="not known any more", cause=failure.cause)
    seen = sighting_of(failure.guarantee, failure.mode, plan, breach, failure.history, False)
    text = f"{seen.text}\nseen once, and not again when the plan was repeated"
    return replace(seen, text=text, deterministic=False)


def shrunk_sighting(
    guarantee: str, mode: str, plan: Plan, system: System, profile: Profile, until: float, cause: str = ""
) -> Sighting | None:
    """A plan that failed in the simulated world, made as small as possible by `until`; None when it fails no more."""
    left_s = min(SHRINK_S, until - time.monotonic())
    smaller = make_small(plan, system, guarantee, profile, cause, left_s) if left_s > 0 else plan
    history, findings = findings_of(smaller, system, guarantee)
    shown = (promised_breach(each, smaller, profile, by) for by in (cause, "") for each in findings)
    breach = next((breach for breach in shown if breach is not None), None)
    if breach is None:
        return None
    seen = sighting_of(guarantee, mode, smaller, breach, history, left_s > 0)
    return replace(seen, entries_before=plan.entries)


def stored(task: NightlyTask) -> dict[str, Any]:
    """A stored failure of the simulated world again: its status."""
    assert task.failure is not None
    failure = parse_stored(task.failure, str(task.failure.get("name")))
    plan = plan_of(failure, failure.name)
    system, guarantee = load_system(failure.sut), failure.sighting.guarantee
    history, findings = findings_of(plan, system, guarantee)
    profile = load_profile(failure.profile)
    if any(promised_breach(finding, plan, profile) is not None for finding in findings):
        return {"status": VIOLATED, "trouble": ""}
    gap = undecided(plan, system, guarantee, history, findings, failure.sighting.deterministic)
    return {"status": NOT_REPRODUCED if gap else FIXED, "trouble": gap}


def sighting_of(
    guarantee: str, mode: str, plan: Plan, breach: Breach, history: History, shrunk: bool, world: str = "simulated"
) -> Sighting:
    """A breach as it is stored."""
    return Sighting(
        guarantee=guarantee,
        mode=mode,
        storage=plan.storage,
        world=world,
        seed=plan.seed,
        message=breach.message,
        text=str(violation(history, guarantee, breach)),
        evidence=breach.evidence,
        plan=plan.to_dict(),
        shrunk=shrunk,
        entries_before=plan.entries,
        cause=breach.cause,
    )


def _held(row: VerdictRow, profile: Profile) -> int:
    return sum(
        count for under, count in row.under.items() if profile.promise(row.id, row.mode, row.storage, under).promised
    )


def _nonzero(counts: Any) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts) if counts[name]}


def canary(task: NightlyTask) -> dict[str, Any]:
    """The defect that is planted in a night, drawn by seed and number; caught by: "" when no judge found it."""
    system, profile = load_system(task.sut), load_profile(task.profile)
    seed = plan_seed(task.seed, task.first)
    drawn = draw(seed, _places(system), None, profile)
    if drawn is None:
        return {"mutant": "", "caught": "", "plans": 0, "trouble": ""}
    planted = let_go(*drawn, seed, profile, time.monotonic() + CANARY_S)
    caught = planted.guarantee if planted.caught else ""
    return {"mutant": planted.mutant, "caught": caught, "plans": planted.plans, "trouble": ""}


def _places(system: System) -> list[tuple[str, str]]:
    return [(mode, storage) for mode, storage in PLACES if served(system, mode, storage)]
