"""Tables with earlier instants, in a share of the plans of writes; drawn by separate numbers, as strays are."""

from __future__ import annotations

import random
from dataclasses import replace

from marker_sim.plan import Action, EarlierLife, Instants, Plan

SHARE = 0.2


def with_earlier_life(plan: Plan) -> Plan:
    """The plan, or the same plan on tables that hold earlier instants."""
    rng = random.Random(f"earlier/1/{plan.seed}/{plan.mode}/{plan.storage}")
    if rng.random() >= SHARE:
        return plan
    looks: tuple[Instants, ...] = ("millis", "seconds", "bootstrap")
    actions: tuple[Action, ...] = ("", "commit", "deltacommit")
    instants = rng.choice(looks)
    commits = rng.choice((0, 1, 2, 3)) if instants != "bootstrap" else rng.choice((1, 2))
    life = EarlierLife(
        commits=commits,
        instants=instants,
        logs=commits > 1 and rng.random() < 0.5,
        archived=rng.choice((0, 1, 2)) if instants != "bootstrap" else 0,
        version8=rng.random() < 0.3,
        left=rng.choice(actions),
    )
    return replace(plan, earlier=life)
