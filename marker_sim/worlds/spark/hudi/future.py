"""What becomes of a table after the writes of a run: more commits, services, and a reading after each of these steps.

    the last audit ─► reading ─► [ a step ─► reading ]* ─► History

    commit      new rows in a partition of their own, so that no file group of before is written
    default     the same with Hudi's own settings of cleaning and archiving: beyond some 30 commits, by itself
    retry       the rows of the last write that failed, once more
    clean       with one commit retained; archive: down to two
    compact     planned and done at once, as is cluster; what is pending of them is done first
    upgrade     a commit that makes the table one of the newest version
    savepoint   of the last commit; restore: to the last savepoint; drop-savepoint: the last one is deleted
    rebuild     the metadata table is deleted, if there is one, and a commit builds one

A reading is an audit, the rows as Hudi finds them by listing storage and, where there is a metadata table, by that one,
the files that it lists, and what hudi-rs finds. A step that fails is recorded, and the next one follows. Archiving so
early stands for what default settings do after some 30 commits. Several writers of one table have a future as well,
after their race.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import Kind
from marker_sim.plan import FutureStep, Plan, Service
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.worlds.recorder import observe_table
from marker_sim.worlds.spark.application import Gone, Hangs
from marker_sim.worlds.spark.hudi.java_driver import JavaDriver
from marker_sim.worlds.spark.hudi.settings import shape_of
from marker_sim.worlds.spark.hudi.steps import TableStep, preparation, service_of, steps_of
from marker_sim.worlds.spark.hudi.table import ASK_S, KIT, Table
from marker_sim.worlds.spark.hudi.writers import TableOfWriters
from marker_sim.worlds.spark.plans import DRIVER

BY_METADATA = "hudi-metadata"  # Hudi as a reader that lists files by the metadata table.
_ARCHIVED: tuple[FutureStep, ...] = ("commit", "clean", "archive")
FUTURES: dict[str, tuple[FutureStep, ...]] = {
    "archived": _ARCHIVED * 3,
    "written again": ("retry", *_ARCHIVED * 3),
    "clustered": ("cluster", *_ARCHIVED * 3),
    "built anew": (*_ARCHIVED * 3, "rebuild", "compact"),
    # A savepoint keeps what is newer from being archived.
    "restored": (
        *(*_ARCHIVED * 3, "savepoint", "commit", "commit", "clean", "restore"),
        *("commit", "drop-savepoint", *_ARCHIVED * 2),
    ),
    "archived before it is cleaned": ("cluster", *("commit", "archive") * 3),
}
SETTINGS = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    # Neither are archived beyond the last compaction, of the metadata table or of one that is merged on read.
    "hoodie.metadata.compact.max.delta.commits": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
# Services that have nothing to do with default settings. With these a restore to before the first compaction of a
# metadata table fails without a fault: Hudi makes that table anew, compacts it at once, and takes it for an old one
# (RestorePlanActionExecutor of 1.2.0 looks at its last instant).
_WITH_SETTINGS = "compact", "clean", "archive"
# Of the writes after a service that may not have ended: the next one makes it as well, as writes do by default.
_BY_WRITES: dict[Service, dict[str, str]] = {
    "clean": {"hoodie.clean.automatic": "true"},
    "archive": {"hoodie.archive.automatic": "true"},
    "upgrade": {"hoodie.write.auto.upgrade": "true"},
}
_DEFAULTS = _BY_WRITES["clean"] | _BY_WRITES["archive"]


class TableWithFuture(Table):
    """A table under test, and what becomes of it."""

    _metadata = False
    # Whether writes leave alone the file groups of before: the Java client loses updates of groups whose clustering is
    # planned, without a fault.
    _quiet = False

    def carry_out(self, step: TableStep) -> None:
        """Perform a step. After that of a service a write follows, and the service until it is done; a restore comes
        first, which Hudi asks for before anything is written. WriteRefused as of `recover`.
        """
        service = service_of(step.stage)
        if not service:
            super().carry_out(step)
            return
        self._check()
        self._set(SETTINGS if service in _WITH_SETTINGS else {})
        for each in preparation(step.stage, self.plan.merge_on_read):
            if self.write(None, service_of(each)):
                return
        self.settings |= _BY_WRITES.get(service, {})
        self._quiet = service == "cluster"
        again = "" if service == "upgrade" else service
        self.write(step, again)
        for act in ("restore", "") if service == "restore" else ("", again):
            self.recover(act)
        self._quiet = False

    def _set(self, settings: dict[str, str]) -> None:
        """Set what writes are told from now on; an upgraded table stays so."""
        self.settings = settings | {name: value for name, value in self.settings.items() if name.endswith("upgrade")}

    def _check(self) -> None:
        if not isinstance(self.life, JavaDriver):
            raise UsageError("the plan has a service or a future of Hudi's Java client; give --sut hudi-java:VERSION")

    def _draw_rows(self) -> list[tuple[str, str, str, int]]:
        if not self._quiet:
            return super()._draw_rows()
        self._ordinal += 1
        return [self._quiet_row()]

    def _quiet_row(self) -> tuple[str, str, str, int]:
        number = self._ordinal
        return f"q{number}", "quiet", f"w{number}.q{number}", number

    def play(self) -> None:
        """The writes, and the steps of the future when all of them were begun."""
        super().play()
        shape = shape_of(self.plan)
        if not shape.future or self.begun < len(steps_of(self.plan)):
            return
        self._check()
        assert self.life is not None
        self._metadata = shape.metadata
        self._set(SETTINGS)  # Cleaning and archiving are steps of their own again.
        self._look("", None)
        for step in shape.future:
            self._look(step, self._taken(step))
            if not self.life.alive:
                break

    def _taken(self, step: FutureStep) -> str | None:
        """The error of a step, None for none."""
        if step in ("commit", "retry", "default", "upgrade"):
            self.settings |= _BY_WRITES["upgrade"] if step == "upgrade" else {}
            return self._commit(self._failed if step == "retry" else [], _DEFAULTS if step == "default" else None)
        if step != "rebuild":
            return self._ask({"do": "service", "service": step})
        self._metadata = True
        return self._ask({"do": "service", "service": "drop-metadata"}) or self._commit([])

    def _commit(self, again: list[tuple[str, str, str, int]], settings: dict[str, str] | None = None) -> str | None:
        self._ordinal += 1
        number = self._ordinal
        rows = [(key, part, content and f"w{number}.{key}", number) for key, part, content, _ in again]
        rows = rows or [self._quiet_row()]
        assert self.life is not None
        recorder, by = self.injector.recorder, (self.life.name, DRIVER)
        value = tuple(sorted(f"{key}={content}" for key, _, content, _ in rows))
        asked = recorder.record(*by, "invoke", "write", *self._directory, value=value)
        error = self._ask({"do": "write", "rows": rows, "options": {WRITE_KEY: str(number)}}, settings)
        kind: Kind = "ok" if error is None else "info"
        recorder.record(*by, kind, "write", *self._directory, error=error, caused_by=asked)
        return error

    def _ask(self, message: dict[str, Any], settings: dict[str, str] | None = None) -> str | None:
        assert self.life is not None
        settings = self.settings if settings is None else settings
        listed = {"hoodie.metadata.enable": str(self._metadata).lower()}
        self.injector.arm(None, self.place)
        try:
            return self._outcome(self.life, {"options": {}, **message, "settings": settings | listed})
        finally:
            self.injector.end()

    def _look(self, step: str, error: str | None) -> None:
        """Record a step that was taken, "" for none, and what the table is then."""
        assert self.life is not None
        recorder, place = self.injector.recorder, self._directory
        at = recorder.record(KIT, KIT, "observe", "future", *place, value=step, error=error)
        if not self.life.alive:
            return
        found = {"hudi": self._read_by_hudi(metadata=False)}
        if self._metadata:
            found[BY_METADATA] = self._read_by_hudi(metadata=True)
        if "hudi-rs" in self.readers and not self._unsupported:
            found["hudi-rs"] = self._ask_hudi_rs()
        observe_table(recorder, self.name, self.place.files, at)
        for reader, (rows, why) in found.items():
            recorder.record(reader, KIT, "observe", "rows", *place, value=rows, error=why)
        if self._metadata:
            try:
                answer = self.life.ask({"do": "files"}, ASK_S)
            except (Gone, Hangs) as gone:
                raise HarnessError(f"{self.life.name} did not list its table: {self.life.last_lines()}") from gone
            listed = tuple(sorted(answer.get("files", ())))
            recorder.record(BY_METADATA, KIT, "observe", "listing", *place, value=listed, error=answer.get("error"))
        recorder.record(KIT, KIT, "observe", "audit", *place, value="end", caused_by=at)
        self.counts["steps of futures"] += bool(step)


class WritersWithFuture(TableWithFuture, TableOfWriters):
    """A table under test that several writers write at once, and what becomes of it."""


def with_future(plan: Plan, steps: tuple[FutureStep, ...], harmless: int = 0) -> Plan:
    """The plan with another future. harmless: how many others were played before."""
    return replace(plan, shape=replace(shape_of(plan), future=steps, harmless=harmless))
