"""Evidence as sentences: each event has one, none is cut, and what took names away is said to have done the harm."""

from __future__ import annotations

import pytest

from marker_sim.history import Event, History, Kind, Value
from properties.faces.history import HistoryIndex
from properties.faces.report import sentence_of, steps_of, time_text
from properties.judges.build import DIRECTORY, Story, marker

CALLS = ("create", "list", "list-data", "list-log", "exists", "delete")
STEPS = ("begin", "rollback", "sweep", "attempt", "finalize", "commit", "write")
SEEN = ("started", "exited", "arrived", "mode", "phase", "snapshot", "file", "raw-file", "rows", "entry", "data-file")
CALLED: tuple[tuple[Kind, Value], ...] = (
    ("invoke", None),
    ("ok", True),
    ("ok", ("a", "b")),
    ("fail", None),
    ("info", None),
)


def _lost() -> tuple[HistoryIndex, list[int]]:
    """A marker is answered, and overwritten by a second server; the first one then writes another file."""
    story = Story()
    story.start()
    started = story.fault("second-server", "server#2", value="begin")
    asked = story.ask(marker("a"), process="executor-1")
    story.flush(marker("a"))
    answered = story.end(asked, "ok", "created")
    lost = story.put(f"{DIRECTORY}/MARKERS0", b"", "server#2", "overwrite-end")
    other = story.put(f"{DIRECTORY}/MARKERS1", b"")
    return HistoryIndex(story.history()), [started, asked, answered, lost, other]


def test_evidence_reads_as_what_happened_with_number_and_time_behind() -> None:
    view, evidence = _lost()
    steps = steps_of(view, evidence, f"it is gone at event {evidence[3]}; server#1 wrote at event {evidence[4]}")
    assert [step.text for step in steps] == [
        "a second server, server#2, started",
        f"executor-1 asked for marker '{marker('a')}' in {DIRECTORY}",
        f"executor-1 was answered \"created\" for marker '{marker('a')}'",
        "server#2 wrote MARKERS0 in place without 1 of its names",
        "server#1 wrote MARKERS1",
    ]
    assert [step.index for step in steps] == evidence and steps[0].when == "2.0 ms"
    assert [step.harm for step in steps] == ["", "", "", "wrote MARKERS0 in place without 1 of its names", ""]


def test_where_no_change_took_names_away_the_changes_that_the_violation_names_did_the_harm() -> None:
    view, evidence = _lost()
    *_, other = steps_of(view, evidence, f"it was stored at event {evidence[4]}")
    assert other.harm == "wrote MARKERS1"
    assert not any(step.harm for step in steps_of(view, evidence[:4], "nothing is named, not even event 999"))


@pytest.mark.parametrize("operation", [*CALLS, *STEPS, "{unheard} of {0}"])
def test_every_call_and_step_has_a_sentence_for_each_outcome(operation: str) -> None:
    said = {_said(kind, operation, value) for kind, value in CALLED}
    assert len(said) == len(CALLED) or operation not in CALLS, "outcomes are told alike"
    assert all("p{}" in text and "None" not in text for text in said), said
    assert sum("cut {0}" in text for text in said) == 2, "the reason of a failure is missing"


@pytest.mark.parametrize("operation", [*SEEN, "audit", "{unheard} of {0}"])
def test_every_observation_has_a_sentence(operation: str) -> None:
    for value in (None, True, 3, "faults", ("a", "b"), b"a\n"):
        said = _said("observe", operation, value)
        assert "None" not in said and ("p{}" in said or operation == "phase"), said


def test_a_reading_of_a_file_says_what_it_held() -> None:
    path = f"{DIRECTORY}/MARKERS0"
    assert _said("observe", "file", b"a\nb\n", path) == f"p{{}} read {path}: 2 names"
    assert _said("observe", "file", None, path) == f"p{{}} read {path}: it was not there"
    assert _said("observe", "file", b"{}", "t/x.commit") == "p{} read t/x.commit: 2 bytes"


def test_a_hostile_request_is_told_with_the_name_that_it_asked_for() -> None:
    story = Story()
    story.start()
    asked = story.invoke("hostile", DIRECTORY, "b\na.marker.CREATE")
    refused = story.end(asked, "fail", error="400")
    said = [step.text for step in steps_of(HistoryIndex(story.history()), (asked, refused), "")]
    assert said == [
        f"client asked for a hostile marker, 'b\\na.marker.CREATE' in {DIRECTORY}",
        "client got an error for a hostile marker, 'b\\na.marker.CREATE': 400",
    ]


def _said(kind: Kind, operation: str, value: Value, path: str = "a/{x}") -> str:
    event = Event(0, 0, "p{}", "client", kind, operation, "t", "001", path, value, "cut {0}")
    return sentence_of(HistoryIndex(History(Story().header, (event,))), event)


def test_a_sentence_is_never_cut() -> None:
    story = Story()
    story.start()
    names = tuple(marker(f"{'long word ' * 30}{number}") for number in range(3))
    asked = story.ask(names[0])
    listed = story.list(*names)
    view = HistoryIndex(story.history())
    created, shown = steps_of(view, (asked, listed), "")
    assert repr(names[0]) in created.text and all(repr(name) in shown.text for name in names)


def test_times_have_units() -> None:
    assert (time_text(1_500_000), time_text(12_345_000_000)) == ("1.5 ms", "12.35 s")
