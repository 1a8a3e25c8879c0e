"""Smaller plans from what happened in a run: the order of its calls, what of it is kept, and where its faults go."""

from __future__ import annotations

import re
from dataclasses import replace

from marker_sim.faults import Call, Fault, FaultKind, Site, Step
from marker_sim.history import Event, Header, History, Kind
from marker_sim.plan import Op, Plan
from properties.faces.search import of_calls

LOST, BESIDE, ELSEWHERE = "lost.marker.CREATE", "beside.marker.CREATE", "elsewhere.marker.CREATE"
PLAN = Plan(
    mode="timeline", storage="local", interval_ms=10,
    directories=("t/.hoodie/.temp/1", "t/.hoodie/.temp/10", "u/.hoodie/.temp/1"),
    ops=(
        Op(actor="executor-0", kind="create", directory=1, name=LOST, after_ms=40),
        Op(actor="executor-1", kind="create", directory=0, name=ELSEWHERE),
        Op(actor="executor-1", kind="delete", directory=0),
        Op(actor="executor-2", kind="create", directory=2, name=BESIDE, copies=3),
        Op(actor="executor-3", kind="list", directory=1),
    ),
    faults=(
        Fault.of(FaultKind.REPLY_LOST, "executor-3", Step(1)),
        Fault.of(FaultKind.KILL, "server", Step(7), restart_ms=20),
        Fault.of(FaultKind.PAUSE, "server", Step(99), for_ms=20),
    ),
)  # fmt: skip


class Run:
    """A history that is written event by event, with its evidence."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(
        self, process: str, kind: Kind, operation: str, place: tuple[str, str] | None = None, **more: object
    ) -> int:
        table, instant = place or (None, None)
        index = len(self.events)
        event = {"value": None, "error": None, "caused_by": None, "path": None, **more}
        self.events.append(Event(index, index * 1_000_000, process, "any", kind, operation, table, instant, **event))  # type: ignore[arg-type]
        return index


def lost_run() -> tuple[History, tuple[int, ...]]:
    """A deletion that was asked for first takes along what was created meanwhile in another directory."""
    run, one, ten, other = Run(), ("run/t", "1"), ("run/t", "10"), ("run/u", "1")
    create = run.add("executor-1", "invoke", "create", one, path=ELSEWHERE)
    run.add("executor-1", "ok", "create", one, path=ELSEWHERE, caused_by=create)
    delete = run.add("executor-1", "invoke", "delete", one)
    lost = run.add("executor-0", "invoke", "create", ten, path=LOST)
    answered = run.add("executor-0", "ok", "create", ten, path=LOST, caused_by=lost)
    run.add("executor-2~1", "invoke", "create", other, path=BESIDE)
    run.add("executor-1", "ok", "delete", one, caused_by=delete)
    run.add("server-1", "fault", "kill")
    listed = run.add("executor-3", "invoke", "list", ten)
    run.add("executor-3", "fault", "reply-lost", caused_by=listed)
    missed = run.add("kit", "observe", "snapshot", ten)
    return History(Header(world="foreign", mode="timeline", storage="local"), tuple(run.events)), (
        lost,
        answered,
        missed,
    )


def sequential() -> list[Plan]:
    history, evidence = lost_run()
    made = of_calls(PLAN, history, evidence, "restart")
    return [
        plan
        for plan in made
        if {op.actor for op in plan.ops} == {"executor-0"} and not any(o.after_ms for o in plan.ops)
    ]


def test_one_client_performs_the_calls_in_the_order_in_which_they_were_answered() -> None:
    alone, *_ = sequential()
    assert [(op.kind, op.name) for op in alone.ops] == [("create", LOST)] and not alone.faults
    with_deletion = next(plan for plan in sequential() if any(op.kind == "delete" for op in plan.ops))
    assert [(op.kind, with_deletion.directories[op.directory]) for op in with_deletion.ops] == [
        ("create", PLAN.directories[0]),
        ("create", PLAN.directories[1]),
        ("delete", PLAN.directories[0]),
    ], "what is deleted was made before, and the deletion comes when it was over"


def test_faults_that_struck_are_where_they_were_among_the_calls() -> None:
    most = max(sequential(), key=lambda plan: plan.entries)
    assert [op.kind for op in most.ops] == ["create", "create", "delete", "list"]
    assert set(most.faults) == {
        Fault.of(FaultKind.KILL, "server", Site("server: reply", 3), restart_ms=20),
        Fault.of(FaultKind.REPLY_LOST, "executor-0", Step(4)),
    }, "a pause that never struck is gone"
    at_storage = Fault.of(FaultKind.KILL, "server", Site("server: type file put", 7))
    history, evidence = lost_run()
    fewer = of_calls(replace(PLAN, faults=(at_storage,)), history, evidence, "restart")
    assert {plan.faults[0].n for plan in fewer if plan.faults and len(plan.ops) <= 2} == {1, 2}


def test_many_creates_become_a_crowd_with_a_batch_each_and_the_death_is_among_them() -> None:
    run, place = Run(), ("run/t", "1")
    ops = tuple(Op(actor="executor-0", kind="create", name=f"{number}.marker.CREATE") for number in range(9))
    evidence = []
    for number, op in enumerate(ops):
        if number == 7:
            run.add("server-1", "fault", "kill")
        evidence.append(run.add("executor-0", "invoke", "create", place, path=op.name))
        run.add("executor-0", "ok", "create", place, path=op.name, caused_by=evidence[-1])
    missed = run.add("kit", "observe", "snapshot", place)
    history = History(Header(world="foreign", mode="timeline", storage="local"), tuple(run.events))
    first = next(iter(of_calls(replace(PLAN, ops=ops), history, (evidence[0], missed), "restart")))
    (crowd, listing), (kill,) = first.ops, first.faults
    assert listing.kind == "list" and listing.after_ms > crowd.copies * crowd.apart_ms
    assert crowd.copies == 9 and crowd.apart_ms > PLAN.interval_ms and kill.trigger == Site("server: reply", 7)


def test_what_was_refused_is_left_out_before_it_is_kept() -> None:
    history, evidence = lost_run()
    ops = (*PLAN.ops, Op(actor="executor-4", kind="hostile", directory=1, name="\n"))
    asked = len(history.events)
    run = Run()
    run.events = [*history.events]
    run.add("executor-4", "invoke", "hostile", ("run/t", "10"))
    run.add("executor-4", "fail", "hostile", ("run/t", "10"), caused_by=asked)
    missed = run.add("kit", "observe", "snapshot", ("run/t", "10"))
    whole = History(history.header, tuple(run.events))
    kinds = [{op.kind for op in plan.ops} for plan in of_calls(replace(PLAN, ops=ops), whole, (*evidence, missed), "")]
    assert kinds.index({"create", "list"}) < kinds.index({"create", "list", "hostile"})


def test_what_only_probes_show_is_tried_without_any_call_in_all_directories() -> None:
    history, evidence = lost_run()
    first = next(iter(of_calls(PLAN, history, evidence[-1:], "none")))
    assert not first.entries and first.directories == PLAN.directories


def test_what_was_under_way_at_the_same_time_is_asked_again_by_the_same_clients() -> None:
    history, evidence = lost_run()
    beside = [plan for plan in of_calls(PLAN, history, evidence, "none") if plan not in sequential()]
    assert any({"executor-0", "executor-1", "executor-2~1"} <= {op.actor for op in plan.ops} for plan in beside)
    assert all(op.copies == 1 for plan in beside for op in plan.ops)


def test_what_a_plan_does_in_the_directories_of_the_evidence_is_tried_with_the_faults_that_are_not_of_others() -> None:
    """The directories are kept, not the clients: what no call of the evidence met may have prepared the failure."""
    elsewhere, here = (
        Fault.of(FaultKind.IO_ERROR, "server", Call(f"^{re.escape(PLAN.directories[number])}/", ("put",), 1))
        for number in (0, 1)
    )
    plan = replace(PLAN, faults=(elsewhere, here))
    history, evidence = lost_run()
    ops = tuple(replace(op, directory=0) for op in PLAN.ops if op.directory == 1)
    own = [each for each in of_calls(plan, history, evidence, "none") if each.ops == ops]
    assert [each.faults for each in own] == [(), (here,)]
    assert all(each.directories == PLAN.directories[1:2] for each in own)
