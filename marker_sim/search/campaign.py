"""Many seeds within a budget of seconds: run, judge, count, and shrink the first failure of each kind.

Seeds go round the modes and storages asked for; one plan in `WRITES_EVERY` is of writes, the others of operations.
One run in `RECHECK_EVERY`, and every failure, is run again and must give the same history, some of them in another
process as well; a system that does not is reported as not deterministic, and nothing about it can be believed. One turn
in `LOOK_EVERY` is looked at for what had to be reached (reached.py) and where faults struck (cells.py); all of them are
held against the least that must happen (floors.py).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from marker_sim.campaign import Campaign, Canary, Failure, Reruns
from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import FaultKind
from marker_sim.history import History
from marker_sim.judges.findings import Breach
from marker_sim.judges.profiles import Profile
from marker_sim.judges.tally import Tally
from marker_sim.mutants.load import load_mutant
from marker_sim.mutants.mutant import Mutant
from marker_sim.plan import Plan
from marker_sim.search import canary
from marker_sim.search.cells import fault_rows
from marker_sim.search.elsewhere import differ_elsewhere, digest
from marker_sim.search.floors import below_floors
from marker_sim.search.judged import cannot_serve, findings_in
from marker_sim.search.reached import LOOK_EVERY, reached
from marker_sim.search.runs import (
    MODES_AGREE,
    comparable,
    compare_modes,
    execute,
    fails_with,
    findings_of,
    promised_breach,
    promised_breaches,
    served,
)
from marker_sim.search.shrink import shrink
from marker_sim.search.swarm import make_plan, possible_in_writes
from marker_sim.search.writes import make_write_plan
from marker_sim.seeds import plan_seed
from marker_sim.sut.python import load_system
from marker_sim.system import System

RECHECK_EVERY = 20
WRITES_EVERY = 3
PAIRS_EVERY = 12
COLLECT_EVERY = 200
PROGRESS_EVERY_S = 2.0
SHRINK_SHARE = 0.2
SHRINK_MAX_S = 10.0
SHRINK_MIN_S = 6.0
CANARY_SHARE = 0.05
CANARY_MIN_S = 10.0
RUNS_FOR_REACHED = 1_500  # The rarest kind strikes about once in 85 runs.
ELSEWHERE = 16
ELSEWHERE_MIN_S = 20.0
NOT_DETERMINISTIC = "the same plan gave another history: the system under test is not deterministic"
_Kind = tuple[str, str, str, str]  # Guarantee, mode, storage and cause.


@dataclass(slots=True)
class _Search:
    """What a campaign has seen so far."""

    system: System
    profile: Profile
    guarantees: frozenset[str] | None
    tally: Tally = field(default_factory=Tally)
    found: dict[_Kind, tuple[Plan, History, Breach]] = field(default_factory=dict)
    last: History | None = None
    steps: int = 0
    again: list[Plan] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    passing_again: int = 0
    failures_again: int = 0
    differences: int = 0
    elsewhere: int = 0
    unsupported: set[str] = field(default_factory=set)
    first_only: bool = False

    def run_pair(self, plan: Plan) -> None:
        """Run a plan in both marker modes and judge that they agree."""
        first, second, finding = compare_modes(plan, self.system)
        if cannot_serve(self.system, first) or cannot_serve(self.system, second):
            return  # Single runs say which storage it is that the system cannot use.
        self.tally.add_pair(first, second, finding)
        for breach in promised_breaches(finding, plan, self.profile):
            self.found.setdefault((finding.guarantee, "both", plan.storage, breach.cause), (plan, second, breach))

    def run(self, plan: Plan, again: bool = False, look: bool = False) -> None:
        """Run and judge one plan; once more when `again` says so or it fails as none did; `look`: count its sights."""
        history, steps = execute(plan, self.system)
        findings = findings_in(history, self.system, self.guarantees)
        if not findings:
            self.unsupported.add(
                f"{plan.mode} mode on {plan.storage}: the system needs what that storage does not offer"
            )
            return
        self.steps += steps
        self.last = history
        self.tally.add(history, findings)
        if look:
            self.tally.look(history)
        new: list[tuple[_Kind, Breach]] = []
        for finding in findings:
            for breach in promised_breaches(finding, plan, self.profile):
                kind = (finding.guarantee, plan.mode, plan.storage, breach.cause)
                new += [(kind, breach)] if kind not in self.found else []
        if again or new:
            self.passing_again += not new
            self.failures_again += bool(new)
            if len(self.again) < ELSEWHERE:
                self.again.append(plan)
                self.digests.append(digest(history))
            self.differences += execute(plan, self.system)[0].events != history.events
        for kind, breach in new:
            self.found[kind] = (plan, history, breach)


def run_simulated(
    *,
    sut: str,
    modes: tuple[str, ...],
    storages: tuple[str, ...],
    budget_s: float,
    seed: int,
    guarantees: frozenset[str] | None,
    profile: Profile,
    progress: Callable[[str], None],
    runs_max: int | None = None,
    first: int = 0,
    shrinking: bool = True,
    canaries: bool = True,
) -> Campaign:
    """Search for violations for `budget_s` seconds or `runs_max` runs; UsageError when the system cannot be loaded.

    first: the turn of the seed to begin with. shrinking: whether failing plans are made small. canaries: whether one is
    let go first; a piece of a larger campaign does neither, nor compares runs with another process. Ctrl-C ends it
    early with what was found so far (`Campaign.interrupted`).
    """
    system = load_system(sut)
    combinations = served_combinations(system, sut, modes, storages)
    search = _Search(system, profile, guarantees)
    search.unsupported.update(_unserved(system, modes, storages))
    began = time.monotonic()
    interrupted, trouble = False, ""
    drawn, planted = canary.draw(seed, combinations, guarantees, profile) if canaries else None, None
    try:
        if drawn is not None:
            planted = let_go(*drawn, seed, profile, began + max(CANARY_MIN_S, budget_s * CANARY_SHARE))
        _explore(search, combinations, seed, began + budget_s * (1 - SHRINK_SHARE), runs_max, progress, first)
    except KeyboardInterrupt:
        interrupted = True
    except HarnessError as error:
        if not search.tally.runs:
            raise
        trouble = str(error)  # What was found before it counts all the same.
    share_s = max(SHRINK_MIN_S, budget_s * SHRINK_SHARE) if shrinking and not interrupted else 0.0
    failures = _shrink_all(search, share_s, progress)
    if canaries and budget_s >= ELSEWHERE_MIN_S and not interrupted and not trouble:
        trouble = _compare_elsewhere(search, sut)
    return Campaign(
        sut=sut,
        sut_version=system.version,
        seed=seed,
        duration_s=time.monotonic() - began,
        runs=search.tally.runs,
        steps=search.steps,
        tally=search.tally,
        failures=failures,
        last=search.last,
        **_met(search, combinations),
        left_out=tuple(sorted(search.unsupported)),
        interrupted=interrupted,
        trouble=trouble,
        canary=planted,
    )


def _compare_elsewhere(search: _Search, sut: str) -> str:
    """Compare some runs with another process; the kit's trouble with that, "" for none."""
    try:
        search.elsewhere, differences = differ_elsewhere(sut, search.again, search.digests)
    except HarnessError as error:
        return str(error)
    search.differences += differences
    return ""


def _met(search: _Search, combinations: list[tuple[str, str]]) -> dict[str, Any]:
    """What a campaign says of itself: what was due and not met, where faults struck, how much happened."""
    met = reached(search.tally, combinations, search.system.layout, search.guarantees == frozenset({MODES_AGREE}))
    search.tally.reached.update(met.counts)
    doubts = (*met.doubts, *below_floors(search.tally, search.system.layout))
    unsteady = (NOT_DETERMINISTIC,) if search.differences else ()
    unmet = _faults_unmet(search, combinations)
    due = search.tally.runs >= RUNS_FOR_REACHED
    return {
        "not_reached": (*unsteady, *(unmet if due else ()), *(doubt.sentence for doubt in doubts)),
        "doubts": doubts,
        "too_rare": met.too_rare if due else (*unmet, *met.too_rare),
        "fault_rows": fault_rows(search.tally, combinations),
        "reruns": Reruns(
            passing=search.passing_again,
            failures=search.failures_again,
            elsewhere=search.elsewhere,
            differences=search.differences,
        ),
    }


def let_go(mutant: Mutant, place: canary.Place, seed: int, profile: Profile, deadline: float) -> Canary:
    """Hunt a canary as the system under test is hunted, until it is caught."""
    search = _Search(load_mutant(mutant), profile, frozenset({mutant.kills}), first_only=True)
    _explore(search, [place], seed, deadline, canary.PLANS_MAX, lambda line: None)
    return Canary(mutant=mutant.name, guarantee=mutant.kills, plans=search.tally.runs, caught=bool(search.found))


def _unserved(system: System, modes: tuple[str, ...], storages: tuple[str, ...]) -> list[str]:
    return [
        f"{mode} mode on {storage}: the system has no factory for the markers that are chosen there"
        for mode in modes
        for storage in storages
        if system.factory(mode) and not served(system, mode, storage)
    ]


def served_combinations(
    system: System, sut: str, modes: tuple[str, ...], storages: tuple[str, ...]
) -> list[tuple[str, str]]:
    """The modes and storages that a system has factories for; UsageError when there are none."""
    combinations = [(mode, storage) for mode in modes for storage in storages if served(system, mode, storage)]
    if not combinations:
        raise UsageError(f"{sut} has no factory for {' or '.join(modes)} markers on {', '.join(storages)}; give it one")
    return combinations


def _explore(
    search: _Search,
    combinations: list[tuple[str, str]],
    seed: int,
    deadline: float,
    runs_max: int | None,
    progress: Callable[[str], None],
    first: int = 0,
) -> None:
    number = 0
    began = shown = time.monotonic()
    gc.collect()
    gc.disable()  # A run makes a few hundred cycles; collecting them in between costs a fifth of the time.
    try:
        while number < (runs_max if runs_max is not None else number + 1):
            now = time.monotonic()
            if now > deadline or (search.first_only and search.found):
                break
            if now - shown > PROGRESS_EVERY_S:
                shown = now
                rate = search.steps / (now - began)
                progress(f"{number} runs, {rate:,.0f} judged steps/s, {len(search.found)} kinds of violation")
            mode, storage = combinations[number % len(combinations)]
            turn = number // len(combinations)
            only_pairs = search.guarantees == frozenset({MODES_AGREE})
            make = make_write_plan if only_pairs or turn % WRITES_EVERY == 1 else make_plan
            plan = make(plan_seed(seed, first + turn), mode, storage)
            search.run(plan, again=number % RECHECK_EVERY == 0, look=turn % LOOK_EVERY == 0)
            pairs = search.guarantees is None or MODES_AGREE in search.guarantees
            due = only_pairs or (turn % PAIRS_EVERY == 1 and mode == combinations[0][0])
            if pairs and due and comparable(plan, search.system):
                search.run_pair(plan)
            number += 1
            if number % COLLECT_EVERY == 0:
                gc.collect()
    finally:
        gc.enable()


def _shrink_all(search: _Search, budget_s: float, progress: Callable[[str], None]) -> tuple[Failure, ...]:
    """One failure of each kind; the first of each guarantee is shrunk, the others would mostly say the same again."""
    failures = []
    first: dict[str, _Kind] = {}
    for kind in search.found:
        first.setdefault(kind[0], kind)
    share_s = min(SHRINK_MAX_S, budget_s / max(1, len(first)))
    for kind, (plan, found_history, found_breach) in search.found.items():
        breach: Breach | None = found_breach
        history, smaller = found_history, plan
        if share_s > 0 and first[kind[0]] == kind:
            progress(f"shrinking {kind[0]} in {kind[1]} mode on {kind[2]}, {plan.entries} entries")
            smaller = shrink(plan, fails_with(kind[0], search.system, search.profile, kind[3]), budget_s=share_s)
        if smaller != plan:
            history, findings = findings_of(smaller, search.system, kind[0])
            shown = [promised_breach(finding, smaller, search.profile, kind[3]) for finding in findings]
            breach = next((b for b in shown if b is not None), None)
        if breach is None:  # It broke the promise only sometimes: what was seen first is what there is to show.
            history, breach, smaller = found_history, found_breach, plan
        failures.append(
            Failure(
                guarantee=kind[0],
                message=breach.message,
                evidence=breach.evidence,
                history=history,
                plan=smaller,
                seed=plan.seed,
                entries_before=plan.entries,
                mode=kind[1],
                cause=kind[3],
            )
        )
    return tuple(sorted(failures, key=lambda f: f.plan.entries if f.plan else 0))


def _faults_unmet(search: _Search, combinations: list[tuple[str, str]]) -> tuple[str, ...]:
    """Kinds of fault that are possible and never struck."""
    declared = {kind.value for kind in FaultKind for pair in combinations if possible_in_writes(kind, *pair)}
    if search.system.layout == "names":
        declared.discard(FaultKind.TYPE_DAMAGED.value)  # Type files are Hudi's; others have none to damage.
    return tuple(f"fault {name}" for name in sorted(declared - set(search.tally.faults)))
