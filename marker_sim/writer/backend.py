"""The interface between a stage and its cluster: attempts, messages, and how a job fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from marker_sim.writer.attempt import Assignment


class JobFailed(Exception):
    """A task failed too often, or no executor is left; the driver lives on and the instant stays pending."""


class Worker(Protocol):
    """An executor as seen by its driver: whether it is alive, and the attempt that it runs."""

    alive: bool
    busy: Attempt | None


class Backend(Protocol):
    """The cluster on which a stage runs, as seen by the driver.

    launch sends an attempt to its executor. receive waits for the next message. remind sends a message to the driver
    itself after a delay. speculated records that several attempts of one task run at once.
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

    result: a write stat, an error, or a number of copies.
    kind: "ended", "lost", "speculate", "stage-lost", "executor" (a new executor registered), or "patience" (a timer
    that
        ends a wait).
    """

    kind: str
    attempt: Attempt | None = None
    result: Any = None
