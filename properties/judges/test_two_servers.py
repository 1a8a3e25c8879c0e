"""Two servers of which each owns what the other leaves alone: 503 is an answer to whatever reached the wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from marker_sim.names import TYPE_BATCHED, encode_names
from properties.judges.build import DIRECTORY, Story, marker

A, B = marker("a"), marker("b")
HOSTILE = "line\nbreak.parquet.marker.CREATE"
NOT_MINE = "503 owned by another server"


def two_servers(**header: Any) -> Story:
    """The first one has stored a marker, and requests go to the second one."""
    story = Story(**header)
    story.start()
    if story.header.witness == "reads":
        asked = story.ask(A)
        story.look(A, began=asked)
        story.end(asked, "ok", "created")
    else:
        story.create(A)
    story.fault("second-server", "second", value="begin")
    story.start("server#2")
    return story


def hostile(story: Story, error: str, name: str = HOSTILE) -> int:
    """A hostile request that ends unknown with this error."""
    asked = story.invoke("hostile", DIRECTORY, value=name)
    story.arrive(asked)
    return story.end(asked, "info", error=error)


def test_a_hostile_request_may_be_sent_elsewhere_while_two_servers_live() -> None:
    story = two_servers()
    hostile(story, NOT_MINE)
    finding = story.says_nothing("G12")
    assert finding.excused == (("second-server", 1),)


@pytest.mark.parametrize("error", ["500 oops", "malformed body", "connection broke"])
def test_another_error_is_no_clear_answer_of_a_second_server_either(error: str) -> None:
    story = two_servers()
    hostile(story, error)
    story.breaks("G12", under="second-server")


@pytest.mark.parametrize("before", [True, False])
def test_where_no_other_server_lives_nothing_can_be_its_own(before: bool) -> None:
    story = Story() if before else two_servers()
    story.start() if before else story.kill("server#2")
    if not before:
        story.fault("second-server", "second", value="end")
        story.server = 0
    hostile(story, NOT_MINE)
    story.breaks("G12", under="none" if before else "second-server")


def test_who_sends_elsewhere_before_it_serves_or_while_it_dies_is_alive() -> None:
    story = Story()
    story.start()
    story.fault("second-server", "second", value="begin")
    hostile(story, NOT_MINE)
    story.fault("second-server", "second", value="end")
    story.says_nothing("G12")


@pytest.mark.parametrize("others", [0, 2])
def test_what_was_sent_elsewhere_and_stored_all_the_same_breaks_it(others: int) -> None:
    story = two_servers()
    for number in range(others):
        hostile(story, NOT_MINE, f"\x00{number}")
    asked = story.invoke("hostile", DIRECTORY, value=HOSTILE)
    story.arrive(asked)
    story.add("effect", "put", "server#2", path=f"{DIRECTORY}/MARKERS1", value=encode_names(["line"]), caused_by=asked)
    story.end(asked, "info", error=NOT_MINE)
    story.breaks("G12", under="second-server")


@pytest.mark.parametrize("stored", [True, False])
def test_a_name_that_was_sent_elsewhere_counts_as_asked_for_by_nobody(stored: bool) -> None:
    story = two_servers(witness="reads", storage="local")
    hostile(story, NOT_MINE, "..\\x")
    names = [A, "..\\x"] if stored else [A]
    story.observe("file", path=f"{DIRECTORY}/MARKERS.type", value=TYPE_BATCHED)
    story.observe("file", path=f"{DIRECTORY}/MARKERS0", value=encode_names(names))
    story.observe("snapshot", path=DIRECTORY, caused_by=story.last)
    if stored:
        story.breaks("G4", under="second-server")
    else:
        story.holds("G4")
        story.says_nothing("G12")


@pytest.mark.parametrize(("error", "fails"), [(NOT_MINE, False), ("500 oops", True)])
def test_a_listing_may_be_sent_elsewhere_and_not_fail(error: str, fails: bool) -> None:
    story = two_servers()
    story.end(story.invoke("list"), "info", error=error)
    assert len(story.finding("G11").breaches) == fails


def test_a_create_that_was_sent_elsewhere_may_have_had_an_effect() -> None:
    story = two_servers()
    story.end(story.ask(B), "info", error=NOT_MINE)
    story.flush(B)
    story.holds("G4")
