"""Plans of Spark jobs: each fault in its write, plans of older versions, and how they are made small."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from marker_sim.faults import Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.worlds.spark.plans import PHASES
from properties.faces.report import plan_sentences
from properties.faces.search import shrink, smaller
from properties.faces.worlds import TASK_EFFECTS, driver_kill, driver_plan, phase_of, task_plan

DRAWN = [
    draw(seed, mode, "s3") for draw in (driver_plan, task_plan) for mode in ("direct", "timeline") for seed in (1, 2)
]


def faults_by_write(plan: Plan) -> Iterator[tuple[int, Fault]]:
    """Each fault with the number of its write, from 1."""
    for number, write in enumerate(plan.writes, 1):
        yield from ((number, plan.faults[index]) for index in write.faults)


@pytest.mark.parametrize("plan", DRAWN)
def test_each_fault_belongs_to_one_write_and_a_stored_plan_is_the_same(plan: Plan) -> None:
    plan.check()
    assert sorted(index for write in plan.writes for index in write.faults) == list(range(len(plan.faults)))
    assert Plan.from_dict(plan.to_dict()) == plan
    said = [line for line in plan_sentences(plan) if line.startswith("In write ")]
    assert len(said) == len(plan.faults)


@pytest.mark.parametrize("word", PHASES)
def test_a_phase_is_known_again_by_its_fault(word: str) -> None:
    assert phase_of(driver_kill(word, 1, "before")) == phase_of(driver_kill(word, 3, "after")) == word


def test_each_fault_of_an_attempt_has_an_effect() -> None:
    assert set(TASK_EFFECTS) == {kind for kind in FaultKind if kind.row.family == "job"}


@pytest.mark.parametrize("plan", DRAWN)
def test_a_plan_is_made_small_until_one_write_with_the_fault_that_matters_is_left(plan: Plan) -> None:
    wanted = plan.faults[len(plan.faults) // 2]

    def fails(candidate: Plan) -> bool:
        candidate.check()
        there = [fault for _, fault in faults_by_write(candidate)]
        return any(fault.kind is wanted.kind and fault.target == wanted.target for fault in there)

    small = shrink(plan, fails, simulated=False)
    assert len(small.faults) == len(small.writes) == 1 and len(small.writes[0].tasks) == 1
    assert small.faults[0].kind is wanted.kind
    assert all(candidate.entries <= small.entries for candidate in smaller(small))


def test_a_late_attempt_keeps_the_write_after_it() -> None:
    plan = next(plan for plan in DRAWN if any(fault.kind is FaultKind.LATE_ATTEMPT for fault in plan.faults))

    def fails(candidate: Plan) -> bool:
        met = {fault.target: number for number, fault in faults_by_write(candidate)}
        late = [n for n, fault in faults_by_write(candidate) if fault.kind is FaultKind.LATE_ATTEMPT]
        return bool(late) and met.get("executor") == late[0] + 1

    small = shrink(plan, fails, simulated=False)
    assert [number for number, _ in faults_by_write(small)] == [1, 2]
