"""An audit of one table and of the metadata table in it, from its address to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from marker_sim import __version__
from marker_sim.errors import UsageError
from marker_sim.tables.audit.claims import AuditedInstants
from marker_sim.tables.audit.data_files import DataFiles, FileRules, PartitionResult, listed_files
from marker_sim.tables.audit.findings import Level, TableFinding, TableReport, ordered
from marker_sim.tables.audit.instant_rules import (
    PendingEvidence,
    judge_directory,
    judge_entries,
    judge_pending,
    judge_unmarked,
    wanted_of,
)
from marker_sim.tables.parts import (
    BACKUP,
    METADATA,
    NAME,
    MarkerDirectoryContent,
    TableFiles,
    TableProperties,
    log_owner,
    parse_properties,
    read_directory,
    read_markers,
    split,
)
from marker_sim.tables.sources import ACCEPTED, StoredFile, TableSource
from marker_sim.tables.timeline_reader import TableTimeline, TimelineReader

STUCK_AFTER_S = 7200.0
_SHOWN = 20
_AGAIN_AFTER_S = 0.5
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
Listing = Callable[[TableSource], tuple[list[StoredFile], DataFiles]]


class TablePart(NamedTuple):
    """The data table (root "") or its metadata table (root with a slash), after the first look at its timeline."""

    root: str
    properties: TableProperties
    reader: TimelineReader
    first: TableTimeline

    @property
    def of_metadata(self) -> bool:
        """Whether it is a metadata table, also one that is audited alone."""
        return bool(self.root) or self.properties.metadata


def audit_table(
    source: TableSource,
    table: str,
    *,
    now_s: float,
    stuck_after_s: float = STUCK_AFTER_S,
    listing: Listing | None = None,
) -> TableReport:
    """Audit a table. now_s: since 1970; listing: the files below .hoodie and the data files, this process's own
    by default.

    UsageError when there is no Hudi table, HarnessError when the storage fails.
    """
    begun = time.monotonic()
    main, findings = _open(source, table)
    parts = [main]
    content = source.read(METADATA + NAME)
    if content is not None:
        parts.append(_begin(source, parse_properties(content), METADATA))
    files, data = (listing or list_here)(source)
    pending: frozenset[str] = frozenset()
    seen: set[str] = set()
    for part in parts:
        mine = split(files, part.root)
        timeline = part.reader.settle(part.reader.read())
        instants = AuditedInstants(timeline, part.properties.layout)
        judged = listed_files(mine.data) if part.root else data
        of_part = _judge_part(source, part, mine, judged, instants, main.properties, now_s, stuck_after_s)
        findings += _of_metadata(of_part, pending) if part.of_metadata else of_part
        if not part.root:
            pending = frozenset(instants.unfinished)
        seen |= {f"{part.root}{entry.instant}" for entry in timeline.entries}
    return TableReport(
        table=table,
        version=main.properties.version,
        kind=main.properties.kind,
        layout=main.properties.layout,
        kit_version=__version__,
        duration_s=time.monotonic() - begun,
        counts={"files": data.count, "bytes": data.size, "instants": len(seen), "requests": source.requests},
        findings=ordered(findings),
        not_checked=_not_checked(parts),
    )


def _not_checked(parts: list[TablePart]) -> tuple[str, ...]:
    main = parts[0].properties
    return (
        *NOT_CHECKED,
        *(NOT_CHECKED_METADATA if any(part.of_metadata for part in parts) else ()),
        *(NOT_CHECKED_ALONE if main.metadata else ()),
        *(NOT_CHECKED_BOOTSTRAP if main.bootstrapped else ()),
    )


def list_here(source: TableSource) -> tuple[list[StoredFile], DataFiles]:
    """All files, listed by this process."""
    files = source.tree()
    below = [file for file in files if file.path.startswith(".hoodie/")]
    return below, listed_files(split(files, "").data)


def _open(source: TableSource, table: str) -> tuple[TablePart, list[TableFinding]]:
    """The data table, and what is wrong with its properties; Hudi reads their backup where they are damaged."""
    properties = parse_properties(source.read(NAME) or b"")
    if properties.name:
        level = Level.UNDECIDED
    else:
        below = source.tree(".hoodie")
        if not below:
            raise UsageError(f"{table} has no .hoodie folder, so it is no Hudi table; give {ACCEPTED}")
        folders = frozenset(file.path.split("/")[1] for file in below if file.path.count("/") > 1)
        backup = parse_properties(source.read(BACKUP) or b"", folders)
        level = Level.UNDECIDED if backup.name else Level.DAMAGE
        properties = replace(backup, trouble=properties.trouble)
    message = f"hoodie.properties {properties.trouble}; layout {properties.layout} is assumed."
    found = [TableFinding(kind="unreadable-properties", level=level, path=NAME, message=message)]
    return _begin(source, properties, ""), found if properties.trouble else []


def _begin(source: TableSource, properties: TableProperties, root: str) -> TablePart:
    reader = TimelineReader(source, properties, root)
    return TablePart(root, properties, reader, reader.read())


def _judge_part(
    source: TableSource, part: TablePart, files: TableFiles, data: DataFiles, instants: AuditedInstants,
    main: TableProperties, now_s: float, stuck_after_s: float,
) -> list[TableFinding]:  # fmt: skip
    found = judge_entries(instants)
    settled = frozenset(entry.instant for entry in part.first.entries if entry.done)
    directories = read_markers(source, part.root, files)
    wanted = wanted_of(instants, directories)
    rules = FileRules(
        instants=instants, settled=settled, metadata=part.of_metadata, enabled=main.metadata_partitions, wanted=wanted,
        owner=lambda path: log_owner(source, part.root + path),
    )  # fmt: skip
    result = data.judge(rules)
    found += result.findings
    found += _summaries(result)
    for instant in sorted(directories):
        found += _markers(source, part.root, directories, instant, instants, now_s)
    evidence = PendingEvidence(result.pending, directories, files.heartbeats, result.present)
    found += judge_pending(instants, evidence, now_s, stuck_after_s)
    if not part.of_metadata:
        found += _unmarked(source, part, instants, evidence)
    return [_below(part.root, finding) for finding in found]


def _markers(
    source: TableSource, root: str, directories: dict[str, MarkerDirectoryContent], instant: str,
    instants: AuditedInstants, now_s: float,
) -> list[TableFinding]:  # fmt: skip
    found = judge_directory(directories[instant], instants, now_s)
    if found:  # Read again: it was listed before the timeline, and its writer may have been at work.
        if any(finding.kind in _IN_THE_MAKING for finding in found):
            time.sleep(_AGAIN_AFTER_S)
        again = read_directory(source, root, instant)
        if again is None:
            return []
        directories[instant] = again
        found = judge_directory(again, instants, now_s)
    return found


def _unmarked(
    source: TableSource, part: TablePart, instants: AuditedInstants, evidence: PendingEvidence
) -> list[TableFinding]:
    """Unmarked files of instants that are still pending, by markers that were listed after the files."""
    suspects = {finding.instant for finding in judge_unmarked(instants, evidence)}
    if not suspects:
        return []
    again = {instant: read_directory(source, part.root, instant) for instant in sorted(suspects)}
    markers = {instant: content for instant, content in again.items() if content is not None}
    newest = AuditedInstants(part.reader.read(), instants.layout)
    files = {instant: evidence.files[instant] for instant in sorted(suspects & newest.unfinished.keys())}
    return judge_unmarked(newest, evidence._replace(files=files, markers=markers))


def _summaries(result: PartitionResult) -> Iterable[TableFinding]:
    for (kind, reason), paths in sorted(result.undecided.items()):
        yield TableFinding(
            kind=kind, level=Level.UNDECIDED,
            message=f"{len(paths):,} files cannot be decided: {reason}.", evidence=tuple(sorted(paths)[:_SHOWN]),
        )  # fmt: skip
    if result.foreign:
        yield TableFinding(
            kind="foreign-file", level=Level.NOTE,
            message=f"{len(result.foreign):,} files do not have a name of Hudi's.",
            evidence=tuple(sorted(result.foreign)[:_SHOWN]),
        )  # fmt: skip


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
