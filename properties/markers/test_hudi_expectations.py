"""What Hudi's own tests of markers and rollbacks expect, where no other test here states it (docs/comparison.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marker_sim.history import History
from marker_sim.plan import Task, Write
from properties.markers.test_write_path import FIRST, PLACES, count, holds, plan_of

COPIES = 6  # Attempts of one task, each of which appends a log file to the same group.
LARGE = 2_000  # Files of one write; testRollbackScale has 10,000.


def data_files(history: History) -> set[str]:
    """The data files that are stored in the end."""
    paths = {event.path for event in history.events if event.operation == "file" and event.path}
    return {path for path in paths if "/.hoodie/" not in path}


@pytest.mark.parametrize("mode", ["direct", "timeline"])
def test_all_log_files_of_one_group_are_rolled_back_and_those_of_commits_stay(mode: str) -> None:
    tasks = (Task(kind="APPEND", copies=COPIES),)
    writes = (FIRST, Write(tasks=(Task(kind="APPEND"),)), Write(tasks=tasks, abandon=True))
    history = holds(plan_of(mode, "s3", writes=writes, num_threads=20, executors=COPIES))
    assert count(history, "ok", "rollback") == 1
    put = {e.path for e in history.events if e.operation == "put" and e.path and ".log." in e.path and not e.error}
    left = {path for path in data_files(history) if ".f0-0_" in path}
    assert len({path for path in put if path and ".hoodie" not in path}) >= COPIES
    assert len(left) == 2, "that of the second write, and of the probe"


def test_a_failed_write_of_very_many_files_is_rolled_back_whole() -> None:
    tasks = tuple(Task(group=f"f{number}", partition=f"p{number % 7}") for number in range(LARGE))
    writes = (Write(tasks=(Task(group="kept"),)), Write(tasks=tasks, abandon=True))
    history = holds(plan_of("timeline", "s3", writes=writes, num_threads=20, executors=4))
    assert count(history, "ok", "rollback") == 1
    assert not [path for path in data_files(history) if "/f1999-" in path], "none of the failed write"
    assert [path for path in data_files(history) if "/kept-" in path]


@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_a_first_write_that_fails_leaves_a_table_that_can_be_written(mode: str, storage: str) -> None:
    history = holds(plan_of(mode, storage, writes=(replace(FIRST, abandon=True), FIRST)))
    assert count(history, "ok", "rollback") == 1 and count(history, "ok", "commit") == 2
