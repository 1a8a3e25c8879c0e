"""The interface between a stage and its cluster: attempts, messages, and how a job fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from marker_sim.writer.attempt import Assignment


class JobFailed(Exception):
    """A task failed too often, or no executor is left; the driver lives and the instant stays unfinished."""


class Worker(Protocol):
    """An executor as its driver knows it: whether it lives, and its last attempt."""

    alive: bool
    busy: Attempt | None


class Backend(Protocol):
    """The cluster a stage runs on, as its driver's process knows it.

    launch sends an attempt to its executor. receive waits for the next message. remind sends one to the driver itself
    later. speculated returns how many attempts of a task start at once.
    """

    @property
    def workers(self) -> Sequence[Worker]: ...
    def launch(self, attempt: Attempt) -> None: ...
    def receive(self) -> Message: ...
    def remind(self, message: Message, after_ms: int) -> None: ...
    def speculated(self, path: str) -> None: ...


@dataclass(slots=True, eq=False)
class Attempt:
    """One execution of a task on an executor. counted: the driver still expects its message."""

    task: int
    stage: int
    work: Assignment
    executor: Any
    slow_ms: int
    counted: bool = True


class Message(NamedTuple):
    """A message to a driver.

    result: a write stat, an error, a number.
    kind: ended, lost, speculate, stage-lost, executor (a new one is there), patience (no message may have come).
    """

    kind: str
    attempt: Attempt | None = None
    result: Any = None
