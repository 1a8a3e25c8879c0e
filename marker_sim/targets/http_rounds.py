"""The rounds of a campaign against a server that a command starts: load and faults, a few beside each other.

Rounds go through the kinds of `worlds.http.rounds.KINDS` in an order drawn from the seed, with few and many batch
threads and short and long intervals. Real time decides what meets what, so a seed gives the same choices and not the
same run.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Empty, LifoQueue

from marker_sim.campaign.result import Campaign, Deciding
from marker_sim.campaign.statistics import Statistics
from marker_sim.plan import Plan
from marker_sim.search.hostile_plans import make_hostile_plan
from marker_sim.search.merged_plans import make_merged_plan
from marker_sim.seeds import plan_seed
from marker_sim.targets.batching import Batching, batching
from marker_sim.targets.run_environment import RunEnvironment, kinds_on, open_ground
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.http import file_rewrites
from marker_sim.worlds.http.plan_faults import CONFINED, STORAGE_FAULT, done
from marker_sim.worlds.http.planned_run import HOSTILE, OF_PLANS, ServerSlot
from marker_sim.worlds.http.round_stage import Round
from marker_sim.worlds.http.round_types import DECIDES, LEAST_S
from marker_sim.worlds.http.rounds import KINDS, PlayedRound, run_round
from marker_sim.worlds.http.servers import Command, Fleet
from marker_sim.worlds.http.stage import ForeignSystem
from marker_sim.worlds.http.wire_rounds import kinds_here

FAULTS_MIN_S = 1.0
FAULTS_MAX_S = 8.0
ROUNDS_WANTED = 20
FRAME_S = 4.0
CLOSING_S = 1.0
AT_A_TIME = 2
PLAN = "plan"
CONFINED_EVERY, CONFINED_FIRST = 6, 2  # Of the plans: those with storage that fails below one directory.
HOSTILE_EVERY, HOSTILE_FIRST = 6, 1  # Those of hostile input.
RUN_S, RUN_SHARE = 25.0, 0.25  # The longest that a plan may take, which whoever never answers makes use of.
PLANS_S = 8.0  # Of each lane, for the plans before the last kind of round.
PLANS_BETWEEN = (3, 9)  # Two rounds of kinds, until each kind was played, and from then on.
# What has to happen in plans before a guarantee holds.
PLANS_DECIDE = {
    "plan": ("G1", "G2", "G3", "G4", "G6", "G9", "G10", "G11"),
    "kill": ("G1", "G2", "G3", "G4", "G6", "G9"),
    "second-server": ("G1", "G2", "G3", "G4"),
    "pause": ("G3", "G6"),
    "directory-removed": ("G1", "G2", "G3", "G4"),
    STORAGE_FAULT: ("G2", "G3", "G6", "G11"),
    CONFINED: ("G7",),
    HOSTILE: ("G12",),
    "deletion": ("G10", "G11"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRound:
    """A round that is a plan."""

    number: int
    plan: Plan
    kind: str = PLAN

    @property
    def line(self) -> str:
        """Which it is, for whoever watches."""
        plan = self.plan
        return f"round {self.number}: a plan, {len(plan.single_ops)} operations, {len(plan.faults)} faults"


@contextmanager
def open_rounds(
    start: str, request: CampaignRequest, version: str, startup_s: float, kinds: tuple[str, ...], at_once: int
) -> Iterator[ServerRounds]:
    """The rounds against the server that `start` starts, with the files and storage they need until the block ends.

    version: of the system under test.
    startup_s: how long a server may take to answer.
    kinds: of rounds, "plan" among them, () for all. at_once: how many runs of a plan may go on beside each other.
    HarnessError when files or storage cannot be had.
    """
    began, server = time.monotonic(), request.server
    batches = batching(start, server.batch_threads)
    with open_ground(request.storage, server.dir_format, server.reader, server.endpoint) as ground:
        system = ForeignSystem(
            name=request.target.sut, version=version, profile=request.profile, world=ground.world,
            identity=server.identity, batching=batches.words,
        )  # fmt: skip
        fleet = Fleet(Command(text=start, startup_s=startup_s), ground.scratch / "work", request.report / "logs")
        here, lacking = kinds_here(tuple(kind for kind in kinds or KINDS if kind in ground.kinds))
        plans = not kinds or PLAN in kinds
        choices = RoundChoices(request.seed, request.budget_s, began, here, batches, request.storage if plans else "")
        with fleet:
            rounds = ServerRounds(choices, system, fleet, ground, lacking, server, at_once)
            try:
                yield rounds
            finally:
                rounds.end()


class ServerRounds:
    """The rounds of one campaign; `targets.target.Rounds` says what each method is for."""

    lanes = AT_A_TIME

    def __init__(
        self,
        choices: RoundChoices,
        system: ForeignSystem,
        fleet: Fleet,
        ground: RunEnvironment,
        lacking: tuple[str, ...],
        server: ServerOptions,
        at_once: int,
    ) -> None:
        self.at_once = at_once
        self._server = server
        self._choices, self._system, self._fleet, self._ground = choices, system, fleet, ground
        self._lacking = lacking
        self._played: Counter[str] = Counter()
        self._missed: list[str] = []
        self._slots: LifoQueue[ServerSlot] = LifoQueue()
        for number in range(max(self.lanes, at_once)):
            self._slots.put(ServerSlot(f"p{number}", system, fleet))

    def draw(self, reached: Mapping[str, int]) -> Round | PlanRound | None:
        """The next round, None when none fits into the budget; the first always does."""
        return self._choices.next()

    def play(self, drawn: Round | PlanRound) -> PlayedRound:
        """Run it."""
        if isinstance(drawn, PlanRound):
            return self.again(drawn.plan, min(self._choices.deadline, time.monotonic() + self._choices.run_s))
        return run_round(drawn, self._system, self._fleet)

    def again(self, plan: Plan, deadline: float, fresh: bool = False, probing: bool = True) -> PlayedRound:
        """Run a plan; from any thread, of which `at_once` run at a time.

        deadline: when the campaign has to be over (time.monotonic).
        fresh: whether servers of earlier runs are ended first.
        probing: whether it ends with probes.
        """
        slot = self._slots.get()
        try:
            if fresh:
                slot.close()
            return slot.run(plan, deadline, probing)
        finally:
            self._slots.put(slot)

    def spare(self, share: float) -> None:
        """Keep a share of the budget for making small what was found."""
        self._choices.spare(share)

    def took(self, drawn: Round | PlanRound, played: PlayedRound) -> None:
        """It is over."""
        self._choices.took(drawn)
        self._played[drawn.kind] += 1
        self._missed += [f"{what} (declared in round {drawn.number}, {drawn.kind})" for what in played.missed]

    def end(self) -> None:
        """End the servers that live on from run to run, and remove what they stored."""
        with contextlib.suppress(Empty):
            while True:
                self._slots.get_nowait().close()

    def close(self) -> None:
        """End every server."""
        self._fleet.end_all()

    def line(self, statistics: Statistics, steps: int) -> str:
        """How far it is."""
        return f"{statistics.runs} rounds, {steps:,} requests"

    def complete(self, campaign: Campaign) -> Campaign:
        """What kinds of rounds were played, what they missed, and what the server was held to."""
        reached, kinds = campaign.statistics.reached, self._choices.kinds
        wanted = [f"a round of kind {kind}" for kind in kinds if kind not in self._played]
        header = None if campaign.last is None else campaign.last.header
        looks = header is not None and (header.witness == "reads" or header.layout == "names")
        if looks and "storage read at an answer" not in reached:
            wanted.append("storage read at an answer")
        counts = [(kind, self._played[kind]) for kind in kinds]
        plans = [
            Deciding(
                name=OF_PLANS + name,
                guarantees=guarantees,
                tried=reached.get(OF_PLANS + name, 0) and 1,
                met=reached.get(OF_PLANS + name, 0),
            )
            for name, guarantees in (PLANS_DECIDE.items() if self._choices.plans else ())
            if name not in (STORAGE_FAULT, CONFINED) or self._server.endpoint is None
        ]
        return replace(
            campaign,
            not_reached=(*wanted, *self._missed, *file_rewrites.missed(reached)),
            deciding=(
                *(
                    Deciding(name=f"rounds of kind {kind}", guarantees=DECIDES[kind], tried=count, met=count)
                    for kind, count in counts
                ),
                *plans,
            ),
            left_out=(*self._ground.left_out, *self._lacking, *file_rewrites.unknown(reached)),
            s3=self._ground.probed,
            batching=self._system.batching,
            server=self._server.to_dict(),
        )


class RoundChoices:
    """The rounds that fit into the budget: each kind once among the plans, then again, each as long as its like took.

    plans: the storage of plans that are run besides, "" for none.
    run_s: how long one of them may take.
    """

    def __init__(
        self, seed: int, budget_s: float, began: float, kinds: tuple[str, ...], batches: Batching, plans: str
    ) -> None:
        self._batches = batches
        self._rng = random.Random(seed)
        self.plans = plans
        self._budget_s = budget_s
        self.run_s = max(RUN_S, RUN_SHARE * budget_s)
        self.deadline = self._until = began + budget_s - CLOSING_S
        self._kinds_drawn = self._plans_since = self._plans = 0
        self.kinds = kinds
        self._order = _order(self._rng, kinds)
        self._faults_s = _faults_s(budget_s)
        self._taken_s: dict[str, float] = {}
        self._begun: dict[int, float] = {}
        self._number = 0
        self._seed = seed

    def spare(self, share: float) -> None:
        """Begin no round in the last part of the budget."""
        self._until = min(self._until, self.deadline - share * self._budget_s)

    def next(self) -> Round | PlanRound | None:
        """The next round, None when none fits any more; the first always does."""
        now = time.monotonic()
        kind = self._kind()
        known = self._taken_s.get(kind) or min(self._taken_s.values(), default=self._faults_s + FRAME_S)
        if self._number and now + known > self._until:
            return None
        number = self._number
        self._begun[number] = now
        self._number += 1
        if kind == PLAN:
            self._plans += 1
            plan = plan_for_servers(self._plans, plan_seed(self._seed, number), self.plans, self._batches)
            return PlanRound(number=number, plan=plan)
        self._kinds_drawn += 1
        return Round(
            number=number,
            kind=kind,
            seed=self._seed,
            num_threads=self._rng.choice(self._batches.threads),
            interval_ms=self._rng.choice(self._batches.intervals_ms),
            faults_s=self._faults_s,
            deadline=self.deadline,
        )

    def _kind(self) -> str:
        """Some plans, then a round of a kind."""
        space = PLANS_BETWEEN[self._kinds_drawn >= len(self._order)]
        if self.plans and (self._plans_since < space or not self._order):
            self._plans_since += 1
            return PLAN
        self._plans_since = 0
        return self._order[self._kinds_drawn % len(self._order)]

    def took(self, spec: Round | PlanRound) -> None:
        """A round is over."""
        taken_s = time.monotonic() - self._begun[spec.number]
        known_s = self._taken_s.get(spec.kind, taken_s)
        self._taken_s[spec.kind] = (known_s + taken_s) / 2 if spec.kind == PLAN else max(known_s, taken_s)


def plan_of_number(seed: int, number: int, storage: str, batches: Batching) -> Plan:
    """The plan with a number of the search with a seed."""
    return plan_for_servers(number, plan_seed(seed, number), storage, batches)


def plan_for_servers(number: int, seed: int, storage: str, batches: Batching) -> Plan:
    """The plan of a seed, hostile or with storage that fails in one place or neither by its number in a campaign."""
    if number % HOSTILE_EVERY == HOSTILE_FIRST:
        return make_hostile_plan(seed, storage, batches.threads, batches.intervals_ms)
    confined = number % CONFINED_EVERY == CONFINED_FIRST
    return make_merged_plan(seed, storage, batches.threads, batches.intervals_ms, done, confined)


def _order(rng: random.Random, kinds: tuple[str, ...]) -> list[str]:
    """The kinds as they come."""
    return rng.sample(kinds, len(kinds))


def _faults_s(budget_s: float) -> float:
    """How long the faults of a round take in a campaign."""
    return min(max(budget_s / ROUNDS_WANTED, FAULTS_MIN_S), FAULTS_MAX_S)


def has_room(budget_s: float, kinds: tuple[str, ...]) -> bool:
    """Whether a budget most likely has room for a round of each kind, `AT_A_TIME` of them beside each other."""
    lanes_s = [PLANS_S] * AT_A_TIME
    for kind in sorted(kinds, key=lambda kind: -LEAST_S[kind]):
        lanes_s[lanes_s.index(min(lanes_s))] += LEAST_S[kind] + _faults_s(budget_s) - FAULTS_MIN_S
    return max(lanes_s) <= budget_s - CLOSING_S


def room_of(seed: int, budget_s: float, kinds: tuple[str, ...]) -> str:
    """What a budget leaves out, and one that leaves nothing out, in a sentence; "" when it has room for every kind."""
    if has_room(budget_s, kinds):
        return ""
    order, lanes_s, short = _order(random.Random(seed), kinds), [PLANS_S] * AT_A_TIME, list[str]()
    for kind in order:
        lane = lanes_s.index(min(lanes_s))
        lanes_s[lane] += LEAST_S[kind] + _faults_s(budget_s) - FAULTS_MIN_S
        if lanes_s[lane] > budget_s - CLOSING_S and kind != order[0]:  # The first is always played.
            short.append(kind)
    enough = next(each for each in range(10, 1000, 10) if has_room(each, kinds))
    which = f"rounds of kind {', '.join(short)} will most likely be" if short else "some kind of round may be"
    return f"--budget {budget_s:g}s is short: {which} left out; {enough}s have room for one of each kind"


def forecast(request: CampaignRequest) -> str:
    """What the budget of a request leaves out, in a sentence."""
    kinds, _ = kinds_here(kinds_on(request.storage, request.server.endpoint))
    return room_of(request.seed, request.budget_s, kinds)
