"""Plans of several writers of one table: their steps, their settings, their words, and what is refused of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Plan, Task, Write
from properties.faces.cli import parse_request
from properties.faces.report import plan_sentences
from properties.faces.targets import HEARTBEAT_OVER_MS, ROLLS, SCENARIOS, WRITERS_SHAPE, steps_of_writers
from properties.faces.worlds import SHARING, StorageCall, hudi_options

RACE = Plan(
    mode="direct",
    storage="local",
    num_threads=1,
    shape=WRITERS_SHAPE,
    writes=(Write(tasks=(Task(partition="p0", group="a"),)), Write(name=ROLLS)),
    faults=(Fault.of(FaultKind.PAUSE, "writer-1", Call("x$", ("open",)), for_ms=HEARTBEAT_OVER_MS),),
)


def test_each_step_of_each_writer_has_a_pause_before_it_which_names_it_in_another_table() -> None:
    calls = [
        StorageCall("writer-1", "driver", "lock", "t7/"),
        StorageCall("writer-2", "driver", "open", "t7/p0/b-1.parquet"),
        StorageCall("writer-1", "driver", "open", "t7/p0/a-1.parquet"),
        StorageCall("writer-2", "driver", "open", "t7/p0/b-2.parquet"),
    ]
    found = steps_of_writers(calls)
    assert [fault.target for fault in found] == ["writer-1", "writer-1", "writer-2", "writer-2"]
    assert [fault.n for fault in found] == [1, 1, 1, 2] and all(fault.kind is FaultKind.PAUSE for fault in found)
    assert not any("t7" in str(fault.trigger) for fault in found)


def test_a_plan_of_writers_reads_as_one_and_is_stored_and_read_again() -> None:
    sentences = plan_sentences(RACE)
    assert sentences[1:3] == ("writer-1 updates its rows of p0/a.", "writer-2 rolls back failed writes.")
    assert "writer-1" in sentences[3] and "paused" in sentences[3] and len(sentences) == 4
    assert Plan.from_dict(RACE.to_dict()) == RACE


@pytest.mark.parametrize("sharing", SHARING)
def test_writers_share_a_table_by_a_lock_and_lazy_rollbacks(sharing: str) -> None:
    plan = replace(RACE, shape=replace(WRITERS_SHAPE, sharing=sharing))  # type: ignore[arg-type]
    options = hudi_options(plan, "1.2.0")
    assert options["hoodie.write.concurrency.mode"] == "optimistic_concurrency_control"
    assert options["hoodie.clean.failed.writes.policy"] == "LAZY"
    assert ("GateLock" in options["hoodie.write.lock.provider"]) == (sharing != "file-lock")


def test_all_scenarios_have_two_writers_or_three() -> None:
    assert {len(writes) for writes in SCENARIOS.values()} == {2, 3}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"sut": "hudi-java:1.2.0", "writers": "1"}, "--writers was given '1'; write a whole number from 2 to 3"),
        ({"sut": "hudi-java:1.2.0", "writers": "x"}, "--writers was given 'x'; write a whole number from 2 to 3"),
        (
            {"sut": "reference", "writers": "2"},
            "--writers was given with --sut reference; it belongs to",
        ),
        ({"sut": "hudi:1.2.0", "writers": "2"}, "--writers was given with --sut hudi:1.2.0; it belongs to"),
        ({"sut": "http", "writers": "2"}, "--writers was given with --sut http; it belongs to"),
    ],
)
def test_a_wrong_number_of_writers_and_a_system_without_them_are_refused(words: dict[str, str], said: str) -> None:
    others = dict.fromkeys(("storage", "budget", "seed", "guarantees", "profile", "expect"))
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        parse_request(argv=(), mode="both", report="r", **others, **words)  # type: ignore[arg-type]


def test_several_writers_run_on_local_files_alone(tmp_path: Path) -> None:
    request = parse_request(
        argv=(), sut="hudi-java:1.2.0", mode="both", storage="s3", budget="9s", seed="1", guarantees=None,
        profile=None, expect=None, report=str(tmp_path), writers="2",
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"--writers was given with --storage s3; .* or leave --writers out"):
        request.target.prepare(request, lambda line: None)
