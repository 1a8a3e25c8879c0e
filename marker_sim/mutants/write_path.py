"""Mutants of the write path: attempts, reconcile, commit, rollback, recovery."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

_DELETE = '        persist(self._storage, self._runtime, lambda: self._storage.delete(f"{self._table}/{path}"))\n'
_ROLL_BACK_FILES = "        self._delete_files(instant, {data_path(name) for name in self._markers.stored(self._directory(instant))})\n"
_ROLL_BACK_ENTRIES = "        for state in (State.INFLIGHT, State.REQUESTED):\n            self._records.remove(Entry(instant, action, state))\n"
_ROLL_BACK_DONE = "        self._records.write(Entry(rollback, ROLLBACK, State.COMPLETED), record)\n"
_ROLL_BACK_BEGUN = "        for state in (State.REQUESTED, State.INFLIGHT):\n            self._records.write(Entry(rollback, ROLLBACK, state), record)\n"

WRITE_PATH = (
    Mutant(
        name="no-answer-is-success",
        record="P 19369: an executor took a create that was not answered for success and wrote its file",
        module="writer.attempt",
        before="            if number == TRIES - 1:\n                raise\n",
        after="            return\n",
        kills="G13",
    ),
    Mutant(
        name="file-before-marker",
        record="plausible: the file is written while its marker is still asked for",
        module="writer.attempt",
        before="    make_marker(marker_name(work.partition, name, MarkerType(work.kind)), runtime, create)\n",
        after='    storage.put(f"{work.table}/{work.path}", b"")\n'
        "    make_marker(marker_name(work.partition, name, MarkerType(work.kind)), runtime, create)\n",
        kills="G13",
    ),
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
        name="no-reconcile",
        record="P 651: a stage retry left duplicate data files, nobody reconciled",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n",
        after="",
        kills="G14",
    ),
    Mutant(
        name="reconcile-by-file-group",
        record="plausible, after I 19593: another attempt's file of an accepted file group is kept",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n",
        after="        named = {data_path(name) for name in names}\n"
        '        groups = {path.rpartition("/")[2].partition("_")[0] for path in accepted}\n'
        '        self._delete_files(instant, {p for p in named - accepted if p.rpartition("/")[2].partition("_")[0] not in groups})\n',
        kills="G14",
    ),
    Mutant(
        name="reconcile-without-logs",
        record="HUDI-1517 in finalize: reconcile knew base files only",
        module="writer.client",
        before="        names = self._ask(self._markers.store(self._directory(instant)).list_all)\n",
        after="        names = self._ask(self._markers.store(self._directory(instant)).list_all)\n"
        '        names = [name for name in names if not name.endswith("APPEND")]\n',
        kills="G14",
    ),
    Mutant(
        name="delete-result-ignored",
        record="HUDI-9259, P 13088: the result of a delete was ignored, a duplicate stayed and the commit succeeded",
        module="writer.client",
        before=_DELETE,
        after='        try:\n            self._storage.delete(f"{self._table}/{path}")\n        except SeamError:\n            return\n',
        kills="G14",
    ),
    Mutant(
        name="no-parent-path",
        record="HUDI-1435, P 2301: reconcile failed in a table without partitions, whose files have no parent path",
        module="writer.client",
        before=_DELETE,
        after='        if "/" not in path:\n            raise ValueError("cannot create a path from an empty string")\n'
        + _DELETE,
        kills="G14",
    ),
    Mutant(
        name="waits-for-marked-files",
        record="I 1764: finalize waited for a marked file that never existed, the commit was stuck",
        module="writer.client",
        before=_DELETE,
        after='        while f"{self._table}/{path}" not in self._storage.list(f"{self._table}/{path}"):\n'
        "            self._runtime.sleep(10_000)\n" + _DELETE,
        kills="G14",
    ),
    Mutant(
        name="commit-without-asking",
        record="plausible: reconcile goes on with an empty list when the marker store does not answer",
        module="writer.client",
        before="                self._runtime.sleep(ASK_PAUSE_MS)\n        return listing()\n",
        after="                return ()\n        return listing()\n",
        kills="G14",
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
        name="format-from-configuration",
        record="HUDI-2305, P 3472: rollback read direct markers only, whatever the directory held",
        module="markers.direct",
        before="        return tuple(sorted(read_directory(self._storage, self._runtime, self._directory).names()))\n",
        after="        return tuple(sorted(read_directory(self._storage, self._runtime, self._directory).direct))\n",
        kills="G15",
    ),
    Mutant(
        name="untyped-directory-is-direct",
        record="I 5591, I 6283, P 6266, I 9023: without a right type file a batched directory was taken for direct",
        module="markers.files",
        before="        for batch in self.batches.values():\n",
        after="        for batch in self.batches.values() if self.typed else ():\n",
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
        name="markers-deleted-before-commit",
        record="plausible: finalize deletes the markers, for it has used them",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n",
        after="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n        self._delete_markers(instant)\n",
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
    Mutant(
        name="instant-used-again",
        record="HUDI-7109, P 10119: a completed instant was used again for new data",
        module="timeline",
        before='    return max(_format(_EPOCH + int(now_ms) * _MS), _after(newest) if newest else "")\n',
        after="    return newest or _format(_EPOCH + int(now_ms) * _MS)\n",
        kills="G14",
    ),
    Mutant(
        name="merge-forgets-rows",
        record="plausible: a MERGE writes the new rows only",
        module="writer.attempt",
        before='    if work.kind == "MERGE" and work.slice is not None:\n',
        after='    if work.kind == "MERGE" and work.slice is None:\n',
        kills="G24",
    ),
    Mutant(
        name="half-a-file",
        record="plausible: a file is cut short when its put has to be repeated, and committed",
        module="writer.attempt",
        before="    persist(storage, runtime, lambda: write(path, data))\n",
        after="    try:\n        write(path, data)\n    except SeamError:\n        write(path, data[: len(data) // 2])\n",
        kills="G24",
    ),
    Mutant(
        name="direct-names-decoded",
        record="plausible, after I 3065: one mode decodes what a partition path is made of, the other does not",
        module="markers.direct",
        before='        path = f"{self._directory}/{name}"\n',
        after="        path = f\"{self._directory}/{name.replace('%2F', '/')}\"\n",
        kills="G21",
    ),
)
