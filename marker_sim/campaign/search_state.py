"""What a campaign has seen so far, added up piece by piece in the order of its runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from marker_sim.campaign.pieces import Broken, Kind, PieceResult
from marker_sim.campaign.statistics import Statistics
from marker_sim.history import History
from marker_sim.targets.target import CampaignRequest


@dataclass(slots=True, kw_only=True)
class SearchState:
    """The state of one campaign.

    began: time.monotonic().
    found: the first run of each kind of violation.
    small: of those that were made small, what is left; None when it broke the promise only sometimes.
    trouble: why the kit could not finish what it began, "" when it did.
    """

    request: CampaignRequest
    progress: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    statistics: Statistics = field(default_factory=Statistics)
    steps: int = 0
    found: dict[Kind, Broken] = field(default_factory=dict)
    small: dict[Kind, Broken | None] = field(default_factory=dict)
    last: History | None = None
    trouble: str = ""

    def add(self, piece: PieceResult) -> dict[Kind, Broken]:
        """Add the next piece; the kinds of violation that are new with it."""
        self.statistics.merge(piece.statistics)
        self.steps += piece.steps
        self.last = piece.last or self.last
        new = {kind: broken for kind, broken in piece.found.items() if kind not in self.found}
        self.found |= new
        return new
