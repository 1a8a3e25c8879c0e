"""The catalogue: mutants of the codec and the marker stores here, those of the write path in write_path.py."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant
from marker_sim.mutants.write_path import WRITE_PATH

__all__ = ["MUTANTS", "Mutant"]

_STORE = (
    Mutant(
        name="swallowed-close-error",
        record="P 19368: an error at close of the marker file was swallowed, the request still answered true",
        module="markers.server",
        before="        except StorageError as error:\n            outcome = Outcome(error=error)\n",
        after="        except StorageError:\n            outcome = Outcome()\n",
        kills="G1",
    ),
    Mutant(
        name="ack-before-flush",
        record="plausible: the batch is answered when it is taken",
        module="markers.batches",
        before="        self._next_index = (index + 1) % self._num_threads\n",
        after="        for ws in fresh.values():\n            for w in ws:\n                w.answer.put(Created.CREATED)\n"
        "        self._next_index = (index + 1) % self._num_threads\n",
        kills="G1",
    ),
    Mutant(
        name="exists-while-flushing",
        record="Hudi MarkerDirState: a name of a batch still being flushed counts as existing",
        module="markers.batches",
        before="                self._waiting[self._flying[waiter.name]][waiter.name].append(waiter)\n",
        after="                waiter.answer.put(Created.EXISTS)\n",
        kills="G2",
    ),
    Mutant(
        name="exists-from-memory",
        record="plausible: memory alone answers already-exists, whatever another server deleted",
        module="markers.server",
        before="        return frozenset(name for name, path in job.known if name not in found[path])\n",
        after="        return frozenset()\n",
        kills="G2",
    ),
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
        name="leading-slash",
        record="P 4112: non-partitioned markers carried a leading slash",
        module="names",
        before='    return "".join(f"{name}\\n" for name in names).encode("utf-8")\n',
        after='    return "".join(f"{name}\\n" if "/" in name else f"/{name}\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    Mutant(
        name="decoded-names",
        record="plausible: names are URL-decoded on their way to storage",
        module="names",
        before='    return "".join(f"{name}\\n" for name in names).encode("utf-8")\n',
        after='    return "".join(name.replace("%2F", "/") + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    Mutant(
        name="resend-told-exists",
        record="I 18072, P 18073: a resend after a time-out was told that its marker exists",
        module="markers.batches",
        before="        resent = waiter.request and self._creators.get(waiter.name) == waiter.request\n",
        after="        resent = False\n",
        kills="G5",
    ),
    Mutant(
        name="two-creators",
        record="plausible: every waiter of a batch is told that it created the name",
        module="markers.batches",
        before="            answers += [(w, self._known_answer(w)) for w in waiters[1:]]\n",
        after="            answers += [(w, Created.CREATED) for w in waiters[1:]]\n",
        kills="G5",
    ),
    Mutant(
        name="index-kept-busy",
        record="I 13356, I 4230: a failed flush left its file index busy and its requests unanswered",
        module="markers.server",
        before="                state = self._directories[job.directory]\n",
        after="                state = self._directories[job.directory]\n                if outcome.error:\n"
        "                    return\n",
        kills="G6",
    ),
    Mutant(
        name="dispatcher-dies",
        record="HUDI-4574, P 6383: an exception ended the dispatching schedule for ever",
        module="markers.batches",
        before="    def fail_pending(self, error: Exception) -> list[tuple[Waiter, Created | Exception]]:\n",
        after="    def fail_pending(self, error: Exception) -> list[tuple[Waiter, Created | Exception]]:\n"
        "        raise error\n\n    def _unused(self, error: Exception) -> list[tuple[Waiter, Created | Exception]]:\n",
        kills="G6",
    ),
    Mutant(
        name="owner-does-io",
        record="plausible: the dispatcher flushes by itself, so a slow directory holds all others",
        module="markers.server",
        before='            self._runtime.spawn(f"flush-{job.file_index}", lambda: self._flush(job))\n',
        after="            self._flush(job)\n",
        kills="G7",
    ),
    Mutant(
        name="file-for-every-batch",
        record="plausible: round robin without a bound",
        module="markers.batches",
        before='            path=f"{self.path}/{marker_file(index)}",\n            data=file.data + encode_names(fresh)',
        after='            path=f"{self.path}/{marker_file(len(self._names) + 100)}",\n'
        "            data=encode_names(fresh)",
        kills="G8",
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
        name="delete-answered-early",
        record="plausible: a deletion is answered when it is queued",
        module="markers.server",
        before="                state.deletions.append(answer)\n",
        after="                answer.put(True)\n                state.deletions.append(answer)\n",
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
        name="list-fails-during-creates",
        record="I 6444: listing failed with a concurrent modification during creates",
        module="markers.server",
        before="        contents = read_directory(self._context.storage, self._context.runtime, self._context.directory)\n",
        after="        contents = read_directory(self._context.storage, self._context.runtime, self._context.directory)\n"
        "        if any(d.pending for d in self._server._directories.values()):\n"
        '            raise StorageError("concurrent modification")\n',
        kills="G11",
    ),
    Mutant(
        name="line-break-accepted",
        record="plausible: control characters are not refused, a line break makes two names of one",
        module="names",
        before="    if _CONTROL.search(name):\n",
        after="    if False:\n",
        kills="G12",
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
        name="stripped-names",
        record="plausible: names are stripped of white space on their way to storage",
        module="names",
        before='    return "".join(f"{name}\\n" for name in names).encode("utf-8")\n',
        after='    return "".join(name.strip() + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    Mutant(
        name="append-by-substring",
        record="HUDI-1517, P 4913: a log file's marker is told by something in its name instead of its type",
        module="names",
        before='    return name.endswith(f"{_INFIX}{MarkerType.APPEND.value}")\n',
        after='    return "APPEND" in name\n',
        kills="G4",
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
        name="big-batch-cut",
        record="plausible: only the first eight names of a batch are written",
        module="markers.batches",
        before="            data=file.data + encode_names(fresh) if fresh else None,\n",
        after="            data=file.data + encode_names(list(fresh)[:8]) if fresh else None,\n",
        kills="G1",
    ),
)

MUTANTS = (*_STORE, *WRITE_PATH)
