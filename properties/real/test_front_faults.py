"""Each fault of the S3 front does what its kind says, strikes where it was aimed, and is recorded as often as that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from marker_sim.faults import FaultKind
from properties.faces.worlds import Limits, prefix_of
from properties.real.fronts import Stage, aimed, client, fronted, refusal

# What the caller of a put sees (0: silence) and whether it is stored at that moment.
OUTCOMES = {
    FaultKind.THROTTLED: (503, False),
    FaultKind.SERVER_ERROR: (500, False),
    FaultKind.TIMEOUT_APPLIED: (0, True),
    FaultKind.TIMEOUT_LOST: (0, False),
    FaultKind.TIMEOUT_LATE: (0, False),
    FaultKind.SLOW_STORAGE: (200, True),
}


@pytest.mark.parametrize("kind", OUTCOMES, ids=lambda kind: kind.value)
def test_a_fault_strikes_the_call_it_is_aimed_at_and_no_other(kind: FaultKind) -> None:
    status, stored = OUTCOMES[kind]
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        late_ms = {FaultKind.TIMEOUT_LATE: 60_000, FaultKind.SLOW_STORAGE: 20}.get(kind, 0)
        armed = aimed(kind, "MARKERS", n=2, caller="server-", late_ms=late_ms)
        stage.interceptor.arm(armed)
        keys = ("MARKERS0", "other", "MARKERS1", "MARKERS2")
        seen = [_put(s3, key) for key in keys]
        assert seen == [200, 200, status, 200]
        assert stage.faults() == [(kind.value, "MARKERS1")]
        assert armed.fired == 1
        wanted = [key for key in keys if stored or key != "MARKERS1"]
        assert [path for _, path, _ in stage.effects()] == wanted
        assert list(stage.front.objects()) == sorted(wanted)


@pytest.mark.parametrize(
    "kind", [kind for kind, (status, _) in OUTCOMES.items() if status], ids=lambda kind: kind.value
)
@pytest.mark.parametrize("operation", ["get", "list", "delete"])
def test_reads_and_deletions_meet_faults_too(kind: FaultKind, operation: str) -> None:
    status = OUTCOMES[kind][0]
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        s3.put_object(Bucket="lake", Key="a", Body=b"1")
        stage.interceptor.arm(aimed(kind, operations=(operation,)))
        call: Callable[[], Any] = {
            "get": lambda: s3.get_object(Bucket="lake", Key="a"),
            "list": lambda: s3.list_objects_v2(Bucket="lake", Prefix="a"),
            "delete": lambda: s3.delete_object(Bucket="lake", Key="a"),
        }[operation]
        assert status == 200 or refusal(call) == status
        call()
        assert stage.faults() == [(kind.value, "a")]
        assert [event.error for event in stage.events("fault")] == [operation], "the call that it struck"
        assert [event.error for event in stage.events("fault")] == [operation], "the call that it struck"
        assert stage.front.objects() == ({} if operation == "delete" else {"a": b"1"})


def test_a_late_effect_comes_after_its_silence() -> None:
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        stage.interceptor.arm(aimed(FaultKind.TIMEOUT_LATE, late_ms=100))
        assert refusal(s3.put_object, Bucket="lake", Key="a", Body=b"late") == 0
        s3.put_object(Bucket="lake", Key="a", Body=b"new")
        stage.wait_for(lambda: len(stage.effects()) == 2, "late effect")
        assert sorted(value for _, _, value in stage.effects()) == [b"late", b"new"]
        assert stage.front.objects() == {"a": stage.effects()[-1][2]}


def test_a_late_conditional_put_is_decided_when_it_is_applied() -> None:
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        stage.interceptor.arm(aimed(FaultKind.TIMEOUT_LATE, late_ms=100))
        assert refusal(s3.put_object, Bucket="lake", Key="a", Body=b"late", IfNoneMatch="*") == 0
        (late,) = _connections(stage)
        first = _put(s3, "a", IfNoneMatch="*")
        late.join(10)
        assert not late.is_alive()
        assert stage.effects() == [("put", "a", b"1" if first == 200 else b"late")], "one of the two, never both"


def test_silence_ends_when_the_client_gives_up() -> None:
    with fronted(silence_ms=600_000) as stage:
        impatient = client(stage.front.endpoint, read_timeout=0.05)
        stage.interceptor.arm(aimed(FaultKind.TIMEOUT_LATE, late_ms=1))
        assert refusal(impatient.put_object, Bucket="lake", Key="a", Body=b"late") == 0
        stage.wait_for(lambda: stage.effects() == [("put", "a", b"late")], "late effect")


def test_other_calls_pass_a_slow_one() -> None:
    with fronted() as stage, ThreadPoolExecutor(1) as pool:
        s3 = client(stage.front.endpoint)
        stage.interceptor.arm(aimed(FaultKind.SLOW_STORAGE, "slow", late_ms=60_000))
        slow = pool.submit(s3.put_object, Bucket="lake", Key="slow", Body=b"1")
        stage.wait_for(lambda: len(stage.faults()) == 1, "fault")
        s3.put_object(Bucket="lake", Key="fast", Body=b"2")
        assert not slow.done()
        stage.front.close()
        assert [path for _, path, _ in stage.effects()] == ["fast", "slow"]


@pytest.mark.parametrize("kind", [FaultKind.THROTTLED, FaultKind.TIMEOUT_LOST], ids=lambda kind: kind.value)
def test_a_fault_of_several_calls_meets_those_that_fit(kind: FaultKind) -> None:
    with fronted(silence_ms=10) as stage:
        s3 = client(stage.front.endpoint)
        stage.interceptor.arm(aimed(kind, "t0/.hoodie", calls=3))
        keys = ["t0/.hoodie/a", "t1/.hoodie/a", "t0/.hoodie/b", "t0/data", "t0/.hoodie/c", "t0/.hoodie/d"]
        status = OUTCOMES[kind][0]
        assert [_put(s3, key) for key in keys] == [status, 200, status, 200, status, 200]
        assert stage.faults() == [(kind.value, key) for key in (keys[0], keys[2], keys[4])]


def test_a_fault_for_one_process_leaves_those_alone_whose_names_begin_like_its_own() -> None:
    with fronted() as stage:
        stage.interceptor.arm(aimed(FaultKind.SERVER_ERROR, caller="server-1", calls=9))
        callers = ("server-10", "server-1", "server-1#2")
        assert [_put(client(stage.front.endpoint, name), "a") for name in callers] == [200, 500, 500]


def test_an_error_may_come_although_the_call_was_applied() -> None:
    with fronted() as stage:
        stage.interceptor.arm(aimed(FaultKind.SERVER_ERROR, applied=True))
        assert _put(client(stage.front.endpoint), "a") == 500
        assert stage.front.objects() == {"a": b"1"}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_dies_exactly_before_or_after_its_effect(when: Any) -> None:
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        stage.interceptor.arm(aimed(FaultKind.KILL, "MARKERS", when=when))
        assert refusal(s3.put_object, Bucket="lake", Key="MARKERS0", Body=b"1") == 0
        effects_before_death = 1 if when == "after" else 0
        assert [(armed.kind, call.process, call.path, events) for armed, call, events in stage.killed] == [
            (FaultKind.KILL, "server-1", "MARKERS0", effects_before_death)
        ]
        assert stage.effects() == [("put", "MARKERS0", b"1")][:effects_before_death]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", ["put", "list"])
def test_a_process_pauses_exactly_before_or_after_its_call(when: Any, operation: str) -> None:
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        stage.interceptor.arm(aimed(FaultKind.PAUSE, operations=(operation,), when=when))
        s3.put_object(Bucket="lake", Key="MARKERS0", Body=b"1")
        s3.list_objects_v2(Bucket="lake", Prefix="MARKERS")
        effects_before = 0 if (operation, when) == ("put", "before") else 1
        assert [(call.operation, events) for _, call, events in stage.killed] == [(operation, effects_before)]
        assert stage.effects() == [("put", "MARKERS0", b"1")]


def test_a_death_after_a_deletion_of_many_comes_after_its_last_effect() -> None:
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        for key in "abc":
            s3.put_object(Bucket="lake", Key=key, Body=b"1")
        stage.interceptor.arm(aimed(FaultKind.KILL, "b", ("delete",), when="after"))
        objects = {"Objects": [{"Key": key} for key in ("a", "b", "c", "missing")]}
        assert refusal(s3.delete_objects, Bucket="lake", Delete=objects) == 0
        assert [events for _, _, events in stage.killed] == [6]
        assert stage.front.objects() == {}


@pytest.mark.parametrize("quiet", [True, False])
def test_a_deletion_of_many_may_be_applied_in_part(quiet: bool) -> None:
    keys = [f"a&<{number}>" for number in range(7)]
    with fronted() as stage:
        s3 = client(stage.front.endpoint)
        for key in keys:
            s3.put_object(Bucket="lake", Key=key, Body=b"1")
        stage.interceptor.arm(aimed(FaultKind.SERVER_ERROR, operations=("delete",), applied=True))
        objects = {"Objects": [{"Key": key} for key in keys], "Quiet": quiet}
        answer = s3.delete_objects(Bucket="lake", Delete=objects)
        assert [(one["Key"], one["Code"]) for one in answer["Errors"]] == [
            (keys[2], "InternalError"),
            (keys[5], "InternalError"),
        ]
        assert list(stage.front.objects()) == [keys[2], keys[5]]
        gone = [key for key in keys if key not in (keys[2], keys[5])]
        assert [path for operation, path, _ in stage.effects() if operation == "delete"] == gone
        assert stage.faults() == [("server-error", "\n".join(keys))]


def test_an_empty_bucket_of_tokens_is_a_recorded_503_and_other_prefixes_do_not_feel_it() -> None:
    with fronted(writes_per_s=0.01, reads_per_s=0.01) as stage:
        s3 = client(stage.front.endpoint)
        keys = ["t0/.hoodie/.temp/001/MARKERS0", "t0/.hoodie/.temp/002/MARKERS1", "t0/data", "t1/.hoodie/a", "t0/more"]
        assert [_put(s3, key) for key in keys] == [200, 503, 200, 200, 503]
        assert s3.list_objects_v2(Bucket="lake", Prefix="t0/.hoodie/")["KeyCount"] == 1
        assert refusal(s3.get_object, Bucket="lake", Key=keys[0]) == 503
        assert stage.faults() == [("throttled", keys[1]), ("throttled", keys[4]), ("throttled", keys[0])]
        stage.front.healed()
        assert [_put(s3, key) for key in keys] == [200] * 5


def test_who_reads_for_the_kit_meets_no_fault() -> None:
    with fronted(reads_per_s=0.01) as stage:
        server, reader = client(stage.front.endpoint), client(stage.front.endpoint, "reader")
        stage.front.spared = "reader"
        _put(server, "t/a")
        assert server.get_object(Bucket="lake", Key="t/a")["ETag"]
        assert refusal(server.get_object, Bucket="lake", Key="t/a") == 503
        assert [reader.get_object(Bucket="lake", Key="t/a")["ETag"] for _ in range(3)]


def test_tokens_come_back_with_time_up_to_a_second_of_them() -> None:
    now = [0.0]
    limits = Limits(10, 5, lambda: now[0])
    assert [limits.take("t/a", writes=True) for _ in range(11)] == [True] * 10 + [False]
    assert [limits.take("t/a", writes=False) for _ in range(6)] == [True] * 5 + [False]
    now[0] = 0.25
    assert [limits.take("t/a", writes=True) for _ in range(3)] == [True, True, False]
    now[0] = 1000.0
    assert [limits.take("t/a", writes=True) for _ in range(11)] == [True] * 10 + [False]
    now[0] = 1001.0
    assert limits.take("t/a", writes=True, cost=20), "a deletion of many overdraws"
    now[0] = 1002.0
    assert not limits.take("t/a", writes=True)
    assert limits.take("u/a", writes=True)


def test_a_prefix_is_the_metadata_of_a_table_or_the_first_part() -> None:
    assert prefix_of("r0/t0/.hoodie/.temp/001/MARKERS0") == prefix_of("r0/t0/.hoodie") == "r0/t0/.hoodie/"
    assert prefix_of("r0/t0/dt=1/a.parquet") == prefix_of("r0/t1/b") == prefix_of("r0") == "r0"
    assert prefix_of(".hoodie/x") == ".hoodie/"
    assert prefix_of("") == ""


def _connections(stage: Stage) -> list[threading.Thread]:
    """The threads that serve a connection of the front."""
    port = stage.front.endpoint.rpartition(":")[2]
    return [thread for thread in threading.enumerate() if thread.name.endswith(f"-to-{port}")]


def _put(s3: Any, key: str, **conditions: str) -> int:
    """The status a put is answered with, 0 for silence."""
    try:
        return int(s3.put_object(Bucket="lake", Key=key, Body=b"1", **conditions)["ResponseMetadata"]["HTTPStatusCode"])
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
    except BotoCoreError:
        return 0
