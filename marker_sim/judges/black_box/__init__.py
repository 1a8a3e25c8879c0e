"""Judges of a write path that is observed from outside: its storage requests, and audits of its tables.

conflicts.py  G27, G28: conflicts of several writers
ends.py       G13, G18, G19: files that are stored when a write ends
futures.py    G30, G31, G32: what becomes of a table later, and the horizon of all other findings
files.py      G14, G15: data files of a table at rest
lives.py      the instants of a table with several writers
lost_commits.py  G26, G29: what several writers do to each other's instants
rollbacks.py  G16: rollbacks that were interrupted
refusals.py   G16, G19, G25: writes that do not complete
rows.py       G24: rows that readers find
"""

from __future__ import annotations

from dataclasses import replace

from marker_sim.history import History
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.black_box import conflicts, ends, files, futures, lives, lost_commits, refusals, rollbacks, rows
from marker_sim.judges.findings import IMPACT, Finding, Judge

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
OF_FUTURES: dict[str, Judge] = {
    "G30": futures.leftovers_stay_unseen,
    "G31": futures.records_are_true,
    "G32": futures.metadata_is_true,
}
# They ask that a write finishes what is left before it, which several writers leave to cleaning (LAZY).
_OF_ONE_WRITER = frozenset({"G16", "G19"})


def judges_of(view: HistoryIndex) -> dict[str, Judge]:
    """The judges of a history by guarantee; where it has a future, those of its writes see only what came before, and
    what they find begins with its horizon.
    """
    own = {name: each for name, each in JUDGES.items() if name not in _OF_ONE_WRITER or not lives.shared(view)}
    if view.future:
        past = HistoryIndex(History(view.header, view.events[: view.future[0].index]))
        at_once = rows.rows_survive(past).breaches
        words = "readers find wrong rows at once" if at_once else futures.horizon(view)
        own = {name: _of_past(each, past, "" if name == "G24" else words) for name, each in own.items()}
    return own | OF_FUTURES


def _of_past(judged: Judge, past: HistoryIndex, words: str) -> Judge:
    def found(view: HistoryIndex) -> Finding:
        past.excused = view.excused
        finding = judged(past)
        lead = words and f"{IMPACT}{words.replace('; ', ', ')}; "
        return replace(finding, breaches=tuple(replace(each, message=lead + each.message) for each in finding.breaches))

    return found
