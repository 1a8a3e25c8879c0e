"""Judges of a write path that is observed from outside: its storage requests, and audits of its tables.

ends.py       G13, G18, G19: files that are stored when a write ends
files.py      G14, G15: data files of a table at rest
rollbacks.py  G16: rollbacks that were interrupted
refusals.py   G16, G19, G25: writes that do not complete
rows.py       G24: rows that readers find
"""

from __future__ import annotations

from marker_sim.judges.black_box import ends, files, refusals, rollbacks, rows
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
}
