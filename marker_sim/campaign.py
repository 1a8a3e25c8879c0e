"""What one `verify` came to: the counts and verdicts of all its runs and the first failures, in whichever world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marker_sim.history import History
from marker_sim.judges.tally import Tally
from marker_sim.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One violation worth showing: what broke, the events that prove it, and the plan that shows it again.

    mode: as in the rows of a verdict, "both" for a pair. plan: shrunk, None where the world cannot be planned exactly.
    seed: the run it came from.
    """

    guarantee: str
    message: str
    evidence: tuple[int, ...]
    history: History
    plan: Plan | None
    seed: int
    entries_before: int = 0
    mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The outcome of many runs against one system under test.

    failures: at most one for each guarantee, mode and storage. last: the last history. not_reached: what had to happen
    at least once and did not. trouble: why the kit could not finish what it began, "" when it did; what was found
    before stays found. s3: what the honesty probe found of the object store, None where there is none.
    """

    sut: str
    sut_version: str
    seed: int
    duration_s: float
    runs: int
    steps: int
    tally: Tally
    failures: tuple[Failure, ...]
    last: History | None
    not_reached: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    interrupted: bool = False
    trouble: str = ""
    s3: dict[str, Any] | None = None
