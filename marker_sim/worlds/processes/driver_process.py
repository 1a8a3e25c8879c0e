"""The driver's process: it performs the writes that the kit hands on, with the reference's write client."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from marker_sim.faults import FaultKind
from marker_sim.plan import Write
from marker_sim.timeline import WriteStat
from marker_sim.worlds.cluster.work import StageBackend, perform_write, run_stage, run_stage_again
from marker_sim.worlds.processes.children import Child
from marker_sim.writer.backend import Attempt, Message
from marker_sim.writer.slices import Slice


def drive(child: Child) -> None:
    """Perform writes until the kit hangs up, or this driver cannot go on."""
    backend = ProcessBackend(child)
    child.run_again = partial(run_stage_again, child, backend)
    inbox = child.link.connect("inbox")
    threading.Thread(target=backend.listen, args=(inbox,), daemon=True).start()
    child.link.ask("ready")
    while (given := backend.writes.get()) is not None:
        write, ordinal = given
        why = perform_write(child, write, ordinal, partial(run_stage, child, backend, write, ordinal))
        backend.again = None
        child.link.ask("through", why)


class ProcessBackend(StageBackend):
    """The cluster as the driver of a stage knows it. writes: those to perform; None when the kit is gone."""

    def __init__(self, child: Child) -> None:
        self._workers = [_Worker(slot) for slot in range(child.plan.executors)]
        self.writes: queue.SimpleQueue[tuple[Write, int] | None] = queue.SimpleQueue()
        self._child = child
        self._messages: queue.SimpleQueue[tuple[str, Any, Any]] = queue.SimpleQueue()
        self._attempts: dict[int, Attempt] = {}

    @property
    def workers(self) -> list[_Worker]:
        """Every executor, as far as the kit has said how it is."""
        return self._workers

    def launch(self, attempt: Attempt) -> None:
        """Send an attempt to its executor, through the kit."""
        there = attempt.work.slice
        work = attempt.work._replace(slice=None if there is None else Slice(*there))
        number = self._child.link.ask("launch", attempt.executor.slot, work, attempt.slow_ms, self.mode)
        self._attempts[number] = attempt

    def receive(self) -> Message:
        """The next message to the driver, without those about attempts that it no longer counts."""
        while True:
            kind, number, value = self._messages.get()
            match kind:
                case "patience":
                    return Message("patience", None, value)
                case "executor":
                    self._workers[value].alive, self._workers[value].busy = True, None
                    return Message("executor")
                case "executor-lost":
                    self._workers[value].alive = False
                    continue
            attempt = self._attempts.get(number)
            if attempt is None or (kind == "lost" and not attempt.counted):
                continue  # A straggler of a write before, or lost twice.
            if kind == "lost":
                attempt.counted = False
            elif kind == "ended":
                result, well = value
                value = WriteStat(*result) if well else RuntimeError(result)
            return Message(kind, attempt, value)

    def remind(self, message: Message, after_ms: int) -> None:
        """Tell this driver something later."""
        timer = threading.Timer(after_ms / 1000, self._messages.put, (("patience", None, message.result),))
        timer.daemon = True
        timer.start()

    def speculated(self, path: str) -> None:
        """Record that several attempts of a task start at once."""
        link = self._child.link
        link.record(self._child.me.name, "nemesis", "fault", FaultKind.SPECULATIVE.value, path=path)

    def listen(self, inbox: Connection) -> None:
        """Sort what the kit says until it hangs up."""
        while True:
            try:
                message = inbox.recv()
            except (EOFError, OSError):
                self.writes.put(None)
                return
            if message[0] == "write":
                self.writes.put(message[1:])
            else:
                self._messages.put(message)


@dataclass(slots=True)
class _Worker:
    """An executor as its driver knows it."""

    slot: int
    alive: bool = True
    busy: Attempt | None = None
