"""Which fault a sentence names, in which words, and which event of the evidence is the harm."""

from __future__ import annotations

import pytest

from marker_sim.faults import FaultKind
from marker_sim.judges import Breach
from marker_sim.system import reference
from properties.faces.campaign import execute
from properties.faces.history import HistoryIndex
from properties.faces.report import steps_of
from properties.faces.search import make_plan
from properties.judges.build import DIRECTORY, Story, begun, marker, only
from properties.judges.sentences import untrue

A, B, C = marker("a"), marker("b"), marker("c")
FILE, SERVER = f"{DIRECTORY}/MARKERS0", "server#2"


def put(story: Story, *names: str, process: str = SERVER) -> int:
    return story.put(FILE, "".join(f"{name}\n" for name in names).encode(), process)


def restarted() -> Story:
    """A marker was answered, and its server restarted."""
    story = begun()
    story.create(A)
    story.kill()
    story.start(SERVER)
    story.fault("restart", SERVER)
    return story


def named(breach: Breach) -> str:
    """The fault in a sentence, "" for none."""
    return breach.message.rpartition(" (fault: ")[2].removesuffix(")") if " (fault: " in breach.message else ""


def harms(story: Story, breach: Breach) -> list[tuple[int, str]]:
    """The events that are shown as the harm, with what they did."""
    steps = steps_of(HistoryIndex(story.history()), breach.evidence, breach.message)
    return [(step.index, step.harm) for step in steps if step.harm]


@pytest.mark.parametrize("operation", ["list", "exists"])
def test_an_answer_without_a_stored_marker_is_the_harm_and_names_the_fault_within_its_request(operation: str) -> None:
    story = restarted()
    asked = story.invoke(operation)
    story.arrive(asked)
    fault = story.fault("io-error", SERVER, path=FILE, error="get")
    answer = story.end(asked, "ok", () if operation == "list" else False)
    story.fault("restart", SERVER)
    breach = only(story, "G11")
    assert named(breach) == f"io-error in a read (get) of MARKERS0 by {SERVER} at event {fault}"
    assert harms(story, breach) == [(answer, "answered 0 names" if operation == "list" else "answered no")]
    assert breach.under == "restart" and not untrue(story.history(), breach)


def test_a_fault_that_begins_after_the_harm_is_not_named() -> None:
    story = begun()
    story.create(A)
    gone = put(story, process="server#1")
    asked = story.invoke("list")
    story.arrive(asked)
    story.fault("io-error", "server#1", path=FILE, error="get")
    story.end(asked, "ok", ())
    for guarantee in ("G3", "G4", "G11"):
        breach = only(story, guarantee)
        assert not named(breach) and f"wrote MARKERS0 without this name at event {gone}" in breach.message, guarantee
        assert harms(story, breach) == [(gone, "wrote MARKERS0 without this name")]


@pytest.mark.parametrize("lives", ["one server", "two servers"])
def test_every_sentence_about_one_loss_names_the_failed_read_behind_it(lives: str) -> None:
    story = restarted()
    if lives == "two servers":
        story.start("server#3")
        story.server = next(event.index for event in story.events if event.process == SERVER)
    asked = story.ask(B)
    fault = story.fault("io-error", SERVER, path=FILE, error="get")
    gone = put(story, B)
    story.end(asked, "ok", "created")
    story.fault("io-error", SERVER, path=FILE, error="get")
    for guarantee in ("G3", "G4"):
        breach = only(story, guarantee)
        assert named(breach) == f"io-error in a read (get) of MARKERS0 by {SERVER} at event {fault}", guarantee
        assert harms(story, breach) == [(gone, "wrote MARKERS0 without this name")]
        assert not untrue(story.history(), breach)


@pytest.mark.parametrize(
    ("kind", "process", "path", "found"),
    [
        ("io-error", SERVER, DIRECTORY, True),
        ("io-error", SERVER, f"{DIRECTORY}/", True),
        ("io-error", SERVER, f"{DIRECTORY}/.MARKERS0.crc", True),
        ("io-error", SERVER, f"{DIRECTORY}/MARKERS1", False),
        ("io-error", "executor-1", FILE, False),
        ("slow-storage", SERVER, FILE, False),
        ("disk-full", SERVER, None, False),
    ],
)
def test_only_a_failure_of_the_process_at_what_it_changed_comes_before_a_restart(
    kind: str, process: str, path: str | None, found: bool
) -> None:
    story = restarted()
    fault = story.fault(kind, process, path=path)
    story.fault("restart", "server#1")
    put(story)
    assert (
        named(only(story, "G3")).endswith(f"at event {fault}{named(only(story, 'G3')).partition(f'{fault}')[2]}")
        is found
    )


def test_with_two_servers_a_failure_of_an_earlier_request_is_not_the_reason() -> None:
    story = restarted()
    asked = story.ask(B)
    story.fault("io-error", SERVER, path=FILE, error="get")
    story.end(asked, "info", error="500 no")
    second = story.fault("second-server", "server#3", value="begin")
    story.start("server#3")
    put(story)
    assert named(only(story, "G3")) == f"a second server, server#3, started at event {second}"


def test_an_answer_without_a_marker_names_the_fault_within_its_request_and_no_later_one() -> None:
    story = begun()
    asked = story.ask(A)
    story.fault("restart")
    fault = story.fault("server-error", path=FILE, error="put")
    story.end(asked, "ok", "created")
    story.fault("server-error", path=f"{DIRECTORY}/MARKERS1", error="put")
    for guarantee in ("G1", "G4"):
        breach = only(story, guarantee)
        assert named(breach) == f"server-error in a write (put) of MARKERS0 by server#1 at event {fault}", guarantee


def test_a_failure_before_the_last_whole_write_of_the_file_is_not_the_reason() -> None:
    story = restarted()
    story.fault("io-error", SERVER, path=FILE, error="get")
    put(story, A, B)
    put(story)
    assert named(only(story, "G3")).startswith(f"{SERVER} was restarted")


def test_a_rewrite_in_place_is_one_change_of_its_file() -> None:
    story = restarted()
    fault = story.fault("io-error", SERVER, path=FILE, error="get")
    story.put(FILE, b"", SERVER, how="overwrite-begin")
    story.put(FILE, b"", SERVER, how="overwrite-end")
    assert f"MARKERS0 by {SERVER} at event {fault}" in named(only(story, "G3"))


def test_a_permitted_deletion_is_not_the_harm_of_a_wrong_answer_after_it() -> None:
    story = begun()
    story.create(A)
    story.delete()
    pause = story.fault("pause", value="begin")
    story.fault("pause", value="end")
    story.end(story.ask(A), "ok", "exists")
    assert named(only(story, "G2")) == f"server#1 was paused at event {pause}"


@pytest.mark.parametrize(
    ("kind", "path", "call", "words"),
    [
        ("io-error", FILE, "get", "io-error in a read (get) of MARKERS0 by server#1 at event 4"),
        ("timeout-lost", FILE, "put", "timeout-lost in a write (put) of MARKERS0 by server#1 at event 4"),
        ("throttled", f"{DIRECTORY}/", "list", f"throttled in a read (list) of {DIRECTORY} by server#1 at event 4"),
        ("server-error", "", "rename", "server-error in a write (rename) by server#1 at event 4"),
        ("io-error", FILE, None, "io-error in a storage call of server#1 at event 4, on MARKERS0"),
        ("kill", FILE, "put", "server#1 was killed at event 4"),
    ],
)
def test_a_fault_of_storage_says_which_call_failed_where_the_history_has_it(
    kind: str, path: str, call: str | None, words: str
) -> None:
    story = begun()
    asked = story.ask(A)
    story.type_file()
    fault = story.fault(kind, path=path, error=call)
    story.end(asked, "ok", "created")
    breach = only(story, "G1")
    assert named(breach) == words and fault == 4
    (step,) = [s for s in steps_of(HistoryIndex(story.history()), breach.evidence, breach.message) if s.index == fault]
    told = words.replace(" at event 4", "")
    assert step.text == (f"{told} (put)" if kind == "kill" else told)


def test_a_write_without_several_names_says_whether_the_missing_one_is_among_them() -> None:
    story = begun()
    for name in (A, B, C):
        story.create(name)
    gone = put(story, C, process="server#1")
    back = put(story, A, process="server#1")
    (told,) = [b for b in story.finding("G3").breaches if repr(A) in b.message]
    assert f"wrote MARKERS0 without this name and 1 more at event {gone}" in told.message
    assert told.message.endswith(f"wrote MARKERS0 without 1 of its names at event {back}")
    assert harms(story, told) == [(gone, "wrote MARKERS0 without this name and 1 more")]


@pytest.mark.parametrize("storage", ["s3", "local"])
def test_every_fault_of_a_storage_call_has_the_call_that_it_struck(storage: str) -> None:
    """Of the runs of 40 fixed seeds."""
    words = {kind.value for kind in FaultKind if kind.row.family == "storage" and not kind.row.kills}
    struck = [
        event
        for seed in range(40)
        for event in execute(make_plan(seed, "timeline", storage), reference())[0].events
        if event.kind == "fault" and event.operation in words and event.value != "end"
    ]
    calls = {event.error for event in struck if event.operation not in ("damage", "placeholder")}
    assert calls >= {"get", "put"} and calls <= {"get", "put", "list", "delete", "overwrite"}
