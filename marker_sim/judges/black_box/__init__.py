"""Judges of a write path that is observed from outside: its storage requests, and audits of its tables.

conflicts.py  G27, G28: conflicts of several writers
ends.py       G13, G18, G19: files that are stored when a write ends
files.py      G14, G15: data files of a table at rest
lives.py      the instants of a table with several writers
lost_commits.py  G26, G29: what several writers do to each other's instants
rollbacks.py  G16: rollbacks that were interrupted
refusals.py   G16, G19, G25: writes that do not complete
rows.py       G24: rows that readers find
"""

from __future__ import annotations

from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.black_box import conflicts, ends, files, lives, lost_commits, refusals, rollbacks, rows
from marker_sim.judges.guarantees import Judge

JUDGES: dict[str, Judge] = {
    "G13": ends.marker_before_data,
    "G14": files.reconcile_exact,
    "G15": files.rollback_complete,
    "G16": rollbacks.rollback_retryable,
    "G18": ends.no_residue,
    "G19": ends.rollback_first,
    "G24": rows.rows_survive,
    "G25": refusals.writes_go_on,
    "G26": lost_commits.no_lost_commit,
    "G27": conflicts.conflict_detected,
    "G28": conflicts.conflict_real,
    "G29": lost_commits.one_rollback,
}
# They ask that a write finishes what is left before it, which several writers leave to cleaning (LAZY).
_OF_ONE_WRITER = frozenset({"G16", "G19"})


def judges_of(view: HistoryIndex) -> dict[str, Judge]:
    """The judges of a history by guarantee."""
    return {name: each for name, each in JUDGES.items() if name not in _OF_ONE_WRITER or not lives.shared(view)}
