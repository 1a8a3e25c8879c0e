"""Scenarios: situations that random draws produce too seldom, made on purpose in a small share of the plans.

A scenario is a function from a plan to a plan. It sets up the situation (workload, faults, their sites) and draws the
rest: how many, how long, which of several kinds, and whether the plan's other faults stay. Judges decide whether it
breaks a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from marker_sim.faults import Fault, FaultKind, Site, by_target
from marker_sim.plan import Plan
from marker_sim.search.seeds import Draws

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

    make: Callable[[Draws, Plan], Plan]
    share: float
    mode: str = ""
    storages: tuple[str, ...] = ()

    def fits(self, mode: str, storage: str) -> bool:
        """Whether plans of a marker mode on a storage can become this scenario."""
        return self.mode in ("", mode) and (not self.storages or storage in self.storages)


def apply_scenario(rng: Draws, plan: Plan, scenarios: tuple[Scenario, ...]) -> Plan:
    """The plan, changed by the first scenario that is drawn, or unchanged."""
    for scenario in scenarios:
        if scenario.fits(plan.mode, plan.storage) and rng.random() < scenario.share:
            made = scenario.make(rng, plan)
            also = plan.faults if rng.random() < _ALSO_SHARE else ()
            return replace(made, faults=by_target((*made.faults, *also)))
    return plan


def at_site(kind: FaultKind, site: str, n: int, **settings: Any) -> Fault:
    """A fault at the n-th arrival at a site, of the actor that the site's name begins with, or the first executor."""
    actor = site.partition(":")[0]
    return Fault.of(kind, "executor-0" if actor == "executor" else actor, Site(site, n), **settings)


def calls_refused(kind: FaultKind, site: str, first: int, calls: int) -> list[Fault]:
    """Faults that make so many calls at a site fail, from the first-th arrival; one lasting if possible."""
    if kind in LASTING:
        return [at_site(kind, site, first, calls=calls)]
    return [at_site(kind, site, step) for step in range(first, first + calls)]
