"""Units against systems whose runs take real time: servers that a command starts, Hudi, Hudi's write path on Spark.

A unit is the plan of a number, run on servers that live from unit to unit, or on a table of its own. What it breaks is
made small on the real system, the 1st, 2nd, 4th and so on of its kind.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from marker_sim.campaign.coverage import tampered_history
from marker_sim.campaign.nightly.failures import NOT_REPRODUCED, VIOLATED, Sighting, parse_stored, plan_of
from marker_sim.campaign.nightly.stages import FOREIGN, SERVER
from marker_sim.campaign.nightly.work import NightlyTask, counts_of, sighting_of, worth_shrinking
from marker_sim.campaign.pieces import Broken, Kind, PieceResult
from marker_sim.campaign.played_shrinking import BESIDE, PlayedShrinker, broken_in
from marker_sim.campaign.result import Canary
from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.plan import Plan
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest, PlayedRun, RealRuns, ServerOptions

SHRINK_S, ALONE_SHRINK_S, SHRINK_SHARE = 30.0, 300.0, 0.25  # At most, and of the rest of the night.
LONG_S, RUN_S, ALONE_RUN_S = 600.0, 120.0, 240.0  # Of a worker's servers, and of one run, at most.
CLOSING_S, ALONE_MIN_S = 5.0, 15.0
TIMES = 5


def foreign_request(
    sut: str, storage: str, server: ServerOptions, profile: str, seed: int, report: Path, budget_s: float
) -> CampaignRequest:
    """What is asked of a system on one storage."""
    target = parse_target(sut)
    return CampaignRequest(
        target=target, modes=target.can.modes, storages=(storage,), seed=seed, profile=load_profile(profile),
        budget_s=budget_s, server=server, report=report,
    )  # fmt: skip


class ForeignWork:
    """Does units on one storage after the other; a context manager that leaves no process."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._runs: RealRuns | None = None
        self._of = ""

    def __enter__(self) -> ForeignWork:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def units(self, task: NightlyTask) -> dict[str, Any]:
        """Plans by number."""
        storage, profile = FOREIGN[task.stream], load_profile(task.profile)
        target, piece, found = parse_target(task.sut), PieceResult(), list[Sighting]()
        for number in range(task.first, task.first + task.count):
            plan = self._plan(task, storage, number)
            broken = piece.add_played(number, self._run(task, storage, plan), None, profile)
            found += self._sightings(task, storage, plan, broken, profile)
        counts = counts_of(piece.statistics, piece.steps, profile)
        return counts | {
            "sightings": [asdict(each) for each in found],
            "goals": list(target.goals(storage, task.server)),
        }

    def stored(self, task: NightlyTask) -> dict[str, Any]:
        """A stored failure again, on the system of this night, until it breaks or `TIMES` times: its status."""
        assert task.failure is not None
        failure = parse_stored(task.failure, str(task.failure.get("name")))
        plan, guarantee = plan_of(failure, failure.name), failure.sighting.guarantee
        profile = load_profile(task.profile)
        for _ in range(TIMES):
            broken = broken_in(self._run(task, plan.storage, plan).history, plan, profile)
            if any(kind[0] == guarantee for kind in broken):
                return {"status": VIOLATED, "trouble": ""}
        return {"status": NOT_REPRODUCED, "trouble": ""}

    def canary(self, task: NightlyTask) -> dict[str, Any]:
        """Whether the judges see a false statement in the history of a run."""
        storage = FOREIGN[task.space]
        plan = self._plan(task, storage, task.first)
        plan = replace(plan, writes=plan.writes[:1])  # Of a table, one step is enough.
        return _as_canary(tampered_history.let_go(self._run(task, storage, plan).history)) | {"trouble": ""}

    def _sightings(
        self, task: NightlyTask, storage: str, plan: Plan, broken: dict[Kind, Broken], profile: Profile
    ) -> list[Sighting]:
        """What a plan broke: with the small plan of its first kind that is worth one, and the rest as it was seen."""
        small: dict[Kind, Broken] = {}
        text = ""
        worth = [kind for kind in broken if worth_shrinking(task.seen.get("/".join(kind[:3]), 0))]
        now = time.monotonic()
        alone = parse_target(task.sut).can.alone
        longest_s = ALONE_SHRINK_S if alone else SHRINK_S
        until = now + min(longest_s, (task.until - CLOSING_S - now) * SHRINK_SHARE)
        if worth and until > now:
            first = min(worth, key=lambda kind: broken[kind].breach.under != "none")

            def again(candidate: Plan, deadline: float, fresh: bool, probing: bool) -> History | None:
                played = self._run(task, storage, candidate, fresh, probing)
                return None if played.cut else played.history

            made = PlayedShrinker(again, profile, 1 if alone else BESIDE).shrink(first, [broken[first]], until)
            small, text = (made.broken, made.sentence) if made.told is not None else ({}, made.sentence)
        found = []
        for kind, seen in {**broken, **small}.items():
            assert seen.plan is not None
            sighting = sighting_of(kind[0], kind[1], seen.plan, seen.breach, seen.history, kind in small, SERVER)
            said = f"{sighting.text}\n{text}" if kind in small else sighting.text
            found.append(replace(sighting, entries_before=plan.entries, text=said, deterministic=False))
        return found

    def _plan(self, task: NightlyTask, storage: str, number: int) -> Plan:
        plan = parse_target(task.sut).plan_of(task.seed, number, storage, task.server)
        assert plan is not None, f"{task.sut} has no plans"
        return plan

    def _run(self, task: NightlyTask, storage: str, plan: Plan, fresh: bool = False, probing: bool = True) -> PlayedRun:
        now = time.monotonic()
        if self._of != storage:
            self._stack.close()
            report = Path(self._stack.enter_context(TemporaryDirectory(prefix="marker-sim-logs-")))
            request = foreign_request(task.sut, storage, task.server, task.profile, task.seed, report, LONG_S)
            self._runs = self._stack.enter_context(request.target.real_runs(request, lambda line: None))
            self._of = storage
        assert self._runs is not None
        until = now + RUN_S
        if parse_target(task.sut).can.alone:  # It ends with the night, and says of its plan what it came to see.
            until = min(now + ALONE_RUN_S, max(task.until - CLOSING_S, now + ALONE_MIN_S))
        played = self._runs.again(plan, until, fresh, probing)
        if played.trouble:
            raise HarnessError(played.trouble)
        return played


def _as_canary(planted: Canary | None) -> dict[str, Any]:
    """A false statement that the judges had to see; caught by: "" when none did."""
    if planted is None:
        return {"mutant": "", "caught": "", "plans": 0}
    return {"mutant": planted.mutant, "caught": planted.guarantee if planted.caught else "", "plans": planted.plans}


def missing_foreign(sut: str, server: ServerOptions, storages: tuple[str, ...], scratch: Path) -> dict[str, str]:
    """Why a stream cannot run here; what has to be fetched is. UsageError when no storage fits the server's options."""
    found: dict[str, str] = {}
    for stream, storage in FOREIGN.items():
        if storage not in storages:
            found[stream] = "--storage leaves it out"
            continue
        request = foreign_request(sut, storage, server, parse_target(sut).can.profile, 0, scratch, LONG_S)
        try:
            request.target.prepare(request, lambda line: None)
        except HarnessError as error:
            found[stream] = str(error)
    return found
