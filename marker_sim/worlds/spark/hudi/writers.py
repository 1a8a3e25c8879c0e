"""A table that several writers write at once by Hudi's Java client, in one JVM whose gate lets one of them go on.

    writes that make the file groups ─► the race: each write of the plan is a writer ─► a write that heals ─► audit

A fault is of the writer that it names. A pause gives the turn to the next writer; one of `HEARTBEAT_OVER_MS` outlasts
the writer's heartbeats. The write that heals comes when all heartbeats of those that died are old.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind
from marker_sim.history import CallError, Kind
from marker_sim.plan import Plan
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.spark.application import Gone, Hangs
from marker_sim.worlds.spark.hudi.java_driver import JavaFaultInjector, effect_of, told_of
from marker_sim.worlds.spark.hudi.steps import aimed_at
from marker_sim.worlds.spark.hudi.table import ASK_S, Table
from marker_sim.worlds.spark.plans import DRIVER

ROLLS = "roll"  # The name of a write that only rolls back what failed.
# What is no call of storage, or no step: a look that goes with the step before it, a heartbeat made old, a death.
PEEK, EXPIRED, DIED = "peek", "expired", "died"
MADE, STRUCK = "made", "struck"  # Of a call, what else it is: a folder was not there before; its writer died before it.
# A group of which no writer writes; beside another one its file's name would tell which of both Hudi reads first.
HEALED = ("healed", "healed")


class WriterJob(NamedTuple):
    """What one writer does. rows: none for one that only rolls back."""

    writer: str
    rows: list[tuple[str, str, str, int]]


def writer_name(number: int) -> str:
    """The process of the n-th write of a plan, from 0."""
    return f"writer-{number + 1}"


class TableOfWriters(Table):
    """A table under test and its writers."""

    def play(self) -> None:
        """Make the groups, race, heal, and audit; OutOfTime when the time ends within one."""
        self._start()
        keys = {(task.partition, task.group) for write in self.plan.writes for task in write.tasks} | {HEALED}
        for number, key in enumerate(sorted(keys), 1):  # One each, so that a judge knows the group of each row.
            self._race([WriterJob(f"first-{number}", self._rows_of([key], range(len(self.plan.writes) + 1)))])
        if not self._completed:
            raise HarnessError(f"no write completed before the race: {self.life and self.life.last_lines()}")
        self.begun = len(self.plan.writes)
        jobs = [
            WriterJob(writer_name(number), self._rows_of([(t.partition, t.group) for t in write.tasks], (number,)))
            for number, write in enumerate(self.plan.writes)
        ]
        self.calls = [tuple(chain(*self.calls))]
        self._race(jobs, self.plan.faults)
        self._race([WriterJob("healer", self._rows_of([HEALED], (0,)))], expire=True)
        self.calls.pop()
        self._audit(self._last)

    @property
    def played(self) -> Plan:
        """The plan: its race is whole or was not begun."""
        return self.plan

    def _rows_of(self, groups: Iterable[tuple[str, str]], owners: Iterable[int]) -> list[tuple[str, str, str, int]]:
        """Rows of some groups, whose keys each belong to one writer; a row's text tells its write."""
        self._ordinal += 1
        found = [(f"{group}.{part}.{owner}", part) for part, group in groups for owner in owners]
        return [(key, part, f"w{self._ordinal}", self._ordinal) for key, part in found]

    def _race(self, jobs: list[WriterJob], faults: tuple[Fault, ...] = (), *, expire: bool = False) -> None:
        assert self.life is not None
        writers = [
            {
                "name": job.writer,
                "job": "write" if job.rows else ROLLS,
                "rows": job.rows,
                "extra": {WRITE_KEY: str(job.rows[0][3])} if job.rows else {},
            }
            for job in jobs
        ]
        told = [told_of(aimed_at(fault, self.name)) | {"writer": fault.target} for fault in faults]
        limit = int(ASK_S * 1000 / 2)
        message = {"do": "race", "writers": writers, "faults": told, "expire": expire, "limit_ms": limit}
        try:
            answer = self.life.ask(message, ASK_S)
        except (Gone, Hangs) as error:
            raise HarnessError(f"{self.life.name} did not end its race: {self.life.last_lines()}") from error
        self.counts["races that did not end"] += "hangs" in answer
        for fault, fired in zip(faults, answer["struck"], strict=True):
            self.armed[word_of(fault)] += 1
            self.met[word_of(fault)] += fired > 0
        self._faults += sum(answer["struck"])
        rows = {job.writer: tuple(f"{key}={content}" for key, _, content, _ in job.rows) for job in jobs}
        self._take(answer["calls"], rows, {effect_of(fault): fault.kind for fault in faults})
        self.calls.append(tuple(_calls_of(answer["calls"])))

    def _take(
        self,
        calls: Iterable[Mapping[str, Any]],
        rows: Mapping[str, tuple[str, ...]],
        kinds: Mapping[str, FaultKind],
    ) -> None:
        """Record what the program tells of a race, in its order. kinds: of faults, by `effect_of`."""
        injector, place = self.injector, (self.name, "")
        assert isinstance(injector, JavaFaultInjector)
        recorder, asked = injector.recorder, dict[str, int]()
        for call in calls:
            writer, operation = call["writer"], call["op"]
            match operation:
                case "begin":
                    asked[writer] = recorder.record(writer, DRIVER, "invoke", "write", *place, value=rows[writer])
                case "told" | "died":
                    error = CallError.DRIVER_DIED if operation == "died" else call.get("error")
                    there, by = (self.name, call["instant"]), asked[writer]
                    kind: Kind = "ok" if error is None else "info"
                    self._last = recorder.record(writer, DRIVER, kind, "write", *there, error=error, caused_by=by)
                    self._completed |= error is None
                case "pause" | "resume":
                    recorder.fault(writer, "pause", "begin" if operation == "pause" else "end")
                case "expired":
                    recorder.record(writer, "nemesis", "fault", "heartbeat-expired", self.name, call["path"])
                case "lock" | "unlock" if call["result"] == "ok" and call["path"] in ("", f"{self.name}/"):
                    # Of the table, not of a file group; a writer that died there did not take it.
                    recorder.record(writer, DRIVER, "effect", operation)
                case "stuck" | "not-renewed":
                    self.counts[f"writer {operation}"] += 1
                case "stat" | "peek" if call["result"] == "ok":
                    pass
                case _:
                    injector.follow(call, kinds, writer)
        self.counts["race"] += len(rows) > 1


def word_of(fault: Fault) -> str:
    """How a fault of a writer is counted."""
    if fault.kind is not FaultKind.PAUSE:
        return f"writer: {fault.kind.value}"
    return "writer paused" if effect_of(fault) == "pause" else "writer paused past its heartbeat"


def _calls_of(calls: Iterable[Mapping[str, Any]]) -> Iterator[StorageCall]:
    """The calls of all writers in their order, takings and releases of the lock, and what is no step."""
    for call in calls:
        if call["path"] or call["op"] == DIED:
            also = (*call.get("gone", ()), *([MADE] if MADE in call else ()))
            struck = (STRUCK,) if call["result"] == "die-before" else ()
            yield StorageCall(call["writer"], DRIVER, call["op"], call["path"], (*also, *struck))
