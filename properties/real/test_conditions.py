"""What can decide a guarantee is measured: pairs of histories that differ in what decides and not in the faults."""

from __future__ import annotations

from itertools import pairwise

import pytest

from marker_sim.faults import FaultKind
from marker_sim.history import History
from marker_sim.outcome import conditions
from marker_sim.plan import Op, Plan
from properties.drawn import BATCHES, STORAGES, WIRES
from properties.faces.outcome import conditions_met
from properties.faces.search import ODD_TABLES, kinds_of
from properties.faces.targets import NAMELESS, OF_STORAGE, PLANS_DECIDE, THEMES, kind_of, plan_for_servers
from properties.judges.build import DIRECTORY, Story, begun, marker

NAME, OTHER = marker("a"), marker("b")


def met(story: Story) -> set[str]:
    return {*conditions_met(story.history())}


def two_servers() -> tuple[Story, int, int]:
    story = begun()
    first = story.server
    second = story.start("server#2")
    assert first is not None
    return story, first, second


def answered(story: Story, server: int, operation: str, name: str | None = None, kind: str = "ok") -> None:
    story.server = server
    invoke = story.invoke(operation, name)
    story.arrive(invoke)
    story.end(invoke, kind, "created" if operation == "create" else (), "503 busy" if kind == "info" else None)


@pytest.mark.parametrize("kind", ["ok", "info"])
def test_two_servers_decide_where_one_is_asked_again_after_the_other_one_answered_a_change(kind: str) -> None:
    story, first, second = two_servers()
    answered(story, first, "list")
    answered(story, second, "create", NAME, kind)
    assert conditions.IN_TURN not in met(story)
    answered(story, first, "list")
    assert conditions.IN_TURN in met(story) and conditions.AT_ONCE not in met(story)


@pytest.mark.parametrize("trouble", ["kill", "pause"])
def test_two_servers_decide_nothing_when_one_of_them_is_gone_or_stands_still(trouble: str) -> None:
    story, first, second = two_servers()
    answered(story, first, "list")
    answered(story, second, "create", NAME)
    story.fault(trouble, "server#2", value="begin" if trouble == "pause" else None)
    answered(story, first, "list")
    assert conditions.IN_TURN not in met(story)


@pytest.mark.parametrize("at_once", [True, False])
def test_creates_at_two_servers_have_to_overlap(at_once: bool) -> None:
    story, first, second = two_servers()
    story.server = first
    one = story.ask(NAME)
    if not at_once:
        story.end(one, "ok", "created")
    story.server = second
    other = story.ask(OTHER)
    for invoke in (one, other) if at_once else (other,):
        story.end(invoke, "ok", "created")
    assert (conditions.AT_ONCE in met(story)) == at_once


@pytest.mark.parametrize("trouble", ["", "silent", "paused", "full"])
def test_a_second_server_that_refuses_to_start_keeps_what_two_servers_must_keep(trouble: str) -> None:
    """Unless the kit made it refuse, or nothing is known of the first one afterwards."""
    story = begun()
    first = story.server
    assert first is not None
    if trouble == "paused":
        story.fault("pause", value="begin")
    if trouble == "full":
        story.fault("disk-full", "storage", value="begin")
    story.fault("second-server", "second", value="begin")
    story.fault("second-server", "second", value="end")
    for kind, process in (("pause", "server#1"), ("disk-full", "storage")):
        story.fault(kind, process, value="end")
    if trouble != "silent":
        answered(story, first, "create", NAME)
    assert ({conditions.IN_TURN, conditions.AT_ONCE} <= met(story)) == (not trouble)


def test_a_kill_decides_what_was_answered_and_not_deleted_before() -> None:
    nothing, deleted, something = begun(), begun(), begun()
    deleted.create(NAME)
    deleted.delete()
    something.create(NAME)
    for story in (nothing, deleted, something):
        story.kill()
    assert [conditions.KILLED in met(story) for story in (nothing, deleted, something)] == [False, False, True]


@pytest.mark.parametrize(("again", "call"), [(True, "write"), (True, None), (False, "write"), (True, "get")])
def test_a_kill_at_a_rewrite_is_at_a_write_of_a_file_that_holds_answered_names(again: bool, call: str | None) -> None:
    story = begun()
    story.create(NAME, file=0)
    story.flush(OTHER, file=0 if again else 1)
    story.fault("kill", path=f"{DIRECTORY}/MARKERS{0 if again else 1}", error=call)
    assert (conditions.REWRITTEN in met(story)) == (again and call != "get")


@pytest.mark.parametrize("asked", [True, False])
def test_a_pause_decides_for_requests_that_wait_for_its_end(asked: bool) -> None:
    story = begun()
    invoke = story.ask(NAME)
    if not asked:
        story.end(invoke, "ok", "created")
    story.fault("pause", value="begin")
    story.fault("pause", value="end")
    if asked:
        story.end(invoke, "ok", "created")
    assert (conditions.PAUSED in met(story)) == asked


@pytest.mark.parametrize("asked", [NAME, OTHER])
def test_a_removed_directory_decides_for_a_name_that_was_in_it(asked: str) -> None:
    story = begun()
    story.create(NAME)
    for value in ("begin", "end"):
        story.fault("directory-removed", "outside-1", value=value, path=DIRECTORY)
    story.create(asked, file=1)
    assert (conditions.REMOVED in met(story)) == (asked == NAME)


@pytest.mark.parametrize("spared", [True, False])
def test_failing_storage_decides_for_a_create_that_it_refuses(spared: bool) -> None:
    story = begun()
    invokes = [story.ask(marker(f"a{number}")) for number in range(conditions.CROWD)]
    story.fault("server-error", path=f"{DIRECTORY}/MARKERS.type")
    for invoke in invokes:
        story.end(invoke, "ok" if spared else "info", "created" if spared else None, None if spared else "500 failed")
    of_refusals = {conditions.REFUSED, conditions.TYPE_REFUSED, conditions.CROWD_REFUSED}
    assert met(story) & of_refusals == (set() if spared else of_refusals)
    story.create(marker("a0"))
    assert (conditions.ASKED_AGAIN in met(story)) != spared


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("connection broke: RemoteDisconnected", ""),
        ("connection broke: RemoteDisconnected", "wire-down"),
        ("connection broke: RemoteDisconnected", "kill"),
        ("no answer in 5 s", ""),
    ],
)
def test_a_server_that_ends_the_connection_of_a_create_has_refused_it(error: str, why: str) -> None:
    """Unless the wire or its death did, or its client."""
    story = begun()
    invoke = story.ask(NAME)
    story.fault("server-error", path=f"{DIRECTORY}/MARKERS.type")
    if why == "wire-down":
        story.fault(why, caused_by=invoke)
    elif why:
        story.kill()
    story.end(invoke, "info", None, error)
    ended = error.startswith("connection") and not why
    assert (conditions.TYPE_REFUSED in met(story)) == ended


@pytest.mark.parametrize("beside", ["002", "001"])
def test_storage_is_refused_in_one_directory_while_a_create_of_another_one_is_answered(beside: str) -> None:
    story = begun()
    refused = story.ask(NAME)
    story.fault("server-error", path=f"{DIRECTORY}/MARKERS0")
    story.end(story.ask(OTHER, instant=beside), "ok", "created")
    story.end(refused, "info", None, "500 failed")
    assert (conditions.ONE_REFUSED in met(story)) == (beside == "002")


@pytest.mark.parametrize("path", ["names.db", f"{DIRECTORY}/names"])
def test_a_server_that_stores_nothing_below_its_directories_has_none_that_fails_alone(path: str) -> None:
    story = begun(storage="local", layout="names")
    created = story.ask(NAME)
    story.put(path, b"")
    story.end(created, "ok", "created")
    assert (conditions.ONE_REFUSED in met(story)) == (path == "names.db")


def test_no_answer_before_a_lasting_fault_is_over_is_a_refusal_and_an_answer_meanwhile_is_none() -> None:
    for waits in (True, False):
        story = begun(storage="local", witness="reads")
        story.fault("disk-full", "storage", value="begin")
        invoke = story.ask(NAME)
        if not waits:
            story.end(invoke, "ok", "created")
        story.fault("disk-full", "storage", value="end")
        if waits:
            story.end(invoke, "ok", "created")
        assert (conditions.REFUSED in met(story)) == waits


@pytest.mark.parametrize(("forms", "expected"), [(("", ""), set()), (("", "uncompressed"), {conditions.COMPRESSED})])
def test_listings_are_repeated_in_other_forms(forms: tuple[str, str], expected: set[str]) -> None:
    ops = tuple(Op(actor="client", kind="list", form=form) for form in forms)
    story = begun(plan=Plan(ops=ops).to_dict())
    story.server, server = None, story.server
    story.end(story.invoke("create", NAME, process="executor-0", caused_by=server), "ok", "created")
    for _ in forms:
        story.list(NAME)
    assert met(story) & {conditions.COMPRESSED, conditions.ELSEWHERE} == expected


def history_of_nothing() -> History:
    return begun().history()


def test_nothing_is_met_where_nothing_happened() -> None:
    assert not conditions_met(history_of_nothing())
    assert {*PLANS_DECIDE} > OF_STORAGE and {*conditions.CONDITIONS} - {*PLANS_DECIDE} == {conditions.REWRITTEN}


SMALL_MAX = 240  # Requests; others have up to 2,000.


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("small", [True, False])
def test_plans_of_each_theme_have_what_it_is_about(storage: str, named: bool, small: bool) -> None:
    for number in range(1, 25):
        plan = plan_for_servers(number, number, storage, BATCHES, WIRES[storage], named, small)
        assert not small or sum(op.copies for op in plan.ops) <= SMALL_MAX
        kinds = {fault.kind for fault in plan.faults if fault.target == "server"}
        if number % 6 == 1 or any(fault.kind.row.family == "proxy" for fault in plan.faults):
            continue
        assert any(path.startswith(ODD_TABLES) for path in plan.directories)
        assert {op.kind for op in plan.ops if op.form == "uncompressed"} >= {"list", "list-data", "list-log"}
        match (THEMES if named else NAMELESS).get(number % 6, "deaths"):
            case "two servers":
                assert kinds <= {FaultKind.SECOND_SERVER, FaultKind.KILL} and FaultKind.SECOND_SERVER in kinds
            case "confined":
                assert len(plan.faults) == 3 and all(kind.row.family == "storage" for kind in kinds)
            case "deaths":
                assert {FaultKind.KILL, FaultKind.PAUSE} <= kinds and FaultKind.SECOND_SERVER not in kinds
            case "full disk":
                assert kinds == {FaultKind.DISK_FULL, FaultKind.PAUSE}
                assert {fault.kind for fault in plan.faults} - kinds == {FaultKind.DIRECTORY_REMOVED}


@pytest.mark.parametrize("power", [False, True])
def test_two_plans_of_a_wire_in_a_row_have_all_kinds_of_its_faults(power: bool) -> None:
    wires = WIRES["local"]
    numbers = [number for number in range(1, 80) if kind_of(number, wires, power=power) == wires[0]]
    for pair in pairwise(numbers):
        plans = [plan_for_servers(number, 1, "local", BATCHES, wires, power=power) for number in pair]
        met = {fault.kind for plan in plans for fault in plan.faults}
        assert met >= set(kinds_of("wire")), pair
