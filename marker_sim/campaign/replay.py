"""Runs a stored plan again with today's code and judges, or shrinks it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from marker_sim.campaign.played_shrinking import PlayedShrinker, SmallPlan
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
    smaller,
)
from marker_sim.campaign.sources.played import Processes, SparkRuns
from marker_sim.history import History
from marker_sim.judges.findings import UNEXPLAINED, Breach, Finding
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.promises.profiles import Profile, load_profile
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
from marker_sim.targets.python import served, try_every_call
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import SERVERS, TABLES, CampaignRequest, RealRuns, ServerOptions

LONG_S = 600.0  # Of one run, at most: a Spark application takes minutes where the machine has other work.
CLOSING_S = 2.0
SEEN_SHARE = 0.3  # Share of the time for shrinking in which the failure is reproduced.
SIMULATED, REAL = "simulated", "real"
# How often a plan is run again in each world; in the simulated one a run decides.
TIMES = {SIMULATED: 1, REAL: 3, SPARK: 3, SERVER: 10, TABLES: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A stored failure, whatever file it was read from: what it is, how it runs again, and what a script says of it.

    name: its name on the terminal.
    guarantee: None when only a plan is known.
    cause: of its breach, "" for unknown.
    plan: None when there is none to run; hint says then what can be done.
    report: the report directory that it is a failure of; plan_name: its plan there.
    profile: None for the one that is shipped for the system.
    story: in a report, the number of the failure that represents its story, "" if unknown.
    world: "simulated", "real" or "spark"; "server" for a plan run against a foreign server, or by Hudi on Spark.
    server: how that is started.
    deterministic: whether a repeated run was the same.
    also: what else its story breaks.
    message: what was seen; evidence: the events that prove it, of the history in a file; lines: the same as text.
    source: the document with the promise, "" where it is not known.
    often: how often its plan breaks it, "" if this was not counted.
    entries_before: of the plan that it was made small from, 0 where it was not.
    ended: whether `shrink` had nothing left to try for its plan.
    version: of the system; kit_version: of the kit that found it; "" for unknown.
    """

    sut: str
    guarantee: str | None
    plan: Plan | None
    name: str = ""
    cause: str = ""
    story: str = ""
    hint: str = ""
    report: Path | None = None
    plan_name: str = ""
    profile: Profile | None = None
    world: str = SIMULATED
    server: ServerOptions | None = None
    deterministic: bool = True
    also: tuple[str, ...] = ()
    message: str = ""
    evidence: tuple[int, ...] = ()
    history: Path | None = None
    lines: tuple[str, ...] = ()
    source: str = ""
    often: str = ""
    entries_before: int = 0
    ended: bool = False
    version: str = ""
    kit_version: str = ""

    @property
    def own_plan(self) -> Plan:
        """Its plan; AssertionError where it has none."""
        assert self.plan is not None, self.hint
        return self.plan

    @property
    def title(self) -> str:
        """The guarantee's id and name, "" where only a plan is known."""
        known = BY_ID.get(self.guarantee or "")
        return f"{known.id} {known.slug}" if known else self.guarantee or ""

    def profile_for(self, system: str) -> Profile:
        """The profile to judge a system by: for its own the one stored with the failure, else the one shipped."""
        if system == self.sut and self.profile is not None:
            return self.profile
        return load_profile(parse_target(system).can.profile)

    @property
    def defect(self) -> tuple[str, str]:
        """The key that it shares with failures that most likely have the same cause."""
        if self.story:
            return ("story", self.story)
        cause = "" if self.cause == UNEXPLAINED else self.cause
        return (self.guarantee, cause) if self.guarantee else ("", self.name)


def world_of(stored: StoredPlan, system: str) -> str:
    """The world in which a system runs a stored plan, a key of `TIMES`.

    A plan of servers is simulated where the system is no server, and a hand-written one, for which no report names a
    world, runs on a server where the system is one.
    """
    can, plan = parse_target(system).can, stored.plan
    if stored.world == SERVER and can.plans:
        return SIMULATED
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
    plan: Plan, system: System, guarantee: str | None, cause: str, profile: Profile, times: int = 1, steady: bool = True
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


def replayed(stored: StoredPlan, system: str, profile: Profile, times: int | None = None) -> Replayed:
    """The result of running a stored plan again in its world. times: how often, None for as often as `TIMES` has it."""
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

        return played(run, plan, profile, guarantee, stored.cause, times)


@contextmanager
def _real_runs(stored: StoredPlan, sut: str, profile: Profile, budget_s: float) -> Iterator[RealRuns | SparkRuns]:
    plan, target = stored.own_plan, parse_target(sut)
    if stored.world == SPARK:
        with SparkRuns(sut, plan.seed) as jobs:
            yield jobs
        return
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
    stored: StoredPlan, profile: Profile, budget_s: float, watch: ShrinkingSoFar, same_cause: bool = False
) -> tuple[SmallPlan | None, int]:
    """The smaller plan found where it failed, None when it did not fail there again; and the number of runs until then.

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
            if found and stored.ended:
                shown = {found[0]: broken[found[0]]}
                return SmallPlan(plan=plan, broken=shown, told=found[0], failed=1, runs=runs_made), runs_made
            if found:
                shrinker = PlayedShrinker(runs.again, profile, runs.at_once, watch, stored.cause if same_cause else "")
                return shrinker.shrink(found[0], [broken[found[0]]], until), runs_made
    return None, runs_made


def _shrink_simulated(
    stored: StoredPlan, guarantee: str, profile: Profile, budget_s: float, watch: ShrinkingSoFar
) -> SmallPlan | None:
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
    broken = {kind: replace(small, kind=kind)}
    return SmallPlan(plan=small.own_plan, broken=broken, told=kind, failed=0, runs=0, stopped=why)


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
