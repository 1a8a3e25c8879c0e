"""Mutants that outlive the seeded search: defects, not equivalents, that a campaign of its usual length does not see.

Each says where the search is blind. They are no part of the kill matrix, so that it can be whole; whoever makes the
search find one moves it to the part it belongs to. docs/mutants.md says what each would need.
"""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

ELUSIVE = (
    Mutant(
        name="delete-not-locked",
        record="plausible: a deletion takes no lock, and a put that had looked brings the file back",
        module="markers.files",
        before="    with _lock(storage, runtime, path):\n        storage.delete(path)\n",
        after="    with nullcontext():\n        storage.delete(path)\n",
        kills="G10",
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
        record="HUDI-9259 in parallel: an error of one of the parallel deletions reaches nobody",
        module="markers.several",
        before="                error = error or failed\n",
        after="                continue\n",
        kills="G14",
    ),
    Mutant(
        name="failed-delete-ends-rollback-well",
        record="HUDI-9259 in rollback: a data file that could not be deleted does not fail the rollback",
        module="writer.client",
        before="        self._delete_files(instant, {data_path(name) for name in self._markers.stored(self._directory(instant))})\n",
        after="        names = self._markers.stored(self._directory(instant))\n        try:\n"
        "            self._delete_files(instant, {data_path(name) for name in names})\n        except SeamError:\n            pass\n",
        kills="G15",
    ),
)
