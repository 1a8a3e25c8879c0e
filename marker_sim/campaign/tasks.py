"""What one process of a campaign does with a task: explore a piece, or shrink a plan."""

from __future__ import annotations

from dataclasses import dataclass

from marker_sim.campaign.failure import Failure, Kind
from marker_sim.campaign.pieces import Piece, PieceResult, collected_by_hand, explore
from marker_sim.campaign.runs import smaller
from marker_sim.campaign.sources.swarm import Swarm
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan
from marker_sim.system import System
from marker_sim.targets.table import parse_target
from marker_sim.worker_pool import Keeper

DESK = "marker_sim.campaign.tasks:SearchDesk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinking:
    """A plan to shrink within a number of seconds and runs. kind: of the violation that must remain."""

    kind: Kind
    plan: Plan
    profile: Profile
    seconds: float
    runs: int


def do(task: tuple[str, Piece | Shrinking], system: System) -> PieceResult | Failure | None:
    """The result of a task: of a piece its findings, of a plan how the smallest fails that still does."""
    _, asked = task
    if isinstance(asked, Piece):
        return explore(asked, Swarm(system, asked.settings))
    return smaller(asked.kind, asked.plan, system, asked.profile, asked.seconds, asked.runs)


class SearchDesk(Keeper):
    """A worker's: the system is loaded once."""

    def __init__(self) -> None:
        super().__init__()
        self._systems: dict[str, System] = {}

    def do(self, task: tuple[str, Piece | Shrinking]) -> PieceResult | Failure | None:
        """The same for a system by its name."""
        if task[0] not in self._systems:
            system = parse_target(task[0]).load()
            assert system is not None, "only plans are given to workers"
            self._systems[task[0]] = system
            self._stack.enter_context(collected_by_hand())
        return do(task, self._systems[task[0]])
