"""One operation of many clients: their requests, its sentence, and shrinking to as many as are needed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from marker_sim.errors import UsageError
from marker_sim.plan import COPY, Op, Plan
from marker_sim.system import reference
from properties.faces.report import plan_sentences
from properties.faces.search import shrink
from properties.faces.worlds import run

CROWD = Op(
    actor="executor-3",
    kind="create",
    name=f"p/a{COPY}.marker.CREATE",
    request=f"r{COPY}",
    after_ms=5,
    copies=3,
    apart_ms=20,
)
PLAN = Plan(mode="timeline", storage="local", ops=(CROWD, Op(actor="executor-3", kind="list", copies=3)))


def test_each_client_of_a_crowd_does_what_the_plan_says_in_its_order() -> None:
    history = run(PLAN, reference())
    asked = [
        (e.process.partition("#")[0], e.operation, e.path)
        for e in history.events
        if e.kind == "invoke" and "~" in e.process
    ]
    assert sorted(asked, key=lambda each: each[0]) == [
        asked
        for number in range(3)
        for asked in (
            (f"executor-3~{number}", "create", f"p/a{number}.marker.CREATE"),
            (f"executor-3~{number}", "list", None),
        )
    ]
    creates = [e.time_ns for e in history.events if e.kind == "invoke" and "~" in e.process and e.operation == "create"]
    assert [later - sooner for sooner, later in pairwise(creates)] == [20_000_000] * 2
    assert {op.request for op in PLAN.single_ops} == {"r0", "r1", "r2", ""}


def test_a_crowd_is_stored_told_and_counted_as_one_entry() -> None:
    assert Plan.from_dict(PLAN.to_dict()) == PLAN and PLAN.entries == 2
    _, create, listing = plan_sentences(PLAN)
    assert create.startswith("3 clients (executor-3~0 and on), 20 ms apart: each waits 5 ms and creates marker")
    assert listing.startswith("3 clients (executor-3~0 and on), at once: each requests list of")


def test_names_that_look_the_same_are_told_apart() -> None:
    ops = tuple(Op(actor="executor-0", kind="create", name=f"{letter}.marker.CREATE") for letter in ("é", "e\u0301"))
    _, composed, decomposed = plan_sentences(Plan(ops=ops))
    assert "'é.marker.CREATE'" in composed and r"'e\u0301.marker.CREATE'" in decomposed


@pytest.mark.parametrize("copies", [0, -1, 1_000_000])
def test_a_crowd_of_nobody_or_of_far_too_many_is_refused(copies: int) -> None:
    with pytest.raises(UsageError, match="copies"):
        Plan.from_dict({"ops": [{"actor": "a", "kind": "list", "copies": copies}]})


def test_a_crowd_becomes_as_many_clients_as_are_needed() -> None:
    plan = Plan(ops=(Op(actor="executor-0", kind="create", name=f"a{COPY}.marker.CREATE", copies=400, apart_ms=2),))
    small = shrink(plan, lambda each: len(each.single_ops) >= 17)
    assert 17 <= len(small.single_ops) <= 25 and small.entries == 1 and small.ops[0].apart_ms == 0
