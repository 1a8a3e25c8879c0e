"""Hudi tables made by hand, in both timeline layouts, for tests that audit them."""

from __future__ import annotations

import io
import json
import os
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from properties.faces.tables import TableFinding, TableReport, audit_table, open_source

PROPERTIES = """hoodie.table.name=t
hoodie.table.type={kind}
hoodie.table.version={version}
hoodie.archivelog.folder={archive}
"""
SIZE = 120
LONG_AGO_S = 86_400.0


class HandTable:
    """A table below a directory. version: 6 for layout 1, 8 for layout 2; times: instants are numbers of a minute."""

    def __init__(self, root: Path, version: int = 6, kind: str = "COPY_ON_WRITE") -> None:
        self.root = root
        self.layout = 2 if version >= 8 else 1
        self.timeline = root / ".hoodie" / ("timeline" if self.layout == 2 else "")
        self.timeline.mkdir(parents=True)
        archive = "archived" if self.layout == 1 else "history"
        text = PROPERTIES.format(kind=kind, version=version, archive=archive)
        (root / ".hoodie" / "hoodie.properties").write_text(text)

    @staticmethod
    def instant(number: int) -> str:
        """An instant that is later the larger its number."""
        return f"2026010112{number:02}00000"

    def base(self, number: int, file_id: str = "f0", partition: str = "p") -> str:
        """The path of a base file."""
        return f"{partition}/{file_id}_0-1-2_{self.instant(number)}.parquet"

    def log(self, base: int, own: int, version: int = 1, file_id: str = "f0", partition: str = "p") -> str:
        """The path of a log file."""
        instant = self.instant(own if self.layout == 2 else base)
        return f"{partition}/.{file_id}_{instant}.log.{version}_0-1-{own}"

    def store(self, *paths: str, size: int = SIZE) -> None:
        """Store data files of zero bytes, in partitions with their metadata."""
        for path in paths:
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / ".hoodie_partition_metadata").touch()
            file.write_bytes(bytes(size))

    def store_log(self, path: str, owner: int) -> None:
        """Store a log file with one block of an instant."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(log_block(self.instant(owner), b"rows"))

    def entry(self, number: int, action: str, state: str, content: object = None) -> Path:
        """Write an entry. content: what becomes JSON, bytes as they are, None for nothing."""
        instant = self.instant(number)
        name = f"{instant}.{action}.{state}"
        if state == "inflight" and action == "commit":
            name = f"{instant}.inflight"
        if state == "completed":
            name = f"{instant}_{self.instant(number)[:-1]}9.{action}" if self.layout == 2 else f"{instant}.{action}"
        path = self.timeline / name
        path.write_bytes(
            content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        )
        return path

    def begin(self, number: int, action: str = "commit") -> None:
        """A requested and an inflight entry."""
        self.entry(number, action, "requested")
        self.entry(number, action, "inflight")

    def commit(
        self,
        number: int,
        *paths: str,
        action: str = "commit",
        replaced: dict[str, list[str]] | None = None,
        size: int = SIZE,
        stored: bool = True,
        merged: str | None = None,
    ) -> dict[str, Any]:
        """A completed commit of files, which are stored. merged: the instant whose base files they rewrite."""
        self.begin(number, action)
        content = commit_content(paths, size, replaced, merged)
        self.entry(number, action, "completed", content)
        if stored:
            self.store(*paths, size=size)
        return content

    def clean(self, number: int, *paths: str, delete: bool = True) -> dict[str, Any]:
        """A completed clean of files, which are deleted."""
        self.entry(number, "clean", "requested", {"filePathsToBeDeletedPerPartition": {}})
        self.entry(number, "clean", "inflight")
        content = {"partitionMetadata": by_partition(paths, "deletePathPatterns")}
        self.entry(number, "clean", "completed", content)
        for path in paths if delete else ():
            (self.root / path).unlink()
        return content

    def rollback(self, number: int, target: int, *deleted: str, appended: Iterable[str] = ()) -> dict[str, Any]:
        """A completed rollback. appended: its command blocks."""
        plan = {"instantToRollback": {"commitTime": self.instant(target), "action": "commit"}}
        self.entry(number, "rollback", "requested", plan)
        self.entry(number, "rollback", "inflight")
        parts = by_partition(deleted, "successDeleteFiles")
        for path in appended:
            part = path.rpartition("/")[0]
            parts.setdefault(part, {"partitionPath": part}).setdefault("rollbackLogFiles", {})[path] = 9
            self.store(path)
        content = {"commitsRollback": [self.instant(target)], "partitionMetadata": parts}
        self.entry(number, "rollback", "completed", content)
        return content

    def markers(self, number: int, files: dict[str, bytes]) -> None:
        """A marker directory."""
        for name, content in files.items():
            file = self.root / ".hoodie" / ".temp" / self.instant(number) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def archive(self, *entries: tuple[int, str, dict[str, Any]], number: int = 1) -> Path:
        """Move completed entries to the archive; their other entries go as well."""
        for instant, _, _ in entries:
            for path in self.timeline.glob(f"{self.instant(instant)}*"):
                path.unlink()
        return self._archive_2(entries, number) if self.layout == 2 else self._archive_1(entries, number)

    def _archive_1(self, entries: Iterable[tuple[int, str, dict[str, Any]]], number: int) -> Path:
        rows = []
        for instant, action, content in entries:
            field = {
                "commit": "hoodieCommitMetadata",
                "clean": "hoodieCleanMetadata",
                "rollback": "hoodieRollbackMetadata",
            }
            row = {"commitTime": self.instant(instant), "actionType": action, "actionState": "COMPLETED"}
            rows.append({**row, field[action]: content})
        folder = self.root / ".hoodie" / "archived"
        folder.mkdir(exist_ok=True)
        path = folder / f".commits_.archive.{number}_1-0-1"
        path.write_bytes(archive_block(rows))
        return path

    def upgrade(self, *archived: tuple[int, str, bytes]) -> None:
        """Make it a table of version 8, whose archive has these entries, as an upgrade wrote them."""
        self.layout, self.timeline = 2, self.root / ".hoodie" / "timeline"
        self.timeline.mkdir()
        properties = self.root / ".hoodie" / "hoodie.properties"
        properties.write_text(properties.read_text().replace("version=6", "version=8"))
        for path in sorted((self.root / ".hoodie").glob("2*")):
            completed = path.suffix == ".commit"
            path.rename(self.timeline / (f"{path.stem}_{path.stem}.commit" if completed else path.name))
        self._archive_2(archived, 1)

    def _archive_2(self, entries: Iterable[tuple[int, str, dict[str, Any] | bytes]], number: int) -> Path:
        rows: list[dict[str, Any]] = [
            {
                "instantTime": self.instant(instant), "completionTime": self.instant(instant), "action": action,
                "metadata": content if isinstance(content, bytes) else json.dumps(content).encode(), "plan": None,
                "version": 1,
            }
            for instant, action, content in entries
        ]  # fmt: skip
        folder = self.timeline / "history"
        folder.mkdir(exist_ok=True)
        path = folder / f"{rows[0]['instantTime']}_{rows[-1]['instantTime']}_0.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        files = [{"fileName": each.name, "fileLen": each.stat().st_size} for each in folder.glob("*.parquet")]
        (folder / f"manifest_{number}").write_text(json.dumps({"files": files}))
        (folder / "_version_").write_text(str(number))
        return path

    def age(self, seconds: float = LONG_AGO_S) -> None:
        """Make every file older."""
        then = time.time() - seconds
        for path in self.root.rglob("*"):
            if path.is_file():
                os.utime(path, (then, then))

    def audit(self, stuck_after_s: float = 7200.0) -> TableReport:
        """Audit it as it is."""
        return audit_at(str(self.root), stuck_after_s=stuck_after_s)

    def found(self, stuck_after_s: float = 7200.0) -> list[tuple[str, str, str]]:
        """Kind, level and path of each finding."""
        return [(f.kind, f.level.value, f.path) for f in self.audit(stuck_after_s).findings]


def audit_at(table: str, endpoint: str | None = None, stuck_after_s: float = 7200.0) -> TableReport:
    """Audit the table at an address."""
    source = open_source(table, endpoint, 4)
    try:
        return audit_table(source, table, now_s=time.time(), stuck_after_s=stuck_after_s)
    finally:
        source.close()


def commit_content(
    paths: Iterable[str],
    size: int = SIZE,
    replaced: dict[str, list[str]] | None = None,
    merged: str | None = None,
) -> dict[str, Any]:
    """The content of a completed commit."""
    stats: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        stat = {"path": path, "fileSizeInBytes": size, "prevCommit": merged}
        stats.setdefault(path.rpartition("/")[0], []).append(stat)
    return {"partitionToWriteStats": stats, "partitionToReplaceFileIds": replaced or {}}


def by_partition(paths: Iterable[str], word: str) -> dict[str, dict[str, Any]]:
    """The part of a clean's or rollback's content that names files."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        part, _, name = path.rpartition("/")
        found.setdefault(part, {"partitionPath": part}).setdefault(word, []).append(name)
    return found


def log_block(instant: str, content: bytes, kind: int = 3, schema: str = "") -> bytes:
    """A block of Hudi's log format."""
    pairs = [(0, instant), (2, schema)]
    header = struct.pack(">i", len(pairs))
    for key, text in pairs:
        header += struct.pack(">ii", key, len(text.encode())) + text.encode()
    body = struct.pack(">ii", 1, kind) + header + struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 14)


def _record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def _map(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


_NAMES = {"type": "array", "items": "string"}
_STATS = {"type": "array", "items": _record("S", path="string", fileSizeInBytes="long")}
_PART = _record("P", partitionPath="string", deletePathPatterns=["null", _NAMES], successDeleteFiles=["null", _NAMES])
_SCHEMA = _record(
    "HoodieArchivedMetaEntry",
    commitTime=["null", "string"],
    actionType=["null", "string"],
    actionState=["null", "string"],
    hoodieCommitMetadata=["null", _record("C", partitionToWriteStats=_map(_STATS))],
    hoodieCleanMetadata=["null", _record("L", partitionMetadata=_map(_PART))],
    hoodieRollbackMetadata=["null", _record("R", commitsRollback=_NAMES, partitionMetadata=_map("P"))],
)


def archive_block(rows: list[dict[str, Any]]) -> bytes:
    """An Avro block of an archive of layout 1."""
    parsed = fastavro.parse_schema(_SCHEMA)
    content = struct.pack(">ii", 3, len(rows))
    for row in rows:
        record = io.BytesIO()
        fastavro.schemaless_writer(record, parsed, row)
        content += struct.pack(">i", len(record.getvalue())) + record.getvalue()
    return log_block("20260101000000000", content, schema=json.dumps(_SCHEMA))


def of_kind(report: TableReport, kind: str) -> list[TableFinding]:
    """The findings of one kind."""
    return [finding for finding in report.findings if finding.kind == kind]
