"""What two writers' calls touch, and the plans that make a real Hudi's writers do their steps in a given order."""

from __future__ import annotations

import random
import re

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import FaultKind
from properties.faces.cli import parse_request
from properties.faces.search import OpenOrder, OrderedStep, PartialOrders
from properties.faces.targets import faults_of, ordered, touched
from properties.faces.worlds import StorageCall

TIMELINE = ".hoodie/timeline/"
UUIDS = [f"{n:08x}-0000-4000-8000-{n:012x}" for n in range(4)]


def steps(*calls: tuple[str, str, str], deaths: bool = False) -> list[OrderedStep]:
    """The steps of calls: writer, operation, path below the table."""
    race = [StorageCall(f"writer-{who}", "driver", operation, f"t9/{path}") for who, operation, path in calls]
    return ordered((), race, deaths=deaths)


@pytest.mark.parametrize(
    ("first", "second", "depends"),
    [
        (("open", "p0/a"), ("list", "p0"), True),
        (("write", "p0/a"), ("get", "p0/a"), True),
        (("rename", "p0/a"), ("get", "p0/a"), True),
        (("delete", "p0/a"), ("stat", "p0/a"), True),
        (("rmdir", ".temp/1"), ("open", ".temp/1/p0/a"), True),
        (("rmdir", ".temp/1"), ("list", ".temp"), True),
        (("lock", ""), ("lock", ""), True),
        (("open", "p0/a"), ("open", "p0/a"), True),
        (("open", "p0/a"), ("open", "p0/b"), False),
        (("open", "p0/a"), ("list", "p1"), False),
        (("get", "p0/a"), ("list", "p0"), False),
        (("write", "p0/a"), ("list", "p0"), False),  # Of which Hudi takes the names.
        (("close", "p0/a"), ("get", "p0/a"), False),  # What it held is stored before.
        (("open", TIMELINE + "1.inflight"), ("list", TIMELINE[:-1]), True),
        (("open", f"{TIMELINE}1.inflight.{UUIDS[1]}"), ("list", TIMELINE[:-1]), False),
        (("mkdir", "p0"), ("list", "p0"), False),  # It was there.
        (("rmdir", ".temp/1"), ("open", ".temp/11/a"), False),
        (("lock", ""), ("open", "p0/a"), False),
    ],
)
def test_steps_depend_on_each_other_where_one_sees_what_the_other_changes(
    first: tuple[str, str], second: tuple[str, str], depends: bool
) -> None:
    one, other = steps(("1", *first), ("2", *second))
    assert bool(one.meets(other)) == bool(other.meets(one)) == depends


def test_a_folder_that_was_not_there_and_files_that_a_call_removed_count_as_changed() -> None:
    assert touched("mkdir", "p0", ["made"])[1] == {"p0", "/"}
    assert touched("rename", "p0/b", ["p0/a"])[1] == {"p0/a", "p0/b", "p0/"}


def test_a_look_that_is_no_step_goes_with_the_one_before_it() -> None:
    one, other = steps(("1", "list", "p0"), ("1", "peek", "p1/a"), ("2", "open", "p1/a"))
    assert one.meets(other) == {"p1/a"} and (one.name, other.name) == ("list p0", "open p1/a")


def test_steps_have_the_same_names_whatever_the_instants_and_file_ids_of_a_run() -> None:
    def run(ids: list[str], instants: list[str]) -> list[tuple[str, str]]:
        first, second = instants
        base = [StorageCall("first", "driver", "open", f"t1/p0/{ids[0]}_1.parquet")]
        race = [
            StorageCall("writer-1", "driver", "open", f"t1/.hoodie/{first}.inflight.{ids[1]}"),
            StorageCall("writer-2", "driver", "open", f"t1/.hoodie/{second}.inflight.{ids[2]}"),
            StorageCall("writer-2", "driver", "get", f"t1/p0/{ids[0]}_1.parquet"),
            StorageCall("writer-2", "driver", "get", f"t1/.hoodie/{first}.inflight.{ids[1]}"),
        ]
        return [(step.writer, step.name) for step in ordered(base, race)]

    one = run(UUIDS, ["20261129111746169", "20261129111746479"])
    assert one == run(UUIDS[::-1], ["20261130000000001", "20261130000000000"])
    assert len(set(one)) == 4 and "writer-1" in one[3][1]


def test_each_change_of_turn_is_a_pause_but_where_a_writer_waits_for_the_lock_or_is_over() -> None:
    done = steps(
        ("1", "lock", ""), ("1", "open", "a"), ("2", "list", "b"), ("1", "open", "b"), ("1", "unlock", ""),
        ("2", "lock", ""), ("2", "unlock", ""),
    )  # fmt: skip
    due = steps(("2", "get", "a"))
    found = faults_of(OpenOrder(tuple(done), tuple(due), "writer-2"))
    # The first is paused before it opens b; the second waits for the lock, and the first is over after it let it go.
    assert [(fault.target, fault.kind, fault.trigger.operations) for fault in found] == [  # type: ignore[union-attr]
        ("writer-1", FaultKind.PAUSE, ("open",))
    ]
    assert faults_of(OpenOrder()) == ()


def test_a_writer_dies_before_any_of_its_changes_and_the_other_one_goes_on() -> None:
    calls = [
        ("1", "lock", ""), ("1", "open", "a"), ("1", "list", "b"), ("1", "open", "c"), ("1", "unlock", ""),
        ("2", "open", "d"),
    ]  # fmt: skip
    done = steps(*calls, deaths=True)
    assert [step.writer for step in done[-2:]] == ["writer-1 dies", "writer-2 dies"]
    orders = PartialOrders()
    first = orders.pick()
    assert first is not None
    orders.learn(first, done)
    struck = set()
    while (branch := orders.pick()) is not None:
        for fault in faults_of(branch):
            if fault.kind is FaultKind.KILL:
                struck.add((fault.target, fault.trigger.pattern))  # type: ignore[union-attr]
        orders.learn(branch, [*branch.steps, _death_of(branch)])
    assert {(target, pattern.strip("$")) for target, pattern in struck} == {
        ("writer-1", "a"),
        ("writer-1", "c"),
        ("writer-2", "d"),
    }


def _death_of(branch: OpenOrder) -> OrderedStep:
    return OrderedStep(branch.writer, "death", changes=frozenset({branch.writer.removesuffix(" dies")}))


@pytest.mark.parametrize("writers", [{"writers": "3"}, {}, {"writers": "2", "mode": "both"}])
def test_orders_are_those_of_two_writers_with_direct_markers(writers: dict[str, str]) -> None:
    given = {"mode": "direct"} | writers
    request = parse_request(
        argv=(), sut="hudi-java:1.2.0", storage=None, budget="9s", seed="1", guarantees=None,
        profile=None, expect=None, report="r", orders=True, **given,  # type: ignore[arg-type]
    )  # fmt: skip
    with pytest.raises(UsageError, match="write --writers 2 --mode direct beside it"):
        request.target.prepare(request, lambda line: None)


def test_random_orders_of_two_writers_are_made_by_pauses_that_each_run_can_follow() -> None:
    rng = random.Random(5)
    for _ in range(50):
        names = [[("open", f"{who}{name}") for name in "mnop"] for who in "xy"]
        calls = []
        left = [list(own) for own in names]
        while any(left):
            who = rng.choice([n for n, own in enumerate(left) if own])
            calls.append((str(who + 1), *left[who].pop(0)))
        done = steps(*calls)
        branch = OpenOrder(tuple(done[:-1]), (done[-1],), done[-1].writer)
        assert gate(names, faults_of(branch)) == [(step.writer, step.name) for step in done]


def gate(names: list[list[tuple[str, str]]], faults: tuple[object, ...]) -> list[tuple[str, str]]:
    """What the gate of the Java program does: a pause gives the turn to the other writer, and so does an end."""
    pauses = [(fault.target, fault.trigger.operations[0], fault.trigger.pattern) for fault in faults]  # type: ignore[attr-defined]
    at, turn, found = [0, 0], 0, []
    while at != [4, 4]:
        if at[turn] == 4:
            turn = 1 - turn
            continue
        operation, path = names[turn][at[turn]]
        due = next((p for p in pauses if p[:2] == (f"writer-{turn + 1}", operation) and re.search(p[2], path)), None)
        if due is not None and at[1 - turn] < 4:
            pauses.remove(due)
            turn = 1 - turn
            continue
        found.append((f"writer-{turn + 1}", f"{operation} {path}"))
        at[turn] += 1
    return found
