"""Mutants of the timeline server: dispatcher, flush, recovery, identity of resends, listings."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from functools import partial

from marker_sim.mutants import Mutant

_server = partial(Mutant, module="markers.server")
_batches = partial(Mutant, module="markers.batches")
_flush_error = partial(
    _server, before="        except StorageError as error:\n            outcome = Outcome(error=error)\n"
)
_held = partial(_batches, before="                held.append(waiter)\n")
_resent = partial(
    _batches, before="        resent = waiter.request and self._creators.get(waiter.name) == waiter.request\n"
)
_content = partial(_batches, before="            data=file.data + encode_names(fresh) if fresh else None,\n")
_deletion = partial(
    _server,
    before="                    state.loaded = False\n                else:\n                    state.clear()\n                answer.put(result)\n",
)
_known = partial(
    _batches, before="            elif waiter.name in self._names:\n                known.append(waiter)\n"
)
_recovered = partial(_batches, before="        for index, batch in sorted(contents.batches.items()):\n")
_listing = partial(_server, before="        return tuple(sorted(contents.names()))\n")
_existence = partial(_server, before='        return bool(self._context.storage.list(self._context.directory + "/"))\n')

SERVING = (
    _flush_error(
        name="swallowed-close-error",
        record="P 19368: an error at close of the marker file was swallowed, the request still answered true",
        after="        except StorageError:\n            outcome = Outcome()\n",
        kills="G1",
    ),
    _batches(
        name="ack-before-flush",
        record="plausible: the batch is answered when it is taken",
        before="        self._next_index = (index + 1) % self._num_threads\n",
        after="        for ws in fresh.values():\n            for w in ws:\n                w.answer.put(Created.CREATED)\n"
        "        self._next_index = (index + 1) % self._num_threads\n",
        kills="G1",
    ),
    _held(
        name="exists-while-flushing",
        record="Hudi MarkerDirState: a name of a batch still being flushed counts as existing",
        after="                waiter.answer.put(Created.EXISTS)\n",
        kills="G2",
    ),
    _held(
        name="older-flush-answers",
        record="found here: a create that came during a flush was answered by it, though another server had deleted since",
        after="                next(ws for ws in self._waiting.values() if waiter.name in ws)[waiter.name].append(waiter)\n",
        kills="G1",
    ),
    _server(
        name="exists-from-memory",
        record="plausible: memory alone answers already-exists, whatever another server deleted",
        before="        return frozenset(name for name, path in job.known if name not in found[path])\n",
        after="        return frozenset()\n",
        kills="G2",
    ),
    _resent(
        name="resend-told-exists",
        record="I 18072, P 18073: a resend after a time-out was answered that its marker exists",
        after="        resent = False\n",
        kills="G5",
    ),
    _server(
        name="untyped-files-kept",
        record="found here: a flush that failed at the type file left its marker file, and its name was answered exists",
        before="job.untyped and (job.data is not None or len(gone) < len(job.known)):\n",
        after="job.untyped and job.data is not None:\n",
        kills="G9",
    ),
    _batches(
        name="type-file-remembered",
        record="plausible: a new marker file relies on the type file that its server wrote, whoever deleted it since",
        before="            untyped=file.version is None or self._checked_ms < self._alone_ms,\n",
        after="            untyped=not self._names,\n",
        kills="G9",
    ),
    _batches(
        name="two-creators",
        record="plausible: every waiter of a batch is answered that it created the name",
        before="            answers += [(w, self._known_answer(w)) for w in waiters[1:]]\n",
        after="            answers += [(w, Created.CREATED) for w in waiters[1:]]\n",
        kills="G5",
    ),
    _server(
        name="index-kept-busy",
        record="I 13356, I 4230: a failed flush left its file index busy and its requests unanswered",
        before="                state = self._directories[job.directory]\n",
        after="                state = self._directories[job.directory]\n                if outcome.error:\n                    return\n",
        kills="G6",
    ),
    _batches(
        name="dispatcher-dies",
        record="HUDI-4574, P 6383: an exception ended the dispatching schedule for ever",
        before="    def fail_pending(self, error: Exception) -> list[tuple[Waiter, Created | Exception]]:\n",
        after="    def fail_pending(self, error: Exception) -> list[tuple[Waiter, Created | Exception]]:\n"
        "        raise error\n\n    def _unused(self, error: Exception) -> list[tuple[Waiter, Created | Exception]]:\n",
        kills="G6",
    ),
    _server(
        name="owner-does-io",
        record="plausible: the dispatcher flushes by itself, so a slow directory holds all others",
        before='            self._runtime.spawn(f"flush-{job.file_index}", lambda: self._flush(job))\n',
        after="            self._flush(job)\n",
        kills="G7",
    ),
    _batches(
        name="file-for-every-batch",
        record="plausible: round robin without a bound",
        before='            path=f"{self.path}/{marker_file(index)}",\n            data=file.data + encode_names(fresh)',
        after='            path=f"{self.path}/{marker_file(len(self._names) + 100)}",\n'
        "            data=encode_names(fresh)",
        kills="G8",
    ),
    _server(
        name="delete-answered-early",
        record="plausible: a deletion is answered when it is queued",
        before="                state.deletions.append(answer)\n",
        after="                answer.put(True)\n                state.deletions.append(answer)\n",
        kills="G10",
    ),
    _server(
        name="list-fails-during-creates",
        record="I 6444: listing failed with a concurrent modification during creates",
        before="        contents = read_directory(self._context.storage, self._context.runtime, self._context.directory)\n",
        after="        contents = read_directory(self._context.storage, self._context.runtime, self._context.directory)\n"
        "        if any(d.pending for d in self._server._directories.values()):\n"
        '            raise StorageError("concurrent modification")\n',
        kills="G11",
    ),
    _content(
        name="big-batch-cut",
        record="plausible: only the first eight names of a batch are written",
        after="            data=file.data + encode_names(list(fresh)[:8]) if fresh else None,\n",
        kills="G1",
    ),
    _server(
        name="ack-after-type-file",
        record="plausible: a batch counts as written when any of its files is, the type file too",
        before="                version = replace(self._storage, self._runtime, job.path, job.data, job.expected)\n",
        after="                try:\n                    version = replace(self._storage, self._runtime, job.path, job.data, job.expected)\n"
        "                except StorageError:\n                    if not job.untyped:\n                        raise\n",
        kills="G1",
    ),
    _server(
        name="conflict-is-success",
        record="plausible: a file that another server wrote meanwhile is taken for written",
        before="            outcome = Outcome(conflict=True, gone=frozenset(name for name, _ in job.known))\n",
        after="            outcome = Outcome(version=job.expected)\n",
        kills="G1",
    ),
    _content(
        name="only-the-new-names",
        record="plausible: a file is replaced by the new batch alone",
        after="            data=encode_names(fresh) if fresh else None,\n",
        kills="G3",
    ),
    _server(
        name="stops-after-a-deletion",
        record="HUDI-3636, P 9266: the dispatcher stopped when it seemed to have nothing left to do; clients kept calling",
        before="            if message is not None:\n                self._accept(message)\n",
        after="            if message is not None:\n                self._accept(message)\n"
        "                if isinstance(message, _Deleted):\n                    return\n",
        kills="G6",
    ),
    _deletion(
        name="failed-deletion-unanswered",
        record="plausible: a deletion that failed is logged and not answered",
        after="                    state.loaded = False\n                else:\n                    state.clear()\n                    answer.put(result)\n",
        kills="G6",
    ),
    _server(
        name="failed-load-stays-busy",
        record="after I 13356: a directory that could not be read once is busy for ever",
        before="            case _Loaded(path, result):\n                state = self._directories[path]\n                state.occupied = False\n",
        after="            case _Loaded(path, result):\n                state = self._directories[path]\n                state.occupied = isinstance(result, Exception)\n",
        kills="G6",
    ),
    _server(
        name="first-directory-only",
        record="plausible: a tick serves one directory and the first comes first every time",
        before="                for path in sorted(self._directories):\n",
        after="                for path in sorted(self._directories)[:1]:\n",
        kills="G6",
    ),
    _batches(
        name="conflict-drops-waiters",
        record="plausible: creates of a batch that met a conflict are forgotten",
        before="            self.loaded = False\n            answers += self._again(again)\n",
        after="            self.loaded = False\n",
        kills="G6",
    ),
    _flush_error(
        name="one-error-expected",
        record="after HUDI-4574: a flush expects throttling and dies of every other error",
        after='        except StorageError as error:\n            if not error.definite:\n                raise RuntimeError("unexpected") from error\n'
        "            outcome = Outcome(error=error)\n",
        kills="G6",
    ),
    _server(
        name="tick-by-request",
        record="plausible: only a new request starts the clock, and what waits for a load waits for the next request",
        before="            if tick_ms is None and any(d.pending for d in self._directories.values()):\n",
        after="            if tick_ms is None and isinstance(message, _Create):\n",
        kills="G6",
    ),
    _server(
        name="one-pool-for-all",
        record="Hudi 0.15.0 MarkerDirRequestHandler: directories share one pool, a slow one holds the workers of all",
        before="        job = state.next_job(self._runtime.now_ms())\n        if job is not None:\n",
        after="        if sum(len(each._waiting) for each in self._directories.values()) >= self._num_threads:\n            return\n"
        "        job = state.next_job(self._runtime.now_ms())\n        if job is not None:\n",
        kills="G7",
    ),
    _batches(
        name="one-file-too-many",
        record="plausible: file indices count from 0 to num_threads",
        before="            index = (self._next_index + offset) % self._num_threads\n",
        after="            index = (self._next_index + offset) % (self._num_threads + 1)\n",
        kills="G8",
        also=(
            (
                "markers.batches",
                "        self._next_index = (index + 1) % self._num_threads\n",
                "        self._next_index = (index + 1) % (self._num_threads + 1)\n",
            ),
        ),
    ),
    _batches(
        name="typed-for-ever",
        record="plausible: a server writes the type file once in its life, also when the directory was deleted since",
        before="            untyped=file.version is None or self._checked_ms < self._alone_ms,\n",
        after="            untyped=self._checked_ms < 0,\n",
        kills="G9",
    ),
    _deletion(
        name="failed-deletion-is-none",
        record="plausible: a deletion that failed is answered like one that found nothing",
        after="                    state.loaded = False\n                    result = False\n                else:\n                    state.clear()\n"
        "                answer.put(result)\n",
        kills="G10",
    ),
    _resent(
        name="identity-not-compared",
        record="plausible: every request with an identity is taken for the creator",
        after="        resent = waiter.request and self._creators.get(waiter.name)\n",
        kills="G5",
    ),
    _batches(
        name="last-waiter-is-creator",
        record="plausible: the identity that is remembered is that of the last request in the batch",
        before="            self._creators[name] = waiters[0].request\n",
        after="            self._creators[name] = waiters[-1].request\n",
        kills="G5",
    ),
    _batches(
        name="identity-lost-at-reload",
        record="plausible: reading the directory again after an error forgets who created what",
        before="        self._creators = {name: who for name, who in self._creators.items() if name in self._names}\n",
        after="        self._creators = {}\n",
        kills="G5",
    ),
    _known(
        name="resend-from-memory",
        record="plausible: a resend is answered from memory, though another server deleted the directory since",
        after="            elif waiter.name in self._names and self._known_answer(waiter) is Created.CREATED:\n"
        "                waiter.answer.put(Created.CREATED)\n            elif waiter.name in self._names:\n                known.append(waiter)\n",
        kills="G1",
    ),
    _batches(
        name="memory-outlives-deletion",
        record="plausible: a deletion forgets files and names and remembers creators, whose resends it answers",
        before="        self._files, self._names, self._creators = {}, {}, {}\n",
        after="        self._files, self._names = {}, {}\n",
        kills="G1",
        also=(
            (
                "markers.batches",
                "            elif waiter.name in self._names:\n                known.append(waiter)\n",
                "            elif self._known_answer(waiter) is Created.CREATED:\n                waiter.answer.put(Created.CREATED)\n"
                "            elif waiter.name in self._names:\n                known.append(waiter)\n",
            ),
        ),
    ),
    _known(
        name="known-by-its-end",
        record="plausible: a name is looked up as the end of a line, and another partition's marker ends alike",
        after="            elif waiter.name in self._names:\n                known.append(waiter)\n"
        "            elif any(name.endswith(waiter.name) for name in self._names):\n                waiter.answer.put(Created.EXISTS)\n",
        kills="G2",
    ),
    _batches(
        name="first-file-recovered",
        record="plausible: the lazy load takes over the first marker file only",
        before="        self._files = dict(contents.batches)\n",
        after="        self._files = dict(sorted(contents.batches.items())[:1])\n",
        kills="G6",
    ),
    _recovered(
        name="files-of-today-recovered",
        record="plausible: the lazy load takes over the files below today's num_threads and no more",
        after="        for index, batch in sorted((n, b) for n, b in contents.batches.items() if n < self._num_threads):\n",
        kills="G5",
    ),
    _recovered(
        name="names-not-recovered",
        record="plausible: the lazy load takes over the files and forgets their names",
        after="        for index, batch in ():\n",
        kills="G5",
    ),
    _server(
        name="failed-load-is-empty",
        record="after P 18887: a directory that cannot be read is taken for an empty one",
        before="                    self._reply(state.fail_pending(result))\n",
        after="                    state.load(Contents({}, ()), 0.0)\n",
        kills="G5",
    ),
    _listing(
        name="lists-from-memory",
        record="Hudi 0.15.0 MarkerDirState: a listing shows what the server remembers, which may not be stored yet or not loaded",
        after="        state = self._server._directories.get(self._context.directory)\n"
        "        return tuple(sorted(state._names)) if state and state.loaded else ()\n",
        kills="G11",
    ),
    _listing(
        name="file-in-flight-not-listed",
        record="plausible: a listing skips the file that is being rewritten",
        after="        state = self._server._directories.get(self._context.directory)\n"
        "        for index in state._waiting if state else ():\n            contents.batches.pop(index, None)\n"
        "        return tuple(sorted(contents.names()))\n",
        kills="G11",
    ),
    _existence(
        name="exists-when-remembered",
        record="plausible: whether a directory exists is answered from memory, which knows nothing after a restart",
        after="        state = self._server._directories.get(self._context.directory)\n"
        "        return state is not None and bool(state._names)\n",
        kills="G11",
    ),
    _existence(
        name="exists-once-made",
        record="plausible: a directory that was ever written to is taken to exist, even after a deletion",
        after='        return self._context.directory in self._context.process.get("made", ())\n',
        kills="G10",
        also=(
            (
                "markers.server",
                "        return self._server.create(self._context.directory, name, request)\n",
                '        self._context.process.setdefault("made", set()).add(self._context.directory)\n'
                "        return self._server.create(self._context.directory, name, request)\n",
            ),
        ),
    ),
    _server(
        name="type-file-trusted-at-once",
        record="plausible: a server looks once for the type file while a dead one's deletion is on its way",
        before="storage.capabilities.request_timeout_ms + storage.capabilities.late_effect_ms\n",
        after="-inf\n",
        kills="G9",
    ),
)
