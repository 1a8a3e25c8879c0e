"""Plans of writes: stored and read back, told in sentences, shrunk, and refused when no table could have them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import FaultKind
from marker_sim.plan import Fault, Plan, Task, Write, read_plan, write_plan
from marker_sim.report.words import plan_sentences
from marker_sim.search.shrinking.shrinker import shrink
from marker_sim.search.writes import make_write_plan
from marker_sim.seeds import plan_seed

ONE = Plan(mode="direct", directories=(), writes=(Write(tasks=(Task(),)),))


@pytest.mark.parametrize("storage", ["s3", "local", "hdfs"])
def test_a_plan_of_writes_is_the_same_after_it_was_stored(storage: str, chaos_seed: int, tmp_path: Path) -> None:
    for seed in (plan_seed(chaos_seed, number) for number in range(50)):
        plan = make_write_plan(seed, "timeline", storage)
        write_plan(plan, tmp_path / "plan.json")
        assert read_plan(tmp_path / "plan.json") == plan
        sentences = plan_sentences(plan)
        assert len(sentences) == 1 + len(plan.writes) + len(plan.faults)
        assert all(sentence.endswith(".") for sentence in sentences)


def test_a_plan_of_writes_reads_as_sentences() -> None:
    killed = Fault(kind=FaultKind.KILL, actor="driver", step=9, duration_ms=20, value=300)
    task = Task(partition="dt=1", group="f7", kind="MERGE", copies=2, slow_ms=10)
    plan = replace(ONE, writes=(Write(tasks=(task,), markers="timeline", abandon=True),), faults=(killed,))
    head, write, fault = plan_sentences(plan)
    assert head.startswith("Direct markers on s3") and "COPY_ON_WRITE" in head
    assert write == (
        "The driver writes with timeline markers MERGE of dt=1/f7 by 2 concurrent attempts, 10 ms between marker and"
        " file, and gives up before finalize."
    )
    assert fault == (
        "At step 9 of the driver, it is killed; its executors run for 300 ms more and the next driver starts 20 ms"
        " later."
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"writes": [{"tasks": [{"partition": "../x"}]}]}, "make no file"),
        ({"writes": [{"tasks": [{"partition": ".hoodie"}]}]}, "below .hoodie"),
        ({"writes": [{"tasks": [{"group": "a/b"}]}]}, "has a slash"),
        ({"writes": [{"tasks": [{"kind": "UPDATE"}]}]}, "task kind 'UPDATE'"),
        ({"writes": [{"tasks": [{"copies": "2"}]}]}, "whole numbers"),
        ({"writes": [{"table": 1}]}, "write table 1 is not one of 1"),
        ({"writes": [{"markers": "both"}]}, "write markers 'both'"),
        ({"tables": ["t", "t/a"], "writes": [{"tasks": [{"partition": "a"}]}]}, "lies in another table"),
        ({"tables": [""], "writes": [{}]}, "is no table"),
        ({"executors": 0}, "executors must be at least 1"),
    ],
)
def test_a_plan_that_no_table_could_have_is_refused_in_a_sentence(changes: dict[str, object], why: str) -> None:
    raw = json.loads(json.dumps(ONE.to_dict() | changes))
    with pytest.raises(UsageError, match=why):
        Plan.from_dict(raw)


@pytest.mark.parametrize("text", ["{}", '{"seed": 7, "faults": []}', "[]", '"plan"', "null"])
def test_a_file_that_says_nothing_of_a_plan_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"is not a plan: it has none of the keys ops, schema, writes"):
        read_plan(path)
    path.write_text(json.dumps(Plan().to_dict()), encoding="utf-8")
    assert read_plan(path) == Plan()


def test_shrinking_keeps_what_matters_and_nothing_else() -> None:
    plan = make_write_plan(3, "timeline", "s3")
    assert plan.entries > 8

    def fails(candidate: Plan) -> bool:
        return any(task.kind == "APPEND" for write in candidate.writes for task in write.tasks)

    plan = replace(plan, writes=(*plan.writes, Write(tasks=(Task(kind="APPEND", partition="größe", copies=3),))))
    small = shrink(plan, fails)
    assert small.entries == 1 and not small.faults
    assert small.writes[0].tasks[0] == Task(kind="APPEND", group=small.writes[0].tasks[0].group)
