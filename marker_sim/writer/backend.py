"""What a stage and the cluster it runs on tell each other: attempts, messages, and how a job fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from marker_sim.writer.attempt import Assignment


class JobFailed(Exception):
    """A task failed too often, or nobody is left to run it; the driver lives and the instant stays behind."""


class Worker(Protocol):
    """An executor as its driver knows it: whether it lives, and what it was given last."""

    alive: bool
    busy: Attempt | None


class Backend(Protocol):
    """The cluster a stage runs on, as its driver's process knows it.

    launch sends an attempt to its executor. hear waits for the next message. remind sends one to the driver itself,
    later. speculated says that attempts of a task start at once.
    """

    @property
    def workers(self) -> Sequence[Worker]: ...
    def launch(self, attempt: Attempt) -> None: ...
    def hear(self) -> Message: ...
    def remind(self, message: Message, after_ms: int) -> None: ...
    def speculated(self, path: str) -> None: ...


class Attempt:
    """One execution of a task on an executor. counted: the driver still expects to hear of it."""

    __slots__ = ("counted", "executor", "slow_ms", "stage", "task", "work")

    def __init__(self, task: int, stage: int, work: Assignment, executor: Any, slow_ms: int) -> None:
        self.task = task
        self.stage = stage
        self.work = work
        self.executor = executor
        self.slow_ms = slow_ms
        self.counted = True


class Message(NamedTuple):
    """What a driver hears.

    result: a write stat, an error, a number.

    kind: ended, lost, speculate, stage-lost, executor (a new one is there), patience (nothing may have been heard).
    """

    kind: str
    attempt: Attempt | None = None
    result: Any = None
