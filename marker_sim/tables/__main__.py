"""The reading side of `hudi_rs.read_rows`: one question on standard input, one answer on standard output, both JSON.

asked     {"uri": ..., "options": {...}}
answered  {"rows": [...]}, {"error": why the table cannot be read} or {"missing": what is not installed}
"""

from __future__ import annotations

import json
import sys
from typing import Any


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to one question."""
    try:
        import pyarrow
        from hudi import HudiTableBuilder
    except ImportError as error:
        return {"missing": str(error)}
    try:
        table = HudiTableBuilder.from_base_uri(asked["uri"]).with_options(asked["options"]).build()
        rows: list[str] = []
        for batch in table.read():
            columns = pyarrow.record_batch(batch).select(["key", "value"]).to_pydict()
            rows += [f"{key}={value}" for key, value in zip(columns["key"], columns["value"], strict=True)]
    except Exception as error:
        # Any error of the reader is its answer about the table.
        return {"error": f"{type(error).__name__}: {error}"}
    return {"rows": sorted(rows)}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
