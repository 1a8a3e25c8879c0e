"""Which round comes next: its mode, its shape and its kills, from a seed and from what was met so far."""

from __future__ import annotations

import random
from collections.abc import Mapping

from marker_sim.sut.hudi_spark.phases import phases
from marker_sim.sut.hudi_spark.rounds import Spec
from marker_sim.sut.hudi_spark.settings import Shape, draw_shape
from marker_sim.sut.hudi_spark.table import Pace, Step

KILLS_MIN, KILLS_MAX = 2, 6
ROUNDS_WANTED = 4
FIRST_S, EACH_S = 18.0, 15.0


class Choices:
    """The rounds that fit into a budget. words: aim at these places alone. killed: drivers killed by mode and word."""

    def __init__(
        self,
        version: str,
        modes: tuple[str, ...],
        storage: str,
        seed: int,
        budget_s: float,
        words: tuple[str, ...],
        killed: Mapping[tuple[str, str], int],
    ) -> None:
        self.pace = Pace()
        self._version, self._modes, self._storage, self._seed = version, modes, storage, seed
        self._words = words
        self._killed = killed
        self._number = 0
        kills = int((budget_s / ROUNDS_WANTED - FIRST_S) / EACH_S)
        self._kills = min(max(kills, KILLS_MIN), KILLS_MAX)

    def next(self, left_s: float) -> Spec | None:
        """The next round, None when no further one fits; the first always does."""
        number = self._number
        if number and left_s < FIRST_S + self.pace.estimate_s("write"):
            return None
        self._number += 1
        rng = random.Random(f"{self._seed} {number}")
        mode = self._modes[number % len(self._modes)]
        shape = draw_shape(rng, number // len(self._modes), self._version)
        return Spec(
            number=number,
            seed=self._seed * 1_000 + number,
            version=self._version,
            mode=mode,
            storage=self._storage,
            shape=shape,
            steps=self._steps(rng, mode, shape),
        )

    def _steps(self, rng: random.Random, mode: str, shape: Shape) -> tuple[Step, ...]:
        """Kills at the places met least so far, of a write and of a rollback in turn."""
        found: dict[str, list[Step]] = {}
        for stage in ("write", "rollback"):
            steps = [
                Step(phase=each, nth=rng.choice(each.nths), when=rng.choice(each.whens), at=rng.choice(each.ats))
                for each in phases(mode, shape.metadata, stage)
                if not self._words or each.word in self._words
            ]
            rng.shuffle(steps)
            found[stage] = sorted(steps, key=lambda step: self._killed.get((mode, step.phase.word), 0))
        turns: list[Step] = []
        while len(turns) < self._kills and (found["write"] or found["rollback"]):
            for stage, share in (("write", 2), ("rollback", 1)):
                turns += found[stage][:share]
                del found[stage][:share]
        return tuple(turns[: self._kills])
