"""Generated mutants: changes of the reference's syntax tree, drawn by a seed and hunted by the ordinary swarm.

    drawn ─► GeneratedTask ─► GeneratedOutcome      by a worker process each

A mutant is seen when a run breaks a promise, and apart from that when runs end in trouble, differ from themselves, or
leave a guarantee without anything to judge that the reference has something to judge of. One that cannot be imported is
no mutant. Whatever else survives is looked up in `reviewed.toml`, where somebody has said what it is.
"""

from __future__ import annotations

import hashlib
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from marker_sim.campaign.hunts import COMBINATIONS
from marker_sim.campaign.runs import comparable, compare_modes, execute, promised_breach
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges import judge
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.load import MODULES, SHARED, load_changed, source_of
from marker_sim.plan import Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System, reference
from tools.generated_mutants.syntax import Change, changes_of

REVIEWS = Path(__file__).with_name("reviewed.toml")
AGAIN_EVERY = 40
KILLED, TROUBLE, UNSTEADY, NOTHING, NO_MUTANT, SURVIVED = (
    "killed", "trouble", "not deterministic", "nothing judged", "cannot be imported", "survived",
)  # fmt: skip
SEEN = (KILLED, TROUBLE, UNSTEADY, NOTHING)
# What a review says: the same behaviour; other bounds or speed alone; code that only the kit or a message uses; a hole.
# Of serve/: what the reference alone promises and no protocol asks for, so that its own tests have to see it.
EQUIVALENT, BOUND, HARNESS, OWN, BLIND = "equivalent", "bound", "harness", "own", "blind"
REASONS = (EQUIVALENT, BOUND, HARNESS, OWN, BLIND)

# What the kit's readers and adapters call, and the reference never does.
_OF_THE_KIT = {
    "marker_sim.names": ("checksum_file", "legible", "_shortened", "_unlike", "most_like", "place_of", "stored_names"),
    "marker_sim.timeline": ("entry_at", "is_side_file", "parse_table_file", "table_entry", "write_ordinal"),
    "marker_sim.markers.protocol": ("create_with_identity", "takes_identity"),
    "marker_sim.writer.slices": ("table_rows",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedOutcome:
    """What became of one.

    how: one of KILLED, TROUBLE, UNSTEADY, NOTHING, NO_MUTANT, SURVIVED.
    guarantee: that it broke, or that nothing was judged of.
    plans: until then. seconds: of processor.
    review: what somebody has said of a survivor, "" for nothing.
    """

    change: Change
    how: str
    guarantee: str = ""
    plans: int = 0
    seconds: float = 0.0
    message: str = ""
    plan: Plan | None = None
    review: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "key": self.change.key,
            "change": self.change.told,
            "how": self.how,
            "guarantee": self.guarantee,
            "plans": self.plans,
            "seconds": round(self.seconds, 3),
            "message": self.message,
            "plan": self.plan.to_dict() if self.plan else None,
            "review": self.review,
        }


def never_mutated(module: str) -> frozenset[str]:
    """The classes and functions of a module of which a mutant has those of the world around, or that it never calls."""
    return frozenset((*SHARED.get(module, ()), *_OF_THE_KIT.get(module, ())))


def possible(modules: tuple[str, ...] = MODULES) -> list[Change]:
    """Every change of every module, by default those of the reference that a mutant is loaded with."""
    return [
        change
        for module in modules
        for change in changes_of(module.removeprefix("marker_sim."), source_of(module)[1])
        if change.function.partition(".")[0] not in never_mutated(module)
    ]


def drawn(count: int, seed: int, modules: tuple[str, ...] = MODULES) -> list[Change]:
    """So many of them; UsageError when there are fewer. The first ones of a larger count are those of a smaller.

    Each has a place of its own in the order of a seed, so an edit of the reference leaves the other draws alone.
    """
    changes = possible(modules)
    if count > len(changes):
        raise UsageError(f"{count} mutants were asked for; there are {len(changes)} possible ones")
    return sorted(changes, key=lambda change: hashlib.sha256(f"{seed} {change.key}".encode()).digest())[:count]


def load_generated(change: Change) -> System:
    """The reference with a change; any exception that importing it raises."""
    return load_changed(
        change.key, lambda module, text: change.applied(text) if module == f"marker_sim.{change.module}" else text
    )


def plan_of(seed: int, turn: int) -> Plan:
    """The plan of a turn: operations and writes in turn, round the modes and storages."""
    mode, storage = COMBINATIONS[turn // 2 % len(COMBINATIONS)]
    make = make_write_plan if turn % 2 else make_plan
    return make(plan_seed(seed, turn), mode, storage)


def hunt(change: Change, plans: int, seed: int) -> GeneratedOutcome:
    """Play that many plans against it, until one shows it."""
    began = time.process_time()
    try:
        system = load_generated(change)
    except Exception as error:
        return GeneratedOutcome(change=change, how=NO_MUTANT, message=repr(error))
    return reviewed(_played(change, system, plans, seed, began))


def reviewed(outcome: GeneratedOutcome) -> GeneratedOutcome:
    """With what was said of a survivor."""
    said = reviews().get(outcome.change.key) if outcome.how == SURVIVED else None
    return outcome if said is None else replace(outcome, review=said["is"])


def _played(change: Change, system: System, plans: int, seed: int, began: float) -> GeneratedOutcome:
    def ended(
        how: str, number: int, guarantee: str = "", message: str = "", plan: Plan | None = None
    ) -> GeneratedOutcome:
        spent = time.process_time() - began
        return GeneratedOutcome(
            change=change, how=how, guarantee=guarantee, plans=number, seconds=spent, message=message, plan=plan
        )

    profile, judged = load_profile("reference"), Counter[str]()
    for turn in range(plans):
        plan = plan_of(seed, turn)
        try:
            found, differs = _findings(plan, system, again=turn % AGAIN_EVERY == 0)
        except Exception as error:  # The kit calls some of the reference itself: the choice of a mode.
            said = str(error) if isinstance(error, HarnessError) else repr(error)
            return ended(TROUBLE, turn + 1, message=said.splitlines()[0], plan=plan)
        for finding in found:
            breach = promised_breach(finding, plan, profile)
            if breach is not None:
                return ended(KILLED, turn + 1, finding.guarantee, breach.message, plan)
            judged[finding.guarantee] += finding.judged
        if differs:
            return ended(UNSTEADY, turn + 1, message="the same plan gave another history", plan=plan)
    for guarantee in sorted(usual(plans, seed)):
        if not judged[guarantee]:
            return ended(NOTHING, plans, guarantee, f"{plans} plans had nothing to judge of {guarantee}")
    return ended(SURVIVED, plans)


def _findings(plan: Plan, system: System, again: bool) -> tuple[list[Finding], bool]:
    """What all judges say of a plan, and whether it gave another history the second time."""
    history, _ = execute(plan, system)
    found: list[Finding] = list(judge(history))
    if again and comparable(plan, system):
        found.append(compare_modes(plan, system)[2])
    return found, again and execute(plan, system)[0].events != history.events


@cache
def usual(plans: int, seed: int) -> frozenset[str]:
    """The guarantees that such a hunt of the reference itself has something to judge of."""
    judged: Counter[str] = Counter()
    for turn in range(plans):
        for finding in _findings(plan_of(seed, turn), reference(), again=turn % AGAIN_EVERY == 0)[0]:
            judged[finding.guarantee] += finding.judged
    return frozenset(name for name, count in judged.items() if count)


@cache
def reviews() -> dict[str, dict[str, str]]:
    """What was said of survivors: by key, `is` one of REASONS, `change` as it was shown, `why`."""
    return tomllib.loads(REVIEWS.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedTask:
    """The task of a process: a change, how many plans, and their seed."""

    change: Change
    plans: int
    seed: int

    def do(self) -> GeneratedOutcome:
        """Hunt it."""
        return hunt(self.change, self.plans, self.seed)
