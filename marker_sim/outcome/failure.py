"""A violation: the broken guarantee, place and cause, the run that shows it, and the plan that repeats the run.

A story is a group of failures that most likely have one defect in common, across modes, storages and nights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from marker_sim.history import History
from marker_sim.judges.findings import UNEXPLAINED, Breach, Finding, by_number, split_impact
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.violations import violation
from marker_sim.plan import Plan
from marker_sim.unusual_names import KEPT

if TYPE_CHECKING:
    from marker_sim.outcome.curve import LikelihoodCurve

# Results of running a stored plan again.
VIOLATED = "still-violated"
FIXED = "fixed"
NOT_REPRODUCED = "not-reproduced"
CANNOT_RUN = "cannot-run"
LEFT_OUT = "left-out"
# The guarantee of hostile requests, and the causes that are about them; such failures never represent a story that
# breaks another guarantee.
HOSTILE = "G12"
HOSTILE_CAUSES = ("split-at-line-break", "split-at-carriage-return", "no-text", "empty-name")
NO_TIME = "there was no time left"
INTERRUPTED = "it was interrupted"
NONE_SMALLER = "no smaller plan was found that breaks it"
# The details that differ between two violations of one kind: names, numbers, paths.
_PARTICULAR = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s;:,()]*[\d/][^\s;:,()]*")
SERVER, SPARK = "server", "spark"  # The worlds of failures found in real time: servers, and jobs on Spark.


class Kind(NamedTuple):
    """The kind of a violation: guarantee, mode, storage and cause. mode: "both" for a pair of runs."""

    guarantee: str
    mode: str
    storage: str
    cause: str

    @property
    def place(self) -> str:
        """The guarantee and where it was broken; the number of failures in a place limits how many are shrunk."""
        return f"{self.guarantee}/{self.mode}/{self.storage}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A violation of a promise.

    plan: None where a plan does not determine a run.
    number: of the run in its search.
    entries_before: the size of the plan before shrinking, 0 if it was not shrunk.
    confirmed: how often the plan fails with real processes, "" if that was not tried.
    large: why the plan was not shrunk, or may still become smaller; "" for a small one.
    also: the signatures of all that its run breaks, empty where that is unknown.
    curve: the probability along the run, None if it was not measured.
    """

    kind: Kind
    breach: Breach
    history: History
    plan: Plan | None
    number: int = 0
    entries_before: int = 0
    confirmed: str = ""
    large: str = ""
    also: frozenset[str] = frozenset()
    curve: LikelihoodCurve | None = None

    @property
    def guarantee(self) -> str:
        """The broken guarantee's id."""
        return self.kind.guarantee

    @property
    def message(self) -> str:
        """The sentence that describes what was seen."""
        return self.breach.message

    @property
    def evidence(self) -> tuple[int, ...]:
        """The indices of the events that prove it."""
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
        """Its plan; AssertionError where it has none."""
        assert self.plan is not None, "a run without a plan cannot be repeated"
        return self.plan

    @property
    def hostile(self) -> bool:
        """Whether it needs input that no client of Hudi sends; of a large plan the cause says it."""
        ops = self.plan.ops if self.plan and self.entries_before else ()
        needs = any(op.kind == "hostile" or op.spelled or op.name in KEPT for op in ops)
        return needs or self.guarantee == HOSTILE or self.kind.cause in HOSTILE_CAUSES

    @property
    def order(self) -> tuple[bool, bool, int]:
        """The order in which stories are told, by their first failures: those that clients of Hudi can meet, without
        the kit's own requests at the end of each run, by a small plan.
        """
        events = self.history.events
        probe = next((e.index for e in events if e.operation == "phase" and e.value == "probe"), len(events))
        probed = any(events[n].kind == "invoke" for n in self.evidence if probe < n < len(events))
        return self.hostile, probed, self.entries

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, int]:
        """The order in which failures represent their story, lowest first: shrunk, as of `order`, without faults."""
        hostile, probed, entries = self.order
        large = bool(self.large) and not self.entries_before
        return large, hostile, probed, self.plan is None or bool(self.plan.faults), entries


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """A failure as nights store it: with its plan, from which the run can be repeated, and without the run.

    shrunk: whether there was time to shrink its plan.
    text: the sentence, the message and the events.
    evidence: the events' numbers in the history of `plan`.
    deterministic: whether a repeated run gave the same history; if not, a run without the violation proves nothing.
    world: "simulated", "real", "spark", or "server" for a foreign system.
    plan: a Plan as JSON; empty in files of older versions that have none.
    cause: of the breach, "" in files of older versions.

    The other fields describe all occurrences, and are empty in the record of one:
    name: of its file.
    seen: how often exactly this failure occurred; alike: how often a similar one.
    first_seen, last_seen: times of day; night: of the first.
    fixed: when a replay no longer reproduced it, "" before.
    status: of the last replay, "" before there was one; "violated" when it occurred again since.
    server: how a foreign server is started, as `ServerOptions`; empty for other systems.
    also: as of `Failure`, sorted; empty in files of older versions.
    picture: of the run of a small plan, as `LanePicture`; empty for others.
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
    name: str = ""
    sut: str = ""
    profile: str = ""
    kit_version: str = ""
    first_seen: str = ""
    last_seen: str = ""
    night: int = 0
    seen: int = 1
    alike: int = 0
    seeds: tuple[int, ...] = ()
    status: str = ""
    fixed: str = ""
    server: dict[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    picture: dict[str, Any] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, int]:
        """The order of `Failure.rank`; a plan without entries counts as one that breaks by the kit's own requests."""
        hostile, faulty = self.guarantee == HOSTILE or self.cause in HOSTILE_CAUSES, bool(self.plan.get("faults"))
        return not self.shrunk, hostile, not self.entries, faulty, self.entries

    @property
    def kind(self) -> Kind:
        """The kind of the violation."""
        return Kind(self.guarantee, self.mode, self.storage, self.cause)

    @property
    def entries(self) -> int:
        """The size of its plan."""
        tasks = sum(max(1, len(write.get("tasks", ()))) for write in self.plan.get("writes", ()))
        return tasks + sum(len(self.plan.get(part, ())) for part in ("ops", "faults"))


def record_of(failure: Failure, world: str, *, shrunk: bool) -> FailureRecord:
    """The stored form of a failure that has a plan."""
    plan = failure.own_plan
    guarantee, mode, storage, _ = failure.kind
    return FailureRecord(
        guarantee=guarantee,
        mode=mode,
        storage=storage,
        world=world,
        seed=plan.seed,
        message=failure.message,
        text=str(violation(failure.history, guarantee, failure.breach)),
        evidence=failure.evidence,
        plan=plan.to_dict(),
        shrunk=shrunk,
        entries_before=failure.entries_before or failure.entries,
        cause=failure.breach.cause,
        also=tuple(sorted(failure.also)),
    )


def failures_in(
    history: History,
    findings: Iterable[Finding],
    profile: Profile,
    plan: Plan | None = None,
    number: int = 0,
    mode: str = "",
) -> dict[Kind, Failure]:
    """The first breach of each kind in a run, among guarantees that the profile promises.

    mode: for the kinds, if the finding concerns a pair of runs, one of which is `history`.
    """
    place, found = history.header, dict[Kind, Failure]()
    promised = plan.mode if mode and plan else place.mode
    for finding in findings:
        for breach in profile.broken_by(finding, promised, place.storage):
            kind = Kind(finding.guarantee, mode or place.mode, place.storage, breach.cause)
            found.setdefault(kind, Failure(kind=kind, breach=breach, history=history, plan=plan, number=number))
    also = frozenset(map(signature, found.values() if plan else ()))
    return {kind: replace(failure, also=also) for kind, failure in found.items()}


Member = TypeVar("Member", bound=Failure | FailureRecord)


def signature(failure: Failure | FailureRecord) -> str:
    """The guarantee and the cause, alike in every place; without a cause, the words of the message but for names."""
    words = _PARTICULAR.sub("#", split_impact(failure.message)[1].partition(";")[0].partition(" (fault: ")[0])
    cause = failure.kind.cause
    return f"{failure.guarantee} {words if cause in ('', UNEXPLAINED) else cause}"


def stories(failures: Iterable[Member]) -> tuple[tuple[Member, ...], ...]:
    """Groups of failures that most likely have one defect each; the first of each group represents it.

    A signature follows from another one when every stored run that shows it shows the other one as well; those that
    follow from each other are one. What follows from nothing begins a story, unless each of its runs shows the
    beginning of another one. So a small plan that breaks a guarantee alone makes a story of its own, although larger
    plans break it together with others. Representatives are the first by `rank`.
    """
    found = [(signature(each), each) for each in failures]
    runs: dict[str, list[frozenset[str]]] = {}
    for name, each in found:
        runs.setdefault(name, []).append(frozenset({name, *each.also}))
    follows = {name: frozenset.intersection(*shown) & runs.keys() for name, shown in runs.items()}
    for middle in runs:
        follows |= {name: others | follows[middle] for name, others in follows.items() if middle in others}
    begins = _beginnings(runs, follows)
    groups: dict[str, list[Member]] = {}
    for name, each in found:
        shown = (follows[name], runs[name].pop(0))
        groups.setdefault(next(begin for part in shown for begin in begins if begins[begin] & part), []).append(each)
    return tuple(
        tuple(sorted(members, key=lambda each: (signature(each) not in begins[name], each.rank)))
        for name, members in groups.items()
    )


def _beginnings(
    runs: Mapping[str, Sequence[frozenset[str]]], follows: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """The signatures that begin a story, by the first of those that are one; what the fewest follow from is first."""
    left = {min(others): others for name, others in follows.items() if all(name in follows[each] for each in others)}
    for name in sorted(left, key=lambda name: (sum(name in others for others in follows.values()), name)):
        begins = left.pop(name)
        others = frozenset[str]().union(*left.values())
        if not all(follows[each] & others or all(map(others.intersection, runs[each])) for each in runs):
            left[name] = begins
    return left


def defects_least(told: Sequence[Sequence[Failure | FailureRecord]]) -> tuple[int, bool]:
    """How many defects stories show at least, and whether that is most likely all of them.

    Two stories may have one defect if all modes and storages of one are among those of the other, if they begin with
    the same guarantee or cause, or if runs that begin them break the same; one of pairs of modes may have any other's.
    A story of several guarantees may hide a defect that shows only in runs which break its first one as well.
    """
    counted: list[tuple[set[tuple[str, str]], set[str]]] = []
    for story in sorted(told, key=len, reverse=True):
        name, places = signature(story[0]), {each.kind[1:3] for each in story if each.kind.mode != "both"}
        keys = {name, *name.split(" ", 1), *story[0].also}
        if all(keys.isdisjoint(others) and places - where and where - places for where, others in counted):
            counted.append((places, keys))
    alone = all(len({each.guarantee for each in story}) == 1 for story in told)
    return len(counted), alone and len(counted) == len(told)


def breaks_besides(story: Sequence[Failure | FailureRecord], what: str = "failure") -> str:
    """The other guarantees that a story breaks: "also breaks G3, G4 (5 more failures)", or ""."""
    told, *others = story
    if not others:
        return ""
    names = by_number({each.guarantee for each in others} - {told.guarantee})
    more = f"{len(others)} more {what}{'' if len(others) == 1 else 's'}"
    return f"also breaks {', '.join(names)} ({more})" if names else f"{more} of the same guarantee"
