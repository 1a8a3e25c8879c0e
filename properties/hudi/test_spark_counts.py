"""Which files of attempts that do not count are violations of the write path on Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from properties.judges.jobs import DRIVER, EXECUTOR, Job, base
from scenarios.spark_counts import count

LATE = base("late", "001", "1-0-1")


@pytest.mark.parametrize(
    ("lived", "swept", "listed", "found"),
    [
        (True, True, DRIVER, (1, 0, 0)),
        (True, True, "", (0, 1, 0)),
        (True, True, EXECUTOR, (0, 1, 0)),
        (False, True, DRIVER, (0, 0, 1)),
        (True, False, DRIVER, (0, 0, 0)),
    ],
    ids=[
        "it is a stray",
        "nobody knew of it",
        "only an attempt knew of it",
        "its attempt died before it could look",
        "no write has begun since",
    ],
)
def test_a_stray_is_a_file_that_somebody_could_have_deleted(
    lived: bool, swept: bool, listed: str, found: tuple[int, int, int]
) -> None:
    story = Job()
    story.begin("001")
    story.commit("001", story.attempt(base("a")))
    if not swept:
        story.begin("002")
    if listed:
        story.mark(LATE, "001")
        story.listing("001", process=listed)
    attempt = story.step("attempt", "001", "1-0-1", path=LATE, process=EXECUTOR)
    story.data(LATE)
    if lived:
        story.done(attempt)
    if swept:
        story.begin("002")
    for path, content in {event.path: event.value for event in story.events if event.kind == "effect"}.items():
        story.observe("file", path=path, value=content)
    history = story.history()
    events = tuple(event._replace(role=event.process.partition("#")[0]) for event in history.events)
    counts = count(replace(history, events=events))
    assert (len(counts.strays), len(counts.unlisted), len(counts.abandoned)) == found, counts
    assert counts.completed == 1
