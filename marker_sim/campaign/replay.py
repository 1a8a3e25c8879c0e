"""Runs a stored plan again with today's code and judges, or shrinks it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from marker_sim.campaign.played_shrinking import PlayedShrinker
from marker_sim.campaign.runs import (
    NO_FACTORY,
    broken_in,
    execute,
    failure_of,
    findings_in,
    findings_of,
    lacking,
    lacks,
    promised_breach,
)
from marker_sim.campaign.simulated_failure import smaller
from marker_sim.campaign.sources.swarm import Processes
from marker_sim.campaign.stored_plan import REAL, SIMULATED, StoredPlan
from marker_sim.history import History
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.loading import load_system
from marker_sim.outcome.failure import (
    FIXED,
    INTERRUPTED,
    LEFT_OUT,
    NO_TIME,
    NONE_SMALLER,
    NOT_REPRODUCED,
    SERVER,
    SPARK,
    VIOLATED,
    Failure,
    Kind,
    failures_in,
)
from marker_sim.plan import Plan
from marker_sim.surroundings.requirements import lacking as lacking_here
from marker_sim.system import System
from marker_sim.targets.jvm.reference_spark import on_spark
from marker_sim.targets.python import served, try_every_call
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import JOBS, SERVERS, TABLES, CampaignRequest, RealRuns, ServerOptions

LONG_S = 600.0  # Of one run, at most: a Spark application takes minutes where the machine has other work.
CLOSING_S = 2.0
SEEN_SHARE = 0.3  # Share of the time for shrinking in which the failure is reproduced.
# How often a plan is run again in each world; in the simulated one a run decides.
TIMES = {SIMULATED: 1, REAL: 3, SPARK: 3, SERVER: 10, TABLES: 3}


def world_of(stored: StoredPlan, system: str) -> str:
    """The world in which a system runs a stored plan, a key of `TIMES`.

    A plan of servers is simulated where the system is no server, and a hand-written one, for which no report names a
    world, runs on a server where the system is one.
    """
    can, plan = parse_target(system).can, stored.plan
    if stored.world == SERVER and can.plans:
        return SIMULATED
    if stored.world == SERVER and can.world == JOBS:
        return SPARK
    if stored.guarantee is None and plan is not None and not plan.writes and can.world == SERVERS:
        return SERVER if plan.mode in can.modes and plan.storage in can.storages else stored.world
    return TABLES if stored.world == SERVER and plan is not None and plan.shape is not None else stored.world


def missing(stored: StoredPlan, system: str) -> str:
    """The reason why a failure cannot be run here, "" when it can."""
    can, plan = parse_target(system).can, stored.plan
    if plan is None:
        return stored.hint
    if (plan.shape is not None) != (can.world == TABLES):
        if plan.shape is None:
            return f"its plan is of a marker store, and {system} writes tables"
        return f"its plan is of a table that Hudi writes, which {system} does not; give --sut hudi-spark:VERSION"
    world = world_of(stored, system)
    if can.plans:
        part = {REAL: f"real processes on {plan.storage}", SPARK: SPARK}.get(world)
        why = lacking_here(part) if part else ""
        return f"it needs {why}" if why else ""
    if world == SPARK and can.world == JOBS:
        return ""
    if world not in (SERVER, TABLES):
        return f"{system} runs in real time, where a simulated plan does not determine a run"
    if stored.server is None and "start" not in can.refuses:
        return "nothing beside it says how the server is started; replay the report directory that it comes from"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of running a plan again.

    status: VIOLATED, FIXED, NOT_REPRODUCED where runs were not enough to say that it is fixed, or LEFT_OUT where the
        system cannot be judged on that storage; `why` says of these two why.
    broken, times: in how many runs of how many a promise was broken.
    held: in how many the guarantee that was asked for was judged and kept.
    shown: the first that broke it; also: the other guarantees that it breaks.
    """

    status: str
    broken: int
    times: int
    held: int = 0
    shown: Failure | None = None
    also: tuple[str, ...] = ()
    why: str = ""


def simulated(
    plan: Plan, system: System, guarantee: str | None, cause: str, profile: Profile, times: int, steady: bool = True
) -> Replayed:
    """The result of a plan in the simulated world, where one run decides whether a deterministic system breaks it.

    guarantee: None for any. For a named guarantee also breaches that are not promised count: one was stored.
    cause: of its breach; a breach of another cause counts if there was none of this cause.
    steady: whether the system seemed deterministic when the plan was stored.
    """
    if why := left_out(plan, system):
        return Replayed(status=LEFT_OUT, broken=0, times=0, why=why)
    shown, also, count = None, tuple[str, ...](), 0
    for _ in range(times):
        history, findings = findings_of(plan, system, guarantee)
        judged = ((each.guarantee, _breach(each, plan, profile, guarantee, cause)) for each in findings)
        broken = [(name, breach) for name, breach in judged if breach is not None]
        count += bool(broken)
        if broken and shown is None:
            (name, breach), also = broken[0], tuple(name for name, _ in broken[1:])
            kind = Kind(name, plan.mode, plan.storage, breach.cause)
            shown = Failure(kind=kind, breach=breach, history=history, plan=plan)
    if shown is not None:
        return Replayed(status=VIOLATED, broken=count, times=times, shown=shown, also=also)
    why = _undecided(plan, system, guarantee, history, findings, steady)
    return Replayed(status=NOT_REPRODUCED if why else FIXED, broken=0, times=times, why=why)


def left_out(plan: Plan, system: System) -> str:
    """Why a system in Python cannot be judged in the mode and storage of a plan, as `verify` says it; "" if it can."""
    if system.layout == "hudi":
        return ""
    if not served(system, plan.mode, plan.storage):
        return f"{plan.mode} mode on {plan.storage}: {NO_FACTORY}"
    what = lacking(system, try_every_call(system, plan.mode, plan.storage)) or lacking(system, execute(plan, system)[0])
    return f"{plan.mode} mode on {plan.storage}: {lacks(what)}" if what else ""


def _breach(finding: Finding, plan: Plan, profile: Profile, guarantee: str | None, cause: str) -> Breach | None:
    promised = promised_breach(finding, plan, profile, cause) or promised_breach(finding, plan, profile)
    return promised or (finding.breaches[0] if guarantee is not None and finding.breaches else None)


def played(
    run: Callable[[bool], History],
    plan: Plan,
    profile: Profile,
    guarantee: str | None,
    cause: str,
    times: int,
    enough: int | None = None,
    system: System | None = None,
) -> Replayed:
    """The result of a plan in real time, where a run without a violation proves nothing.

    run: one run, on fresh servers if asked for.
    enough: after so many runs that broke it there are no more.
    system: what ran it, where that is loaded here.
    """
    seen: list[Failure] = []
    fresh, made, held = False, 0, 0
    while made < times and len(seen) != enough:
        history = run(fresh)
        findings = findings_in(history, system)
        broken = failures_in(history, findings, profile, plan)
        found = [each for kind, each in broken.items() if guarantee in (None, kind.guarantee)]
        seen += sorted(found, key=lambda each: each.breach.cause != cause)[:1]
        asked = [each for each in findings if each.guarantee == guarantee]
        held += any(each.judged and not each.breaches and not each.undecided for each in asked)
        fresh, made = bool(broken), made + 1
    shown = min(seen, key=lambda each: each.breach.cause != cause, default=None)
    status = VIOLATED if seen else NOT_REPRODUCED
    why = "" if seen else "that does not mean that it is fixed"
    return Replayed(status=status, broken=len(seen), times=made, held=held, shown=shown, why=why)


def with_processes(real: Processes, plan: Plan, guarantee: str, profile: Profile, times: int) -> Replayed:
    """The result of a plan with real processes; races may end differently each time."""
    return played(lambda _: real.run(plan), plan, profile, guarantee, "", times, system=real.system)


def replayed(
    stored: StoredPlan, system: str, profile: Profile, times: int | None = None, enough: int | None = None
) -> Replayed:
    """The result of running a stored plan again in its world.

    times: how often, None for as often as `TIMES` has it. enough: as of `played`.
    """
    plan, guarantee, world = stored.own_plan, stored.guarantee, world_of(stored, system)
    times = times or TIMES[world]
    if world == SIMULATED:
        steady = stored.deterministic or system != stored.sut
        return simulated(plan, load_system(system), guarantee, stored.cause, profile, times, steady)
    if world == REAL:
        assert guarantee is not None, "what real processes showed broke a promise"
        with Processes(system) as real:
            return with_processes(real, plan, guarantee, profile, times)
    with _real_runs(stored, system, profile, LONG_S) as runs:

        def run(fresh: bool) -> History:
            return runs.again(plan, time.monotonic() + LONG_S, fresh).history

        return played(run, plan, profile, guarantee, stored.cause, times, enough)


@contextmanager
def _real_runs(stored: StoredPlan, sut: str, profile: Profile, budget_s: float) -> Iterator[RealRuns]:
    plan = stored.own_plan
    target = parse_target(on_spark(sut) if stored.world == SPARK else sut)
    with TemporaryDirectory(prefix="marker-sim-") as scratch:
        request = CampaignRequest(
            target=target,
            modes=(plan.mode,),
            storages=(plan.storage,),
            seed=plan.seed,
            profile=profile,
            budget_s=budget_s,
            server=stored.server or ServerOptions(),
            report=Path(scratch),
        )
        target.prepare(request, lambda line: None)
        with target.real_runs(request, lambda line: None) as runs:
            yield runs


class ShrinkingSoFar:
    """Says how far shrinking is, and keeps the smallest plan that failed (`Watch`). say: gets a line a candidate."""

    def __init__(self, plan: Plan, say: Callable[[str], None]) -> None:
        self.plan = plan
        self._before, self._tried, self._say = plan.entries, 0, say

    def __call__(self, plan: Plan, failed: bool) -> None:
        self._tried += 1
        self.plan = plan if failed else self.plan
        many = "1 plan" if self._tried == 1 else f"{self._tried:,} plans"
        self._say(f"{many} tried; {self._before} entries before, {self.plan.entries} now")


def shrink_again(
    stored: StoredPlan, profile: Profile, budget_s: float, watch: ShrinkingSoFar, same_cause: bool
) -> tuple[Failure | None, int]:
    """The failure with the smaller plan, None when it did not fail again; and the number of runs until then.

    `large` says why that is not smaller, "" where nothing was left to try.
    A plan for which nothing was left to try is only run. same_cause: on servers, only plans that break it by the stored
    cause count.
    """
    plan, guarantee = stored.own_plan, stored.guarantee
    assert guarantee is not None, "what is made smaller broke a promise"
    if world_of(stored, stored.sut) == SIMULATED:
        return _shrink_simulated(stored, guarantee, profile, budget_s, watch), 1
    began, runs_made = time.monotonic(), 0
    until = began + budget_s - CLOSING_S
    with _real_runs(stored, stored.sut, profile, budget_s) as runs:
        while not runs_made or time.monotonic() < began + budget_s * SEEN_SHARE:
            again = runs.again(plan, until)
            if again.cut:
                break
            runs_made += 1
            broken = broken_in(again.history, plan, profile)
            found = sorted((kind for kind in broken if kind[0] == guarantee), key=lambda kind: kind[3] != stored.cause)
            if same_cause:
                found = [kind for kind in found if kind.cause == stored.cause]
            if not found:
                continue
            seen = broken[found[0]]
            if stored.ended:
                return replace(seen, confirmed=f"breaks in 1 of {runs_made} runs"), runs_made
            shrinker = PlayedShrinker(runs.again, profile, runs.at_once, watch, stored.cause if same_cause else "")
            return shrinker.shrink(found[0], [seen], until).failure(seen), runs_made
    return None, runs_made


def _shrink_simulated(
    stored: StoredPlan, guarantee: str, profile: Profile, budget_s: float, watch: ShrinkingSoFar
) -> Failure | None:
    """The smaller plan found in the simulated world, where one run decides."""
    plan, system, began = stored.own_plan, load_system(stored.sut), time.monotonic()
    seen = failure_of(Kind(guarantee, plan.mode, plan.storage, stored.cause), plan, system, profile)
    if seen is None:
        return None
    kind = seen.kind._replace(cause=seen.breach.cause)
    small, why = seen, ""
    try:
        small = (None if stored.ended else smaller(kind, plan, system, profile, budget_s, sys.maxsize, watch)) or seen
    except KeyboardInterrupt:
        small, why = failure_of(kind, watch.plan, system, profile) or seen, INTERRUPTED
    kind, late = kind._replace(cause=small.breach.cause), time.monotonic() - began >= budget_s
    why = why or (NO_TIME if late else NONE_SMALLER if small.plan == plan else "")
    return replace(small, kind=kind, large=why)


def _undecided(
    plan: Plan, system: System, guarantee: str | None, history: History, findings: tuple[Finding, ...], steady: bool
) -> str:
    """Why a run without a violation does not prove that the plan is fixed; "" when it does."""
    judged = any(finding.judged for finding in findings) or any(event.kind == "ok" for event in history.events)
    if not findings or not judged:
        # With a fixed system there may be nothing to judge, such as no error and no second rollback.
        return f"no operation succeeded, and there was nothing to judge for {guarantee or 'any guarantee'}"
    if not steady:
        return "the system was not deterministic when this failure was found, so one run proves nothing"
    if findings_of(plan, system, guarantee)[0].events != history.events:
        return "the same plan gave two different histories, so the system is not deterministic"
    return ""
