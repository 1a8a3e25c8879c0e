"""Which fault a call meets besides those that are aimed: drawn by a seeded generator, or part of a run of them.

Calls draw in the order in which they pass the interceptor, two numbers each, so the same calls in the same order have
the same faults. THROTTLED and TIMEOUT_LOST with a value above 1 go on for that many calls in the same prefix, as in a
plan.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from marker_sim.errors import UsageError
from marker_sim.faults import FaultKind
from marker_sim.worlds.interceptor import Trigger
from marker_sim.worlds.s3_front.limits import prefix_of

FRONT_FAULTS = (
    FaultKind.THROTTLED,
    FaultKind.SERVER_ERROR,
    FaultKind.TIMEOUT_APPLIED,
    FaultKind.TIMEOUT_LOST,
    FaultKind.TIMEOUT_LATE,
    FaultKind.SLOW_STORAGE,
)
_RUNS = (FaultKind.THROTTLED, FaultKind.TIMEOUT_LOST)


def check_rates(rates: Mapping[FaultKind, float]) -> tuple[tuple[FaultKind, float], ...]:
    """Rates in the order of FRONT_FAULTS; UsageError for a kind the front does not do, or for no probability."""
    for kind, rate in rates.items():
        if kind not in FRONT_FAULTS or not 0 <= rate <= 1:
            known = ", ".join(one.value for one in FRONT_FAULTS)
            raise UsageError(f"rate {rate} for {kind.value}: give a probability, 0 to 1, for one of {known}")
    if sum(rates.values()) > 1:
        raise UsageError(f"the rates sum up to {sum(rates.values()):g}; a call meets one fault, so give 1 at most")
    return tuple((kind, rates[kind]) for kind in FRONT_FAULTS if kind in rates)


class RandomFaults:
    """The generator and the runs. Whoever calls it holds a lock.

    late_ms: how late a late effect is at most.
    """

    def __init__(self, seed: int, rates: Mapping[FaultKind, float], silence_ms: int, late_ms: int) -> None:
        self._rates = check_rates(rates)
        self._random = random.Random(seed)
        self._silence_ms = silence_ms
        self._late_ms = late_ms
        self._runs: dict[str, tuple[Trigger, int]] = {}

    def begin_run(self, trigger: Trigger, path: str) -> None:
        """A fault that struck goes on for the calls after it in the same prefix, where its value says so."""
        if trigger.kind in _RUNS and trigger.value > 1:
            self._runs[prefix_of(path)] = (trigger, trigger.value - 1)

    def next(self, path: str) -> Trigger | None:
        """The fault that the next call meets, None for none."""
        drawn = self._draw()
        run = self._runs.pop(prefix_of(path), None)
        if run is None:
            return drawn
        trigger, left = run
        if left > 1:
            self._runs[prefix_of(path)] = (trigger, left - 1)
        return trigger

    def stop(self) -> None:
        """No fault is drawn any more and no run goes on."""
        self._rates = ()
        self._runs.clear()

    def _draw(self) -> Trigger | None:
        if not self._rates:
            return None
        chance, spread = self._random.random(), self._random.random()
        for kind, rate in self._rates:
            if chance < rate:
                longest = self._late_ms if kind is FaultKind.TIMEOUT_LATE else self._silence_ms
                return Trigger(kind=kind, duration_ms=1 + int(spread * (longest - 1)))
            chance -= rate
        return None
