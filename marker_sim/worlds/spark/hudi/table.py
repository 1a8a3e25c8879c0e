"""One table of one shape, written by drivers that are killed where the steps of a run say.

    first write ─► audit ─► [ a write that is killed ─► (a recovery that is killed) ─► recovery ─► audit ]* ─► History

The write after a kill is the one that has to roll back. After each write that Spark reported as done, nobody writes
while the table is read: its files by the kit, its rows by Hudi and by hudi-rs. A reader other than Hudi that cannot
read the table before any fault is told so once and not asked again.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.history import CallError, Kind
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.tables.entries import WRITE_KEY, Unreadable
from marker_sim.tables.hudi_rs import UNSUPPORTED, read_rows
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.recorder import observe_table
from marker_sim.worlds.spark.application import Driver, Gone, Hangs, OutOfTime
from marker_sim.worlds.spark.fault_injector import TableFaultInjector
from marker_sim.worlds.spark.hudi.settings import HEARTBEAT_S, Program, key_count, partition_names, shape_of
from marker_sim.worlds.spark.hudi.steps import TableStep, last_data_file, steps_of, with_steps
from marker_sim.worlds.spark.hudi.table_storage import TableStorage
from marker_sim.worlds.spark.plans import DRIVER

KIT = "kit"
READERS = ("hudi", "hudi-rs")
ROWS_MIN, ROWS_MAX = 8, 14
DELETES = 3
_Reading = tuple[tuple[str, ...] | None, str | None]  # Rows, or why they cannot be read.
RECOVERIES_MAX = 3
ASK_S = 90.0
READER_S = 30.0
SLOW_S = 30.0
AUDIT_AFTER = "an audit after a driver was killed"
_READER_DIED = ("did not end within", "ended with -")


class Pace:
    """An estimate of how long steps take on this machine, adapted to each that has run."""

    def __init__(self) -> None:
        self._took_s = defaultdict(lambda: 26.0, write=16.0)

    def estimate_s(self, stage: str) -> float:
        """The estimated seconds for a step of a stage and the recovery after it."""
        return self._took_s[stage] + self._took_s["write"]

    def took(self, stage: str, seconds: float) -> None:
        """Adapt the estimate to a step of a stage that took so many seconds."""
        self._took_s[stage] = 0.5 * self._took_s[stage] + 0.5 * seconds * 1.2


@dataclass(slots=True, kw_only=True)
class Table:
    """A table under test and the driver that writes it.

    begin: starts a driver with a name.
    life: the driver that there is, None for none.
    begun: how many steps of the plan were begun.
    readers: of rows; Hudi itself is the first.
    calls: of the storage, by each write, where the driver tells them.
    met, armed: steps by name. counts: what else happened. refused: why writes were.
    settings: of each write from now on, over those of the table.
    """

    name: str
    plan: Plan
    place: TableStorage
    injector: TableFaultInjector
    begin: Callable[[str], Driver]
    program: Program
    pace: Pace
    life: Driver | None = None
    begun: int = 0
    met: Counter[str] = field(default_factory=Counter)
    armed: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    readers: tuple[str, ...] = READERS
    calls: list[tuple[StorageCall, ...]] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    _ordinal: int = 0
    _lives: int = 0
    _unsupported: bool = False
    _faults: int = 0
    _completed: bool = False
    _last: int = -1
    _failed: list[tuple[str, str, str, int]] = field(default_factory=list)  # The rows of the last write that did.

    @property
    def _directory(self) -> MarkerDirectory:
        return MarkerDirectory(self.name, "")

    def play(self) -> None:
        """Perform the steps that fit into the time, then a recovery; OutOfTime when the time ends within one."""
        self.recover()
        for step in steps_of(self.plan):
            if self.program.left_s() < self.pace.estimate_s(step.stage):
                break
            began = time.monotonic()
            if self.life is None:
                self.recover()
            self.begun += 1
            self.carry_out(step)
            self.pace.took(step.stage, time.monotonic() - began)
        if self.life is None:
            self.recover()

    @property
    def played(self) -> Plan:
        """The plan with only the steps that were begun."""
        return with_steps(self.plan, steps_of(self.plan)[: self.begun])

    def carry_out(self, step: TableStep) -> None:
        """Perform the write of a step; for one of a rollback first a write whose driver dies. No recovery follows."""
        if step.stage == "rollback":
            last = last_data_file(self.plan, third=self._ordinal > 1)
            if not self.write(replace(last, faults=step.before or last.faults)):
                return  # The driver survived, so there is nothing to roll back.
            self._start()
        self.write(step)

    def recover(self, service: str = "") -> None:
        """Write, or serve, without faults until it succeeds, each time in a fresh driver if the last one failed; audit.

        WriteRefused after `RECOVERIES_MAX` tries, when the table has been audited as it is then.
        """
        for _ in range(RECOVERIES_MAX):
            if self.life is None:
                self._start()
            if not self.write(None, service):
                return
        self._start()
        self._audit(self._last)  # A table that cannot be read any more breaks more than one that is not written.
        self.refused.append(f"no {service or 'write'} succeeded any more on table {self.name}")
        raise WriteRefused(self.refused[-1])

    def write(self, step: TableStep | None, service: str = "") -> bool:
        """Whether a write, or a service instead, with the faults of a step or none, failed or its driver is dead; else
        an audit follows.
        """
        assert self.life is not None
        life, rows = self.life, [] if service else self._draw_rows()
        value = service or tuple(sorted(f"{key}={content}" for key, _, content, _ in rows))
        faults = self.injector
        faults.arm(step, self.place)
        recorder, place = self.injector.recorder, self._directory
        asked = recorder.record(life.name, DRIVER, "invoke", "write", *place, value=value)
        message: dict[str, Any] = {"do": "service" if service else "write", "service": service, "rows": rows}
        message |= {"options": {WRITE_KEY: str(self._ordinal)}, "settings": self.settings}
        began = time.monotonic()
        try:
            error = self._outcome(life, message)
        except (OutOfTime, KeyboardInterrupt) as over:
            took_s = time.monotonic() - began
            if isinstance(over, OutOfTime) and step is None and self._faults and took_s > SLOW_S:
                self.refused.append(f"it did not end in the {took_s:.0f} s that the budget had left")
            recorder.fault(life.name, "kill", "end-of-run", act=life.kill_now)
            recorder.record(life.name, DRIVER, "info", "write", *place, error=CallError.RUN_OVER, caused_by=asked)
            raise
        finally:
            faults.end()
            self.calls.append(tuple(faults.calls))
        kind: Kind = "ok" if error is None else "info"
        self._last = recorder.record(life.name, DRIVER, kind, "write", *place, error=error, caused_by=asked)
        self._completed |= error is None
        if step is not None and step.name:
            self.armed[step.name] += 1
            self.met[step.name] += faults.met
            self.armed[AUDIT_AFTER] += faults.deadly
        self._faults += faults.fired
        if faults.deadly or error is not None:
            self._failed = rows or self._failed
            self._bury(error, faults.deadly)
            return True
        self._audit(self._last)
        return False

    def close(self) -> None:
        """Kill the driver, if there is one."""
        if self.life is not None:
            self.life.kill()
            self.life = None

    def _outcome(self, life: Driver, message: dict[str, Any]) -> str | None:
        """The reason why a write is not known to be done: an error, a death or no answer; None when it is done."""
        try:
            answer = life.ask(message, ASK_S)
        except Gone:
            return CallError.DRIVER_DIED
        except Hangs:
            self.counts["write hung"] += 1
            return CallError.DRIVER_SILENT
        return str(answer["error"]) if "error" in answer else None

    def _bury(self, error: str | None, struck: bool) -> None:
        """Kill a driver that failed a write or met a kill; HarnessError if no fault or completed write was before."""
        assert self.life is not None
        life, self.life = self.life, None
        dead = not life.alive
        said = life.last_lines()
        life.kill()
        if struck:
            return
        if not self._faults and not self._completed:
            raise HarnessError(f"{life.name} failed without a fault ({error}): {said}")
        if not self._faults:
            self.counts["write failed without a fault"] += 1
            return  # The table took a write before: whether this one had a reason is judged.
        self.counts["write refused after a fault"] += 1
        self.refused.append(f"{error}; its driver ended by itself: {said}" if dead else str(error))

    def _start(self) -> None:
        if self._lives and shape_of(self.plan).lazy:
            time.sleep(HEARTBEAT_S)  # Hudi goes by the age of the file that the dead driver wrote last.
        self._lives += 1
        name = f"driver-{self._lives}"
        self.life = self.injector.driver = self.begin(name)
        self.life.wait_ready()

    def _draw_rows(self) -> list[tuple[str, str, str, int]]:
        """Rows of the next write: some keys of each partition, each at most once; the partition of a key is fixed. No
        value stands for a deletion.
        """
        self._ordinal += 1
        names, rng = partition_names(self.plan), random.Random(plan_seed(self.plan.seed, self._ordinal))
        keys = [f"k{number:02d}" for number in range(key_count(self.plan))]
        first = {names[index]: rng.choice(keys[index :: len(names)]) for index in range(len(names))}
        chosen = set(first.values()) | set(rng.sample(keys, rng.randint(ROWS_MIN, ROWS_MAX)))
        gone = set[str]()
        if shape_of(self.plan).deletes and self._ordinal > 1:
            gone.update(rng.sample(sorted(chosen - set(first.values())), DELETES))
        rows = [
            (key, names[int(key[1:]) % len(names)], "" if key in gone else f"w{self._ordinal}.{key}", self._ordinal)
            for key in sorted(chosen)
        ]
        shape = shape_of(self.plan)
        written = names[shape.rests and self._ordinal > 2 : len(names) - (shape.grows and self._ordinal == 1)]
        return [row for row in rows if row[1] in written]

    def _audit(self, caused_by: int) -> None:
        recorder, found = self.injector.recorder, {"hudi": self._read_by_hudi()}
        if "hudi-rs" in self.readers and not self._unsupported:
            found["hudi-rs"] = self._read_by_hudi_rs(found["hudi"][0])
        observe_table(recorder, self.name, self.place.files, caused_by)
        for reader, (rows, error) in found.items():
            recorder.record(reader, KIT, "observe", "rows", *self._directory, value=rows, error=error)
            self.counts[f"rows read by {reader}"] += error is None
        recorder.record(KIT, KIT, "observe", "audit", *self._directory, value="end", caused_by=caused_by)
        self.counts["audit"] += 1
        self.met[AUDIT_AFTER] += self._faults > 0

    def _read_by_hudi(self, **how: bool) -> _Reading:
        assert self.life is not None
        try:
            answer = self.life.ask({"do": "read", **how}, ASK_S)
        except (Gone, Hangs) as error:
            raise HarnessError(f"{self.life.name} did not read its table: {self.life.last_lines()}") from error
        if "error" in answer:
            return None, str(answer["error"])
        return tuple(sorted(f"{key}={value}" for key, value in answer["rows"])), None

    def _read_by_hudi_rs(self, expected: tuple[str, ...] | None) -> _Reading:
        """The rows that hudi-rs finds. It is not asked again when it fails, or differs from Hudi, before any fault."""
        rows, error = self._ask_hudi_rs()
        if error is not None and any(words in error for words in _READER_DIED):
            rows, error = self._ask_hudi_rs()
            if error is not None and any(words in error for words in _READER_DIED):
                self.counts["hudi-rs did not answer"] += 1
                return None, f"{UNSUPPORTED} {error}"  # Twice: nobody knows what it would have found.
        if (error or "").startswith(UNSUPPORTED) or (not self._faults and (error is not None or rows != expected)):
            self._unsupported = True
            self.counts["table that hudi-rs cannot read"] += 1
            why = error or "it does not find the rows that Hudi finds"
            return None, why if why.startswith(UNSUPPORTED) else f"{UNSUPPORTED} before any fault: {why}"
        return rows, error

    def _ask_hudi_rs(self) -> _Reading:
        uri, options = self.place.reader
        try:
            return read_rows(uri, options, deadline_s=max(1.0, min(READER_S, self.program.left_s()))), None
        except Unreadable as unreadable:
            if self.program.left_s() <= 0:
                raise OutOfTime from unreadable
            return None, str(unreadable)


class WriteRefused(Exception):
    """Raised when no write succeeds on a table any more."""
