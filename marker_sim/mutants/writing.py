"""Mutants of attempts, stages, reconcile and commit."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

_DELETE = (
    '        retry_until_decided(self._storage, self._runtime, lambda: self._storage.delete(f"{self._table}/{path}"))\n'
)

WRITING = (
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
        before="    make_marker(marker_of(work), runtime, create)\n",
        after='    storage.put(f"{work.table}/{work.path}", b"")\n    make_marker(marker_of(work), runtime, create)\n',
        kills="G13",
    ),
    Mutant(
        name="no-reconcile",
        record="P 651: a stage retry left duplicate data files that were not reconciled",
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
        name="markers-deleted-before-commit",
        record="plausible: finalize deletes the markers, for it has used them",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n",
        after="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n        self._delete_markers(instant)\n",
        kills="G17",
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
        before="    retry_until_decided(storage, runtime, lambda: write(path, data))\n",
        after="    try:\n        write(path, data)\n    except SeamError:\n        write(path, data[: len(data) // 2])\n",
        kills="G24",
    ),
    Mutant(
        name="marker-of-the-first-attempt",
        record="plausible: the marker names the file of the task's first attempt, whichever it is",
        module="writer.attempt",
        before='    name = work.path.rpartition("/")[2]\n',
        after='    name = work.path.rpartition("/")[2].replace(str(work.token), str(work.token._replace(attempt=0)))\n',
        kills="G13",
    ),
    Mutant(
        name="cleared-by-second-stage",
        record="HUDI-4880, P 6733: markers were deleted at the start of a second attempt while the first still wrote",
        module="writer.attempt",
        before="    make_marker(marker_of(work), runtime, create)\n",
        after='    for path in storage.list(f"{work.table}/.hoodie/.temp/{work.instant}/") if work.token.stage % 100 else ():\n'
        "        storage.delete(path)\n    make_marker(marker_of(work), runtime, create)\n",
        kills="G17",
    ),
    Mutant(
        name="older-rows-win",
        record="plausible: a MERGE lays the old rows over the new ones",
        module="writer.attempt",
        before="        rows = read_slice(work.table, work.slice, storage, runtime, rows_as) | rows\n",
        after="        rows = rows | read_slice(work.table, work.slice, storage, runtime, rows_as)\n",
        kills="G24",
    ),
    Mutant(
        name="logs-not-merged",
        record="plausible: a MERGE reads the base file and forgets the log files on it",
        module="writer.attempt",
        before="    for path in (*((slice_.base,) if slice_.base else ()), *slice_.logs):\n",
        after="    for path in (slice_.base,):\n",
        kills="G24",
    ),
    Mutant(
        name="one-stat-a-partition",
        record="plausible: the commit keeps one write stat for each partition",
        module="timeline",
        before="        by_partition.setdefault(stat.partition, []).append(row)\n",
        after="        by_partition[stat.partition] = [row]\n",
        kills="G24",
    ),
    Mutant(
        name="both-attempts-committed",
        record="I 19593: a stage was computed again and the stats of both attempts were committed",
        module="writer.stage",
        before="                for running in self._running:\n                    running.counted = False\n                self._done.clear()\n",
        after='                self._kept = getattr(self, "_kept", ()) + tuple(self._done.values())\n'
        "                for running in self._running:\n                    running.counted = False\n                self._done.clear()\n",
        kills="G14",
        also=(
            (
                "writer.stage",
                "        return tuple(self._done[task] for task in sorted(self._done))\n",
                '        return tuple(self._done[task] for task in sorted(self._done)) + getattr(self, "_kept", ())\n',
            ),
        ),
    ),
    Mutant(
        name="old-logs-kept",
        record="plausible: a new base file does not end the log files of the slice before it",
        module="writer.slices",
        before="        slices[group] = Slice(instant, stat.path, ())\n",
        after="        known = slices.get(group)\n        slices[group] = Slice(instant, stat.path, known.logs if known else ())\n",
        kills="G24",
    ),
    Mutant(
        name="whole-file-group-deleted",
        record="plausible: reconcile deletes by file id and not by write token",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n",
        after="        named = {data_path(name) for name in names}\n"
        '        lost = {path.rpartition("/")[2].partition("_")[0] for path in named - accepted}\n'
        '        self._delete_files(instant, {p for p in named if p.rpartition("/")[2].partition("_")[0] in lost})\n',
        kills="G14",
    ),
    Mutant(
        name="reconcile-creates-only",
        record="plausible: reconcile takes rewritten base files for accepted ones",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n",
        after='        self._delete_files(instant, {data_path(name) for name in names if not name.endswith("MERGE")} - accepted)\n',
        kills="G14",
    ),
    Mutant(
        name="reconcile-one-copy",
        record="plausible: reconcile expects one duplicate for a file group and deletes the first it finds",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n",
        after='        lost = {p.rpartition("/")[2].partition("_")[0]: p for p in sorted({data_path(name) for name in names} - accepted)}\n'
        "        self._delete_files(instant, set(lost.values()))\n",
        kills="G14",
    ),
    Mutant(
        name="reconciled-after-commit",
        record="plausible: the instant is completed first and reconciled then",
        module="writer.client",
        before='        self._journal("commit", instant, paths, lambda: self._complete(entry, data))\n',
        after='        self._journal("commit", instant, paths, lambda: self._complete(entry, data))\n'
        "        self._reconcile(instant, frozenset(paths))\n",
        kills="G14",
        also=(
            (
                "writer.client",
                "lambda: self._reconcile(instant, frozenset(accepted)))\n",
                "lambda: self._ask(self._markers.store(self._directory(instant)).list_all) and None)\n",
            ),
        ),
    ),
    Mutant(
        name="last-item-left",
        record="plausible: a worker that finds the queue short leaves the last item to the others",
        module="markers.several",
        before="        while left:\n",
        after="        while len(left) > (workers > 2):\n",
        kills="G14",
    ),
    Mutant(
        name="live-writer-rolled-back",
        record="HUDI-2641, P 3956, HUDI-7361, P 10593: a writer that was alive was rolled back, here by itself",
        module="writer.client",
        before="        accepted = tuple(sorted(stat.path for stat in stats))\n",
        after="        accepted = tuple(sorted(stat.path for stat in stats))\n"
        "        for left, action in self._records.read().pending().items() if len(stats) > 2 else ():\n            self._roll_back(left, action)\n",
        kills="G14",
    ),
    Mutant(
        name="commit-fails-with-its-markers",
        record="I 4635: a failing marker deletion failed a commit that had completed, and what had failed was taken back",
        module="writer.client",
        before="        except (SeamError, Rejected):\n            return\n",
        after="        except (SeamError, Rejected):\n            for entry in self._records.read().entries:\n"
        "                if entry.instant == instant and entry.state is State.COMPLETED:\n                    self._records.remove(entry)\n            raise\n",
        kills="G24",
    ),
    Mutant(
        name="stage-numbers-from-zero",
        record="plausible: stages are numbered from 0 in every application, and log files of two writes have one name",
        module="writer.stage",
        before="int(self._instant[8:]) * 100 + self._stage",
        after="self._stage",
        kills="G24",
    ),
    Mutant(
        name="errors-of-workers-lost",
        record="HUDI-9259 in parallel: an error of one of the parallel deletions is dropped",
        module="markers.several",
        before="                error = error or failed\n",
        after="                continue\n",
        kills="G14",
    ),
    Mutant(
        name="instant-of-the-clock",
        record="plausible: an instant is the time, whatever the timeline holds",
        module="timeline",
        before='    return max(_format(_EPOCH + int(now_ms) * _MS), _after(newest) if newest else "")\n',
        after="    return _format(_EPOCH + int(now_ms) * _MS)\n",
        kills="G24",
    ),
    Mutant(
        name="every-second-write-dies",
        record="plausible: what a driver remembers of its last write makes the next one fail with an error of its own",
        module="writer.stage",
        before="        received = received_before = 0\n",
        after="        if not self._ordinal % 2:\n"
        '            raise RuntimeError("a stage is under way already")\n'
        "        received = received_before = 0\n",
        kills="G25",
    ),
    Mutant(
        name="every-second-write-hangs",
        record="plausible: the ends of attempts are taken for those of the write before, and waited for without end",
        module="writer.stage",
        before="            message = backend.receive()\n",
        after="            message = backend.receive()\n            if not self._ordinal % 2:\n                continue\n",
        kills="G25",
    ),
    Mutant(
        name="lost-attempts-forgotten",
        record="plausible: the task of an executor that died is not run again, and its write is given up",
        module="writer.stage",
        before='            case "lost":\n                self._again(attempt.task)\n',
        after='            case "lost":\n                pass\n',
        kills="G25",
    ),
    Mutant(
        name="logs-in-any-table",
        record="plausible: updates go into log files, whatever the table is",
        module="writer.attempt",
        before='"APPEND" if task.kind == "APPEND" and merge_on_read else',
        after='"APPEND" if task.kind == "APPEND" else',
        kills="G24",
    ),
)
