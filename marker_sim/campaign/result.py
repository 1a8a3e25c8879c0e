"""What one `verify` came to: the counts and verdicts of all its runs and the first failures, in whichever world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from marker_sim.campaign.statistics import Statistics
from marker_sim.history import History
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One violation worth showing: what broke, the events that prove it, and the plan that shows it again.

    mode: as in the rows of a verdict, "both" for a pair. cause: of its breach. plan: shrunk, None where the world
    cannot be planned exactly.
    seed: the run it came from. confirmed: what became of the plan with real processes, "" where nobody tried.
    """

    guarantee: str
    message: str
    evidence: tuple[int, ...]
    history: History
    plan: Plan | None
    seed: int
    entries_before: int = 0
    mode: str = ""
    confirmed: str = ""
    cause: str = ""


def failures_in(history: History, findings: Iterable[Finding], profile: Profile) -> Iterator[Failure]:
    """The first breach of each guarantee and cause that is held against the system, of a run that has no plan."""
    header = history.header
    for finding in findings:
        for breach in profile.broken_by(finding, header.mode, header.storage):
            yield Failure(
                guarantee=finding.guarantee,
                message=breach.message,
                evidence=breach.evidence,
                history=history,
                plan=None,
                seed=header.seed,
                cause=breach.cause,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A defect that was planted to see whether the kit finds it (campaign/coverage/canary.py).

    mutant: what was planted. guarantee: whose judge has to see it. plans: runs until it did, or all that it was given.
    """

    mutant: str
    guarantee: str
    plans: int
    caught: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"mutant": self.mutant, "caught_by": self.guarantee if self.caught else None, "plans": self.plans}

    @property
    def failing(self) -> str:
        """The sentence of a canary that lives, "" of one that was caught."""
        if self.caught:
            return ""
        return (
            f"the kit did not detect a planted defect: {self.guarantee} did not catch {self.mutant} in {self.plans}"
            " runs, so a campaign without violations proves nothing"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageGap:
    """Why a campaign proves less than it seems to: what it should have met, or done more of. Empty: everything.

    guarantees, modes, storages: whose `holds` becomes inconclusive.
    """

    sentence: str
    guarantees: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()

    def concerns(self, guarantee: str, mode: str, storage: str) -> bool:
        """Whether a row of a verdict rests on it; what is judged over both modes rests on each."""
        return (
            (not self.guarantees or guarantee in self.guarantees)
            and (not self.modes or mode in self.modes or mode == "both")
            and (not self.storages or storage in self.storages)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """A place or kind of round without which some guarantees are not judged where they are most likely to break.

    guarantees: those of its mode whose `holds` needs it met. mode: "" for every one. tried, met: how often.
    """

    name: str
    guarantees: tuple[str, ...]
    mode: str = ""
    tried: int = 0
    met: int = 0

    def decides(self, guarantee: str, mode: str) -> bool:
        """Whether a row of a verdict rests on it."""
        return guarantee in self.guarantees and self.mode in ("", mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """In which phases one kind of fault struck. met: by phase. unmet: possible ones. impossible: with the reason."""

    kind: str
    met: dict[str, int]
    unmet: tuple[str, ...]
    impossible: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without the kind."""
        return {"met": self.met, "unmet": list(self.unmet), "impossible": self.impossible}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reruns:
    """Runs that were made again and compared, event by event. elsewhere: in a process with another hash seed."""

    passing: int = 0
    failures: int = 0
    elsewhere: int = 0
    differences: int = 0

    def to_dict(self) -> dict[str, int]:
        """The JSON form."""
        return {
            "passing": self.passing,
            "failures": self.failures,
            "elsewhere": self.elsewhere,
            "differences": self.differences,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The outcome of many runs against one system under test.

    failures: at most one for each guarantee, mode, storage and cause. last: the last history. not_reached: what had
    to happen at least once and did not. trouble: why the kit could not finish what it began, "" when it did; what
    was found before stays found. canary: None where nothing could be planted. s3: what the honesty probe found of
    the object store, None where there is none. batching: of a foreign server, what it is held to and who said so.
    gaps: of what was not reached, that which takes the ground from guarantees. too_rare: what a campaign of this
    size need not have met. fault_rows: fault by phase, of the runs looked at. deciding: what was tried and met of what
    decides guarantees, where there is a table of it.
    """

    sut: str
    sut_version: str
    seed: int
    duration_s: float
    runs: int
    steps: int
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
    gaps: tuple[CoverageGap, ...] = ()
    deciding: tuple[Deciding, ...] = ()
    too_rare: tuple[str, ...] = ()
    fault_rows: tuple[MatrixRow, ...] = ()
    reruns: Reruns = field(default_factory=Reruns)
