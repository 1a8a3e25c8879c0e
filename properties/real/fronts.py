"""A front with nothing behind it but moto, clients for it, and what it recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.history import Event
from properties.faces.faults import CHANGES
from properties.faces.worlds import ArmedFault, Interceptor, Recorder, S3Front, StorageCall

TIMEOUT_S = 10.0


class Stage:
    """killed: calls whose process the interceptor killed or paused, with the number of events recorded before."""

    def __init__(self, **options: Any) -> None:
        self.recorder = Recorder()
        self.killed: list[tuple[ArmedFault, StorageCall, int]] = []
        self.interceptor = Interceptor(
            self.recorder, lambda armed, call: self.killed.append((armed, call, len(self.recorder.events)))
        )
        self.front = S3Front(self.interceptor, **options)

    def events(self, kind: str) -> list[Event]:
        """The events of a kind so far."""
        return [event for event in self.recorder.events if event.kind == kind]

    def effects(self) -> list[tuple[str, str | None, Any]]:
        """operation, path and content of every effect so far."""
        return [(event.operation, event.path, event.value) for event in self.events("effect")]

    def faults(self) -> list[tuple[str, str | None]]:
        """Word and path of every fault so far."""
        return [(event.operation, event.path) for event in self.events("fault")]

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Until a condition holds, which the front's threads bring about."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"no {what} within {TIMEOUT_S} s: {self.recorder.events}"
            time.sleep(0.001)


@contextmanager
def fronted(**options: Any) -> Iterator[Stage]:
    """A front for a block; it ends without trouble."""
    stage = Stage(**{"silence_ms": 50, **options})
    with stage.front:
        yield stage


def client(endpoint: str, process: str = "server-1", **config: Any) -> Any:
    """A boto3 client as boto3 makes it, but for hidden resends."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=process,
        aws_secret_access_key="secret",
        region_name="us-east-1",
        config=Config(**{"retries": {"total_max_attempts": 1}, "read_timeout": 10, **config}),
    )


def refusal(call: Any, **parameters: Any) -> int:
    """The HTTP status that a call fails with; 0 when the connection ends without an answer."""
    with pytest.raises((ClientError, BotoCoreError)) as caught:
        call(**parameters)
    if isinstance(caught.value, ClientError):
        return int(caught.value.response["ResponseMetadata"]["HTTPStatusCode"])
    return 0


def aimed(
    kind: FaultKind,
    pattern: str = "",
    operations: tuple[str, ...] = CHANGES,
    n: int = 1,
    when: When = "before",
    caller: str = "",
    **settings: Any,
) -> ArmedFault:
    """A fault at a call, for the interceptor."""
    return ArmedFault(Fault.of(kind, caller, Call(pattern, operations, n, when), **settings))
