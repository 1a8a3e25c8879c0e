"""`--sut reference-spark`: its name, its plans, and what is left of a plan that runs out of time. Starts no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.errors import UsageError
from properties.faces.campaign import request_on
from properties.faces.targets import (
    BOTH,
    CampaignRequest,
    ReferenceSparkTarget,
    ServerOptions,
    on_spark,
    parse_target,
)
from properties.faces.worlds import driver_plan, first_writes


def _request(sut: str, storage: str) -> CampaignRequest:
    return request_on(sut, storage, ServerOptions(), "reference-spark", 1, Path())


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("reference-spark", "reference"),
        ("reference-spark:mutant:no-type-file", "mutant:no-type-file"),
        ("reference-spark:package.module:Class", "package.module:Class"),
    ],
)
def test_the_name_says_whose_markers_the_jobs_use(text: str, system: str) -> None:
    target = parse_target(text)
    assert isinstance(target, ReferenceSparkTarget)
    assert (target.sut, target.system) == (text, system)
    assert on_spark(text) == text
    assert on_spark(system) == f"reference-spark:{system}"


def test_plans_visit_each_place_with_and_without_deaths_of_drivers() -> None:
    request = _request("reference-spark", BOTH)
    plans = [request.target.plan_of(request, number) for number in range(8)]
    places = [(plan.mode, plan.storage) for plan in plans]
    assert len(set(places)) == 4 and places[:4] == places[4:]
    assert plans == [request.target.plan_of(request, number) for number in range(8)]


def test_an_unknown_system_is_wrong_usage() -> None:
    request = _request("reference-spark:nowhere", "local")
    with pytest.raises(UsageError):
        request.target.plan_of(request, 0)


def test_the_first_writes_of_a_plan_keep_their_own_faults() -> None:
    plan = driver_plan(3, "timeline", "s3")
    for count in range(1, len(plan.writes) + 1):
        cut = first_writes(plan, count)
        kept = [[plan.faults[index] for index in write.faults] for write in plan.writes[:count]]
        assert [[cut.faults[index] for index in write.faults] for write in cut.writes] == kept
        assert len(cut.faults) == sum(map(len, kept))
    assert first_writes(plan, len(plan.writes)) == plan
