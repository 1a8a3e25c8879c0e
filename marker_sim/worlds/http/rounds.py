"""One round against real servers: what its kind says on a stage of its own, and the history of it."""

from __future__ import annotations

from dataclasses import dataclass

from marker_sim.history import History
from marker_sim.plan import Plan
from marker_sim.worlds.http.round_stage import Round, RoundStage
from marker_sim.worlds.http.round_types import PLAYS
from marker_sim.worlds.http.servers import Fleet
from marker_sim.worlds.http.stage import ForeignSystem
from marker_sim.worlds.http.wire_rounds import doors

KINDS = tuple(PLAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRound:
    """A round that is over.

    counts: what happened how often.
    missed: faults that were declared and did not fire.
    plan: what was run, None for a round whose seed does not determine it.
    """

    history: History
    counts: dict[str, int]
    missed: tuple[str, ...] = ()
    plan: Plan | None = None
    interrupted: bool = False
    trouble: str = ""


def run_round(spec: Round, system: ForeignSystem, fleet: Fleet) -> PlayedRound:
    """Run a round; HarnessError when the kit's surroundings failed."""
    stage = RoundStage(spec, system, fleet)
    try:
        with doors(stage):
            stage.play(PLAYS[spec.kind])
    finally:
        try:
            stage.recorder.close()
        finally:
            stage.leave()
    return PlayedRound(
        history=stage.history(spec.seed, {"round": spec.kind, "number": str(spec.number)}),
        counts=stage.injector.counts,
        missed=tuple(stage.injector.missed),
    )
