"""Mutants of what both marker stores do to storage: type file, replacing, locks, deletion, modes."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

STORING = (
    Mutant(
        name="unconditional-replace",
        record="plausible: a marker file is replaced without looking whether another server changed it",
        module="markers.files",
        before="    if expected is None:\n        return storage.put(path, data, Condition.IF_ABSENT)\n"
        "    if storage.capabilities.put_if_unchanged:\n",
        after="    if expected is None or True:\n        return storage.put(path, data)\n"
        "    if storage.capabilities.put_if_unchanged:\n",
        kills="G3",
    ),
    Mutant(
        name="joined-after-restart",
        record="Hudi 0.15.0 MarkerDirState: names read back are joined by commas, without a final newline",
        module="markers.files",
        before='                batches[index] = BatchFile(content.data[: content.data.rfind(b"\\n") + 1], content.version)\n',
        after='                joined = content.data.strip(b"\\n").replace(b"\\n", b",")\n'
        "                batches[index] = BatchFile(joined, content.version)\n",
        kills="G4",
    ),
    Mutant(
        name="rewritten-in-place",
        record="Hudi MarkerDirState: a marker file is emptied and written again; a kill in between loses its names",
        module="markers.files",
        before="            raise PreconditionFailed(path)\n        return storage.put(path, data)\n",
        after='            raise PreconditionFailed(path)\n        storage.overwrite(path, data)\n        return ""\n',
        kills="G3",
    ),
    Mutant(
        name="rewritten-in-place-seen",
        record="the same change, judged by what a reader sees meanwhile",
        module="markers.files",
        before="            raise PreconditionFailed(path)\n        return storage.put(path, data)\n",
        after="            raise PreconditionFailed(path)\n        storage.overwrite(path, data)\n"
        "        return storage.get(path).version\n",
        kills="G23",
    ),
    Mutant(
        name="no-type-file",
        record="I 5591, I 6283: a batched directory without type file is taken for a direct one",
        module="markers.files",
        before='    path = f"{directory}/{TYPE_FILE}"\n    expected: str | None = None\n',
        after='    if directory:\n        return\n    path = f"{directory}/{TYPE_FILE}"\n    expected: str | None = None\n',
        kills="G9",
    ),
    Mutant(
        name="type-file-last",
        record="plausible: the type file is written after the first batch",
        module="markers.files",
        before='    path = f"{directory}/{TYPE_FILE}"\n    expected: str | None = None\n',
        after='    path = f"{directory}/{TYPE_FILE}"\n    expected: str | None = None\n'
        '    if not any("MARKERS" in p for p in storage.list(directory + "/")):\n        return\n',
        kills="G9",
    ),
    Mutant(
        name="delete-forgets-one",
        record="I 5395: the last delete of a directory left something behind",
        module="markers.files",
        before="        if not paths:\n            return found_any\n",
        after="        if len(paths) <= 2:\n            return found_any or bool(paths)\n",
        kills="G10",
    ),
    Mutant(
        name="ghost-put",
        record="plausible: a put that timed out is sent again at once, and the first may still land",
        module="markers.files",
        before="            runtime.sleep(storage.capabilities.late_effect_ms)\n",
        after="            runtime.sleep(1)\n",
        kills="G10",
    ),
    Mutant(
        name="short-list",
        record="P 18887: a transient read error was taken for nothing there",
        module="markers.files",
        before="            content = persist(storage, runtime, lambda path=path: read(storage, path))"
        "  # type: ignore[misc]\n",
        after="            try:\n                content = read(storage, path)\n"
        "            except StorageError:\n                continue\n",
        kills="G11",
    ),
    Mutant(
        name="batched-on-hdfs",
        record="plausible: timeline-server markers on HDFS",
        module="markers.choice",
        before="    if not capabilities.batched_markers:\n",
        after='    if not capabilities.batched_markers:\n        return Choice("timeline", "")\n    if False:\n',
        kills="G22",
    ),
    Mutant(
        name="silent-fallback",
        record="plausible: falls back to direct markers and does not say so",
        module="markers.choice",
        before='        return Choice("direct", f"timeline-server markers are not supported on {capabilities.scheme}:'
        ' direct markers")\n',
        after='        return Choice("direct", "")\n',
        kills="G22",
    ),
    Mutant(
        name="direct-without-condition",
        record="plausible: direct create overwrites what is there and calls it created",
        module="markers.files",
        before="    try:\n        replace(storage, runtime, path, data, None)\n",
        after="    try:\n        storage.put(path, data)\n",
        kills="G5",
    ),
    Mutant(
        name="direct-fire-and-forget",
        record="plausible: a direct create is answered before it is stored",
        module="markers.direct",
        before='            return Created.CREATED if create_if_absent(self._storage, self._runtime, path, b"")'
        " else Created.EXISTS\n",
        after='            self._runtime.spawn("create", lambda: create_if_absent(self._storage, self._runtime, path,'
        ' b"") and None)\n            return Created.CREATED\n',
        kills="G1",
    ),
    Mutant(
        name="prefix-deletes-neighbour",
        record="plausible: deleting instant 001 by prefix also deletes instant 0010",
        module="markers.files",
        before='        paths = persist(storage, runtime, lambda: storage.list(directory + "/"))\n        if not paths:\n',
        after="        paths = persist(storage, runtime, lambda: storage.list(directory))\n        if not paths:\n",
        kills="G3",
    ),
    Mutant(
        name="type-file-believed",
        record="I 5591, I 6283, I 9023: without a good type file the batched markers are not read",
        module="markers.files",
        before="    return Contents(batches, tuple(direct), typed)\n",
        after="    return Contents(batches if typed else {}, tuple(direct), typed)\n",
        kills="G11",
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
        name="direct-names-decoded",
        record="plausible, after I 3065: one mode decodes what a partition path is made of, the other does not",
        module="markers.direct",
        before='        path = f"{self._directory}/{name}"\n',
        after="        path = f\"{self._directory}/{name.replace('%2F', '/')}\"\n",
        kills="G21",
    ),
)
