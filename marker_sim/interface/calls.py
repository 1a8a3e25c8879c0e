"""`import marker_sim`: verify, replay and judge as functions, with a class where the command line takes a string.

They print nothing and write nothing, run in the calling process and thread, and return when they are done, also under
an event loop. `verify` and `replay` are for systems that run plans in the simulated world: Python, the reference, its
mutants and programs. Servers, a released Hudi and real processes are judged by the command line.

UsageError for a wrong argument, or a class that does not keep the contract; HarnessError for trouble of the kit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import ParamSpec, TypeVar

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.replay import Replayed, simulated
from marker_sim.errors import UsageError
from marker_sim.history import History, read_jsonl
from marker_sim.interface.verdict import Verdict
from marker_sim.judges import Finding
from marker_sim.judges import judge as judge_history
from marker_sim.judges.guarantees import parse_guarantees
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.markers.store import Factory
from marker_sim.plan import MODES, STORAGES, Plan, read_plan
from marker_sim.reading import either
from marker_sim.report.columns import read_parquet
from marker_sim.report.verdict import judge_campaign, with_leading_curve
from marker_sim.system import System
from marker_sim.targets.python import LoadedTarget, target_of
from marker_sim.targets.table import PLANNED, parse_target
from marker_sim.targets.target import CampaignRequest, Target

RUNS = 500
Given = ParamSpec("Given")
Result = TypeVar("Result")


def _spelled(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, which raises UsageError for an argument that it does not have."""
    names = tuple(signature(function).parameters)

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        for wrong in (each for each in named if each not in names):
            name = f"{function.__name__} was given {wrong}, which it does not have"
            near = get_close_matches(wrong, names, 1)
            raise UsageError(f"{name}; write {near[0] if near else f'some of {either(names)}'}")
        return function(*given, **named)

    return call


@_spelled
def verify(
    system: str | Factory | System = "reference",
    *,
    runs: int | None = None,
    seed: int = 0,
    modes: str | Iterable[str] = MODES,
    storages: str | Iterable[str] = STORAGES,
    budget_s: float | None = None,
    guarantees: str | Iterable[str] | None = None,
    profile: str | Path | None = None,
    jobs: int = 1,
    stop_at_first: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Judge a system in the simulated world.

    system: a class or function that takes a Context and returns a store, a System, or a text as of `--sut`.
    runs: how many plans, by default 500; the same runs and seed give the same verdict.
    seed: of the plans.
    modes, storages: "direct", "timeline"; the models "s3", "s3-unconditional", "local", "hdfs"; one or several of each.
    budget_s: seconds instead of a number of runs.
    guarantees: ids, by default all. profile: as of `--profile`, by default that of the system.
    jobs: processes; more than one needs a system that they can import.
    stop_at_first: whether the first violation ends it.
    progress: gets a line now and then.
    """
    target = _target(system)
    asked = {"modes": (_several(modes), MODES), "storages": (_several(storages), STORAGES)}
    for name, (given, accepted) in asked.items():
        wrong = [each for each in given if each not in accepted]
        if wrong or not given:
            raise UsageError(f"{name} was given {wrong[0] if wrong else given!r}; write some of {either(accepted)}")
    if runs is not None and budget_s is not None:
        raise UsageError(f"runs={runs} and budget_s={budget_s} were given; write one of them")
    for name, number in (("runs", runs), ("budget_s", budget_s), ("jobs", jobs)):
        if number is not None and not 0 < number < math.inf:
            raise UsageError(f"{name} was given {number}; write a number above 0")
    if jobs > 1 and isinstance(target, LoadedTarget):
        raise UsageError(f"jobs={jobs} was given with {target.sut}, which other processes cannot import; write jobs=1")
    request = CampaignRequest(
        target=target,
        modes=asked["modes"][0],
        storages=asked["storages"][0],
        seed=seed,
        profile=load_profile(str(profile or target.can.profile)),
        budget_s=math.inf if budget_s is None else budget_s,
        runs=RUNS if runs is None and budget_s is None else runs,
        jobs=jobs,
        guarantees=None if guarantees is None else parse_guarantees(",".join(_several(guarantees))),
        stop_at_first=stop_at_first,
    )
    say = progress or (lambda line: None)
    target.prepare(request, say)
    campaign = run_campaign(request, say)
    outcome = judge_campaign(campaign, request.profile, None, Path("REPORT"), (), request.guarantees)
    loaded = target.load()
    assert loaded is not None, "only systems that run plans are taken"
    say("measuring at which event the first failure became likely")
    return Verdict(request=request, outcome=with_leading_curve(outcome, loaded))


@_spelled
def replay(
    plan: Plan | Path | str,
    system: str | Factory | System = "reference",
    *,
    guarantee: str | None = None,
    profile: str | Path | Profile | None = None,
    times: int = 1,
) -> Replayed:
    """Run a plan in the simulated world and judge it.

    `status` is "still-violated", "fixed", "not-reproduced", or "left-out" where the system cannot use the storage.

    plan: one of a verdict, or the path of a plan.json.
    guarantee: the id of the only one to judge, None for all that are promised.
    times: more than one for a system that is not deterministic.
    """
    loaded = _target(system).load()
    assert loaded is not None, "only systems that run plans are taken"
    asked = None if guarantee is None else next(iter(parse_guarantees(guarantee)))
    judged_by = profile if isinstance(profile, Profile) else load_profile(str(profile or loaded.profile))
    return simulated(plan if isinstance(plan, Plan) else read_plan(Path(plan)), loaded, asked, "", judged_by, times)


def judge(history: History | Path | str, guarantees: str | Iterable[str] | None = None) -> tuple[Finding, ...]:
    """The finding of each guarantee for a history, or the file of one (.jsonl or .parquet); ids, by default all."""
    asked = None if guarantees is None else parse_guarantees(",".join(_several(guarantees)))
    if not isinstance(history, History):
        path = Path(history)
        if path.suffix not in (".jsonl", ".parquet") or not path.is_file():
            raise UsageError(f"{path} is no history; give a .jsonl or .parquet file, for example of a report directory")
        history = read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path)
    return judge_history(history, asked)


def _several(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _target(system: str | Factory | System) -> Target:
    target = parse_target(system) if isinstance(system, str) else target_of(system)
    if not target.can.plans:
        raise UsageError(
            f"the system {system!r} runs in real time; `marker-sim verify --sut` judges it, and this takes a class or"
            f" {either(PLANNED)}"
        )
    return target
