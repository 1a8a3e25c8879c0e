"""Units with real processes: swarm plans run by driver, executors and server that can be killed.

A real run may end differently each time. Its violation is searched in the simulated world, where the plan can be
shrunk; if it does not occur there, the plan is stored as it is and run `TIMES` times more.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from marker_sim.campaign.nightly.failures import NOT_REPRODUCED, VIOLATED, Sighting, kind_of, parse_stored, plan_of
from marker_sim.campaign.nightly.work import NightlyTask, counts_of, shrunk_sighting, sighting_of, worth_shrinking
from marker_sim.campaign.runs import execute, fails_with, promised_breach
from marker_sim.campaign.servability import LEFT_OUT, NOT_SERVED, findings_in
from marker_sim.campaign.statistics import Statistics
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.loading import load_system
from marker_sim.plan import MODES, Plan
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.seeds import plan_seed
from marker_sim.system import System
from marker_sim.targets.python import served
from marker_sim.worlds.processes.cluster import ProcessCluster
from marker_sim.worlds.processes.fork_server import ForkServer

# What a run of a few seconds can hold; the simulated world runs the larger ones.
ENTRIES_MAX = 60
LASTS_MAX_S = 40.0
TIMES = 2
TOO_LARGE = "plan too large for real processes"
TOO_LONG = "plan too long for real processes"
_STORAGES = {"real-local": "local", "real-s3": "s3"}
_KINDS = tuple((mode, make) for mode in MODES for make in (make_write_plan, make_plan))


class RealWork:
    """Does units with one template of children for all of them; a context manager that leaves no process."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._fork_server: ForkServer | None = None

    def __enter__(self) -> RealWork:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def fork_server(self) -> ForkServer:
        """The template, started when it is first needed."""
        if self._fork_server is None:
            self._fork_server = self._stack.enter_context(ForkServer())
        return self._fork_server

    def units(self, task: NightlyTask) -> dict[str, Any]:
        """Plans by number: a seed in either mode, of writes and of operations."""
        system, profile = load_system(task.sut), load_profile(task.profile)
        statistics, found = Statistics(), dict[str, Sighting]()
        for number in range(task.first, task.first + task.count):
            plan = plan_of_number(task.seed, number, _STORAGES[task.stream])
            if plan.entries > ENTRIES_MAX or not served(system, plan.mode, plan.storage):
                statistics.reach(TOO_LARGE if plan.entries > ENTRIES_MAX else NOT_SERVED)
                continue
            if _lasts_s(plan, system) > LASTS_MAX_S:
                statistics.reach(TOO_LONG)
                continue
            history = ProcessCluster(plan, task.sut, self.fork_server).run()
            findings = findings_in(history, system)
            if not findings:
                statistics.reach(LEFT_OUT)
                continue
            statistics.add(history, findings)
            for finding in findings:
                breach = promised_breach(finding, plan, profile)
                kind = kind_of(finding.guarantee, plan.mode, plan.storage)
                if breach is not None and kind not in found:
                    real = sighting_of(finding.guarantee, plan.mode, plan, breach, history, False, "real")
                    found[kind] = self._explained(real, plan, task, system, profile)
        return counts_of(statistics, 0, profile) | {"sightings": [asdict(found[kind]) for kind in sorted(found)]}

    def stored(self, task: NightlyTask) -> dict[str, Any]:
        """A stored failure of real processes again, `TIMES` + 1 times: its status."""
        assert task.failure is not None
        failure = parse_stored(task.failure, str(task.failure.get("name")))
        guarantee, profile = failure.sighting.guarantee, load_profile(failure.profile)
        again, _ = self.run_again(plan_of(failure, failure.name), failure.sut, guarantee, profile, TIMES + 1)
        return {"status": VIOLATED if again else NOT_REPRODUCED, "trouble": ""}

    def run_again(self, plan: Plan, sut: str, guarantee: str, profile: Profile, times: int) -> tuple[int, int]:
        """In how many of `times` runs with real processes the guarantee was broken, and in how many it held."""
        system, asked = load_system(sut), frozenset({guarantee})
        histories = (ProcessCluster(plan, sut, self.fork_server).run() for _ in range(times))
        runs = [findings_in(history, system, asked) for history in histories]
        broken = sum(_broken(findings, plan, profile) for findings in runs)
        return broken, sum(any(f.judged and not f.breaches and not f.undecided for f in findings) for findings in runs)

    def _explained(self, real: Sighting, plan: Plan, task: NightlyTask, system: System, profile: Profile) -> Sighting:
        """The violation as the simulated world shows it, small, or as it was with a word on how often it comes."""
        if fails_with(real.guarantee, system, profile)(plan):
            until = task.until if worth_shrinking(task.seen.get(real.kind, 0)) else 0.0
            small = shrunk_sighting(real.guarantee, real.mode, plan, system, profile, until)
            if small is not None:
                return small
        again, _ = self.run_again(plan, task.sut, real.guarantee, profile, TIMES)
        note = f"\nseen with real processes in {again + 1} of {TIMES + 1} runs, and not in the simulated world"
        return replace(real, text=real.text + note)


def plan_of_number(search: int, number: int, storage: str) -> Plan:
    """The plan with a number, of the search with a seed; four of them share the seed of their plans."""
    mode, make = _KINDS[number % len(_KINDS)]
    return make(plan_seed(search, number // len(_KINDS)), mode, storage)


def _lasts_s(plan: Plan, system: System) -> float:
    """How long the operations and writes of a plan take by the simulator's clock, which real ones keep as well.

    A storage that stays silent for forty calls takes minutes, which real processes would be called stuck for.
    """
    history, _ = execute(plan, system)
    return next(event.time_ns for event in history.events if event.value == "healed") / 1e9


def _broken(findings: tuple[Finding, ...], plan: Plan, profile: Profile) -> bool:
    return any(promised_breach(finding, plan, profile) is not None for finding in findings)
