"""Plans of tables made small: few tries, for each takes a quarter of a minute on Spark; here a stand-in runs them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from marker_sim.plan import Plan, TableShape
from properties.faces.campaign import PlayedShrinker, broken_in
from properties.faces.judges import load_profile
from properties.faces.outcome import Failure
from properties.faces.report import plan_sentences
from properties.faces.worlds import Choices, SparkRun, TableStep, steps_of
from properties.tables.frozen import Writes

PROFILE = load_profile("hudi-spark")


class Hudi:
    """Runs plans: after a step that breaks it, every `every`-th time, a reader finds a row of no write."""

    def __init__(self, breaks: Callable[[Plan, TableStep], bool], every: int = 1) -> None:
        self._breaks = breaks
        self._every = every
        self.plans: list[Plan] = []

    def again(self, plan: Plan, until: float, fresh: bool, probing: bool) -> SparkRun:
        self.plans.append(plan)
        told = Writes(mode=plan.mode, profile="hudi-spark")
        told.write("ok", "a=0")
        for number, step in enumerate(steps_of(plan), start=1):
            for _ in step.faults:
                told.killed(phase=step.word)
            told.write("info", f"b={number}")
            told.write("ok", f"a={number}")
            lost = self._breaks(plan, step) and len(self.plans) % self._every == 0
            told.read("a=never" if lost else f"a={number}")
        return SparkRun(history=told.history(), plan=plan, counts={})


def drawn(step: str, wanted: Callable[[Plan], bool] = lambda _: True) -> Plan:
    """A plan of several steps, one of which is wanted and not the only one."""
    for seed in range(400):
        choices = Choices("1.0.2", ("timeline",), "local", seed, 240.0)
        for _ in range(3):
            found = choices.next(1e6)
            assert found is not None
            names = [each.name for each in found.steps]
            if step in names[1:] and wanted(found.plan):
                return found.plan
    raise AssertionError(f"no plan has {step}")


def shrunk(hudi: Hudi, plan: Plan, seconds: float = 60.0) -> tuple[Plan, str]:
    history = hudi.again(plan, 0.0, False, True).history
    found = broken_in(history, plan, PROFILE)
    kind, broken = next((kind, each) for kind, each in found.items() if kind[0] == "G24")
    assert isinstance(broken, Failure)
    made = PlayedShrinker(hudi.again, PROFILE, at_once=1).shrink(kind, [broken], time.monotonic() + seconds)
    return made.plan, made.sentence


def test_the_step_that_breaks_it_is_left_alone_on_the_plainest_table() -> None:
    plan = drawn("driver killed at before-commit", lambda plan: plan.merge_on_read and plan.shape != TableShape())
    hudi = Hudi(lambda plan, step: step.word == "before-commit")
    small, said = shrunk(hudi, plan)
    assert [step.name for step in steps_of(small)] == ["driver killed at before-commit"]
    assert small.shape == TableShape() and not small.merge_on_read
    assert (small.seed, small.mode, small.num_threads) == (plan.seed, plan.mode, 1)
    assert small.faults == tuple(f for step in steps_of(plan) if step.word == "before-commit" for f in step.faults)
    assert said == "breaks in 4 of 4 runs"
    assert len(hudi.plans) <= 16, "each takes a quarter of a minute"


def test_what_a_failure_needs_of_its_table_and_both_of_two_steps_stay() -> None:
    plan = drawn(
        "driver killed at rollback-inflight",
        lambda plan: plan.merge_on_read and plan.shape is not None and plan.shape.metadata and len(plan.writes) > 3,
    )
    names = [step.name for step in steps_of(plan)]
    first = next(name for name in names if "rollback-inflight" not in name)

    def breaks(plan: Plan, step: TableStep) -> bool:
        there = [each.name for each in steps_of(plan)]
        metadata = plan.shape is not None and plan.shape.metadata
        return first in there and step.word == "rollback-inflight" and metadata and plan.merge_on_read

    small, _ = shrunk(Hudi(breaks), plan)
    assert {step.name for step in steps_of(small)} == {first, "driver killed at rollback-inflight"}
    assert small.merge_on_read and small.shape == TableShape(metadata=True)
    assert any(write.abandon for write in small.writes), "there is something to roll back"


def test_a_failure_that_needs_luck_says_how_often_it_was_seen() -> None:
    hudi = Hudi(lambda plan, step: step.word == "data-file", every=2)
    plan = drawn("driver killed at data-file")
    hudi.plans.append(plan)
    small, said = shrunk(hudi, plan)
    assert "data-file" in {step.word for step in steps_of(small)}
    assert said in ("breaks in 1 of 3 runs", "breaks in 2 of 4 runs", "breaks in 1 of 2 runs")


def test_a_failure_that_is_not_seen_again_says_where_its_evidence_is_from() -> None:
    hudi = Hudi(lambda plan, step: len(hudi.plans) == 1)
    _, said = shrunk(hudi, drawn("driver killed at before-commit"))
    assert said.startswith("breaks in 0 of ") and said.endswith("; the evidence is of a run that had its timing")


def test_no_try_begins_that_the_time_has_no_room_for() -> None:
    plan = drawn("driver killed at before-commit")
    hudi = Hudi(lambda plan, step: step.word == "before-commit")
    small, said = shrunk(hudi, plan, seconds=9.0)
    assert (small, said, len(hudi.plans)) == (plan, "", 1)


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_a_plan_is_told_in_sentences(storage: str) -> None:
    choices = Choices("1.0.2", ("direct", "timeline"), storage, 5, 600.0)
    for _ in range(8):
        found = choices.next(1e6)
        assert found is not None
        head, *writes = plan_sentences(found.plan)
        assert head.startswith(f"{found.plan.mode.capitalize()} markers on {storage}: Hudi writes a ")
        assert [f"({step.name})" in said for step, said in zip(found.steps, _of_steps(writes), strict=True)].count(
            True
        ) == len(found.steps)
        assert "restart" not in "".join(writes) and all(said.endswith(".") for said in writes)
    assert found is not None
    assert "no fault" in plan_sentences(replace(found.plan, writes=(replace(found.plan.writes[0], faults=()),)))[1]


def _of_steps(writes: list[str]) -> list[str]:
    return [said for said in writes if "has to roll back" not in said]
