"""What an audit says: findings of a kind and a level, and the report they add up to.

damage     certain: a correct Hudi does not leave a table in this state
undecided  possible, but the deciding entry cannot be read, or a writer is at work
note       healthy tables have it as well
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SCHEMA = 1
# What a row of audit.json and of findings.parquet has as text, besides its evidence.
COLUMNS = ("kind", "level", "instant", "path", "message", "next_step")


class Level(StrEnum):
    """The level of a finding: how certain and how grave it is."""

    DAMAGE = "damage"
    UNDECIDED = "undecided"
    NOTE = "note"


# Each kind with the next step.
KINDS = {
    "unnamed-data-file": "Compare its rows with the table; keep a copy, then delete it if no pending write owns it.",
    "missing-file": "Restore it from a backup or an object version; a savepoint's restore takes back later commits.",
    "replaced-group-visible": "Compare its rows with those of the group's replacement; keep a copy, then delete it.",
    "group-named-twice": "Delete neither: compare the rows of both, and write again those that readers do not see.",
    "lost-update": "Write the rows of the commit that was left out again; its file has them until a clean.",
    "no-partition-metadata": "Copy the file from another partition of the same depth; readers see this one again.",
    "compaction-input-missing": "Restore the base file from a backup; the compaction fails until then.",
    "short-file": "Restore the whole file from a backup or an object version; readers fail on it or lose rows.",
    "leftover-marker-directory": "Stop all writers, then delete the directory; its instant is over.",
    "marker-file-unreadable": "Keep a copy before the next write: a rollback by these markers may miss files.",
    "glued-marker-names": "Keep a copy before the next write: a rollback by these markers deletes wrong paths.",
    "no-type-file": "Write the text TIMELINE_SERVER_BASED into MARKERS.type before anything rolls the instant back.",
    "pending-instant": "Make sure that its writer is dead, then start a write, or roll the instant back with hudi-cli.",
    "empty-completed-instant": "Restore the entry from a backup; readers take the instant for completed.",
    "rolled-back-commit": "Compare its rows with the table, by readers with and without the metadata table.",
    "unreadable-instant": "Restore the entry from a backup; Hudi stops at it.",
    "rollback-left-files": "Check that no pending write owns it, keep a copy, and delete it before its instant is"
    " archived: then readers find its rows, and a clean may delete the version of its group that is right.",
    "unmarked-data-file": "Write down its path: a rollback by markers leaves it, so delete it after the rollback.",
    "unfinished-rollback": "Start a write, which finishes it, or run the rollback again with hudi-cli.",
    "unreadable-archive": "Restore the archive from a backup; until then old files cannot be decided.",
    "unreadable-properties": "Restore .hoodie/hoodie.properties from hoodie.properties.backup or a backup.",
    "foreign-file": "Nothing, unless you expected Hudi to have written it.",
    "table-changed": "Run the audit again when no writer is at work.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFinding:
    """One thing found.

    kind: a key of KINDS.
    instant, path: what it is about, "" for none; a path is relative to the table.
    message: the sentence.
    evidence: what proves it, a line each.
    advice: the next step where that of its kind would do harm (`audit/advice.py`), else "".
    """

    kind: str
    level: Level
    instant: str = ""
    path: str = ""
    message: str
    evidence: tuple[str, ...] = ()
    advice: str = ""

    @property
    def next_step(self) -> str:
        """Its own advice, else that for findings of its kind."""
        return self.advice or KINDS[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """The JSON-ready form, as in audit.json."""
        return {name: getattr(self, name) for name in COLUMNS} | {"evidence": list(self.evidence)}


def damage(kind: str, instant: str, path: str, message: str, evidence: Iterable[str]) -> TableFinding:
    """A finding of certain damage."""
    return TableFinding(
        kind=kind, level=Level.DAMAGE, instant=instant, path=path, message=message, evidence=tuple(evidence)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """The result of an audit.

    table: its address as it was given.
    version, kind, layout: of the table, "" or 0 when hoodie.properties does not say.
    counts: files, bytes, instants, requests.
    findings: the most severe first.
    not_checked: sentences.
    """

    table: str
    version: int
    kind: str
    layout: int
    kit_version: str
    duration_s: float
    counts: dict[str, int]
    findings: tuple[TableFinding, ...]
    not_checked: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """clean, damaged or undecided."""
        levels = {finding.level for finding in self.findings}
        return "damaged" if Level.DAMAGE in levels else "undecided" if Level.UNDECIDED in levels else "clean"

    def as_dict(self) -> dict[str, Any]:
        """audit.json."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "table": self.table,
            "table_version": self.version,
            "table_type": self.kind,
            "layout": self.layout,
            "kit_version": self.kit_version,
            "duration_s": round(self.duration_s, 3),
            "counts": self.counts,
            "findings": [finding.as_dict() for finding in self.findings],
            "not_checked": list(self.not_checked),
        }


def ordered(findings: Iterable[TableFinding]) -> tuple[TableFinding, ...]:
    """The gravest first, then by kind, next step, path and instant; each once."""
    levels = list(Level)
    found = dict.fromkeys(findings)
    return tuple(sorted(found, key=lambda f: (levels.index(f.level), f.kind, f.next_step, f.path, f.instant)))
