"""Judges: pure functions from a finished history to findings. They never look into a running system.

    History ─► HistoryIndex ─► one judge per guarantee ─► Finding ─► Statistics + Profile ─► VerdictRow

guarantees.py   the table: id, slug and sentence of each guarantee
violations.py   one exception class per guarantee
findings.py     what a judge returns; verdict_row.py: one row of a verdict
causes.py       how a violation came about, as one stored word
store/          judges of a marker store
write_path/     judges of a write path that records its steps
black_box/      judges of a write path of which only its tables are seen
pairs.py        G21, the only guarantee about two histories
promises/       profiles: which guarantees a system promises
baselines/      known violations

A new guarantee has a row in `guarantees.GUARANTEES`, a judge in `JUDGES` and an exception class in `violations`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from marker_sim.history import History
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.black_box import ends, files, refusals, rollbacks, rows
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.pairs import modes_agree
from marker_sim.judges.store.durability import (
    acked_marker_survives,
    exists_is_durable,
    flushed_before_ack,
    rewrite_atomic,
)
from marker_sim.judges.store.exactness import exact_set, one_creator
from marker_sim.judges.store.hostile import hostile_input_refused
from marker_sim.judges.store.layout import bounded_files, hdfs_falls_back, type_recorded
from marker_sim.judges.store.listing import delete_complete, readable_while_written
from marker_sim.judges.store.serving import every_request_answered, isolation
from marker_sim.judges.write_path.commits import marker_before_data, reconcile_exact
from marker_sim.judges.write_path.leftovers import markers_last, no_late_write, no_residue
from marker_sim.judges.write_path.progress import writes_go_on
from marker_sim.judges.write_path.rollbacks import rollback_complete, rollback_first, rollback_retryable
from marker_sim.judges.write_path.rows import rows_survive

__all__ = ["BLACK_BOX_JUDGES", "JUDGES", "Breach", "Finding", "HistoryIndex", "judge", "modes_agree"]

JUDGES: dict[str, Callable[[HistoryIndex], Finding]] = {
    "G1": flushed_before_ack,
    "G2": exists_is_durable,
    "G3": acked_marker_survives,
    "G4": exact_set,
    "G5": one_creator,
    "G6": every_request_answered,
    "G7": isolation,
    "G8": bounded_files,
    "G9": type_recorded,
    "G10": delete_complete,
    "G11": readable_while_written,
    "G12": hostile_input_refused,
    "G13": marker_before_data,
    "G14": reconcile_exact,
    "G15": rollback_complete,
    "G16": rollback_retryable,
    "G17": markers_last,
    "G18": no_residue,
    "G19": rollback_first,
    "G20": no_late_write,
    "G22": hdfs_falls_back,
    "G23": rewrite_atomic,
    "G24": rows_survive,
    "G25": writes_go_on,
}

# Of a black-box write path nobody sees what it asks its marker store for, nor when it lists or commits.
BLACK_BOX_JUDGES: dict[str, Callable[[HistoryIndex], Finding]] = {
    "G13": ends.marker_before_data,
    "G14": files.reconcile_exact,
    "G15": files.rollback_complete,
    "G16": rollbacks.rollback_retryable,
    "G18": ends.no_residue,
    "G19": ends.rollback_first,
    "G24": rows.rows_survive,
    "G25": refusals.writes_go_on,
}


def judge(history: History, guarantees: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """Judge a history by some guarantees (ids), by default all; one finding for each, in the order of the table."""
    view = HistoryIndex(history)
    names = [name for name in JUDGES if guarantees is None or name in guarantees]
    if not view.black_box:
        findings = tuple(_counted(view, JUDGES[name]) for name in names)
    else:
        findings = tuple(
            _counted(view, BLACK_BOX_JUDGES[name])
            if name in BLACK_BOX_JUDGES
            else Finding(guarantee=name, applicable=False)
            for name in names
        )
    vars(view).clear()  # What it concluded refers to it; so the history goes with its last user, not with a collection.
    return findings


def _counted(view: HistoryIndex, judged: Callable[[HistoryIndex], Finding]) -> Finding:
    """A finding with the excuses that decided while it was made."""
    view.excused.clear()
    finding = judged(view)
    return replace(finding, excused=tuple(sorted(view.excused.items()))) if view.excused else finding
