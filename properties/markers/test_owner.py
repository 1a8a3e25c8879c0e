"""Threads preempt anywhere, the simulator only at seam calls: so the server's state has one owner, by its syntax."""

from __future__ import annotations

import ast
from pathlib import Path

import marker_sim.markers.server as server
from marker_sim.faults import Fault, FaultKind, Site
from marker_sim.plan import Op, Plan
from marker_sim.system import reference
from properties.faces.worlds import run

OWNER = {"_own", "_accept", "_advance", "_dispatch", "_state", "_reply", "_next_tick", "__init__"}
STATE = {"_directories", "_first_create_ms"}
TREE = ast.parse(Path(str(server.__file__)).read_text(encoding="utf-8"))


def _methods() -> dict[str, ast.FunctionDef]:
    for node in TREE.body:
        if isinstance(node, ast.ClassDef) and node.name == "TimelineServer":
            return {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
    raise AssertionError("TimelineServer is gone")


def _own_attributes(node: ast.AST) -> set[str]:
    return {
        a.attr
        for a in ast.walk(node)
        if isinstance(a, ast.Attribute) and isinstance(a.value, ast.Name) and a.value.id == "self"
    }


def test_only_the_owner_touches_state() -> None:
    for name, method in _methods().items():
        if name not in OWNER:
            assert not _own_attributes(method) & STATE, f"{name} runs outside the owner and touches its state"
            assert not _own_attributes(method) & OWNER, f"{name} runs outside the owner and calls it"


def test_the_owner_touches_no_storage_itself() -> None:
    for name in OWNER - {"__init__"}:
        assert "_storage" not in _own_attributes(_methods()[name]), f"{name} would hold every directory for one"


def test_the_owner_hands_its_workers_nothing_it_still_changes() -> None:
    dispatch = _methods()["_dispatch"]
    spawned = [n for n in ast.walk(dispatch) if isinstance(n, ast.Lambda)]
    names = {n.id for lam in spawned for n in ast.walk(lam) if isinstance(n, ast.Name)}
    assert names == {"self", "job"}, "a worker gets an immutable Job and nothing else"


def test_a_server_waits_for_a_dead_ones_requests_once_and_not_after_each_batch_that_failed() -> None:
    creates = tuple(
        Op(actor=f"executor-{number}", kind="create", name=f"a{number}.marker.CREATE", after_ms=4_000 * number)
        for number in range(3)
    )
    refused = Fault.of(FaultKind.THROTTLED, "server", Site("server: batch file put", 1), calls=12)
    history = run(Plan(num_threads=1, ops=creates, faults=(refused,)), reference())
    asked = {event.index: event for event in history.events if event.kind == "invoke"}
    ended = [event for event in history.events if event.kind in ("ok", "info") and event.caused_by in asked]
    assert {event.kind for event in ended} == {"ok", "info"}
    assert max(event.time_ns - asked[event.caused_by or 0].time_ns for event in ended) < 2.5e9
