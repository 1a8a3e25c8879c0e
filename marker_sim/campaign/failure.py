"""A violation: what is broken, where and by what, with the run that shows it and the plan that repeats it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from marker_sim.campaign.stories import cause_link
from marker_sim.history import History
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.violations import violation
from marker_sim.plan import Plan

# What became of a stored plan that was run again.
VIOLATED = "still-violated"
FIXED = "fixed"
NOT_REPRODUCED = "not-reproduced"
CANNOT_RUN = "cannot-run"
NO_TIME = "there was no time left"
NONE_SMALLER = "no smaller plan was found that breaks it"


class Kind(NamedTuple):
    """What is broken, where and by what. mode: "both" for a pair of runs."""

    guarantee: str
    mode: str
    storage: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A violation of a promise.

    plan: None where a plan does not determine a run.
    number: of the run in its search.
    entries_before: of the plan that it was made small from, 0 where it was not.
    confirmed: how often its plan fails with real processes, "" where that was not tried.
    large: why its plan was not made small, or may become smaller yet; "" for a small one.
    story: the kind of the failure that it most likely has its defect in common with; its own for the one that is told,
        None where nothing is known.
    """

    kind: Kind
    breach: Breach
    history: History
    plan: Plan | None
    number: int = 0
    entries_before: int = 0
    confirmed: str = ""
    large: str = ""
    story: Kind | None = None

    @property
    def guarantee(self) -> str:
        """The broken guarantee's id."""
        return self.kind.guarantee

    @property
    def message(self) -> str:
        """What was seen, in a sentence."""
        return self.breach.message

    @property
    def evidence(self) -> tuple[int, ...]:
        """The events that prove it, by their numbers in the history."""
        return self.breach.evidence

    @property
    def seed(self) -> int:
        """The seed of the run that shows it."""
        return self.history.header.seed

    @property
    def entries(self) -> int:
        """The size of its plan, 0 without one."""
        return self.plan.entries if self.plan else 0

    @property
    def own_plan(self) -> Plan:
        """Its plan, where it has one."""
        assert self.plan is not None, "a run without a plan cannot be repeated"
        return self.plan

    @property
    def leads(self) -> bool:
        """Whether its story's plan was made small for it."""
        return self.kind == self.story

    @property
    def links(self) -> frozenset[Hashable]:
        """What it shares with failures of the same defect (stories.py)."""
        return frozenset() if self.story is None else cause_link(self.kind.cause) | {self.story}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """A failure as files keep it: without its run, which its plan gives again.

    shrunk: whether there was time to make its plan small.
    text: the sentence, the message and the events.
    evidence: the events' numbers in the history of `plan`.
    deterministic: whether a repeated run gave the same history; else a run without it is not conclusive.
    world: "simulated", "real", "spark", or "server" for a foreign system.
    plan: a Plan as JSON; empty in files of older versions that have none, with `spark_faults` in those of Spark.
    cause: of the breach, "" in files of older versions.
    """

    guarantee: str
    mode: str
    storage: str
    world: str
    seed: int
    message: str
    text: str
    evidence: tuple[int, ...]
    plan: dict[str, Any]
    shrunk: bool
    entries_before: int = 0
    deterministic: bool = True
    cause: str = ""

    @property
    def place(self) -> str:
        """The guarantee where it was broken, which decides whether one more of these is worth shrinking."""
        return place_of(self.guarantee, self.mode, self.storage)

    @property
    def entries(self) -> int:
        """The size of its plan."""
        tasks = sum(max(1, len(write.get("tasks", ()))) for write in self.plan.get("writes", ()))
        return tasks + sum(len(self.plan.get(part, ())) for part in ("ops", "faults", "spark_faults"))


def place_of(guarantee: str, mode: str, storage: str) -> str:
    """A guarantee where it was broken."""
    return f"{guarantee}/{mode}/{storage}"


def record_of(failure: Failure, world: str, *, shrunk: bool) -> FailureRecord:
    """A failure that has a plan, as it is stored."""
    assert failure.plan is not None, "what is stored can be run again"
    guarantee, mode, storage, _ = failure.kind
    return FailureRecord(
        guarantee=guarantee,
        mode=mode,
        storage=storage,
        world=world,
        seed=failure.plan.seed,
        message=failure.message,
        text=str(violation(failure.history, guarantee, failure.breach)),
        evidence=failure.evidence,
        plan=failure.plan.to_dict(),
        shrunk=shrunk,
        entries_before=failure.entries_before or failure.entries,
        cause=failure.breach.cause,
    )


def failures_in(
    history: History,
    findings: Iterable[Finding],
    profile: Profile,
    plan: Plan | None = None,
    number: int = 0,
) -> dict[Kind, Failure]:
    """The first breach of each kind in a run that a profile holds against the system."""
    place, found = history.header, dict[Kind, Failure]()
    for finding in findings:
        for breach in profile.broken_by(finding, place.mode, place.storage):
            kind = Kind(finding.guarantee, place.mode, place.storage, breach.cause)
            found.setdefault(kind, Failure(kind=kind, breach=breach, history=history, plan=plan, number=number))
    return found
