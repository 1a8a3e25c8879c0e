"""Searches of different seeds share nothing."""

from __future__ import annotations

from marker_sim.plan import Plan
from properties.faces.search import BITS, make_plan, plan_seed


def test_neighbouring_seeds_have_no_plan_in_common() -> None:
    drawn = [plan_seed(seed, turn) for seed in range(40) for turn in range(500)]
    assert len(set(drawn)) == len(drawn)
    assert all(0 <= seed < 2**BITS for seed in drawn)


def test_a_plan_seed_is_the_same_in_every_version_and_survives_storing() -> None:
    assert plan_seed(7, 11) == 3_607_775_614_062_912
    plan = make_plan(plan_seed(7, 11), "timeline", "s3")
    assert Plan.from_dict(plan.to_dict()) == plan and plan.seed == plan_seed(7, 11)
