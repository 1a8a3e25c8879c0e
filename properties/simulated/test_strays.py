"""Markers that do not fit their instant, and files beside the markers: nothing committed is lost, nothing is stuck."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Fault, FaultKind, Site
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import STRAYS, Plan, Task, Write
from marker_sim.system import reference
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.outcome import Statistics
from properties.faces.report import plan_sentences
from properties.faces.search import with_strays
from properties.faces.worlds import run

PLACES = [(mode, storage) for mode in ("direct", "timeline") for storage in ("s3", "local")]
FIRST, NEXT = Write(tasks=(Task(),)), Write(tasks=(Task(kind="APPEND"),))


def left_behind(mode: str, storage: str, *strays: str) -> Plan:
    """A base file and a log file are committed, and an instant is left that has markers of both."""
    left = Write(tasks=(Task(kind="APPEND", strays=strays),), abandon=True)
    return Plan(mode=mode, storage=storage, directories=(), writes=(FIRST, NEXT, left), merge_on_read=True)


def broken(history: History) -> set[str]:
    return {finding.guarantee for finding in judge(history) if finding.breaches}


def reached(history: History) -> set[str]:
    statistics = Statistics()
    statistics.count_coverage(history)
    return {key.rpartition("/")[2] for key in statistics.met_in}


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_a_rollback_spares_the_files_of_others(mode: str, storage: str, stray: str) -> None:
    history = run(left_behind(mode, storage, stray), reference())
    assert not broken(history)
    expected = {"marker-of-another-file", "marker-of-another-log"} if stray.startswith("others") else set[str]()
    assert expected <= reached(history)
    assert ("marker-of-another-kind" in reached(history)) == (stray in ("as-CREATE", "as-MERGE"))


@pytest.mark.parametrize(("mutant", "logs"), [("committed-log-deleted", True), ("deleted-whosever-it-is", False)])
def test_committed_files_that_a_rollback_deletes_are_seen(mutant: str, logs: bool) -> None:
    plan = replace(left_behind("direct", "s3", "others-APPEND"), merge_on_read=logs)
    assert {"G15", "G24"} <= broken(run(plan, load_mutant(find_mutant(mutant))))


@pytest.mark.parametrize("site", ["driver: task heard of", "driver: marker deletion answered"])
@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_files_that_are_no_markers_are_neither_read_nor_left(mode: str, storage: str, site: str) -> None:
    beside = Fault.of(FaultKind.STRAY_FILES, "driver", Site(site, 1))
    for abandon in (False, True):
        plan = Plan(mode=mode, storage=storage, directories=(), faults=(beside,))
        history = run(replace(plan, writes=(replace(FIRST, abandon=abandon), FIRST, FIRST)), reference())
        assert any(event.operation == beside.kind.value for event in history.events)
        assert not broken(history)
        assert not [e.path for e in history.events if e.operation == "file" and "/.temp/" in (e.path or "")]


def test_a_plan_says_its_strays() -> None:
    plan = left_behind("direct", "s3", "others-CREATE", "as-MERGE")
    assert Plan.from_dict(plan.to_dict()) == plan
    assert "a CREATE marker of every file that other writes have put into the group, with a MERGE marker" in " ".join(
        plan_sentences(plan)
    )
    with pytest.raises(UsageError, match="task stray 'others' is none of"):
        Plan.from_dict(left_behind("direct", "s3", "others").to_dict())


def test_a_share_of_the_plans_has_strays() -> None:
    """Each is drawn in 20 % of the plans; 400 have less than 40 with a probability below one in a million."""
    plans = [Plan(directories=(), writes=(FIRST,), seed=seed) for seed in range(400)]
    drawn = [with_strays(plan) for plan in plans]
    assert 40 <= sum(made != plan for made, plan in zip(drawn, plans, strict=True)) <= 140
    assert any(made.faults for made in drawn)
    assert {stray for made in drawn for write in made.writes for task in write.tasks for stray in task.strays} == {
        *STRAYS
    }
