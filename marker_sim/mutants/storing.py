"""Mutants of the storage calls of both marker stores: type file, replacing, locks, deletion, modes."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from functools import partial

from marker_sim.mutants import Mutant

_batches = partial(Mutant, module="markers.batches")
_storing = partial(Mutant, module="markers.files")
_choice = partial(Mutant, module="markers.choice")
_direct = partial(Mutant, module="markers.direct")
_content = partial(_batches, before="            data=file.data + encode_names(fresh) if fresh else None,\n")
_replaced = partial(
    _storing, before="            raise PreconditionFailed(path)\n        return storage.put(path, data)\n"
)
_type_file = partial(_storing, before='    path = f"{directory}/{TYPE_FILE}"\n    for _ in range(TRIES):\n')
_deletion = partial(_storing, before="        if not paths:\n            return found_any\n")
_read = partial(_storing, before="    return Contents(batches, tuple(direct))\n")
_TYPE = '    found = is_stored(storage, runtime, f"{directory}/{TYPE_FILE}")\n    typed = found and found.data == TYPE_BATCHED\n'
_path = partial(_direct, before='        path = f"{self._directory}/{name}"\n')
_if_unchanged = partial(_storing, before="        return storage.put(path, data, expected=expected)\n")
_unconditional = partial(_choice, before="    if not (capabilities.put_if_unchanged or capabilities.host_lock):\n")

STORING = (
    _content(
        name="huge-batch-cut",
        record="plausible: a batch has room for fifty names, without a check that it is enough",
        after="            data=file.data + encode_names(list(fresh)[:50]) if fresh else None,\n",
        kills="G1",
    ),
    _content(
        name="long-file-cut",
        record="plausible: a marker file has room for 150 names, and what is written beyond that is lost",
        after='            data=b"".join((file.data + encode_names(fresh)).splitlines(keepends=True)[:150]) if fresh else None,\n',
        kills="G1",
    ),
    _storing(
        name="unconditional-replace",
        record="plausible: a marker file is replaced without looking whether another server changed it",
        before="    if expected is None:\n        return storage.put(path, data, Condition.IF_ABSENT)\n"
        "    if storage.capabilities.put_if_unchanged:\n",
        after="    if expected is None or True:\n        return storage.put(path, data)\n"
        "    if storage.capabilities.put_if_unchanged:\n",
        kills="G3",
    ),
    _storing(
        name="joined-after-restart",
        record="Hudi 0.15.0 MarkerDirState: names read back are joined by commas, without a final newline",
        before='                batches[index] = BatchFile(content.data[: content.data.rfind(b"\\n") + 1], content.version)\n',
        after='                joined = content.data.strip(b"\\n").replace(b"\\n", b",")\n'
        "                batches[index] = BatchFile(joined, content.version)\n",
        kills="G4",
    ),
    _replaced(
        name="rewritten-in-place",
        record="Hudi MarkerDirState: a marker file is emptied and written again; a kill in between loses its names",
        after='            raise PreconditionFailed(path)\n        storage.overwrite(path, data)\n        return ""\n',
        kills="G3",
    ),
    _replaced(
        name="rewritten-in-place-seen",
        record="the same change, judged by what a reader sees meanwhile",
        after="            raise PreconditionFailed(path)\n        storage.overwrite(path, data)\n"
        "        return storage.get(path).version\n",
        kills="G23",
    ),
    _type_file(
        name="no-type-file",
        record="I 5591, I 6283: a batched directory without type file is taken for a direct one",
        after='    if directory:\n        return\n    path = f"{directory}/{TYPE_FILE}"\n    for _ in range(TRIES):\n',
        kills="G9",
    ),
    _type_file(
        name="type-file-last",
        record="plausible: the type file is written after the first batch",
        after='    path = f"{directory}/{TYPE_FILE}"\n'
        '    if not any("MARKERS" in p for p in storage.list(directory + "/")):\n        return\n'
        "    for _ in range(TRIES):\n",
        kills="G9",
    ),
    _deletion(
        name="delete-forgets-one",
        record="I 5395: the last delete of a directory left something behind",
        after="        if len(paths) <= 2:\n            return found_any or bool(paths)\n",
        kills="G10",
    ),
    _storing(
        name="ghost-put",
        record="plausible: a put that timed out is sent again at once, and the first may still land",
        before="            runtime.sleep(storage.capabilities.late_effect_ms)\n",
        after="            runtime.sleep(1)\n",
        kills="G10",
    ),
    _storing(
        name="short-list",
        record="P 18887: a transient read error was taken for nothing there",
        before="            if content := is_stored(storage, runtime, path):\n",
        after="            try:\n                content = read(storage, path)\n            except StorageError:\n                continue\n            if content:\n",
        kills="G11",
    ),
    _choice(
        name="batched-on-hdfs",
        record="plausible: timeline-server markers on HDFS",
        before="    if not capabilities.batched_markers:\n",
        after='    if not capabilities.batched_markers:\n        return Choice("timeline", "")\n    if False:\n',
        kills="G22",
    ),
    _choice(
        name="silent-fallback",
        record="plausible: falls back to direct markers and does not say so",
        before='        return Choice("direct", f"timeline-server markers are not supported on {capabilities.scheme}:'
        ' direct markers")\n',
        after='        return Choice("direct", "")\n',
        kills="G22",
    ),
    _storing(
        name="direct-without-condition",
        record="plausible: direct create overwrites what is there and calls it created",
        before="    try:\n        replace(storage, runtime, path, data, None)\n",
        after="    try:\n        storage.put(path, data)\n",
        kills="G5",
    ),
    _direct(
        name="direct-fire-and-forget",
        record="plausible: a direct create is answered before it is stored",
        before='            return Created.CREATED if create_if_absent(self._storage, self._runtime, path, b"")'
        " else Created.EXISTS\n",
        after='            self._runtime.spawn("create", lambda: create_if_absent(self._storage, self._runtime, path,'
        ' b"") and None)\n            return Created.CREATED\n',
        kills="G1",
    ),
    _storing(
        name="prefix-deletes-neighbour",
        record="plausible: deleting instant 001 by prefix also deletes instant 0010",
        before='        paths = retry_until_decided(storage, runtime, lambda: storage.list(directory + "/"))\n        if not paths and',
        after="        paths = retry_until_decided(storage, runtime, lambda: storage.list(directory))\n        if not paths and",
        kills="G3",
    ),
    _read(
        name="type-file-believed",
        record="I 5591, I 6283, I 9023: without a good type file the batched markers are not read",
        after=_TYPE + "    return Contents(batches if typed else {}, tuple(direct))\n",
        kills="G11",
    ),
    _direct(
        name="format-from-configuration",
        record="HUDI-2305, P 3472: rollback read direct markers only, whatever the directory held",
        before="        return tuple(sorted(read_directory(self._storage, self._runtime, self._directory).names()))\n",
        after="        return tuple(sorted(read_directory(self._storage, self._runtime, self._directory).direct))\n",
        kills="G15",
    ),
    _read(
        name="untyped-directory-is-direct",
        record="I 5591, I 6283, P 6266, I 9023: without a right type file a batched directory was taken for direct",
        after=_TYPE
        + "    if not typed:\n        batches = {n: batch._replace(data=b'') for n, batch in batches.items()}\n    return Contents(batches, tuple(direct))\n",
        kills="G15",
    ),
    _path(
        name="direct-names-decoded",
        record="plausible, after I 3065: one mode decodes what a partition path is made of, the other does not",
        after="        path = f\"{self._directory}/{name.replace('%2F', '/')}\"\n",
        kills="G21",
    ),
    _if_unchanged(
        name="deleted-and-put",
        record="plausible: an object is deleted and put again instead of being replaced",
        after="        storage.delete(path)\n        return storage.put(path, data)\n",
        kills="G23",
    ),
    _storing(
        name="replace-not-locked",
        record="plausible: two servers of one host look and put without a lock between them",
        before="    with _lock(storage, runtime, path):\n        current = read(storage, path)\n",
        after="    with nullcontext():\n        current = read(storage, path)\n",
        kills="G3",
    ),
    _storing(
        name="delete-not-locked",
        record="plausible: a deletion takes no lock, and a put that had looked brings the file back",
        before="    with _lock(storage, runtime, path):\n        storage.delete(path)\n",
        after="    with nullcontext():\n        storage.delete(path)\n",
        kills="G10",
    ),
    _replaced(
        name="lock-ends-before-put",
        record="plausible: the lock is held for the look and released before the put",
        after="            raise PreconditionFailed(path)\n    return storage.put(path, data)\n",
        kills="G3",
    ),
    _storing(
        name="conflict-taken-for-own",
        record="plausible: after a time-out every conflict is put down to the own earlier try",
        before="            if unsure and data and (current := read(storage, path)) and current.data == data:\n",
        after="            if unsure and data and (current := read(storage, path)):\n",
        kills="G1",
    ),
    _if_unchanged(
        name="rebased-without-merging",
        record="plausible: on a conflict the new version is fetched and the old content put over it",
        after="        there = read(storage, path)\n        return storage.put(path, data, expected=there.version if there else expected)\n",
        kills="G3",
    ),
    _deletion(
        name="side-files-stay",
        record="after I 5395: a deletion knows markers and marker files only, what a crash left beside them stays",
        after='        paths = [p for p in paths if is_marker_name(p) or TYPE_FILE in p or marker_file_index(p.rpartition("/")[2]) is not None]\n'
        "        if not paths:\n            return found_any\n",
        kills="G18",
    ),
    _storing(
        name="failed-delete-passes",
        record="after HUDI-9259: the result of deleting a marker file is ignored, without a second look",
        before="        storage.delete(path)\n",
        after="        try:\n            storage.delete(path)\n        except StorageError:\n            return\n",
        kills="G10",
        also=(
            (
                "markers.files",
                "            )\n    return found_any\n",
                "            )\n        return True\n    return found_any\n",
            ),
        ),
    ),
    _storing(
        name="one-page-deleted",
        record="plausible: a deletion lists once and deletes the first page of the listing (here of 20)",
        before='    for _ in range(TRIES):\n        paths = retry_until_decided(storage, runtime, lambda: storage.list(directory + "/"))\n',
        after='    for _ in range(1):\n        paths = retry_until_decided(storage, runtime, lambda: storage.list(directory + "/"))[:20]\n',
        kills="G10",
    ),
    _read(
        name="empty-type-file-breaks",
        record="I 9023: a type file left empty by a crash was a parse error, and no rollback could end",
        after=_TYPE
        + '    if found and not typed:\n        raise RuntimeError("no enum constant MarkerType.")\n    return Contents(batches, tuple(direct))\n',
        kills="G16",
    ),
    _read(
        name="missing-type-file-breaks",
        record="I 5591, I 6283, P 6266: a batched directory without type file could never be rolled back",
        after=_TYPE
        + '    if batches and not typed:\n        raise RuntimeError("not a marker directory of a known type")\n    return Contents(batches, tuple(direct))\n',
        kills="G16",
    ),
    _storing(
        name="stripped-by-substring",
        record="I 3065: the marker's path was stripped by substring, which another part of it may hold too",
        before="        relative = path[len(directory) + 1 :]\n",
        after='        relative = path.rpartition(directory.rpartition("/")[2] + "/")[2]\n',
        kills="G4",
    ),
    _storing(
        name="first-page-only",
        record="plausible: a listing of an object store comes in pages, and only the first is read (here of 40)",
        before='    for path in retry_until_decided(storage, runtime, lambda: storage.list(directory + "/")):\n',
        after='    for path in retry_until_decided(storage, runtime, lambda: storage.list(directory + "/"))[:40]:\n',
        kills="G11",
    ),
    _storing(
        name="failed-listing-is-empty",
        record="Hudi 0.15.0 to 1.2.0 MarkerDirState on local files: a new server takes a failed listing for an empty directory",
        before='    for path in retry_until_decided(storage, runtime, lambda: storage.list(directory + "/")):\n',
        after='    try:\n        listed = storage.list(directory + "/")\n    except StorageError:\n        listed = []\n'
        "    for path in listed:\n",
        kills="G11",
    ),
    _direct(
        name="direct-marker-has-content",
        record="plausible: a direct marker holds its name",
        before='create_if_absent(self._storage, self._runtime, path, b"")',
        after='create_if_absent(self._storage, self._runtime, path, name.encode("utf-8"))',
        kills="G8",
    ),
    _path(
        name="direct-flat",
        record="plausible: direct markers are kept flat, with something else for the slashes of the partition path",
        after="        path = f\"{self._directory}/{name.replace('/', '_')}\"\n",
        kills="G4",
    ),
    _direct(
        name="unknown-outcome-is-created",
        record="plausible: a put that was not answered counts as done, without a look",
        before="            if is_stored(self._storage, self._runtime, path) is None:\n                raise\n            return Created.EXISTS\n",
        after="            return Created.CREATED\n",
        kills="G1",
    ),
    _unconditional(
        name="batched-without-conditions",
        record="plausible: timeline-server markers on an object store that cannot replace a file only if unchanged",
        after="    if not (capabilities.put_if_unchanged or capabilities.atomic_replace):\n",
        kills="G22",
    ),
    Mutant(
        name="deletion-answered-by-its-first-worker",
        record="plausible: a deletion by several workers is over when one of them is",
        module="markers.several",
        before="    errors = [ended.get()[0] for _ in range(workers)]\n",
        after="    errors = [ended.get()[0] for _ in range(min(1, workers))]\n",
        kills="G10",
    ),
    _batches(
        name="flying-name-fresh",
        record="plausible: a name that is being flushed is taken for a new one, and goes into a second file",
        before="        self._flying.update(fresh)\n",
        after="",
        kills="G5",
    ),
    _unconditional(
        name="direct-where-served-is-possible",
        record="plausible: an object store that can replace only if unchanged is taken for one that cannot",
        after="    if not capabilities.host_lock:\n",
        kills="G22",
    ),
    _storing(
        name="damage-never-repaired",
        record="plausible: the type file of a directory that has marker files is taken for right",
        before="        if content is not None and content.data == TYPE_BATCHED:\n",
        after="        if content is not None:\n",
        kills="G9",
    ),
)
