"""Tables that hold something when a run begins: what was committed stays and is read, what was left is rolled back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marker_sim.errors import UsageError
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import EarlierLife, Plan, Task, Write
from marker_sim.system import reference
from marker_sim.timeline import parse_entry
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.report import plan_sentences
from properties.faces.search import shrink, with_earlier_life
from properties.faces.worlds import run

MERGED = Write(tasks=(Task(kind="MERGE"), Task(group="f1", kind="APPEND")))
LIFE = EarlierLife(commits=2, logs=True, archived=2, left="deltacommit")
PLACES = [(mode, storage) for mode in ("direct", "timeline") for storage in ("s3", "local", "hdfs")]
LIVES = [
    LIFE,
    replace(LIFE, instants="seconds", left="commit"),
    EarlierLife(commits=2, instants="bootstrap", left="commit"),
    replace(LIFE, version8=True, logs=False),
    EarlierLife(commits=0, archived=1, left="deltacommit"),
]


def plan_of(life: EarlierLife, mode: str = "direct", storage: str = "s3") -> Plan:
    return Plan(mode=mode, storage=storage, directories=(), writes=(MERGED, MERGED), earlier=life)


def broken(history: History) -> set[str]:
    return {finding.guarantee for finding in judge(history) if finding.breaches}


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_the_reference_keeps_what_was_committed_and_ends_what_was_left(
    life: EarlierLife, mode: str, storage: str
) -> None:
    history = run(plan_of(life, mode, storage), reference())
    assert not broken(history)
    stored = {event.path: event for event in history.events if event.operation == "file"}
    for event in (event for event in history.events if event.operation == "earlier"):
        assert isinstance(event.value, tuple)
        there = {path: f"{event.table}/{path}" in stored for path in event.value}
        assert set(there.values()) <= {event.path != "left"}, event
    rows = next(event.value for event in history.events if event.operation == "rows")
    assert isinstance(rows, tuple)
    assert sum(row.endswith("=0") and "/f" in row for row in rows) == 2 * life.commits
    entries = [entry for path in stored if path is not None and (entry := parse_entry(path)) is not None]
    assert not {entry.instant for entry in entries} & {
        event.instant for event in history.events if event.operation == "earlier" and event.path == "left"
    }


def test_a_deleted_file_of_an_archived_commit_is_seen() -> None:
    plan = plan_of(LIFE)
    mutant = load_mutant(find_mutant("archived-log-deleted"))
    assert "G15" in broken(run(plan, mutant))
    small = shrink(plan, lambda each: "G15" in broken(run(each, mutant)), runs_max=300)
    assert (
        small.earlier is not None and (small.earlier.commits, small.earlier.archived) == (0, 1) and small.entries == 1
    )


def test_the_judge_of_rows_knows_what_was_committed_before() -> None:
    history = run(plan_of(EarlierLife()), reference())
    events = tuple(
        event._replace(value=tuple(row for row in event.value if not row.endswith("=0")))
        if event.operation == "rows" and isinstance(event.value, tuple)
        else event
        for event in history.events
    )
    assert "G24" in broken(replace(history, events=events))


def test_a_plan_says_what_its_tables_hold() -> None:
    plan = plan_of(LIFE)
    assert Plan.from_dict(plan.to_dict()) == plan
    assert "earlier" not in replace(plan, earlier=None).to_dict()
    assert (
        "2 completed commit(s), the last one of log files, 2 commit(s) archived, and an unfinished deltacommit"
        in (plan_sentences(plan)[0])
    )
    with pytest.raises(UsageError, match="commits and archived of an earlier life"):
        Plan.from_dict(plan_of(EarlierLife(commits=-1)).to_dict())


def test_a_share_of_the_plans_has_an_earlier_life() -> None:
    """It is drawn in 20 % of the plans; 400 have less than 40 with a probability below one in a million."""
    drawn = [with_earlier_life(replace(plan_of(LIFE), earlier=None, seed=seed)).earlier for seed in range(400)]
    lives = [life for life in drawn if life is not None]
    assert 40 <= len(lives) <= 140
    assert {life.instants for life in lives} == {"millis", "seconds", "bootstrap"}
    assert {life.left for life in lives} == {"", "commit", "deltacommit"}
