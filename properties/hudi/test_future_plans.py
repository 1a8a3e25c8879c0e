"""Plans whose table has a future: stored, told in words, made smaller; and what its steps ask of the Java program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.errors import UsageError
from marker_sim.history import Event, Header, History
from marker_sim.plan import FutureStep, Plan
from properties.faces.report import plan_sentences
from properties.faces.search import job_candidates, smaller
from properties.faces.targets import table_of
from properties.faces.worlds import (
    FUTURES,
    Interceptor,
    JavaDriver,
    JavaFaultInjector,
    Pace,
    Program,
    Recorder,
    TableStep,
    TableWithFuture,
    last_data_file,
    local_storage,
    shape_of,
    with_future,
    with_steps,
)

STEP = TableStep(name="", stage="write", faults=())
PLAN = with_steps(table_of("direct", 1), (STEP,))


def futures_of(plans: list[Plan]) -> set[tuple[FutureStep, ...]]:
    return {shape_of(plan).future for plan in plans}


@pytest.mark.parametrize("name", FUTURES)
def test_a_plan_with_a_future_is_stored_and_read_again_and_each_step_counts(name: str) -> None:
    plan = with_future(PLAN, FUTURES[name])
    assert Plan.from_dict(plan.to_dict()) == plan
    assert plan.entries == PLAN.entries + len(FUTURES[name])
    assert plan_sentences(plan)[0].endswith(f" In the end, with a reading after each: {', '.join(FUTURES[name])}.")


def test_a_step_that_is_none_is_refused() -> None:
    raw = with_future(PLAN, ("clean",)).to_dict()
    raw["shape"]["future"] = ["clean", "vacuum"]
    with pytest.raises(UsageError, match="vacuum"):
        Plan.from_dict(raw)


def test_steps_after_the_harm_are_dropped_first_and_then_one_before_it() -> None:
    plan = with_future(PLAN, ("commit", "clean", "archive", "commit"))
    steps = ("", "commit", "clean", "archive", "commit")
    events = [Event(n, 0, "kit", "kit", "observe", "future", value=step) for n, step in enumerate(steps)]
    history = History(Header(), tuple(events))
    shorter = futures_of(list(job_candidates(plan, history, (0, 4))))
    assert shorter == {("commit", "clean", "archive"), ("clean", "archive"), ("commit", "archive")}
    assert not [each for each in job_candidates(plan, history, (0,)) if not shape_of(each).future]
    assert futures_of(list(smaller(plan))) == {shape_of(plan).future}, "it is the horizon of what has no such evidence"


class Told:
    """A Java program that does nothing, and fails one service. asked: what it was."""

    alive = True

    def __init__(self, fails: str = "") -> None:
        self.asked: list[dict[str, Any]] = []
        self.fails = fails

    def wait_ready(self) -> None:
        pass

    def ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        self.asked.append(message)
        match message["do"]:
            case "read":
                return {"rows": [["k", "v"]]}
            case "files":
                return {"files": ["p0/a.parquet"]}
            case "service" if message["service"] == self.fails:
                return {"error": "it failed", "calls": [], "struck": []}
        return {"ok": True, "calls": [], "struck": []}

    def services(self) -> list[str]:
        return [each.get("service", each["do"]) for each in self.asked if each["do"] in ("write", "service")][2:]


def played(
    tmp_path: Path, told: Told, *future: FutureStep, metadata: bool = False, plan: Plan = PLAN
) -> tuple[Event, ...]:
    """The events of a run in which no write fails, its writes before the future left out."""
    shape = replace(shape_of(plan), future=future, metadata=metadata)
    plan, recorder = replace(plan, shape=shape), Recorder()
    interceptor = Interceptor(recorder, lambda due, call: None)
    injector = JavaFaultInjector(recorder, "t0", warm=True)
    with local_storage(interceptor, tmp_path, "t0", door=False) as place:

        def begin(name: str) -> JavaDriver:
            return JavaDriver(name, told, place, {}, injector, own=False)  # type: ignore[arg-type]

        program = Program(home=tmp_path, java="", jars=(), mark="", logs=tmp_path, deadline=10**9)
        table = TableWithFuture(
            name="t0", plan=plan, place=place, injector=injector, begin=begin, program=program, pace=Pace(),
            readers=("hudi",),
        )  # fmt: skip
        table.play()
        assert table.counts["steps of futures"] == len(future)
    events = recorder.close()
    return events[next(event.index for event in events if event.operation == "future") :]


def test_each_step_is_a_write_or_a_service_with_a_reading_after_it(tmp_path: Path) -> None:
    told = Told("archive")
    events = played(tmp_path, told, "commit", "clean", "archive", "cluster", "savepoint", "restore")
    assert told.services() == ["write", "clean", "archive", "cluster", "savepoint", "restore"]
    own = [each for each in told.asked if each.get("settings")]
    assert {each["settings"]["hoodie.keep.max.commits"] for each in own} == {"3"}
    steps = [(event.value, event.error) for event in events if event.operation == "future"]
    assert steps[0] == ("", None) and steps[3] == ("archive", "it failed") and len(steps) == 7
    assert sum(event.operation == "rows" for event in events) == 7
    (rows,) = (event.value for event in events if event.kind == "invoke")
    assert isinstance(rows, tuple) and all(row.startswith("q") for row in rows), "a group that no other write has"


def test_a_commit_by_default_settings_cleans_and_archives_by_itself_and_not_early(tmp_path: Path) -> None:
    told = Told()
    events = played(tmp_path, told, "default")
    *_, settings = (each["settings"] for each in told.asked if "settings" in each)
    assert settings["hoodie.clean.automatic"] == settings["hoodie.archive.automatic"] == "true"
    assert not {"hoodie.keep.max.commits", "hoodie.clean.commits.retained"} & settings.keys()
    assert [event.value for event in events if event.operation == "future"] == ["", "default"]


def test_rows_are_written_again_where_none_failed_new_ones(tmp_path: Path) -> None:
    told = Told()
    played(tmp_path, told, "retry")
    assert [row[1] for row in told.asked[-2]["rows"]] == ["quiet"]


def test_a_metadata_table_is_read_from_when_there_is_one(tmp_path: Path) -> None:
    told = Told()
    events = played(tmp_path, told, "clean", "rebuild")
    assert told.services() == ["clean", "drop-metadata", "write"]
    assert [event.process for event in events if event.operation in ("rows", "listing")] == [
        *("hudi", "hudi", "hudi"),
        *("hudi-metadata", "hudi-metadata"),
    ]
    own = [each["settings"]["hoodie.metadata.enable"] for each in told.asked if each.get("settings")]
    assert own == ["false", "true", "true"]
    events = played(tmp_path / "other", Told(), "clean", metadata=True)
    assert sum(event.operation == "listing" for event in events) == 2


@pytest.mark.parametrize(("rests", "later"), [(True, {"p1", "p2", "p3"}), (False, {"p0", "p1", "p2", "p3"})])
def test_one_partition_begins_with_the_second_write_and_another_rests_from_the_third_on(
    tmp_path: Path, rests: bool, later: set[str]
) -> None:
    told, plan = Told(), with_steps(PLAN, (STEP, STEP, STEP))
    assert shape_of(plan).rests, "what a failed write left is the newest of an older group"
    played(tmp_path, told, "clean", plan=replace(plan, shape=replace(shape_of(plan), rests=rests)))
    written = [{row[1] for row in each["rows"]} for each in told.asked if each["do"] == "write"]
    assert written == [{"p0", "p1", "p2"}, {"p0", "p1", "p2", "p3"}, later, later]
    others = {fault.trigger.n for third in (False, True) for fault in last_data_file(plan, third=third).faults}
    assert others == {3, 4}, "it dies when its last data file is whole"
