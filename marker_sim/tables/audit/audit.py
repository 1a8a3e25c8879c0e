"""An audit of one table and of the metadata table in it, from its address to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from marker_sim import __version__
from marker_sim.errors import UsageError
from marker_sim.tables.audit.advice import advised
from marker_sim.tables.audit.at_rest import TableAtRest
from marker_sim.tables.audit.data_files import FOREIGN, JudgedFiles, judge_files
from marker_sim.tables.audit.findings import Level, TableFinding, TableReport, ordered
from marker_sim.tables.audit.instant_rules import judge_directory, judge_entries, judge_pending, judge_unmarked
from marker_sim.tables.parts import (
    BACKUP,
    METADATA,
    NAME,
    VERSIONS,
    TableProperties,
    log_owner,
    parse_properties,
    read_directory,
    read_markers,
    split,
)
from marker_sim.tables.sources import ACCEPTED, StoredFile, TableSource
from marker_sim.tables.timeline_reader import AGAIN_AFTER_S, TimelineReader
from marker_sim.timeline import HOODIE, PARTITION_METADATA, is_side_file

STUCK_AFTER_S = 7200.0
_SHOWN = 20
_IN_THE_MAKING = frozenset({"marker-file-unreadable", "glued-marker-names", "no-type-file"})
NOT_CHECKED = (
    "Rows and columns inside data files are not read; only their names and lengths are.",
    "Empty directories, also empty marker directories, are not looked at; a bucket has none.",
)
NOT_CHECKED_METADATA = (
    "Of the metadata table its records are not read, and log files that no commit names are not judged: Hudi makes"
    " some without naming them.",
)
NOT_CHECKED_ALONE = (
    "Missing files: a metadata table that is given alone does not say which partitions it is to have.",
)
NOT_CHECKED_BOOTSTRAP = ("The table was bootstrapped: the files outside of it, which it shows, are not looked at.",)
_NEWER = "Change nothing in hoodie.properties; audit the table with a release of marker-sim that knows its version."
Listing = Callable[[TableSource], list[StoredFile]]


class TablePart:
    """The data table (root "") or its metadata table (root with a slash), from the first look at its timeline on.

    settled: the instants that were completed then. of_metadata: also of a metadata table that is audited alone.
    """

    def __init__(self, source: TableSource, properties: TableProperties, root: str) -> None:
        self.source = source
        self.properties = properties
        self.root = root
        self.of_metadata = bool(root) or properties.metadata
        self.reader = TimelineReader(source, properties, root)
        self.settled = frozenset(entry.instant for entry in self.reader.read().entries if entry.done)

    def owner(self, path: str) -> str | None:
        """The instant in the first block of a log file, as `parts.log_owner` reads it."""
        return log_owner(self.source, self.root + path)

    def judge(self, table: TableAtRest) -> list[TableFinding]:
        """Everything about it."""
        result = judge_files(table)
        found = [*judge_entries(table.instants), *result.findings, *_summaries(result)]
        table = replace(table, files=result.pending, markers=dict(table.markers))
        for instant in sorted(table.markers):
            found += self._markers(table, instant)
        found += judge_pending(table)
        if not self.of_metadata:
            found += self._unmarked(table)
        return advised(found, table)

    def _markers(self, table: TableAtRest, instant: str) -> list[TableFinding]:
        found = judge_directory(table, table.markers[instant])
        if found:  # Read again: it was listed before the timeline, and its writer may have been at work.
            if any(finding.kind in _IN_THE_MAKING for finding in found):
                time.sleep(AGAIN_AFTER_S)
            again = read_directory(self.source, self.root, instant)
            if again is None:
                return []
            table.markers[instant] = again
            found = judge_directory(table, again)
        return found

    def _unmarked(self, table: TableAtRest) -> list[TableFinding]:
        """Unmarked files of instants that are still pending, by markers that were listed after the files."""
        suspects = sorted({finding.instant for finding in judge_unmarked(table)})
        if not suspects:
            return []
        again = {instant: read_directory(self.source, self.root, instant) for instant in suspects}
        markers = {instant: content for instant, content in again.items() if content is not None}
        newest = self.reader.read()
        files = {instant: table.files[instant] for instant in suspects if instant in newest.unfinished}
        return judge_unmarked(replace(table, instants=newest, files=files, markers=markers))


def audit_table(
    source: TableSource,
    table: str,
    *,
    now_s: float,
    stuck_after_s: float = STUCK_AFTER_S,
    listing: Listing | None = None,
) -> TableReport:
    """Audit a table. now_s: since 1970; listing: of its files, by this process alone when none is given.

    UsageError when there is no Hudi table, HarnessError when the storage fails.
    """
    begun = time.monotonic()
    main, findings = _open(source, table)
    parts = [main]
    content = source.read(METADATA + NAME)
    if content is not None:
        parts.append(TablePart(source, parse_properties(content), METADATA))
    files = source.tree() if listing is None else listing(source)
    sizes: list[int] = []
    unknown = 0
    pending: frozenset[str] = frozenset()
    seen = 0
    for part in parts:
        mine = split(files, part.root)
        instants = part.reader.settled()
        stored = {file.path: file for file in mine.data if not is_side_file(file.path)}
        at_rest = TableAtRest(
            instants=instants,
            settled=part.settled,
            stored=stored,
            described=frozenset(f.path.rpartition("/")[0] for f in mine.data if PARTITION_METADATA in f.path),
            metadata=part.of_metadata,
            enabled=main.properties.metadata_partitions,
            owner=part.owner,
            markers=read_markers(source, part.root, mine),
            heartbeats=mine.heartbeats,
            now_s=now_s,
            stuck_after_s=stuck_after_s,
        )
        if part is main:
            sizes = [file.size for file in stored.values()]
        of_part = [_below(part.root, finding) for finding in part.judge(at_rest)]
        findings += _of_metadata(of_part, pending) if part.of_metadata else of_part
        pending = frozenset(instants.unfinished)
        unknown += sum(claim.file is None for claim in instants.claims.values())
        seen += len({entry.instant for entry in instants.entries})
    return TableReport(
        table=table,
        version=main.properties.version,
        kind=main.properties.kind,
        layout=main.properties.layout,
        kit_version=__version__,
        duration_s=time.monotonic() - begun,
        counts={"files": len(sizes), "bytes": sum(sizes), "instants": seen, "requests": source.requests},
        findings=ordered(findings),
        not_checked=_not_checked(parts, unknown),
    )


def _not_checked(parts: list[TablePart], unknown: int) -> tuple[str, ...]:
    """unknown: the number of committed files whose names are none of Hudi's."""
    main = parts[0].properties
    return (
        *NOT_CHECKED,
        *(NOT_CHECKED_METADATA if any(part.of_metadata for part in parts) else ()),
        *(NOT_CHECKED_ALONE if main.metadata else ()),
        *(NOT_CHECKED_BOOTSTRAP if main.bootstrapped else ()),
        *([f"{unknown:,} files that commits name have no name of Hudi's and may be gone."] if unknown else ()),
    )


def _open(source: TableSource, table: str) -> tuple[TablePart, list[TableFinding]]:
    """The data table, and what is wrong with its properties; Hudi reads their backup where they are damaged."""
    files, paths = source.level(HOODIE)
    if not files and not paths:
        raise UsageError(f"{table} has no .hoodie folder, so it is no Hudi table; give {ACCEPTED}")
    folders = frozenset(path.rpartition("/")[2] for path in paths)
    properties = parse_properties(source.read(NAME) or b"", folders)
    level = Level.UNDECIDED
    if not properties.name:
        backup = parse_properties(source.read(BACKUP) or b"", folders)
        level = Level.UNDECIDED if backup.name else Level.DAMAGE
        properties = replace(backup, trouble=properties.trouble)
    message = f"hoodie.properties {properties.trouble}; layout {properties.layout} is assumed."
    advice = "" if properties.version in VERSIONS else _NEWER
    found = [TableFinding(kind="unreadable-properties", level=level, path=NAME, message=message, advice=advice)]
    return TablePart(source, properties, ""), found if properties.trouble else []


def _summaries(result: JudgedFiles) -> Iterable[TableFinding]:
    for (kind, reason), paths in sorted(result.undecided.items()):
        foreign = kind == FOREIGN
        said = "do not have a name of Hudi's" if foreign else f"cannot be decided: {reason}"
        yield TableFinding(
            kind=kind,
            level=Level.NOTE if foreign else Level.UNDECIDED,
            message=f"{len(paths):,} files {said}.",
            evidence=tuple(sorted(paths)[:_SHOWN]),
        )


def _of_metadata(findings: list[TableFinding], pending: frozenset[str]) -> Iterable[TableFinding]:
    """Findings of a metadata table: what is pending in the data table is said once, and Hudi repairs the rest."""
    for finding in findings:
        stuck = finding.kind in ("pending-instant", "unfinished-rollback")
        if stuck and finding.instant in pending:
            continue
        level = Level.UNDECIDED if stuck and finding.level is Level.DAMAGE else finding.level
        yield replace(finding, level=level)


def _below(root: str, finding: TableFinding) -> TableFinding:
    if not root:
        return finding
    path = f"{root}{finding.path}" if finding.path and not finding.path.startswith(root) else finding.path
    return replace(finding, path=path, message=f"Metadata table: {finding.message}")
