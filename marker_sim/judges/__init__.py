"""Judges: pure functions from a finished history to findings. They never look into a running system.

    History ─► HistoryIndex ─► one judge per guarantee ─► Finding ─► Statistics + Profile ─► VerdictRow

guarantees.py   the table: id, slug and sentence of each guarantee
violations.py   one exception class per guarantee
findings.py     the result of a judge; verdict_row.py: one row of a verdict
causes.py       how a violation came about, as one stored word
store/          judges of a marker store
write_path/     judges of a write path that records its steps
black_box/      judges of a write path of which only its tables are read
pairs.py        G21, the only guarantee about two histories
promises/       profiles: which guarantees a system promises
baselines/      known violations

A new guarantee has a row in `guarantees.GUARANTEES`, which names its judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from marker_sim.history import History
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.findings import Breach, Finding, Judge
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.pairs import modes_agree

__all__ = ["Breach", "Finding", "HistoryIndex", "judge", "modes_agree"]


def judge(history: History, guarantees: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """Judge a history by some guarantees (ids), by default all; one finding for each, in the order of the table."""
    view = HistoryIndex(history)
    judges: Mapping[str, Judge | None] = {each.id: each.judge for each in GUARANTEES if each.judge}
    if view.black_box:
        from marker_sim.judges.black_box import judges_of  # Histories with recorded steps need nothing of it.

        own = judges_of(view)
        judges = {each.id: own.get(each.id) for each in GUARANTEES if each.judge or each.id in own}
    asked = judges if guarantees is None else [name for name in judges if name in guarantees]
    findings = tuple(_finding(view, name, judges[name]) for name in asked)
    vars(view).clear()  # Its cached parts refer to it; without this cycle the history is freed with its last reference.
    return findings


def _finding(view: HistoryIndex, guarantee: str, judged: Judge | None) -> Finding:
    """A finding with the excuses used to make it; not applicable where the guarantee has no judge."""
    if judged is None:
        return Finding(guarantee=guarantee, applicable=False)
    view.excused.clear()
    finding = judged(view)
    return replace(finding, excused=tuple(sorted(view.excused.items()))) if view.excused else finding
