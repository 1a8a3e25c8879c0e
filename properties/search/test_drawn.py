"""Plans for real servers draw what plans of the simulated world draw."""

from __future__ import annotations

import pytest

from marker_sim.faults import drawable
from marker_sim.plan import Plan
from properties.drawn import STORAGES, plans_for_servers, possible, reason, shares, simulated_plans
from properties.faces.search import make_merged_plan
from properties.faces.targets import INTERVALS_MS, THREADS
from properties.faces.worlds import CANNOT, OF_CLIENTS, OF_SERVERS, done
from properties.volume import CI_ONLY

# One worker draws them, once.


@pytest.fixture(scope="module", params=[pytest.param(each, marks=[CI_ONLY] * (each == "s3")) for each in STORAGES])
def drawn(request: pytest.FixtureRequest) -> tuple[str, dict[str, int], dict[str, int]]:
    return request.param, shares(simulated_plans(request.param)), shares(plans_for_servers(request.param))


def test_servers_are_asked_for_whatever_the_simulated_world_is_asked_for(
    drawn: tuple[str, dict[str, int], dict[str, int]],
) -> None:
    storage, simulated, servers = drawn
    lacking = [trait for trait in possible(storage) if simulated.get(trait) and not servers.get(trait)]
    assert [trait for trait in lacking if not reason(trait)] == []
    assert [trait for trait in servers if reason(trait)] == [], "what cannot be done is not drawn"


def test_a_plan_for_servers_is_a_plan_like_others() -> None:
    for seed in range(40):
        plan = make_merged_plan(seed, "s3", THREADS, INTERVALS_MS, done)
        assert plan == make_merged_plan(seed, "s3", THREADS, INTERVALS_MS, done)
        assert Plan.from_dict(plan.to_dict()) == plan
        assert all(done(fault, "s3") == fault for fault in plan.faults), "its faults are done as they stand"


@pytest.mark.parametrize("storage", STORAGES)
def test_each_kind_is_done_to_servers_or_clients_or_has_a_reason(storage: str) -> None:
    for kind in drawable("timeline", storage, writes=False):
        assert (kind in OF_SERVERS[storage] or kind in OF_CLIENTS) != (kind.value in CANNOT), kind
