"""Which round comes next: its mode, its shape and its kills, from a seed and from what was met so far."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Literal

from marker_sim.worlds.hudi_spark.deciding_faults import steps_of
from marker_sim.worlds.hudi_spark.phases import RECONCILE, REWRITE, WritePhase, phases
from marker_sim.worlds.hudi_spark.round_steps import RoundStep, Stage
from marker_sim.worlds.hudi_spark.rounds import Spec
from marker_sim.worlds.hudi_spark.settings import Shape, draw_shape
from marker_sim.worlds.hudi_spark.storage_faults import executor_troubles, storage_troubles
from marker_sim.worlds.hudi_spark.table import Pace

KILLS_MIN, KILLS_MAX = 3, 6
ROUNDS_WANTED = 4
STAGES: tuple[Stage, ...] = ("write", "rollback")
FIRST_S, EACH_S = 12.0, 14.0
TRIES_MAX = 4
SHAPES = 6  # Drawn for each round.
REWRITES_SHARE = 0.25
EXECUTOR_STEPS = frozenset({"executor killed", "executor paused", RECONCILE.name})


class Choices:
    """The rounds that fit into a budget.

    names: take these steps alone.
    met, armed: steps by mode and name, so far.
    """

    def __init__(
        self,
        version: str,
        modes: tuple[str, ...],
        storage: str,
        seed: int,
        budget_s: float,
        names: tuple[str, ...],
        met: Mapping[tuple[str, str], int],
        armed: Mapping[tuple[str, str], int],
    ) -> None:
        self.pace = Pace()
        self._version, self._modes, self._storage, self._seed = version, modes, storage, seed
        self._names = names
        self._met, self._armed = met, armed
        self._number = 0
        self._rounds = dict.fromkeys(modes, 0)
        kills = int((budget_s / ROUNDS_WANTED - FIRST_S) / EACH_S)
        self._kills = min(max(kills, KILLS_MIN), KILLS_MAX)

    def next(self, left_s: float) -> Spec | None:
        """The next round, None when no further one fits; the first always does."""
        number = self._number
        if number and left_s < FIRST_S + self.pace.estimate_s("write"):
            return None
        self._number += 1
        rng = random.Random(f"{self._seed} {number}")
        mode = max(self._modes, key=lambda each: (len(self._due(each)), -self._rounds[each]))
        shape = self._shape(rng, mode)
        master: Literal["local", "standalone"] = "standalone" if self._standalone(mode) else "local"
        self._rounds[mode] += 1
        return Spec(
            number=number,
            seed=self._seed,
            version=self._version,
            mode=mode,
            storage=self._storage,
            master=master,
            shape=shape,
            steps=self._steps(rng, mode, shape, master),
        )

    def _due(self, mode: str) -> frozenset[str]:
        """The places of a mode that were not met yet, but for those that were aimed at in vain again and again."""
        names = (each.step for each in steps_of(mode, self._storage) if not self._names or each.step in self._names)
        return frozenset(n for n in names if not self._met.get((mode, n)) and self._armed.get((mode, n), 0) < TRIES_MAX)

    def _shape(self, rng: random.Random, mode: str) -> Shape:
        """Of some shapes the one with most of the places that are due; with rewrites until a kill met one."""
        due = self._due(mode)
        rewrites = REWRITE in due or (self._has_rewrites(mode) and rng.random() < REWRITES_SHARE)
        drawn = [draw_shape(rng, self._rounds[mode], self._version, rewrites=rewrites) for _ in range(SHAPES)]
        return max(drawn, key=lambda shape: sum(each.name in due for each in self._phases(mode, shape)))

    def _phases(self, mode: str, shape: Shape) -> tuple[WritePhase, ...]:
        # At table version 6 a rollback of log files appends command blocks and deletes nothing.
        deletes = shape.table_type == "COPY_ON_WRITE" or not (shape.version6 or self._version.startswith("0."))
        rewrites = shape.rewrites and self._has_rewrites(mode)
        places = partial(phases, mode, metadata=shape.metadata, deletes=deletes, rewrites=rewrites)
        return tuple(each for stage in STAGES for each in places(stage))

    def _has_rewrites(self, mode: str) -> bool:
        return mode == "timeline" and self._storage == "local"

    def _standalone(self, mode: str) -> bool:
        """Whether executors of a round are processes: in one of `ROUNDS_WANTED`, and when nothing else is due."""
        if self._names:
            return any(name.startswith("executor") for name in self._names)
        due = self._due(mode)
        return self._rounds[mode] % ROUNDS_WANTED == ROUNDS_WANTED - 1 or (bool(due) and due <= EXECUTOR_STEPS)

    def _steps(self, rng: random.Random, mode: str, shape: Shape, master: str) -> tuple[RoundStep, ...]:
        """Kills at the places met least so far, of a write and of a rollback in turn, and what else goes wrong here."""
        if master == "standalone":
            others = list(executor_troubles(rng, len(shape.names)))
        else:
            others = list(storage_troubles(rng)) if self._storage == "s3" else []
        files = len(shape.names)
        there = self._phases(mode, shape)
        found: list[list[RoundStep]] = [
            *([each.step(rng, files) for each in there if each.stage == stage] for stage in STAGES),
            others,
        ]
        for steps in found:
            rng.shuffle(steps)
            steps.sort(key=lambda step: (self._tried(mode, step.name), step.name != REWRITE))
        turns: list[RoundStep] = []
        shares = (1, 0, 2) if master == "standalone" else (2, 1, 1)
        while any(found):
            for steps, share in zip(found, shares, strict=True):
                turns += [step for step in steps[:share] if not self._names or step.name in self._names]
                del steps[: max(share, 1)]
        turns.sort(key=lambda step: self._tried(mode, step.name))
        return tuple(turns[: self._kills])

    def _tried(self, mode: str, name: str) -> tuple[int, int]:
        """Least first: how often a step was met, then how often it was aimed at."""
        return self._met.get((mode, name), 0), self._armed.get((mode, name), 0)
