"""Which round comes next: its mode, its shape and its kills, from a seed and from what was met so far."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal

from marker_sim.seeds import plan_seed
from marker_sim.sut.hudi_spark.phases import phases
from marker_sim.sut.hudi_spark.rounds import Spec
from marker_sim.sut.hudi_spark.settings import Shape, draw_shape
from marker_sim.sut.hudi_spark.steps import Stage, Step
from marker_sim.sut.hudi_spark.table import Pace
from marker_sim.sut.hudi_spark.troubles import executor_troubles, storage_troubles

KILLS_MIN, KILLS_MAX = 3, 6
ROUNDS_WANTED = 4
STAGES: tuple[Stage, ...] = ("write", "rollback")
FIRST_S, EACH_S = 12.0, 14.0


class Choices:
    """The rounds that fit into a budget. names: take these steps alone. met: steps by mode and name."""

    def __init__(
        self,
        version: str,
        modes: tuple[str, ...],
        storage: str,
        seed: int,
        budget_s: float,
        names: tuple[str, ...],
        met: Mapping[tuple[str, str], int],
    ) -> None:
        self.pace = Pace()
        self._version, self._modes, self._storage, self._seed = version, modes, storage, seed
        self._names = names
        self._met = met
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
        master: Literal["local", "standalone"] = "standalone" if self._standalone(number) else "local"
        return Spec(
            number=number,
            seed=plan_seed(self._seed, number),
            version=self._version,
            mode=mode,
            storage=self._storage,
            master=master,
            shape=shape,
            steps=self._steps(rng, mode, shape, master),
        )

    def _standalone(self, number: int) -> bool:
        """Whether executors of a round are processes: of the last of each `ROUNDS_WANTED` rounds of a mode."""
        if self._names:
            return any(name.startswith("executor") for name in self._names)
        return number // len(self._modes) % ROUNDS_WANTED == ROUNDS_WANTED - 1

    def _steps(self, rng: random.Random, mode: str, shape: Shape, master: str) -> tuple[Step, ...]:
        """Kills at the places met least so far, of a write and of a rollback in turn, and what else goes wrong here."""
        if master == "standalone":
            others = list(executor_troubles(rng, len(shape.names)))
        else:
            others = list(storage_troubles(rng)) if self._storage == "s3" else []
        files = len(shape.names)
        # At table version 6 a rollback of log files appends command blocks and deletes nothing.
        deletes = shape.table_type == "COPY_ON_WRITE" or not (shape.version6 or self._version.startswith("0."))
        found: list[list[Step]] = [
            *(
                [each.step(rng, files) for each in phases(mode, stage, metadata=shape.metadata, deletes=deletes)]
                for stage in STAGES
            ),
            others,
        ]
        for steps in found:
            rng.shuffle(steps)
            steps.sort(key=lambda step: self._met.get((mode, step.name), 0))
        turns: list[Step] = []
        shares = (1, 0, 2) if master == "standalone" else (2, 1, 1)
        while any(found) and len(turns) < self._kills:
            for steps, share in zip(found, shares, strict=True):
                turns += [step for step in steps[:share] if not self._names or step.name in self._names]
                del steps[: max(share, 1)]
        return tuple(turns[: self._kills])
