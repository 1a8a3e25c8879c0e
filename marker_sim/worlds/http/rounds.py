"""One round against real servers: what its kind says on a stage of its own, and the history of it."""

from __future__ import annotations

from dataclasses import dataclass

from marker_sim import __version__
from marker_sim.history import Header, History
from marker_sim.worlds.http.round_stage import ForeignSystem, Round, RoundStage
from marker_sim.worlds.http.round_types import PLAYS
from marker_sim.worlds.http.servers import Fleet
from marker_sim.worlds.http.wire_rounds import doors

KINDS = tuple(PLAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRound:
    """A round that is over.

    counts: what happened how often.
    missed: faults that were declared and did not fire.
    """

    history: History
    counts: dict[str, int]
    missed: tuple[str, ...]
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
    header = Header(
        world="foreign",
        mode="timeline",
        sut=system.name,
        sut_version=system.version,
        kit_version=__version__,
        profile=system.profile.name,
        identity=system.identity,
        num_threads=spec.num_threads,
        answer_bound_ms=stage.recorder.bound_ms(),
        seed=spec.seed,
        options={"round": spec.kind, "number": str(spec.number), "interval_ms": str(spec.interval_ms)}
        | system.batching,
        **stage.world.describe(),
    )
    injector = stage.injector
    return PlayedRound(
        history=History(header, tuple(stage.recorder.events)), counts=injector.counts, missed=tuple(injector.missed)
    )
