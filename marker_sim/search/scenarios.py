"""Scenarios: situations that random draws produce too seldom, made on purpose in a small share of the plans.

A scenario is a function from a plan to a plan. It sets up the situation (workload, faults, their sites) and draws the
rest: how many, how long, which of several kinds, and whether the plan's other faults stay. Judges decide whether it
breaks a guarantee.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from marker_sim.faults import Fault, FaultKind, Site
from marker_sim.plan import Plan

_ALSO_SHARE = 0.3  # Share of scenarios in which the plan's own faults happen as well.
TRIES = 4  # The caller gives up after this number of refusals.
LASTING = tuple(kind for kind in FaultKind if "calls" in kind.row.settings)
S3, LOCAL = ("s3",), ("local",)
REFUSALS = {
    "s3": (*LASTING, FaultKind.SERVER_ERROR),
    "s3-unconditional": (*LASTING, FaultKind.SERVER_ERROR),
    "hdfs": (FaultKind.TIMEOUT_LOST, FaultKind.IO_ERROR),
    "local": (FaultKind.IO_ERROR,),
}


class Scenario(NamedTuple):
    """A scenario. share: of the fitting plans that become it. mode, storages: that it fits, empty for any."""

    make: Callable[[random.Random, Plan], Plan]
    share: float
    mode: str = ""
    storages: tuple[str, ...] = ()

    def fits(self, mode: str, storage: str) -> bool:
        """Whether plans of a marker mode on a storage can become this scenario."""
        return self.mode in ("", mode) and (not self.storages or storage in self.storages)


def apply_scenario(rng: random.Random, plan: Plan, scenarios: tuple[Scenario, ...]) -> Plan:
    """The plan, changed by the first scenario that is drawn, or unchanged."""
    for scenario in scenarios:
        if scenario.fits(plan.mode, plan.storage) and rng.random() < scenario.share:
            made = scenario.make(rng, plan)
            also = plan.faults if rng.random() < _ALSO_SHARE else ()
            return replace(made, faults=tuple(sorted((*made.faults, *also), key=lambda f: (f.target, f.n))))
    return plan


def calls_refused(kind: FaultKind, actor: str, site: str, first: int, calls: int) -> list[Fault]:
    """Faults that make so many calls of an actor at a site fail, from the first-th arrival; one lasting if possible."""
    if kind in LASTING:
        return [Fault.of(kind, actor, Site(site, first), calls=calls)]
    return [Fault.of(kind, actor, Site(site, step)) for step in range(first, first + calls)]
