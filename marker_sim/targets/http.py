"""Any server that speaks the timeline server's HTTP, started by a command: rounds of load and faults within a budget.

Rounds go through the kinds of `real.rounds.KINDS` in an order drawn from the seed, with few and many batch threads and
short and long intervals. Real time decides what meets what, so a seed gives the same choices and not the same run.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from marker_sim.campaign.result import Campaign, Deciding, Failure, failures_in
from marker_sim.campaign.statistics import Statistics
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.targets.batching import Batching, batching
from marker_sim.targets.interruption import drive
from marker_sim.targets.run_environment import open_ground
from marker_sim.targets.s3_endpoint import Endpoint
from marker_sim.worlds.http import file_rewrites
from marker_sim.worlds.http.file_rewrites import CUT_KILL
from marker_sim.worlds.http.round_stage import ForeignSystem, Round
from marker_sim.worlds.http.round_types import DECIDES, LEAST_S
from marker_sim.worlds.http.rounds import KINDS, PlayedRound, run_round
from marker_sim.worlds.http.servers import ANSWER_TIMEOUT_S, Command, Fleet
from marker_sim.worlds.http.wire_rounds import kinds_here

FAULTS_MIN_S = 1.0
FAULTS_MAX_S = 8.0
ROUNDS_WANTED = 20
FRAME_S = 4.0
CLOSING_S = 1.0
HANGING = ("directory", "storage", "churn")
AT_A_TIME = 2


@dataclass(slots=True)
class _HttpSearch:
    """What the rounds came to so far."""

    profile: Profile
    progress: Callable[[str], None]
    stop: Callable[[Statistics], bool]
    statistics: Statistics = field(default_factory=Statistics)
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)
    last: History | None = None
    kinds: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    missed: list[str] = field(default_factory=list)

    def add(self, spec: Round, played: PlayedRound) -> tuple[Finding, ...]:
        """Judge a round and count it."""
        history = played.history
        findings = judge(history)
        self.statistics.add(history, findings)
        for name, count in sorted(played.counts.items()):
            self.statistics.reach(name, count)
        self.missed += [f"{what} (declared in round {spec.number}, {spec.kind})" for what in played.missed]
        self.last = history
        self.kinds[spec.kind] += 1
        self.operations += sum(event.kind == "invoke" for event in history.events)
        for failure in failures_in(history, findings, self.profile):
            self.failures.setdefault((failure.guarantee, failure.cause), failure)
        return findings

    def deciding(self, kinds: tuple[str, ...]) -> tuple[Deciding, ...]:
        """How often each kind of round was played, and which guarantees rest on it."""
        played = [(kind, self.kinds[kind]) for kind in kinds]
        return tuple(
            Deciding(name=f"rounds of kind {kind}", guarantees=DECIDES[kind], tried=count, met=count)
            for kind, count in played
        )

    def met(self) -> frozenset[str]:
        """Everything that happened at least once."""
        return frozenset(name for name, count in self.statistics.reached.items() if count)


def run_http(
    start: str,
    *,
    storage: str,
    budget_s: float,
    seed: int,
    report_dir: Path,
    profile: Profile,
    progress: Callable[[str], None],
    dir_format: str = "",
    reader: str = "",
    endpoint: Endpoint | None = None,
    identity: bool = False,
    batch_threads: int | None = None,
    sut_name: str = "http",
    sut_version: str = "",
    startup_s: float = ANSWER_TIMEOUT_S,
    kinds: tuple[str, ...] = KINDS,
    on_round: Callable[[History], None] | None = None,
    stop: Callable[[Statistics], bool] = lambda statistics: False,
) -> Campaign:
    """Judge the server that `start` starts, for `budget_s` seconds.

    storage: local, or s3: the kit's front, or `endpoint`. dir_format: how requests write the directory, "" for a path
    or s3a. reader: a command that prints stored names, "" for Hudi's format. identity: whether the server honours
    `requestid`. batch_threads: how many it has, None for what `{threads}` tells it, or Hudi's default. startup_s: how
    long a server may take to answer. on_round: shown each history. stop: whether no further round shall begin. Every
    process it started is gone when it returns or raises. Ctrl-C ends it early with what was found so far. HarnessError
    when a server cannot be started or the kit's surroundings fail; UsageError for what cannot be asked for.
    """
    command, batches = Command(text=start, startup_s=startup_s), batching(start, batch_threads)
    began = time.monotonic()
    with open_ground(storage, dir_format, reader, endpoint) as ground:
        kinds, lacking = kinds_here(tuple(kind for kind in kinds if kind in ground.kinds))
        search, rounds = _HttpSearch(profile, progress, stop), _Rounds(seed, budget_s, began, kinds, batches)
        system = ForeignSystem(
            name=sut_name, version=sut_version, profile=profile, world=ground.world, identity=identity,
            batching=batches.words,
        )  # fmt: skip

        fleet = Fleet(command, ground.scratch / "work", report_dir / "logs")
        interrupted, trouble = drive(lambda: _run_all(rounds, system, fleet, search, on_round), search.failures)
    return Campaign(
        sut=sut_name,
        sut_version=sut_version,
        seed=seed,
        duration_s=time.monotonic() - began,
        runs=search.statistics.runs,
        steps=search.operations,
        statistics=search.statistics,
        failures=tuple(search.failures.values()),
        last=search.last,
        not_reached=_not_reached(search, kinds),
        deciding=search.deciding(kinds),
        left_out=(*ground.left_out, *lacking, *file_rewrites.unknown(search.statistics.reached)),
        s3=ground.probed,
        batching=batches.words,
        interrupted=interrupted,
        trouble=trouble,
    )


def _run_all(
    rounds: _Rounds,
    system: ForeignSystem,
    fleet: Fleet,
    search: _HttpSearch,
    on_round: Callable[[History], None] | None,
) -> None:
    """Keep `AT_A_TIME` rounds going until no further one fits into the budget.

    The fleet is left first: rounds that are under way then end at once, which the pool waits for.
    """
    going: dict[Future[PlayedRound], Round] = {}
    with ThreadPoolExecutor(AT_A_TIME) as pool, fleet:
        while True:
            while len(going) < AT_A_TIME and not search.stop(search.statistics):
                spec = rounds.next(search.met())
                if spec is None:
                    break
                search.progress(f"round {spec.number}: {spec.kind}, {spec.num_threads} threads, {spec.interval_ms} ms")
                going[pool.submit(run_round, spec, system, fleet)] = spec
            if not going:
                return
            for done in wait(going, return_when=FIRST_COMPLETED).done:
                spec = going.pop(done)
                played = done.result()
                rounds.took(spec)
                search.add(spec, played)
                search.progress(_line(search))
                if on_round is not None:
                    on_round(played.history)


class _Rounds:
    """The rounds that fit into the budget: each kind once, then again, each as long as its like took before."""

    def __init__(self, seed: int, budget_s: float, began: float, kinds: tuple[str, ...], batches: Batching) -> None:
        self._batches = batches
        self._rng = random.Random(seed)
        self._deadline = began + budget_s - CLOSING_S
        self._kinds = _order(self._rng, kinds)
        self._faults_s = _faults_s(budget_s)
        self._taken_s: dict[str, float] = {}
        self._begun: dict[int, float] = {}
        self._number = 0
        self._seed = seed

    def next(self, met: frozenset[str]) -> Round | None:
        """The next round, None when none fits any more; the first always does. met: places that were met so far."""
        now = time.monotonic()
        kind = self._kinds[self._number % len(self._kinds)]
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
    """How long the misfortunes of a round take in a campaign."""
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


def _line(search: _HttpSearch) -> str:
    broken = {guarantee for guarantee, _ in search.failures}
    kinds = ", ".join(sorted(broken, key=lambda name: int(name[1:]))) or "none"
    return f"{search.statistics.runs} rounds, {search.operations:,} requests, violated so far: {kinds}"


def _not_reached(search: _HttpSearch, kinds: tuple[str, ...]) -> tuple[str, ...]:
    wanted = [f"a round of kind {kind}" for kind in kinds if kind not in search.kinds]
    header = None if search.last is None else search.last.header
    looks = header is not None and (header.witness == "reads" or header.layout == "names")
    if looks and "storage read at an answer" not in search.statistics.reached:
        wanted.append("storage read at an answer")
    return (*wanted, *search.missed, *file_rewrites.missed(search.statistics.reached))
