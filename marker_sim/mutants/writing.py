"""Mutants of attempts, stages, reconcile and commit."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

_DELETE = '        persist(self._storage, self._runtime, lambda: self._storage.delete(f"{self._table}/{path}"))\n'

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
        before="    make_marker(marker_name(work.partition, name, MarkerType(work.kind)), runtime, create)\n",
        after='    storage.put(f"{work.table}/{work.path}", b"")\n'
        "    make_marker(marker_name(work.partition, name, MarkerType(work.kind)), runtime, create)\n",
        kills="G13",
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
        before="    persist(storage, runtime, lambda: write(path, data))\n",
        after="    try:\n        write(path, data)\n    except SeamError:\n        write(path, data[: len(data) // 2])\n",
        kills="G24",
    ),
)
