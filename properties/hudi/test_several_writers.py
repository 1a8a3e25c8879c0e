"""Plans of several writers of one table: their steps, their settings, their words, and what is refused of them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Plan, Task, Write
from properties.faces.cli import parse_request
from properties.faces.report import plan_sentences
from properties.faces.targets import (
    HEARTBEAT_OVER_MS,
    ROLLS,
    SCENARIOS,
    SHORT_MS,
    WRITERS_SHAPE,
    Race,
    steps_of_writers,
)
from properties.faces.worlds import SHARING, StorageCall, hudi_options

STRATEGY = "hoodie.write.concurrency.early.conflict.detection.strategy"
ZOOKEEPER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
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
        [
            StorageCall("writer-1", "driver", "lock", "t7/"),
            StorageCall("writer-1", "driver", "open", "t7/p0/a-1.parquet"),
        ],
        [StorageCall("writer-2", "driver", "open", f"t7/p0/b-{n}.parquet") for n in (1, 2)],
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
    providers = {"file-lock": "HudiJavaWriter$FileLock", "early-transaction": ZOOKEEPER}
    assert options["hoodie.write.lock.provider"] == providers.get(sharing, "HudiJavaWriter$GateLock")
    assert ("SteppedDetector" in options.get(STRATEGY, "")) == (sharing == "early-detection")
    assert ("Transaction" in options.get(STRATEGY, "")) == (sharing == "early-transaction")


def test_all_scenarios_have_two_writers_or_three() -> None:
    assert {len(writes) for writes in SCENARIOS.values()} == {2, 3}


def call(operation: str, path: str, writer: int = 1) -> StorageCall:
    return StorageCall(f"writer-{writer}", "driver", operation, f"t7/{path}")


LOCK = ".hoodie/lock"
CALLS = (
    (call("stat", LOCK), call("open", LOCK), call("open", "p0/a-1.parquet"), call("delete", LOCK)),
    (call("open", LOCK, 2), call("open", "p0/a-2.parquet", 2), call("delete", LOCK, 2), call("list", "p0", 2)),
)


def faults_of(race: Race, number: int) -> list[tuple[Fault, ...]]:
    rng = random.Random(1)
    return [race.faults(rng) for _ in range(number)]


def test_a_race_is_tried_in_four_ways_none_of_which_pauses_a_writer_alone_that_has_no_other_left() -> None:
    race = Race()
    race.add((), CALLS)
    found = faults_of(race, 200)
    assert ("writer-2",) not in {tuple(fault.target for fault in faults) for faults in found}
    alone = {(faults[0].trigger, faults[0].settings.for_ms) for faults in found if len(faults) == 1}
    assert len(alone) == 2 * len(CALLS[0])
    pairs = {faults for faults in found if [fault.target for fault in faults] == ["writer-1", "writer-2"]}
    contested = Fault.of(FaultKind.PAUSE, "writer-1", Call(r"\.hoodie/lock$", ("open",)), for_ms=SHORT_MS)
    while_held = [faults[1].trigger for faults in pairs if faults[0] == contested]
    assert steps_of_writers(CALLS)[5].trigger in while_held
    assert any(len(faults) == 3 for faults in found)
    assert any(fault.kind is FaultKind.KILL for faults in found for fault in faults)


def test_a_step_that_pauses_led_to_is_paused_at_with_them() -> None:
    race = Race()
    race.add((), CALLS)
    paused = (Fault.of(FaultKind.PAUSE, "writer-1", Call(r"p0/a-\d+\.parquet$", ("open",)), for_ms=SHORT_MS),)
    late = call("list", ".hoodie/.temp/20260101000000000/p0", 2)
    race.add(paused, (CALLS[0], (*CALLS[1], late)))
    assert not race.later  # It is its own folder.
    race.add(paused, ((*CALLS[0], late._replace(process="writer-1")), (*CALLS[1], late)))
    race.add((), CALLS)
    ((first, second),) = race.later  # That of another one.
    assert (first,) == paused and second.target == "writer-2" and "temp" in str(second.trigger)
    race.add(paused, ((*CALLS[0], late._replace(process="writer-1")), (*CALLS[1], late)))
    assert len(race.later) == 1


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
