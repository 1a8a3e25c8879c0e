"""The result of one campaign in any world: counts, verdicts of all its runs, the first failures, a row of each run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from marker_sim.history import History
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.failure import Failure
from marker_sim.outcome.process_phase import NO_FAULT
from marker_sim.outcome.statistics import Statistics
from marker_sim.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A known defect that the campaign must detect (campaign/coverage/canary.py).

    mutant: its name.
    guarantee: the guarantee that must detect it.
    plans: the number of runs until it was detected, or of all runs.
    """

    mutant: str
    guarantee: str
    plans: int
    caught: bool

    @property
    def failing(self) -> str:
        """The sentence about a canary that was missed, "" otherwise."""
        if self.caught:
            return ""
        return (
            f"the kit did not detect a planted defect: {self.guarantee} did not catch {self.mutant} in {self.plans}"
            " runs, so a campaign without violations proves nothing"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageGap:
    """A missed coverage goal or activity threshold.

    guarantees, modes, storages: those that become inconclusive; empty for all.
    """

    sentence: str
    guarantees: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()

    def concerns(self, guarantee: str, mode: str, storage: str) -> bool:
        """Whether a row of a verdict depends on this gap; a row for both modes depends on those of each."""
        return (
            (not self.guarantees or guarantee in self.guarantees)
            and (not self.modes or mode in self.modes or mode == "both")
            and (not self.storages or storage in self.storages)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """A place or an event in which some guarantees are most likely to break.

    guarantees: those that hold only if it was reached, or enough of the places that decide them (`Campaign.floor`).
    mode: the marker mode, "" for every one.
    tried, met: how often it was tried and reached.
    expected: how often it should have been reached by measured rates; 0 if unknown.
    """

    name: str
    guarantees: tuple[str, ...]
    mode: str = ""
    tried: int = 0
    met: int = 0
    expected: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """The phases in which one kind of fault happened.

    met: the number of faults, by phase.
    unmet: possible phases without a fault.
    impossible: the other phases, with the reason.
    """

    kind: str
    met: dict[str, int]
    unmet: tuple[str, ...]
    impossible: dict[str, str]


KEPT, NOT_MET, NO_ANSWER, UNCONFIRMED = "kept", "not met", "no answer", "not confirmed"
OF_STORY = "of a confirmed story: "


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedCall:
    """A storage call of a walk (search/walks.py).

    base: the workload in which it is the call with this `number`. call: its operation and path.
    fates: the result of each fate of the call: `KEPT`, `NOT_MET`, `NO_ANSWER`; the broken guarantees; `UNCONFIRMED` if
    they
        did not break again with a process that was really killed there; `OF_STORY` and the guarantees if such a process
        had broken them by this fate at another call of this kind; "" if it was not tried.
    pairs: the number of pairs of deaths whose second one is this call, of which `fates` has the worst result; tried:
    how many
        of them were tried. 0 for a single call.
    """

    base: str
    number: int
    call: str
    fates: dict[str, str]
    pairs: int = 0
    tried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The result of many runs against one system under test.

    failures: at most one per guarantee, mode, storage and cause.
    last: the last history.
    not_reached: missed coverage goals and other reasons that make the campaign inconclusive.
    trouble: why the kit could not complete the campaign, "" when it did; earlier violations stay.
    canary: None if none was possible.
    s3: the result of the consistency probe of the object store, None without one.
    batching: how a foreign server is assumed to batch, and where that comes from.
    server: how a foreign server was started, as `ServerOptions` without an endpoint, None for other systems.
    gaps: the part of `not_reached` that makes guarantees inconclusive.
    too_rare: goals that were missed and need not have been reached.
    not_applicable: goals that do not apply to the system, with the reason.
    fault_rows: faults by phase, in the sampled runs.
    deciding: the places and conditions that decide guarantees, if any.
    floor: the share of those of a guarantee that must be met before it holds.
    listed: a row of each run of a plan, when that was asked for.
    walked: the calls of a walk, if there was one. orders: how complete an enumeration of orders was, "" for none.
    """

    sut: str
    sut_version: str
    seed: int
    duration_s: float
    statistics: Statistics
    failures: tuple[Failure, ...]
    last: History | None
    not_reached: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    interrupted: bool = False
    trouble: str = ""
    canary: Canary | None = None
    s3: dict[str, Any] | None = None
    batching: dict[str, str] | None = None
    server: dict[str, Any] | None = None
    gaps: tuple[CoverageGap, ...] = ()
    deciding: tuple[Deciding, ...] = ()
    floor: float = 1.0
    too_rare: tuple[str, ...] = ()
    not_applicable: dict[str, str] = field(default_factory=dict)
    fault_rows: tuple[MatrixRow, ...] = ()
    listed: tuple[RunRow, ...] = ()
    walked: tuple[WalkedCall, ...] = ()
    orders: str = ""

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.statistics.runs

    def decided_by(self, guarantee: str, mode: str) -> tuple[Deciding, ...]:
        """What decides a row of the verdict."""
        return tuple(each for each in self.deciding if guarantee in each.guarantees and each.mode in ("", mode))


# The columns of a promise that a run broke, by one cause. under: the faults that were active, as in `verdict.json`.
BROKEN = ("guarantee", "cause", "under", "message")


class RunRow(NamedTuple):
    """A judged run.

    number, run: its number in the stream, and which run of that number it is; together they occur once.
    plans: "writes" or "operations".
    entries: the size of its plan.
    judged: how much was judged, over all guarantees.
    broken: a row of BROKEN for each breach.
    """

    number: int
    run: int
    seed: int
    mode: str
    storage: str
    plans: str
    entries: int
    steps: int
    events: int
    faults: int
    judged: int
    broken: tuple[tuple[str, ...], ...]


def run_row(
    number: int, run: int, plan: Plan, history: History, steps: int, findings: Iterable[Finding], profile: Profile
) -> RunRow:
    """The row of a run of a plan."""
    findings = tuple(findings)
    broken = [
        (finding.guarantee, breach.cause, breach.under, breach.message)
        for finding in findings
        for breach in profile.broken_by(finding, plan.mode, plan.storage)
    ]
    return RunRow(
        number=number,
        run=run,
        seed=plan.seed,
        mode=plan.mode,
        storage=plan.storage,
        plans="writes" if plan.writes else "operations",
        entries=plan.entries,
        steps=steps,
        events=len(history.events),
        faults=sum(event.kind == "fault" and event.value not in NO_FAULT for event in history.events),
        judged=sum(finding.judged for finding in findings if finding.applicable),
        broken=tuple(sorted(broken)),
    )
