"""Archived entries of a timeline, in both formats, as the records that entries of the active timeline hold.

    layout 1   <table>/.hoodie/archived/.commits_.archive.<n>_<token>   Hudi's log format: Avro, a record an entry
    layout 2   <table>/.hoodie/timeline/history/<min>_<max>_<level>.parquet, of which manifest_<n> lists the valid ones
               and _version_ has the newest n

A log block is `#HUDI#`, its size (8 bytes, all that follows), a version and a type (4 each), a header (a count, then
key, length and text), the size of its content (8), the content, a footer like the header, and the whole size again (8).
The content of an Avro block is a version and a count (4 each), then a length (4) and binary Avro for each record.
Source: HoodieLogFormatWriter, HoodieAvroDataBlock, HoodieArchivedMetaEntry of Hudi 0.15.0; LSMTimeline and
HoodieLSMTimelineInstant of 1.2.0.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from marker_sim.surroundings.requirements import importing
from marker_sim.tables.entries import AVRO, TableEntry, Unreadable, by_word, facts_of
from marker_sim.timeline import COMMITS, State

MAGIC = b"#HUDI#"
ARCHIVE_LOG = re.compile(r"\.commits_\.archive\.[0-9]+(?:_.*)?\Z")
MANIFEST = re.compile(r"manifest_([0-9]+)\Z")
_Content = bytes | Mapping[str, Any] | None
_FOLDERS = (".hoodie/archived/", ".hoodie/timeline/history/")
_AVRO_BLOCK = 3
_INSTANT, _SCHEMA = 0, 2
_HEADERS_MAX = 64
ERROR_MAX = 200
NO_SCHEMA = "its content has no schema, as that of entries which an upgrade moved"
# The fields of an archived record of layout 1 with the content of an action's entry.
_CONTENTS = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "clean": "hoodieCleanMetadata",
    "rollback": "hoodieRollbackMetadata",
    "savepoint": "hoodieSavePointMetadata",
}


def is_archive(relative: str) -> bool:
    """Whether a path relative to its table holds entries that left the timeline; an archive's index alone does not."""
    name = relative.rpartition("/")[2]
    return relative.startswith(_FOLDERS) and (name.endswith(".parquet") or ".archive." in name)


def first_instant(head: bytes) -> str:
    """The instant of the first block of a log file, which may be cut off; "" without a block."""
    try:
        headers, _ = _headers(memoryview(head), 22)
    except (struct.error, UnicodeDecodeError, ValueError):
        return ""
    return headers.get(_INSTANT, "") if head.startswith(MAGIC) else ""


def read_archive(content: bytes | None, path: str) -> tuple[TableEntry, ...] | str:
    """The entries of an archive of either format, which lies at a path, or why it cannot be read."""
    if content is None:
        return f"{path} is missing"
    read = read_parquet if path.endswith(".parquet") else read_log
    try:
        return tuple(read(content, path))
    except Unreadable as error:
        return f"{path}: {error}"


def read_log(content: bytes, path: str) -> Iterator[TableEntry]:
    """The entries of an archive of layout 1, which lies at a path; Unreadable where a block is malformed or cut off."""
    data, at = memoryview(content), 0
    while at < len(data):
        if content[at : at + len(MAGIC)] != MAGIC:
            raise Unreadable(f"no block begins at byte {at}")
        try:
            size, _, kind = struct.unpack_from(">qii", data, at + 6)
            if size <= 0 or at + 14 + size > len(data):
                raise Unreadable(f"the block at byte {at} is cut off")
            headers, below = _headers(data, at + 22)
            (length,) = struct.unpack_from(">q", data, below)
            if kind == _AVRO_BLOCK:
                yield from _records(headers[_SCHEMA], content[below + 8 : below + 8 + length], path)
        except (struct.error, ValueError, KeyError, EOFError, IndexError, TypeError, AttributeError) as error:
            raise Unreadable(f"the block at byte {at}: {type(error).__name__}: {error}") from error
        at += 14 + size


def _headers(data: memoryview, at: int) -> tuple[dict[int, str], int]:
    """A header or footer by key, and where it ends."""
    (count,) = struct.unpack_from(">i", data, at)
    if not 0 <= count <= _HEADERS_MAX:
        raise ValueError(f"{count} headers")
    at += 4
    found = {}
    for _ in range(count):
        key, length = struct.unpack_from(">ii", data, at)
        if length < 0 or at + 8 + length > len(data):
            break  # The file ends within a header.
        found[key] = bytes(data[at + 8 : at + 8 + length]).decode("utf-8")
        at += 8 + length
    return found, at


def _records(schema: str, content: bytes, path: str) -> Iterator[TableEntry]:
    with importing("an archived Hudi timeline"):
        import fastavro
    parsed = fastavro.parse_schema(json.loads(schema))
    _, count = struct.unpack_from(">ii", content, 0)
    at = 8
    for _ in range(count):
        (length,) = struct.unpack_from(">i", content, at)
        record: Any = fastavro.schemaless_reader(io.BytesIO(content[at + 4 : at + 4 + length]), parsed, None)
        at += 4 + length
        action = record.get("actionType") or ""
        state = str(record.get("actionState") or "COMPLETED").lower()
        said = record.get(_CONTENTS.get(action, "")) if state == State.COMPLETED else None
        plan = record.get("hoodieCleanerPlan") if action == "clean" else None
        yield _entry(record.get("commitTime"), action, state, path, said, plan)


def valid_files(index: Mapping[str, bytes]) -> tuple[str, ...]:
    """The Parquet files of an archive of layout 2 that count; Unreadable when its manifest is missing or malformed.

    index: contents of its manifests and of _version_, by name.
    """
    known = [int(match[1]) for match in map(MANIFEST.match, index) if match]
    said = index.get("_version_", b"").decode("ascii", "replace").strip()
    newest = f"manifest_{said if said.isdigit() else max(known, default=0)}"
    if newest not in index:
        raise Unreadable(f"{newest} is missing")
    try:
        files = json.loads(index[newest])["files"]
        return tuple(sorted(each["fileName"] for each in files))
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{newest}: {type(error).__name__}: {error}") from error


def read_parquet(content: bytes, path: str) -> Iterator[TableEntry]:
    """The entries of a file of an archive of layout 2, which lies at a path; Unreadable when it is malformed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
        rows = table.to_pylist()
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    for row in rows:
        action = row.get("action") or ""
        plan = row.get("plan") if action in ("clean", "rollback") else None
        entry = _entry(row.get("instantTime"), action, State.COMPLETED, path, row.get("metadata"), plan)
        yield entry._replace(completion=row.get("completionTime") or "")


def _entry(instant: str | None, action: str, state: str, path: str, record: _Content, plan: _Content) -> TableEntry:
    """An archived entry with the facts of its record and its plan; None where the archive holds none."""
    entry = TableEntry(instant or "", action, state, path, {}, archived=True)
    found: list[str] = []
    error = ""
    if record:
        found, error = facts_of(entry, record)
        if isinstance(record, bytes) and not record.startswith((AVRO, b"{")):
            # An upgrade moves entries as Avro without a schema; the archive of layout 1 still has it.
            error = NO_SCHEMA
    elif entry.done and entry.action in (*COMMITS, "clean", "rollback"):
        error = "the archive holds no content of it"
    if plan:
        planned, wrong = facts_of(entry._replace(state=State.REQUESTED), plan)
        found, error = found + planned, error or wrong
    return entry._replace(facts=by_word(found), error=error[:ERROR_MAX])
