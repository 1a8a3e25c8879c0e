"""Mutants of attempts, stages, reconcile and commit."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from functools import partial

from marker_sim.mutants import Mutant

_DELETE = (
    '        retry_until_decided(self._storage, self._runtime, lambda: self._storage.delete(f"{self._table}/{path}"))\n'
)
_attempt = partial(Mutant, module="writer.attempt")
_client = partial(Mutant, module="writer.client")
_timeline = partial(Mutant, module="timeline")
_stage = partial(Mutant, module="writer.stage")
_marker_first = partial(_attempt, before="    make_marker(marker_of(work), runtime, create)\n")
_reconcile = partial(
    _client, before="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n"
)
_deleting = partial(_client, before=_DELETE)
_instant = partial(
    _timeline, before='    return max(_format(_EPOCH + int(now_ms) * _MS), _after(newest) if newest else "")\n'
)

WRITING = (
    Mutant(
        name="entry-written-in-place",
        record="our finding: a completed commit is created and then written, and a torn one fails every later write",
        module="writer.records",
        before="        if not create_if_absent(self._storage, self._runtime, path, data):\n",
        after="        if self._storage.capabilities.host_lock and is_stored(self._storage, self._runtime, path) is None:\n"
        "            self._storage.overwrite(path, data)\n"
        "        elif not create_if_absent(self._storage, self._runtime, path, data):\n",
        kills="G14",
    ),
    _attempt(
        name="no-answer-is-success",
        record="P 19369: an executor took a create that was not answered for success and wrote its file",
        before="            if number == TRIES - 1:\n                raise\n",
        after="            return\n",
        kills="G13",
    ),
    _marker_first(
        name="file-before-marker",
        record="plausible: the file is written while its marker is still asked for",
        after='    storage.put(f"{work.table}/{work.path}", b"")\n    make_marker(marker_of(work), runtime, create)\n',
        kills="G13",
    ),
    _reconcile(
        name="no-reconcile",
        record="P 651: a stage retry left duplicate data files that were not reconciled",
        after="",
        kills="G14",
    ),
    _reconcile(
        name="reconcile-by-file-group",
        record="plausible, after I 19593: another attempt's file of an accepted file group is kept",
        after="        named = {data_path(name) for name in names}\n"
        '        groups = {path.rpartition("/")[2].partition("_")[0] for path in accepted}\n'
        '        self._delete_files(instant, {p for p in named - accepted if p.rpartition("/")[2].partition("_")[0] not in groups})\n',
        kills="G14",
    ),
    _client(
        name="reconcile-without-logs",
        record="HUDI-1517 in finalize: reconcile knew base files only",
        before="        names = self._ask(self._markers.store(self._directory(instant)).list_all)\n",
        after="        names = self._ask(self._markers.store(self._directory(instant)).list_all)\n"
        '        names = [name for name in names if not name.endswith("APPEND")]\n',
        kills="G14",
    ),
    _deleting(
        name="delete-result-ignored",
        record="HUDI-9259, P 13088: the result of a delete was ignored, a duplicate stayed and the commit succeeded",
        after='        try:\n            self._storage.delete(f"{self._table}/{path}")\n        except SeamError:\n            return\n',
        kills="G14",
    ),
    _deleting(
        name="no-parent-path",
        record="HUDI-1435, P 2301: reconcile failed in a table without partitions, whose files have no parent path",
        after='        if "/" not in path:\n            raise ValueError("cannot create a path from an empty string")\n'
        + _DELETE,
        kills="G14",
    ),
    _deleting(
        name="waits-for-marked-files",
        record="I 1764: finalize waited for a marked file that never existed, the commit was stuck",
        after='        while f"{self._table}/{path}" not in self._storage.list(f"{self._table}/{path}"):\n'
        "            self._runtime.sleep(10_000)\n" + _DELETE,
        kills="G14",
    ),
    _client(
        name="commit-without-asking",
        record="plausible: reconcile goes on with an empty list when the marker store does not answer",
        before="                self._runtime.sleep(ASK_PAUSE_MS)\n        return listing()\n",
        after="                return ()\n        return listing()\n",
        kills="G14",
    ),
    _client(
        name="last-listing-unasked",
        record="plausible: reconcile gives up one try early, and goes on with an empty list",
        before="                self._runtime.sleep(ASK_PAUSE_MS)\n        return listing()\n",
        after="                self._runtime.sleep(ASK_PAUSE_MS)\n        return ()\n",
        kills="G14",
    ),
    _reconcile(
        name="markers-deleted-before-commit",
        record="plausible: finalize deletes the markers, for it has used them",
        after="        self._delete_files(instant, {data_path(name) for name in names} - accepted)\n        self._delete_markers(instant)\n",
        kills="G17",
    ),
    _instant(
        name="instant-used-again",
        record="HUDI-7109, P 10119: a completed instant was used again for new data",
        after="    return newest or _format(_EPOCH + int(now_ms) * _MS)\n",
        kills="G14",
    ),
    _attempt(
        name="merge-forgets-rows",
        record="plausible: a MERGE writes the new rows only",
        before='    if work.kind == "MERGE" and work.slice is not None:\n',
        after='    if work.kind == "MERGE" and work.slice is None:\n',
        kills="G24",
    ),
    _attempt(
        name="half-a-file",
        record="plausible: a file is cut short when its put has to be repeated, and committed",
        before="    retry_until_decided(storage, runtime, lambda: write(path, data))\n",
        after="    try:\n        write(path, data)\n    except SeamError:\n        write(path, data[: len(data) // 2])\n",
        kills="G24",
    ),
    _attempt(
        name="marker-of-the-first-attempt",
        record="plausible: the marker names the file of the task's first attempt, whichever it is",
        before='    name = work.path.rpartition("/")[2]\n',
        after='    name = work.path.rpartition("/")[2].replace(str(work.token), str(work.token._replace(attempt=0)))\n',
        kills="G13",
    ),
    _marker_first(
        name="cleared-by-second-stage",
        record="HUDI-4880, P 6733: markers were deleted at the start of a second attempt while the first still wrote",
        after='    for path in storage.list(f"{work.table}/.hoodie/.temp/{work.instant}/") if work.token.stage % 100 else ():\n'
        "        storage.delete(path)\n    make_marker(marker_of(work), runtime, create)\n",
        kills="G17",
    ),
    _attempt(
        name="older-rows-win",
        record="plausible: a MERGE lays the old rows over the new ones",
        before="        rows = read_slice(work.table, work.slice, storage, runtime, rows_as) | rows\n",
        after="        rows = rows | read_slice(work.table, work.slice, storage, runtime, rows_as)\n",
        kills="G24",
    ),
    _attempt(
        name="logs-not-merged",
        record="plausible: a MERGE reads the base file and forgets the log files on it",
        before="    for path in (*((slice_.base,) if slice_.base else ()), *slice_.logs):\n",
        after="    for path in (slice_.base,):\n",
        kills="G24",
    ),
    _timeline(
        name="one-stat-a-partition",
        record="plausible: the commit keeps one write stat for each partition",
        before="        by_partition.setdefault(stat.partition, []).append(row)\n",
        after="        by_partition[stat.partition] = [row]\n",
        kills="G24",
    ),
    _stage(
        name="both-attempts-committed",
        record="I 19593: a stage was computed again and the stats of both attempts were committed",
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
    _reconcile(
        name="whole-file-group-deleted",
        record="plausible: reconcile deletes by file id and not by write token",
        after="        named = {data_path(name) for name in names}\n"
        '        lost = {path.rpartition("/")[2].partition("_")[0] for path in named - accepted}\n'
        '        self._delete_files(instant, {p for p in named if p.rpartition("/")[2].partition("_")[0] in lost})\n',
        kills="G14",
    ),
    _reconcile(
        name="reconcile-creates-only",
        record="plausible: reconcile takes rewritten base files for accepted ones",
        after='        self._delete_files(instant, {data_path(name) for name in names if not name.endswith("MERGE")} - accepted)\n',
        kills="G14",
    ),
    _reconcile(
        name="reconcile-one-copy",
        record="plausible: reconcile expects one duplicate for a file group and deletes the first it finds",
        after='        lost = {p.rpartition("/")[2].partition("_")[0]: p for p in sorted({data_path(name) for name in names} - accepted)}\n'
        "        self._delete_files(instant, set(lost.values()))\n",
        kills="G14",
    ),
    _client(
        name="reconciled-after-commit",
        record="plausible: the instant is completed first and reconciled then",
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
    _client(
        name="live-writer-rolled-back",
        record="HUDI-2641, P 3956, HUDI-7361, P 10593: a writer that was alive was rolled back, here by itself",
        before="        accepted = tuple(sorted(stat.path for stat in stats))\n",
        after="        accepted = tuple(sorted(stat.path for stat in stats))\n"
        "        for left, action in self._records.read().pending().items() if len(stats) > 2 else ():\n            self._roll_back(left, action)\n",
        kills="G14",
    ),
    _client(
        name="commit-fails-with-its-markers",
        record="I 4635: a failing marker deletion failed a commit that had completed, and what had failed was taken back",
        before="        except (SeamError, Rejected):\n            return\n",
        after="        except (SeamError, Rejected):\n            for entry in self._records.read().entries:\n"
        "                if entry.instant == instant and entry.state is State.COMPLETED:\n                    self._records.remove(entry)\n            raise\n",
        kills="G24",
    ),
    _stage(
        name="stage-numbers-from-zero",
        record="plausible: stages are numbered from 0 in every application, and log files of two writes have one name",
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
    _instant(
        name="instant-of-the-clock",
        record="plausible: an instant is the time, whatever the timeline holds",
        after="    return _format(_EPOCH + int(now_ms) * _MS)\n",
        kills="G24",
    ),
    _stage(
        name="every-second-write-dies",
        record="plausible: what a driver remembers of its last write makes the next one fail with an error of its own",
        before="        received = received_before = 0\n",
        after="        if not self._ordinal % 2:\n"
        '            raise RuntimeError("a stage is under way already")\n'
        "        received = received_before = 0\n",
        kills="G25",
    ),
    _stage(
        name="every-second-write-hangs",
        record="plausible: the ends of attempts are taken for those of the write before, and waited for without end",
        before="            message = backend.receive()\n",
        after="            message = backend.receive()\n            if not self._ordinal % 2:\n                continue\n",
        kills="G25",
    ),
    _stage(
        name="lost-attempts-forgotten",
        record="plausible: the task of an executor that died is not run again, and its write is given up",
        before='            case "lost":\n                self._again(attempt.task)\n',
        after='            case "lost":\n                pass\n',
        kills="G25",
    ),
    _attempt(
        name="logs-in-any-table",
        record="plausible: updates go into log files, whatever the table is",
        before='"APPEND" if task.kind == "APPEND" and merge_on_read else',
        after='"APPEND" if task.kind == "APPEND" else',
        kills="G24",
    ),
)
