"""Mutants of rollback, sweep and whatever decides what must be rolled back."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

_DELETE = '        persist(self._storage, self._runtime, lambda: self._storage.delete(f"{self._table}/{path}"))\n'
_ROLL_BACK_FILES = "        self._delete_files(instant, {data_path(name) for name in self._markers.stored(self._directory(instant))})\n"
_ROLL_BACK_ENTRIES = "        for state in (State.INFLIGHT, State.REQUESTED):\n            self._records.remove(Entry(instant, action, state))\n"
_ROLL_BACK_DONE = "        self._records.write(Entry(rollback, ROLLBACK, State.COMPLETED), record)\n"
_ROLL_BACK_BEGUN = "        for state in (State.REQUESTED, State.INFLIGHT):\n            self._records.write(Entry(rollback, ROLLBACK, state), record)\n"

ROLLING_BACK = (
    Mutant(
        name="append-marker-without-token",
        record="HUDI-1517, P 4913, P 9251, P 11187: the APPEND marker did not name the log file",
        module="writer.attempt",
        before='    name = work.path.rpartition("/")[2]\n',
        after='    name = work.path.rpartition("/")[2]\n'
        '    name = name.rpartition("_")[0] if work.kind == "APPEND" else name\n',
        kills="G15",
    ),
    Mutant(
        name="read-error-is-empty",
        record="P 18887: a read error during rollback was taken for no markers, the rollback deleted nothing",
        module="writer.client",
        before=_ROLL_BACK_FILES,
        after="        try:\n            names = self._markers.stored(self._directory(instant))\n        except SeamError:\n            names = ()\n"
        "        self._delete_files(instant, {data_path(name) for name in names})\n",
        kills="G15",
    ),
    Mutant(
        name="rollback-without-logs",
        record="HUDI-5862, P 8077, HUDI-8123, P 11830: rollback left log files where they were",
        module="writer.client",
        before=_ROLL_BACK_FILES,
        after="        names = self._markers.stored(self._directory(instant))\n"
        '        self._delete_files(instant, {data_path(name) for name in names if not name.endswith("APPEND")})\n',
        kills="G15",
    ),
    Mutant(
        name="completed-instant-rolled-back",
        record="I 6224, I 4439: a rollback was chosen for a completed instant",
        module="writer.records",
        before="        over = {entry.instant for entry in self.completed()}\n",
        after="        over = {e.instant for e in self.completed() if not any(\n"
        "            f.instant == e.instant and f.state is State.INFLIGHT for f in self.entries)}\n",
        kills="G15",
    ),
    Mutant(
        name="no-wait-for-the-dead",
        record="plausible: a rollback begins while the completed instant of the dead driver is still under way",
        module="writer.client",
        before="        self._runtime.sleep(capabilities.request_timeout_ms + capabilities.late_effect_ms)\n",
        after="        self._runtime.sleep(capabilities.request_timeout_ms * 0)\n",
        kills="G15",
    ),
    Mutant(
        name="rolled-back-before-deleting",
        record="plausible: the rollback is completed first and the files deleted then",
        module="writer.client",
        before=_ROLL_BACK_FILES + _ROLL_BACK_ENTRIES + _ROLL_BACK_DONE,
        after=_ROLL_BACK_ENTRIES + _ROLL_BACK_DONE + _ROLL_BACK_FILES,
        kills="G15",
    ),
    Mutant(
        name="missing-file-breaks-rollback",
        record="HUDI-3583, P 4984: a marker without its data file broke the rollback",
        module="writer.client",
        before=_DELETE,
        after='        self._storage.get(f"{self._table}/{path}")\n' + _DELETE,
        kills="G16",
    ),
    Mutant(
        name="rollback-not-retried",
        record="HUDI-8808, P 12568, I 11767: a second rollback of the same instant collided with the first and never ended",
        module="writer.client",
        before="                rollback = pending\n",
        after='                raise RuntimeError(f"{pending} is already rolling back {instant}")\n',
        kills="G16",
    ),
    Mutant(
        name="instant-removed-first",
        record="HUDI-6304, P 8849: timeline files were removed in the wrong order, a crash in between lost the rollback",
        module="writer.client",
        before=_ROLL_BACK_BEGUN + _ROLL_BACK_FILES + _ROLL_BACK_ENTRIES,
        after=_ROLL_BACK_ENTRIES + _ROLL_BACK_BEGUN + _ROLL_BACK_FILES,
        kills="G16",
    ),
    Mutant(
        name="markers-deleted-first",
        record="HUDI-839, P 1756: markers were deleted before the rollback that needed them",
        module="writer.client",
        before=_ROLL_BACK_FILES,
        after="        names = self._markers.stored(self._directory(instant))\n        self._delete_markers(instant)\n"
        "        self._delete_files(instant, {data_path(name) for name in names})\n",
        kills="G17",
    ),
    Mutant(
        name="nothing-swept",
        record="HUDI-2383, HUDI-4110, HUDI-4817, HUDI-3441: some actions never deleted their marker directory",
        module="writer.client",
        before="        if not directories:\n            return\n",
        after="        if directories:\n            return\n",
        kills="G18",
    ),
    Mutant(
        name="rollback-later",
        record="plausible: a write begins although an instant of a dead driver is still pending",
        module="writer.client",
        before="        if timeline.pending() or timeline.rollbacks(completed=False):\n",
        after="        if timeline.rollbacks(completed=False):\n",
        kills="G19",
    ),
)
