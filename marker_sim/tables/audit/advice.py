"""Advice that does no harm: the next step of a finding, judged by the findings beside it. Pure.

The advice of a kind (`findings.KINDS`) is right for a finding that stands alone. To delete a file or a marker
directory, or to start a write, which rolls back what is pending, may destroy what another finding needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from marker_sim.tables.audit.at_rest import TableAtRest
from marker_sim.tables.audit.findings import Level, TableFinding
from marker_sim.timeline import parse_table_file

_UNREAD = frozenset({"unreadable-instant", "empty-completed-instant"})
_LOSSES = frozenset({"missing-file", "short-file"})
_ORPHANS = frozenset({"unnamed-data-file", "rollback-left-files"})
_DAMAGED_MARKERS = frozenset({"no-type-file", "marker-file-unreadable", "glued-marker-names"})

_ONLY_RECORD = (
    "Do not delete the directory: the commit of its instant cannot be read, so its markers are the only record of the"
    " files that it wrote. Restore the entry from a backup first."
)
_NAMES_FILES = (
    "Keep the directory until the files of its instant in this report are settled: its markers say which files the"
    " instant wrote. Then stop all writers and delete it."
)
_WAIT = (
    "Keep the directory while a finding of this report is undecided: its markers may be what decides it. Then stop all"
    " writers and delete it."
)
_MAY_BE_COMMITTED = (
    "Delete none of them: they may be committed. Restore the entry or the archive that names them, then audit again."
)
_MAY_HOLD_ROWS = (
    "Do not delete it: a file of the same file group is missing or short, and this one may hold its rows. Restore that"
    " file first."
)
_BEFORE_CLEANING = (
    "Readers find its rows, for its instant is older than the timeline. Keep a copy, and delete it before the next"
    " clean, which may delete the version of its group that is right."
)
_ONLY_VERSION = (
    "Do not delete it: readers find its rows, for its instant is older than the timeline, and a clean has deleted the"
    " committed files of its group, whose rows are in it alone. Compare them with what was written."
)
_MEND_MARKERS = (
    "Start no write, for it rolls the instant back by markers that this report finds damaged. Copy its marker directory"
    " and its files, mend the markers, then roll it back."
)
_TAKES_COMMITTED = (
    "Start no write: it rolls back by a plan or by markers that name committed files. Copy these files, and find out"
    " why they are named, before anything writes."
)


def advised(findings: Iterable[TableFinding], table: TableAtRest) -> list[TableFinding]:
    """The findings of one table with their advice."""
    found, harmful = list(findings), table.undoes_commits
    kinds: dict[str, set[str]] = {}
    for finding in found:
        kinds.setdefault(finding.instant, set()).add(finding.kind)
    lost = {_group(finding.path) for finding in found if finding.kind in _LOSSES}
    undecided = any(f.level is Level.UNDECIDED and f.kind != "leftover-marker-directory" for f in found)

    def advice(finding: TableFinding) -> str:
        beside = kinds[finding.instant]
        match finding.kind:
            case "leftover-marker-directory":
                if beside & _UNREAD:
                    return _ONLY_RECORD
                return _NAMES_FILES if beside & (_LOSSES | _ORPHANS) else _WAIT if undecided else ""
            case "unnamed-data-file" | "rollback-left-files":
                if finding.level is Level.UNDECIDED:
                    return _MAY_BE_COMMITTED
                if _group(finding.path) in lost:
                    return _MAY_HOLD_ROWS
                return _deadline(table, finding) if finding.kind == "rollback-left-files" else ""
            case "pending-instant" | "unfinished-rollback" if harmful:
                return _TAKES_COMMITTED
            case "pending-instant" if beside & _DAMAGED_MARKERS:
                return _MEND_MARKERS
        return ""

    return [replace(finding, advice=finding.advice or advice(finding)) for finding in found]


def _deadline(table: TableAtRest, finding: TableFinding) -> str:
    """The advice for a file of an instant that was rolled back, "" while readers pass over it.

    They take it for committed once the first commit on the timeline, but for those that savepoints keep there, is later
    (BaseHoodieTimeline.isBeforeTimelineStarts of 1.2.0). A clean then keeps it as the newest version of its group.
    """
    instants = table.instants
    # A savepoint has the instant of its commit.
    active = (each for each in instants.committed if [entry.archived for entry in instants.completed[each]] == [False])
    if finding.instant >= min(active, default=""):
        return ""
    own = {path for path in instants.claims if _group(path) == _group(finding.path)}
    return _ONLY_VERSION if own and not own & table.stored.keys() else _BEFORE_CLEANING


def _group(path: str) -> tuple[str, str]:
    file = parse_table_file(path)
    return file[:2] if file is not None else ("", path)
