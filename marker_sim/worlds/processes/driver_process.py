"""The driver's process: it performs the writes that the kit hands on, with the reference's write client."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from marker_sim.faults import FaultKind
from marker_sim.history import Value
from marker_sim.names import parse_directory
from marker_sim.plan import Write
from marker_sim.timeline import COMMIT, DELTA_COMMIT, WriteStat
from marker_sim.writer.backend import Attempt, JobFailed, Message
from marker_sim.writer.recording import RecordedMarkers, record_call
from marker_sim.writer.slices import Slice

if TYPE_CHECKING:
    from marker_sim.worlds.processes.children import Child


class Driver:
    """Performs the writes that the kit hands on. It is the backend of its own stages (writer.stage.Backend)."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.workers: list[_Worker] = [_Worker(slot) for slot in range(child.plan.executors)]
        self._messages: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._writes: queue.SimpleQueue[tuple[Write, int] | None] = queue.SimpleQueue()
        self._attempts: dict[int, Attempt] = {}
        self._mode = ""

    def work(self) -> None:
        """Until the kit hangs up."""
        child = self.child
        inbox = child.link.connect("inbox")
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()
        child.link.ask("ready")
        while (given := self._writes.get()) is not None:
            write, ordinal = given
            try:
                self._write(write, ordinal)
            except JobFailed as failed:
                value = "abandoned" if write.abandon else None
                child.link.record(
                    child.me.name, child.me.role, "observe", "job-failed", value=value, error=str(failed)
                )  # fmt: skip
            except Exception as error:
                child.link.ask("leaving", repr(error))
                return
            child.link.ask("through")

    def _write(self, write: Write, ordinal: int) -> None:
        child = self.child
        plan, table = child.plan, child.plan.tables[write.table]
        if write.after_ms:
            child.runtime.sleep(write.after_ms)
        self._mode, why = child.link.ask("mode", write.markers)
        if self._mode == "timeline":
            child.link.ask("need-server")
        client = child.system.write_client(
            table,
            child.storage,
            child.runtime,
            child.options,
            DriverMarkers(child, self._mode),
            DELTA_COMMIT if plan.merge_on_read else COMMIT,
            partial(journal, child, table),
        )
        instant = client.begin()
        child.link.record("kit", "kit", "observe", "mode", table, instant, value=self._mode, error=why or None)
        stage = child.system.stage(table, instant, write, ordinal, client.slices, plan.merge_on_read)
        stats = stage.run(self)
        if write.abandon:
            raise JobFailed("the application gave up")
        child.run_again = partial(stage.run_again, self)
        client.finalize(instant, stats)
        client.commit(instant, stats, {"write": str(ordinal)})
        child.run_again = lambda: None

    # writer.stage.Backend

    def launch(self, attempt: Attempt) -> None:
        """Send an attempt to its executor, through the kit."""
        there = attempt.work.slice
        work = attempt.work._replace(slice=None if there is None else Slice(*there))
        number = self.child.link.ask("launch", attempt.executor.slot, work, attempt.slow_ms, self._mode)
        self._attempts[number] = attempt

    def hear(self) -> Message:
        """The next message that still concerns somebody."""
        while True:
            kind, *rest = self._messages.get()
            if kind == "patience":
                return Message("patience", None, rest[0])
            if kind == "executor":
                self.workers[rest[0]].alive = rest[1]
                if rest[1]:
                    self.workers[rest[0]].busy = None
                    return Message("executor")
                continue
            attempt = self._attempts.get(rest[0])
            if attempt is None:
                continue  # A straggler of a write before.
            if kind == "lost":
                if not attempt.counted:
                    continue
                attempt.counted = False
            if kind == "ended":
                return Message(kind, attempt, WriteStat(*rest[1]) if rest[2] else RuntimeError(rest[1]))
            return Message(kind, attempt, rest[1] if len(rest) > 1 else None)

    def remind(self, message: Message, after_ms: int) -> None:
        """Tell this driver something later."""
        timer = threading.Timer(after_ms / 1000, self._messages.put, (("patience", message.result),))
        timer.daemon = True
        timer.start()

    def speculated(self, path: str) -> None:
        """Attempts of a task start at once."""
        self.child.link.record(self.child.me.name, "nemesis", "fault", FaultKind.SPECULATIVE.value, path=path)

    def _listen(self, inbox: Connection) -> None:
        while True:
            try:
                message = inbox.recv()
            except (EOFError, OSError):
                self._writes.put(None)
                return
            if message[0] == "write":
                self._writes.put(message[1:])
            else:
                self._messages.put(message)


def journal(
    child: Child, table: str, operation: str, instant: str | None, value: Value, body: Callable[[], Any]
) -> Any:
    """Record a part of a write to a table (writer.client.Journal, once child and table are given)."""
    ended = record_call(child.link, child.me, operation, (table, instant), None, value, None, body)
    if ended.error is not None:
        raise ended.error
    if operation == "begin":
        child.link.ask("began", table, ended.value)
    return ended.value


class _Worker:
    """An executor as its driver knows it."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.alive = True
        self.busy: Attempt | None = None


class DriverMarkers:
    """Where a driver finds markers (writer.client.Markers)."""

    def __init__(self, child: Child, mode: str) -> None:
        self._child = child
        self._mode = mode

    def store(self, directory: str) -> RecordedMarkers:
        """The store of this write's mode."""
        return self._child.markers(self._mode, parse_directory(directory))

    def stored(self, directory: str) -> tuple[str, ...]:
        """What a fresh reader finds: the reference's direct store reads every format of Hudi's."""
        child = self._child
        factory = child.system.reader(self._mode)

        def listing() -> tuple[str, ...]:
            return tuple(sorted(factory(child.context(directory)).list_all()))

        place = parse_directory(directory)
        ended = record_call(child.link, child.me, "list", place, None, None, None, listing)
        if ended.error is not None:
            raise ended.error
        names: tuple[str, ...] = ended.value
        return names
