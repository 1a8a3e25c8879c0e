"""history.parquet: a history as one row an event, readable by anything that reads Parquet, and read back exactly.

The header is JSON in the file's metadata under `marker_sim.header`. `value` is JSON as in history.jsonl. Text that is
not UTF-8 (a damaged name, kept as surrogates) cannot be a Parquet string: `escaped` is true for such a row, and all its
text columns hold JSON string literals instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from marker_sim.errors import UsageError
from marker_sim.history import Event, History, decode_value, encode_value, parse_lines

HEADER_KEY = b"marker_sim.header"
_BATCH_ROWS = 10_000
_TEXT = ("process", "role", "kind", "operation", "table", "instant", "path", "error")
_COLUMNS = (*Event._fields, "escaped")


def write_parquet(history: History, path: Path) -> None:
    """Write a history as Parquet; OSError when the file cannot be written."""
    pq.write_table(as_table(history), path, compression="zstd")


def as_table(history: History) -> pa.Table:
    """The columns of a history in memory."""
    rows = [_row(event) for event in history.events]
    header = json.dumps(asdict(history.header), sort_keys=True)
    return pa.Table.from_pylist(rows, schema=_schema()).replace_schema_metadata({HEADER_KEY: header.encode("ascii")})


def read_parquet(path: Path) -> History:
    """The history in a file of `write_parquet`; UsageError when it is something else, unknown columns are ignored."""
    try:
        file = pq.ParquetFile(path)
        header = (file.schema_arrow.metadata or {})[HEADER_KEY].decode("ascii")
        missing = [name for name in _COLUMNS if name not in file.schema_arrow.names]
        if missing:
            raise KeyError(f"it lacks the column {missing[0]!r}")
        return History(parse_lines([header], str(path)).header, tuple(_events(file)))
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise UsageError(_unreadable(path, error)) from error


def _events(file: pq.ParquetFile) -> Iterator[Event]:
    """The events of a history, one at a time."""
    for batch in file.iter_batches(_BATCH_ROWS, columns=list(_COLUMNS)):
        columns = [batch[name].to_pylist() for name in _COLUMNS]
        for *row, escaped in zip(*columns, strict=True):
            event = Event(*row)
            if escaped:
                texts = {name: json.loads(text) for name in _TEXT if (text := getattr(event, name)) is not None}
                event = event._replace(**texts)
            yield event if event.value is None else event._replace(value=decode_value(json.loads(str(event.value))))


def write_rows(path: Path, columns: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table of other rows; text that is not UTF-8, for example of a damaged name, is escaped.

    columns: Arrow types by name.
    """
    valid = [{name: _valid(value) for name, value in row.items()} for row in rows]
    table = pa.Table.from_pylist(valid, schema=pa.schema(list(columns.items())))
    pq.write_table(table, path, compression="zstd")


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_valid(each) for each in value] if isinstance(value, list) else value


def _unreadable(path: Path, error: Exception) -> str:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return f"{path} cannot be read as a history ({reason}); give the history.parquet or history.jsonl of a report"


def _schema() -> pa.Schema:
    kinds: dict[str, Any] = dict.fromkeys(_TEXT, pa.string())
    kinds |= {"index": pa.int64(), "time_ns": pa.int64(), "caused_by": pa.int64(), "value": pa.string()}
    kinds["escaped"] = pa.bool_()
    return pa.schema([(name, kinds[name]) for name in _COLUMNS])


def _row(event: Event) -> dict[str, Any]:
    row = event._asdict()
    row["value"] = None if event.value is None else json.dumps(encode_value(event.value))
    row["escaped"] = not all(_is_utf8(row[name]) for name in _TEXT)
    if row["escaped"]:
        row |= {name: json.dumps(row[name]) for name in _TEXT if row[name] is not None}
    return row


def _is_utf8(text: str | None) -> bool:
    try:
        (text or "").encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
