"""Plans of writes: stored and read back, as sentences, shrunk, and refused when no table could have them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind, Site, Step
from marker_sim.plan import Plan, Task, Write, read_plan, write_plan
from marker_sim.system import reference
from properties.faces.report import plan_sentences
from properties.faces.search import make_write_plan, plan_seed, shrink
from properties.faces.worlds import run

CALL = {"path": "", "operations": ["put"], "when": "before"}
ONE = Plan(mode="direct", directories=(), writes=(Write(tasks=(Task(),)),))


@pytest.mark.draws(runs=50, one_in=16)
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
    killed = Fault.of(FaultKind.KILL, "driver", Step(9), restart_ms=20, executors_ms=300)
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
        ({"writes": [{"tasks": [{"copies": "2"}]}]}, "copies is .2.; Expected `int`"),
        ({"writes": [{"tasks": [{"copies": -2}]}]}, "whole numbers"),
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


def test_a_plan_of_an_older_schema_is_refused_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="has schema 1, this version reads 2"):
        Plan.from_dict({"schema": 1, "ops": []})


@pytest.mark.parametrize("kind", FaultKind, ids=lambda kind: kind.value)
def test_a_fault_is_the_same_after_it_was_stored(kind: FaultKind) -> None:
    strange = {"for_ms": 7, "restart_ms": -1, "late_ms": 9, "jump_ms": -40}
    given: dict[str, Any] = {
        name: strange.get(name, True if choices[0] is False else 11) for name, choices in kind.row.settings.items()
    }
    fault = Fault.of(kind, "driver", Step(4), **given)
    for trigger in (Step(4), Site("server: reply", 2), Call(r"/MARKERS\d+$", ("put", "cut"), 3, "after")):
        there = replace(fault, trigger=trigger)
        raw = json.loads(json.dumps(there.to_dict()))
        assert Fault.from_dict(raw) == there and set(kind.row.settings) <= raw.keys()


def test_a_fault_at_a_call_is_said_and_is_not_for_simulated_processes() -> None:
    fault = Fault.of(FaultKind.THROTTLED, "server", Call("MARKERS", ("put",), 3), calls=2)
    plan = replace(ONE, storage="s3", faults=(fault,))
    said = (
        "At call number 3 of the server (put of a path that matches MARKERS), storage answers 503 SlowDown to 2 calls."
    )
    assert said in plan_sentences(plan)
    with pytest.raises(UsageError, match="for real processes alone"):
        run(plan, reference())


@pytest.mark.parametrize(
    ("calls", "more"), [(1, ""), (2, ", and so at the one after it"), (1_000_000, ", and so at all after it")]
)
def test_how_many_calls_meet_a_fault_is_said(calls: int, more: str) -> None:
    fault = Fault.of(FaultKind.DISK_FULL, "server", Call("", ("write",)), calls=calls)
    assert f"(write), the disk is full{more}." in plan_sentences(replace(ONE, faults=(fault,)))[-1]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (
            {"kind": "pause", "step": 1, "calls": 3},
            "fault 'pause' has a key 'calls'; accepted are kind, target, step, for_ms",
        ),
        (
            {"kind": "conflict", "step": 1, "for_ms": 3},
            "fault 'conflict' has a key 'for_ms'; accepted are kind, target, step",
        ),
        ({"kind": "server-error", "step": 1, "applied": 2}, "applied of fault 'server-error' is 2, not bool"),
        ({"kind": "pause", "step": 1, "for_ms": "2"}, "for_ms of fault 'pause' is '2', not int"),
        ({"kind": "pause", "step": 1, "fro_ms": 2}, "fro_ms"),
        ({"kind": "lunch", "step": 1}, "lunch"),
        ({"kind": "pause"}, "step"),
        ({"kind": "pause", "call": "1"} | CALL, "call of fault 'pause' is '1', not int"),
        ({"kind": "pause", "call": 1} | CALL | {"path": "("}, "is no regular expression"),
        ({"kind": "pause", "call": 1} | CALL | {"operations": ["eat"]}, "operation 'eat' of a fault is none of put"),
        ({"kind": "pause", "call": 1} | CALL | {"when": "during"}, "'during' is not when a fault happens"),
    ],
)
def test_a_fault_that_its_kind_cannot_be_is_refused_in_a_sentence(fault: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Plan.from_dict({"ops": [], "faults": [{"target": "server"} | fault]})
