"""A row of a verdict: one guarantee in one mode, world and storage."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One entry of `guarantees` in verdict.json: a guarantee in one mode, world and storage, over all runs.

    mode: "direct", "timeline", or "both" for a guarantee about a pair of runs.
    violations: all breaches, also those under faults where nothing is promised.
    under, causes, breakdown: the same by fault class, by cause, and by class and cause.
    read_at_ack_share: the share of answers after which storage was read before the next kill; None without answers.
    excused: by name, how often an excuse decided (docs/honesty.md).
    met: how often each deciding place was reached.
    not_met, not_tried: deciding places that were tried and not reached, and the others.
    source: the document that promises it.
    replay: the command that shows the violation again, "" until it is known.
    """

    id: str
    slug: str
    verdict: str
    mode: str
    world: str
    storage: str
    judged: int
    violations: int
    under: dict[str, int]
    causes: dict[str, int]
    breakdown: dict[str, dict[str, int]]
    read_at_ack_share: float | None
    message: str
    evidence: tuple[int, ...]
    excused: dict[str, int] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)
    not_met: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()
    source: str = ""
    replay: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
