"""Mutants of rollback, sweep and the choice of instants to roll back."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from functools import partial

from marker_sim.mutants import Mutant

_DELETE = (
    '        retry_until_decided(self._storage, self._runtime, lambda: self._storage.delete(f"{self._table}/{path}"))\n'
)
_ROLL_BACK_FILES = "        self._delete_files(instant, {data_path(name) for name in self._markers.stored(self._directory(instant))})\n"
_ROLL_BACK_ENTRIES = "        for state in UNDONE:\n            self._records.remove(Entry(instant, action, state))\n"
_ROLL_BACK_UNDO = "        self._undo(instant, action)\n"
_ROLL_BACK_DONE = "        self._records.write(Entry(rollback, ROLLBACK, State.COMPLETED), record)\n"
_ROLL_BACK_BEGUN = "        for state in (State.REQUESTED, State.INFLIGHT):\n            self._records.write(Entry(rollback, ROLLBACK, state), record)\n"
_client = partial(Mutant, module="writer.client")
_files = partial(_client, before=_ROLL_BACK_FILES)
_resumed = partial(_client, before="                rollback = pending\n")

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
    _files(
        name="read-error-is-empty",
        record="P 18887: a read error during rollback was taken for no markers, the rollback deleted nothing",
        after="        try:\n            names = self._markers.stored(self._directory(instant))\n        except SeamError:\n            names = ()\n"
        "        self._delete_files(instant, {data_path(name) for name in names})\n",
        kills="G15",
    ),
    _files(
        name="rollback-without-logs",
        record="HUDI-5862, P 8077, HUDI-8123, P 11830: rollback left log files where they were",
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
    _client(
        name="no-wait-for-the-dead",
        record="plausible: a rollback begins while the completed instant of the dead driver is still under way",
        before="        self._runtime.sleep(capabilities.request_timeout_ms + capabilities.late_effect_ms)\n",
        after="        self._runtime.sleep(capabilities.request_timeout_ms * 0)\n",
        kills="G15",
    ),
    _client(
        name="rolled-back-before-deleting",
        record="plausible: the rollback is completed first and the files deleted then",
        before=_ROLL_BACK_UNDO + _ROLL_BACK_DONE,
        after=_ROLL_BACK_ENTRIES + _ROLL_BACK_DONE + _ROLL_BACK_FILES,
        kills="G15",
    ),
    _client(
        name="missing-file-breaks-rollback",
        record="HUDI-3583, P 4984: a marker without its data file broke the rollback",
        before=_DELETE,
        after='        self._storage.get(f"{self._table}/{path}")\n' + _DELETE,
        kills="G16",
    ),
    _resumed(
        name="rollback-not-retried",
        record="HUDI-8808, P 12568, I 11767: a second rollback of the same instant collided with the first and never ended",
        after='                raise RuntimeError(f"{pending} is already rolling back {instant}")\n',
        kills="G16",
    ),
    _client(
        name="instant-removed-first",
        record="HUDI-6304, P 8849: timeline files were removed in the wrong order, a crash in between lost the rollback",
        before=_ROLL_BACK_BEGUN + _ROLL_BACK_UNDO,
        after=_ROLL_BACK_ENTRIES + _ROLL_BACK_BEGUN + _ROLL_BACK_FILES,
        kills="G16",
    ),
    _files(
        name="markers-deleted-first",
        record="HUDI-839, P 1756: markers were deleted before the rollback that needed them",
        after="        names = self._markers.stored(self._directory(instant))\n        self._delete_markers(instant)\n"
        "        self._delete_files(instant, {data_path(name) for name in names})\n",
        kills="G17",
    ),
    _client(
        name="nothing-swept",
        record="HUDI-2383, HUDI-4110, HUDI-4817, HUDI-3441: some actions never deleted their marker directory",
        before="        if not directories:\n            return\n",
        after="        if directories:\n            return\n",
        kills="G18",
    ),
    _client(
        name="rollback-later",
        record="plausible: a write begins although an instant of a dead driver is still pending",
        before="        if timeline.pending() or timeline.rollbacks(completed=False):\n",
        after="        if timeline.rollbacks(completed=False):\n",
        kills="G19",
    ),
    _client(
        name="command-block-appended",
        record="HUDI-5862, P 8077: the rollback of a log file appended a command block where the file should be deleted",
        before=_DELETE,
        after='        if ".log." in path:\n            self._storage.put(f"{self._table}/{path}", b"#rollback\\n")\n            return\n'
        + _DELETE,
        kills="G15",
    ),
    _resumed(
        name="retry-uses-other-file-system",
        record="P 19735: a retried rollback used the default file system, where it found nothing to delete",
        after="                rollback, self._retried = pending, True\n",
        kills="G16",
        also=(
            (
                "writer.client",
                '        record, rollback = encode_rollback(instant, action), ""\n',
                '        record, rollback, self._retried = encode_rollback(instant, action), "", False\n',
            ),
            (
                "writer.client",
                _ROLL_BACK_FILES,
                "        names = self._markers.stored(self._directory(instant))\n"
                "        self._delete_files(instant, set() if self._retried else {data_path(name) for name in names})\n",
            ),
        ),
    ),
    _client(
        name="timeline-from-before-the-wait",
        record="plausible: what must be rolled back is decided before the wait, and a commit lands meanwhile",
        before="            self._wait_for_the_dead()\n            timeline = self._records.read()\n",
        after="            self._wait_for_the_dead()\n",
        kills="G15",
    ),
    _client(
        name="half-rolled-back-forgotten",
        record="HUDI-6304: a rollback whose instant is off the timeline already is not resumed",
        before="            if target is not None:\n                failed[target[0]] = target[1]\n",
        after="            if target is not None and target[0] in failed:\n                failed[target[0]] = target[1]\n",
        kills="G18",
    ),
    _client(
        name="record-of-rollback-last",
        record="plausible: the rollback is put on record when it has taken the instant off the timeline",
        before=_ROLL_BACK_BEGUN,
        after="",
        kills="G18",
    ),
    _client(
        name="instant-stays-on-timeline",
        record="plausible: the rolled back instant stays on the timeline, and the next writer meets it again",
        before=_ROLL_BACK_ENTRIES,
        after="",
        kills="G16",
    ),
    _client(
        name="rolled-back-not-swept",
        record="HUDI-2383: only completed instants had their left markers swept",
        before="            if instant in commits or instant in over:\n",
        after="            if instant in commits:\n",
        kills="G18",
    ),
    _client(
        name="sweep-knows-no-commits",
        record="I 6224, I 4439 in the sweep: what a completed instant's markers name is deleted",
        before="                keep = frozenset(stat.path for stat in commits.get(instant, ()))\n",
        after="                keep = frozenset[str]()\n",
        kills="G15",
    ),
    _client(
        name="sweep-leaves-files",
        record="plausible: a sweep deletes the markers and leaves the files they name",
        before="        self._delete_files(instant, {data_path(name) for name in names} - keep)\n",
        after="",
        kills="G17",
    ),
    _files(
        name="rollback-trusts-attempts",
        record="plausible: rollback takes the last attempt of each task for the only one that left a file",
        after="        names = sorted(data_path(name) for name in self._markers.stored(self._directory(instant)))\n"
        '        last = {name.rpartition("/")[2].partition("_")[0]: name for name in names}\n'
        "        self._delete_files(instant, set(last.values()))\n",
        kills="G15",
    ),
    _client(
        name="writes-on-after-failed-rollback",
        record="plausible: a rollback that failed is left to the next write, and this one begins",
        before='                self._journal("rollback", instant, None, lambda i=instant, a=action: self._roll_back(i, a))  # type: ignore[misc]\n',
        after="                try:\n"
        '                    self._journal("rollback", instant, None, lambda i=instant, a=action: self._roll_back(i, a))  # type: ignore[misc]\n'
        "                except SeamError:\n                    continue\n",
        kills="G19",
    ),
    Mutant(
        name="requested-is-not-begun",
        record="plausible: an instant that was requested and never inflight is not pending",
        module="writer.records",
        before="        return {e.instant: e.action for e in self.entries if e.action != ROLLBACK and e.instant not in over}\n",
        after="        begun = {e.instant for e in self.entries if e.state is State.INFLIGHT}\n"
        "        return {e.instant: e.action for e in self.entries if e.action != ROLLBACK and e.instant not in over and e.instant in begun}\n",
        kills="G19",
    ),
    _files(
        name="failed-delete-ends-rollback-well",
        record="HUDI-9259 in rollback: a data file that could not be deleted does not fail the rollback",
        after="        names = self._markers.stored(self._directory(instant))\n        try:\n"
        "            self._delete_files(instant, {data_path(name) for name in names})\n        except SeamError:\n            pass\n",
        kills="G15",
    ),
    _client(
        name="committed-log-deleted",
        record="the reference's own mistake: whose a log file is was not asked before it was deleted",
        before="            own -= self._of_others(instant, logs)\n",
        after="            pass\n",
        kills="G15",
    ),
    _client(
        name="deleted-whosever-it-is",
        record="plausible: every file is deleted that a marker of the instant names",
        before="        own = {path for path in paths if _may_be_of(instant, path)}\n",
        after="        own = set(paths)\n",
        kills="G15",
    ),
    _client(
        name="archived-log-deleted",
        record="the reference's own mistake: a log file of a commit that was archived was deleted when a marker named it",
        before="{path for path, base in logs.items() if path in named or base not in (instant, *self._commits)}\n",
        after="named\n",
        kills="G15",
    ),
)
