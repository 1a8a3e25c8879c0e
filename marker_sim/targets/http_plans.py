"""The runs of a campaign against a server started by a command: plans drawn by number, a few at the same time.

By its number a plan is hostile, or has storage that fails in one place, or connections that fail, or is made of several
of the swarm. Within a budget, half of the plans are the next ones that can meet what decides and was not met yet. Real
time decides what meets what, so a number of a seed gives the same plan and not the same run. A share of the time is for
a walk: each storage call of a short workload fails, or is the last of its server (search/walks.py). Power is lost where
the profile promises anything then.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from queue import Empty, LifoQueue
from typing import cast

from marker_sim.outcome import conditions
from marker_sim.outcome.failure import Kind
from marker_sim.outcome.result import Campaign, Deciding
from marker_sim.plan import Plan
from marker_sim.search.hostile_plans import make_hostile_plan
from marker_sim.search.merged_plans import Theme, make_merged_plan
from marker_sim.search.power_plans import losing_power, make_power_plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.walks import Walk
from marker_sim.search.wire_plans import make_wire_plan
from marker_sim.targets.run_environment import RunEnvironment, open_ground
from marker_sim.targets.server_settings import Batching, batching
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.door.front import UNSEEN
from marker_sim.worlds.http.plan_faults import done
from marker_sim.worlds.http.plan_wires import STORAGE_WIRE, WIRE
from marker_sim.worlds.http.planned_run import HOSTILE, OF_PLANS, ForeignSystem, PlayedPlan, ServerSlot
from marker_sim.worlds.http.servers import Command, Fleet
from marker_sim.worlds.http.world import UNREAD

CLOSING_S = 1.0
AT_A_TIME = 2
PLANS_MIN = 30  # As many have time for what decides, and for a walk.
FIRST_S = 5.0  # Estimated time of a plan until one has ended.
EVERY, HOSTILE_AT = 6, 1  # One plan of EVERY is hostile, with this number.
THEMES: dict[int, Theme] = {2: "confined", 4: "two servers"}  # Of EVERY plans; in the others servers die.
# A private format may have no file in a marker directory, so a full disk has to refuse its writes.
NAMELESS: dict[int, Theme] = {**THEMES, 3: "full disk"}
WIRES_EVERY, WIRES_AT = 12, {WIRE: 5, STORAGE_WIRE: 6}  # Plans with faults of connections, if possible.
POWER_EVERY, POWER_AT = 3, 2  # Plans that are about losses of power, where these are promised, beside the others.
WALK_SHARE, WALK_SHARE_MET = 0.15, 0.6  # Of the time: until plans met all that decides, and then.
WALK_FIRST_S = 80.0  # The walk's share of so much comes first: its plans are small, and so is what they break.
RUN_S, RUN_SHARE = 25.0, 0.25  # The limit of a plan, which servers that never answer reach.
# The conditions, measured in histories, that plans must meet before a guarantee holds.
PLANS_DECIDE = {
    "plan": ("G1", "G2", "G3", "G4", "G6", "G9", "G10", "G11"),
    conditions.KILLED: ("G1", "G2", "G3", "G4", "G6", "G9"),
    conditions.POWER_LOST: ("G1", "G2", "G3", "G4", "G9"),
    conditions.IN_TURN: ("G1", "G2", "G3", "G4"),
    conditions.AT_ONCE: ("G1", "G2", "G3", "G4"),
    conditions.PAUSED: ("G3", "G6"),
    conditions.REMOVED: ("G1", "G2", "G3", "G4"),
    conditions.REFUSED: ("G2", "G3", "G6", "G11"),
    conditions.TYPE_REFUSED: ("G9",),
    conditions.ASKED_AGAIN: ("G2",),
    conditions.CROWD_REFUSED: ("G6",),
    conditions.ONE_REFUSED: ("G7",),
    HOSTILE: ("G12",),
    conditions.DELETED: ("G10", "G11"),
    conditions.ODD_TABLE: ("G4", "G11"),
    conditions.ELSEWHERE: ("G4", "G11"),
    conditions.COMPRESSED: ("G4", "G11"),
    WIRE: ("G4", "G5", "G6"),
    STORAGE_WIRE: ("G3", "G6"),
}
# The kinds of plans that can meet a condition; plans about deaths meet the others.
MET_BY = {
    conditions.POWER_LOST: conditions.POWER_LOST,
    conditions.IN_TURN: "two servers",
    conditions.AT_ONCE: "two servers",
    conditions.REFUSED: "confined",
    conditions.TYPE_REFUSED: "confined",
    conditions.ASKED_AGAIN: "confined",
    conditions.CROWD_REFUSED: "confined",
    conditions.ONE_REFUSED: "confined",
    HOSTILE: HOSTILE,
    WIRE: WIRE,
    STORAGE_WIRE: STORAGE_WIRE,
}
DUE_FIRST = 2  # One plan of so many is the next that can meet what decides.
OF_STORAGE = {name for name, kind in MET_BY.items() if kind == "confined"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedPlan:
    """A plan and its number in the campaign, or in the walk. began: time.monotonic(). patient: as of `again`."""

    number: int
    plan: Plan
    began: float
    walked: bool
    patient: bool

    @property
    def line(self) -> str:
        """The progress line of the plan."""
        plan, kind = self.plan, "walk" if self.walked else "plan"
        return f"{kind} {self.number}: {len(plan.single_ops)} operations, {len(plan.faults)} faults"


@dataclass(slots=True)
class _Pace:
    """The plans of one kind.

    spent_s: of all. least_s: of the quickest. next_s: the estimate for one more, 0 for none.
    """

    drawn: int = 0
    spent_s: float = 0.0
    least_s: float = math.inf
    next_s: float = 0.0

    def took(self, seconds: float) -> None:
        self.spent_s += seconds
        self.least_s = min(self.least_s, seconds)
        self.next_s = (self.next_s + seconds) / 2 if self.next_s else seconds


@contextmanager
def open_plans(
    start: str, request: CampaignRequest, version: str, startup_s: float, at_once: int, ahead: bool
) -> Iterator[ServerPlans]:
    """The runs of plans against the server that `start` starts, with their files and storage for the block.

    version: of the system under test.
    startup_s: how long a server may take to answer.
    at_once: how many runs of a plan may go on beside each other.
    ahead: as of `Command`, on local storage, where the door would see it.
    HarnessError when files or storage cannot be had.
    """
    began, server = time.monotonic(), request.server
    batches = batching(start, server.batch_threads)
    with open_ground(request.storage, server.dir_format, server.reader, server.endpoint) as ground:
        system = ForeignSystem(
            name=request.target.sut,
            version=version,
            profile=request.profile,
            world=ground.world,
            identity=server.identity,
            batching=batches.words,
        )
        command = Command(text=start, startup_s=startup_s, ahead=ahead and request.storage == "local")
        fleet = Fleet(command, ground.scratch / "work", request.report / "logs")
        with fleet:
            plans = ServerPlans(request, began, batches, system, fleet, ground, at_once)
            try:
                yield plans
            finally:
                plans.end()


class ServerPlans:
    """The plans of one campaign, as many as fit into the budget, each estimated by earlier ones.

    `targets.target.RealRuns` says what each method is for.
    """

    lanes = AT_A_TIME
    counts = ("plans", "requests")

    def __init__(
        self,
        request: CampaignRequest,
        began: float,
        batches: Batching,
        system: ForeignSystem,
        fleet: Fleet,
        ground: RunEnvironment,
        at_once: int,
    ) -> None:
        self.at_once = at_once
        self._request, self._batches = request, batches
        self._system, self._fleet, self._ground = system, fleet, ground
        self._run_s = max(RUN_S, RUN_SHARE * request.budget_s)
        self._deadline = self._until = began + request.budget_s - CLOSING_S
        self._plans, self._walked = _Pace(), _Pace()
        self._number = 0  # Of the last plan.
        quick = min(batches.threads), min(batches.intervals_ms)
        self._power = loses_power(request)
        self._walk = Walk(request.storage, *quick, request.seed, power=self._power)
        self._opening = request.runs is None
        self._slots: LifoQueue[ServerSlot] = LifoQueue()
        for number in range(max(self.lanes, at_once)):
            self._slots.put(ServerSlot(f"p{number}", system, fleet))

    def draw(self, reached: Mapping[str, int]) -> NumberedPlan | None:
        """The next plan, None when none fits into the budget; the first always does."""
        walked = self._walks(reached) and self._fits(self._walked)
        plan = self._walk.next() if walked else None
        if self._opening and plan is None and self._until < self._deadline:
            return None  # What the walk found is made small before large plans.
        self._opening &= plan is not None
        if plan is None:
            if self._plans.drawn and not self._fits(self._plans) and not self._fits_if_small(reached):
                return None
            walked, plan = False, self._next(reached)
        pace = self._walked if walked else self._plans
        pace.drawn += 1
        patient = not walked or self._walk.patient(plan)
        return NumberedPlan(number=pace.drawn, plan=plan, began=time.monotonic(), walked=walked, patient=patient)

    def _next(self, reached: Mapping[str, int]) -> Plan:
        request = self._request
        named = names_tell(request)
        kind = partial(kind_of, wires=self._ground.wires, named=named, power=self._power)
        unmet = {MET_BY.get(name, "deaths") for name in self._missing(reached)}
        numbers = count(self._number + 1)
        due = self._plans.drawn % DUE_FIRST == 0 and unmet
        self._number = number = next(each for each in numbers if not due or kind(each) in unmet)
        seed, settings = plan_seed(request.seed, number), (self._ground.wires, named, self._small, self._power)
        return plan_for_servers(number, seed, request.storage, self._batches, *settings)

    @property
    def _small(self) -> bool:
        """Whether plans are small: if too few large ones would fit, or before it is known how long they take."""
        few = self._plans.next_s * PLANS_MIN > self._request.budget_s * self.lanes
        return few or not self._plans.next_s or not self._fits(self._plans)

    def _fits_if_small(self, reached: Mapping[str, int]) -> bool:
        """Whether something that decides is missing, and one more plan fits that is as quick as the quickest."""
        return bool(self._missing(reached)) and time.monotonic() + self._plans.least_s <= self._until

    def _walks(self, reached: Mapping[str, int]) -> bool:
        """Whether the walk goes on, which needs storage whose calls are seen."""
        first_s = 0 if self._request.runs else min(WALK_FIRST_S, 2 * self._request.budget_s)
        spent_s = max(self._plans.spent_s + self._walked.spent_s, first_s)
        most_s = (WALK_SHARE if self._missing(reached) else WALK_SHARE_MET) * spent_s
        return spent_s > 0 and self._request.server.endpoint is None and self._walked.spent_s <= most_s

    def _missing(self, reached: Mapping[str, int]) -> list[str]:
        """What decides and was not met in any plan so far."""
        return [name for name in self._decided_by() if not reached.get(OF_PLANS + name)]

    def _fits(self, pace: _Pace) -> bool:
        return time.monotonic() + (pace.next_s or FIRST_S) <= self._until

    def _decided_by(self) -> tuple[str, ...]:
        return decided_by(self._request.server, self._ground.wires, self._power)

    def play(self, drawn: NumberedPlan) -> PlayedPlan:
        """The result of the plan's run."""
        deadline = min(self._deadline, time.monotonic() + self._run_s)
        return self.again(drawn.plan, deadline, patient=drawn.patient)

    def again(
        self, plan: Plan, deadline: float, fresh: bool = False, probing: bool = True, patient: bool = True
    ) -> PlayedPlan:
        """The result of running a plan; callable from any thread, of which `at_once` run at a time.

        deadline: when the campaign has to be over (time.monotonic).
        fresh: whether servers of earlier runs are ended first.
        probing: whether it ends with probes. patient: whether requests that hang are awaited.
        """
        slot = self._slots.get_nowait()  # There is a slot for each simultaneous run.
        try:
            if fresh:
                slot.close()
            return slot.run(plan, deadline, probing, patient)
        finally:
            self._slots.put(slot)

    def reserve(self, share: float) -> None:
        """Reserve a share of the budget for shrinking: no plan begins in its last part."""
        before, self._until = self._until, self._deadline - share * self._request.budget_s
        self._opening &= self._until <= before  # More time comes after shrinking.

    def took(self, drawn: NumberedPlan, played: PlayedPlan, broken: Collection[Kind]) -> None:
        """Take in that a run has ended."""
        (self._walked if drawn.walked else self._plans).took(time.monotonic() - drawn.began)
        if drawn.walked:
            struck = played.plan.faults[-1] in played.struck and bool(played.history.events)
            self._walk.took(drawn.plan, played.calls, struck, {kind.guarantee for kind in broken}, played.hung)

    def end(self) -> None:
        """End the servers kept between runs, and remove what they stored."""
        with contextlib.suppress(Empty):
            while True:
                self._slots.get_nowait().close()

    def close(self) -> None:
        """End every server."""
        self._fleet.end_all()

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result with what happened in the plans, and the bounds by which the server was judged."""
        reached = campaign.statistics.reached
        header = None if campaign.last is None else campaign.last.header
        looks = header is not None and (header.witness == "reads" or header.layout == "names")
        unread = looks and "storage read at an answer" not in reached
        unseen = sorted(name for name in reached if name.startswith(UNSEEN) and not looks)
        return replace(
            campaign,
            not_reached=(
                *(["storage read at an answer"] if unread else []),
                *unseen,
                *(name for name in reached if name.startswith(UNREAD)),
            ),
            deciding=tuple(
                Deciding(
                    name=OF_PLANS + name,
                    guarantees=PLANS_DECIDE[name],
                    tried=int(OF_PLANS + name in reached),
                    met=reached.get(OF_PLANS + name, 0),
                )
                for name in self._decided_by()
            ),
            walked=self._walk.rows(),
            left_out=self._ground.left_out,
            s3=self._ground.probed,
            batching=self._system.batching,
            server=self._request.server.to_dict(),
        )


def loses_power(request: CampaignRequest) -> bool:
    """Whether power is lost in plans: on local storage, where that is promised to be survived."""
    return request.storage == "local" and request.profile.survives_power_loss("timeline", request.storage)


def names_tell(request: CampaignRequest) -> bool:
    """Whether the names of files on storage say what is in them."""
    return request.storage != "local" or not request.server.reader


def decided_by(server: ServerOptions, wires: tuple[str, ...], power: bool = False) -> tuple[str, ...]:
    """What must happen in plans before all guarantees hold: keys of `PLANS_DECIDE`.

    wires: where connections can be made to fail. power: whether it is lost in plans. An object store of the user's own
    does not fail otherwise, and only where the kit sees each call, and knows how files are called, can it refuse the
    type file alone.
    """
    impossible = {WIRE, STORAGE_WIRE} - {*wires}
    if not power:
        impossible.add(conditions.POWER_LOST)
    if server.endpoint is not None:
        impossible |= OF_STORAGE
    elif server.reader:
        impossible.add(conditions.TYPE_REFUSED)
    return tuple(name for name in PLANS_DECIDE if name not in impossible)


def kind_of(number: int, wires: tuple[str, ...], named: bool = True, power: bool = False) -> str:
    """What the plan with this number, from 1, is about: a theme of `make_merged_plan`, or a condition.

    wires: where connections can be made to fail.
    named: whether the names of files on storage say what is in them.
    power: whether it is lost in plans.
    """
    if power and number % POWER_EVERY == POWER_AT:
        return conditions.POWER_LOST
    number = _turn(number, power)
    if number % EVERY == HOSTILE_AT:
        return HOSTILE
    wire = next((wire for wire in wires if number % WIRES_EVERY == WIRES_AT[wire]), None)
    return wire or (THEMES if named else NAMELESS).get(number % EVERY, "deaths")


def _turn(number: int, power: bool) -> int:
    """The number of a plan among those that are not about losses of power."""
    return number - (number + POWER_AT - 1) // POWER_EVERY if power else number


def plan_for_servers(
    number: int,
    seed: int,
    storage: str,
    batches: Batching,
    wires: tuple[str, ...],
    named: bool = True,
    small: bool = False,
    power: bool = False,
) -> Plan:
    """The plan of a seed; its number in a campaign selects what it is about (`kind_of`).

    small: for servers that take long.
    """
    kind = kind_of(number, wires, named, power)
    common = seed, storage, batches.threads, batches.intervals_ms
    if kind == conditions.POWER_LOST:
        return make_power_plan(seed, batches.threads, batches.intervals_ms)
    if kind == HOSTILE:
        plan = make_hostile_plan(*common)
    elif kind in WIRES_AT:
        cls, turn = "wire" if kind == WIRE else "storage", _turn(number, power) // WIRES_EVERY
        plan = make_wire_plan(*common, cls, turn, small)
    else:
        plan = make_merged_plan(*common, done, cast(Theme, kind), small)
    return losing_power(plan) if power else plan
