"""Mutants of unreported defects that were found in released timeline servers (docs/findings.md)."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants import Mutant

_KNOWN = "            elif waiter.name in self._names:\n                known.append(waiter)\n"

FOUND = (
    Mutant(
        name="exists-after-failed-flush",
        record="Hudi MarkerDirState: a name whose flush failed stays known, and a retry is answered that it exists",
        module="markers.batches",
        before="            # It may have been applied: storage is read again before the next batch.\n",
        after="            self.tried = {*getattr(self, 'tried', ()), *fresh}\n",
        kills="G2",
        also=(
            (
                "markers.batches",
                _KNOWN,
                "            elif waiter.name in getattr(self, 'tried', ()):\n                waiter.answer.put(Created.EXISTS)\n"
                + _KNOWN,
            ),
        ),
    ),
    Mutant(
        name="failed-flush-ends-the-tick",
        record="Hudi BatchedMarkerCreationRunnable: one worker flushes all directories of a tick, and the first error drops the others",
        module="markers.server",
        before="                for path in sorted(self._directories):\n                    self._dispatch(self._directories[path])\n",
        after="                ready = [d.next_job(self._runtime.now_ms()) for _, d in sorted(self._directories.items())]\n"
        "                jobs = [job for job in ready if job is not None]\n"
        '                self._runtime.spawn("flush", lambda jobs=jobs: all(self._flush(job) is None for job in jobs))\n',
        kills="G6",
        also=(
            (
                "markers.server",
                "        self._inbox.put(_Flushed(job, outcome))\n",
                "        self._inbox.put(_Flushed(job, outcome))\n        return outcome.error\n",
            ),
        ),
    ),
    Mutant(
        name="deletion-drops-waiters",
        record="Hudi MarkerHandler.deleteMarkers: creates that are queued when their directory is deleted are in no queue any more",
        module="markers.batches",
        before="        self._files, self._names, self._creators = {}, {}, {}\n",
        after="        self._files, self._names, self._creators = {}, {}, {}\n        self.pending = []\n",
        kills="G6",
    ),
    Mutant(
        name="exists-though-made-now",
        record="plausible: the answer of a conditional put is not looked at",
        module="markers.direct",
        before='            return Created.CREATED if create_if_absent(self._storage, self._runtime, path, b"") else Created.EXISTS\n',
        after='            create_if_absent(self._storage, self._runtime, path, b"")\n            return Created.EXISTS\n',
        kills="G5",
    ),
    Mutant(
        name="empty-name-accepted",
        record="Hudi MarkerHandler: an empty name is answered, and a line without a name is none",
        module="names",
        before='    segments = name.split("/")\n    if any(part in ("", ".", "..") for part in segments):\n',
        after='    segments = name.split("/")\n    if not name:\n        return\n    if any(part in ("", ".", "..") for part in segments):\n',
        kills="G4",
    ),
    Mutant(
        name="patience-counts-nothing",
        record="plausible: a stage is given up after two minutes, whatever was heard of its tasks meanwhile",
        module="writer.stage",
        before="                if received == received_before:\n",
        after="                if True:\n",
        kills="G25",
    ),
    Mutant(
        name="throttled-without-reply",
        record="plausible: a branch for a throttled storage makes its reply and does not return it",
        module="markers.protocol",
        before='            return Reply(503, f"storage throttles: {error}")\n',
        after='            Reply(503, f"storage throttles: {error}")\n',
        kills="G14",
    ),
    Mutant(
        name="known-names-written",
        record="plausible: a batch without a new name writes its file all the same, empty where there was none",
        module="markers.batches",
        before="            data=file.data + encode_names(fresh) if fresh else None,\n",
        after="            data=file.data + encode_names(fresh),\n",
        kills="G9",
    ),
    Mutant(
        name="type-file-trusted-when-alone",
        record="found here, in the reference: a server that has outlived the requests of an earlier one trusts a type file",
        module="markers.server",
        before="self._reply(state.finish(job, outcome, self._runtime.now_ms() + self._rest_ms))\n",
        after="self._reply(state.finish(job, outcome, self._alone_ms))\n",
        kills="G9",
        also=(
            (
                "markers.server",
                '        runtime.spawn("dispatcher", self._own)\n',
                '        runtime.spawn("dispatcher", self._own)\n        self._alone_ms = runtime.now_ms() + self._rest_ms\n',
            ),
            ("markers.server", "(result, self._runtime.now_ms() + self._rest_ms)", "(result, self._alone_ms)"),
        ),
    ),
)
