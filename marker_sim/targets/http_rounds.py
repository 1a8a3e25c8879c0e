"""The rounds of a campaign against a server that a command starts: load and faults, a few beside each other.

Rounds go through the kinds of `worlds.http.rounds.KINDS` in an order drawn from the seed, with few and many batch
threads and short and long intervals. Real time decides what meets what, so a seed gives the same choices and not the
same run.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from marker_sim.campaign.result import Campaign, Deciding
from marker_sim.campaign.statistics import Statistics
from marker_sim.targets.batching import Batching, batching
from marker_sim.targets.run_environment import RunEnvironment, kinds_on, open_ground
from marker_sim.targets.target import CampaignRequest
from marker_sim.worlds.http import file_rewrites
from marker_sim.worlds.http.file_rewrites import CUT_KILL
from marker_sim.worlds.http.round_stage import ForeignSystem, Round
from marker_sim.worlds.http.round_types import DECIDES, LEAST_S
from marker_sim.worlds.http.rounds import KINDS, PlayedRound, run_round
from marker_sim.worlds.http.servers import Command, Fleet
from marker_sim.worlds.http.wire_rounds import kinds_here

FAULTS_MIN_S = 1.0
FAULTS_MAX_S = 8.0
ROUNDS_WANTED = 20
FRAME_S = 4.0
CLOSING_S = 1.0
HANGING = ("directory", "storage", "churn")
AT_A_TIME = 2


@contextmanager
def open_rounds(
    start: str, request: CampaignRequest, version: str, startup_s: float, kinds: tuple[str, ...]
) -> Iterator[ServerRounds]:
    """The rounds against the server that `start` starts, with the files and storage they need until the block ends.

    version: of the system under test.
    startup_s: how long a server may take to answer.
    kinds: of rounds, () for all. HarnessError when files or storage cannot be had.
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
        choices = RoundChoices(request.seed, request.budget_s, began, here, batches)
        with fleet:
            yield ServerRounds(choices, system, fleet, ground, lacking)


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
    ) -> None:
        self._choices, self._system, self._fleet, self._ground = choices, system, fleet, ground
        self._lacking = lacking
        self._played: Counter[str] = Counter()
        self._missed: list[str] = []

    def draw(self, reached: Mapping[str, int]) -> Round | None:
        """The next round, None when none fits into the budget; the first always does."""
        return self._choices.next(frozenset(name for name, count in reached.items() if count))

    def play(self, drawn: Round) -> PlayedRound:
        """Run it."""
        return run_round(drawn, self._system, self._fleet)

    def took(self, drawn: Round, played: PlayedRound) -> None:
        """It is over."""
        self._choices.took(drawn)
        self._played[drawn.kind] += 1
        self._missed += [f"{what} (declared in round {drawn.number}, {drawn.kind})" for what in played.missed]

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
        return replace(
            campaign,
            not_reached=(*wanted, *self._missed, *file_rewrites.missed(reached)),
            deciding=tuple(
                Deciding(name=f"rounds of kind {kind}", guarantees=DECIDES[kind], tried=count, met=count)
                for kind, count in counts
            ),
            left_out=(*self._ground.left_out, *self._lacking, *file_rewrites.unknown(reached)),
            s3=self._ground.probed,
            batching=self._system.batching,
        )


class RoundChoices:
    """The rounds that fit into the budget: each kind once, then again, each as long as its like took before."""

    def __init__(self, seed: int, budget_s: float, began: float, kinds: tuple[str, ...], batches: Batching) -> None:
        self._batches = batches
        self._rng = random.Random(seed)
        self._deadline = began + budget_s - CLOSING_S
        self.kinds = kinds
        self._order = _order(self._rng, kinds)
        self._faults_s = _faults_s(budget_s)
        self._taken_s: dict[str, float] = {}
        self._begun: dict[int, float] = {}
        self._number = 0
        self._seed = seed

    def next(self, met: frozenset[str]) -> Round | None:
        """The next round, None when none fits any more; the first always does. met: places that were met so far."""
        now = time.monotonic()
        kind = self._order[self._number % len(self._order)]
        known = self._taken_s.get(kind) or min(self._taken_s.values(), default=self._faults_s + FRAME_S)
        if self._number and now + known > self._deadline:
            return None
        few = kind in HANGING and self._rng.random() < 0.5
        few |= kind == "crash" and CUT_KILL not in met  # So that files are written again soon.
        spec = Round(
            number=self._number,
            kind=kind,
            seed=self._seed,
            num_threads=self._rng.choice(self._batches.threads[:2] if few else self._batches.threads),
            interval_ms=self._rng.choice(self._batches.intervals_ms),
            faults_s=self._faults_s,
            deadline=self._deadline,
            met=met,
        )
        self._begun[self._number] = now
        self._number += 1
        return spec

    def took(self, spec: Round) -> None:
        """A round is over."""
        taken_s = time.monotonic() - self._begun[spec.number]
        self._taken_s[spec.kind] = max(self._taken_s.get(spec.kind, 0.0), taken_s)


def _order(rng: random.Random, kinds: tuple[str, ...]) -> list[str]:
    """The kinds as they come, first those in which requests may hang: waiting costs nothing beside another round.

    Kills come beside the first of them, so that any budget meets the places where most is lost.
    """
    order = sorted(rng.sample(kinds, len(kinds)), key=lambda kind: kind not in HANGING)
    if "crash" in order:
        order.remove("crash")
        order.insert(1, "crash")
    return order


def _faults_s(budget_s: float) -> float:
    """How long the faults of a round take in a campaign."""
    return min(max(budget_s / ROUNDS_WANTED, FAULTS_MIN_S), FAULTS_MAX_S)


def has_room(budget_s: float, kinds: tuple[str, ...]) -> bool:
    """Whether a budget most likely has room for a round of each kind, `AT_A_TIME` of them beside each other."""
    lanes_s = [0.0] * AT_A_TIME
    for kind in sorted(kinds, key=lambda kind: -LEAST_S[kind]):
        lanes_s[lanes_s.index(min(lanes_s))] += LEAST_S[kind] + _faults_s(budget_s) - FAULTS_MIN_S
    return max(lanes_s) <= budget_s - CLOSING_S


def room_of(seed: int, budget_s: float, kinds: tuple[str, ...]) -> str:
    """What a budget leaves out, and one that leaves nothing out, in a sentence; "" when it has room for every kind."""
    if has_room(budget_s, kinds):
        return ""
    order, lanes_s, short = _order(random.Random(seed), kinds), [0.0] * AT_A_TIME, list[str]()
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
