"""Rows as Parquet: what the data files of real processes hold, base and log files alike.

Columns `key` and `value`, both strings; the write token of the attempt that made the file is in the file's metadata,
so two attempts never make equal files.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from marker_sim.writer.slices import RowFormat


def encode(rows: Mapping[str, str], made_by: str) -> bytes:
    """The content of a data file."""
    keys = sorted(rows)
    schema = pa.schema([("key", pa.string()), ("value", pa.string())], metadata={"made_by": made_by})
    table = pa.table([keys, [rows[key] for key in keys]], schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def decode(data: bytes) -> dict[str, str]:
    """The rows of a data file; ValueError when it is not a whole one."""
    try:
        table = pq.ParquetFile(io.BytesIO(data)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"no Parquet file: {error}") from error
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


PARQUET = RowFormat(encode, decode)
