"""Mutants of the timeline server: dispatcher, flush, recovery, identity of resends, listings."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

SERVING = (
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
        name="delete-answered-early",
        record="plausible: a deletion is answered when it is queued",
        module="markers.server",
        before="                state.deletions.append(answer)\n",
        after="                answer.put(True)\n                state.deletions.append(answer)\n",
        kills="G10",
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
        name="big-batch-cut",
        record="plausible: only the first eight names of a batch are written",
        module="markers.batches",
        before="            data=file.data + encode_names(fresh) if fresh else None,\n",
        after="            data=file.data + encode_names(list(fresh)[:8]) if fresh else None,\n",
        kills="G1",
    ),
)
