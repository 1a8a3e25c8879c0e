"""Rows of a Hudi table as hudi-rs finds them: a reader that shares no code with the writer.

It runs in a separate Python process, because native code may crash or hang it; it is killed at the deadline. `main` is
that process: one question on standard input, one answer on standard output, both JSON.

    asked     {"uri": ..., "options": {...}}
    answered  {"rows": [...]}, {"error": why the table cannot be read} or {"missing": what is not installed}

Options are hudi-rs' own and, for an object store, those of its storage (`aws_endpoint`, `aws_access_key_id`,
`aws_secret_access_key`, `aws_region`, `aws_allow_http`); the table is then `s3://bucket/path`.

Limits of the reader: hudi-rs 0.5.0 refuses log files of a table whose payload class decides what a merge is (record
merge mode CUSTOM), which is recorded as "unsupported: ...". It found the rows of tables that Hudi 0.15.0, 1.0.2, 1.1.1
and 1.2.0 wrote without faults: table versions 6, 8 and 9, COPY_ON_WRITE and MERGE_ON_READ, with Avro and Parquet log
blocks, with and without the metadata table, hive-style, nested, odd and no partitions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.surroundings.requirements import REQUIREMENTS
from marker_sim.tables.entries import Unreadable

DEADLINE_S = 60.0
_SAID_MAX = 400
UNSUPPORTED = "unsupported:"
_LIMITS = ("A table with a CUSTOM record merge mode needs its own merger", "This table merges with a merger of its own")


def read_rows(uri: str, options: Mapping[str, str], *, deadline_s: float = DEADLINE_S) -> tuple[str, ...]:
    """The rows as "key=value", sorted, duplicates kept. uri: an absolute path or an address.

    Unreadable says why the table cannot be read; HarnessError when hudi-rs is not installed.
    """
    asked = json.dumps({"uri": uri, "options": dict(options)})
    words = [sys.executable, "-c", "from marker_sim.tables.hudi_rs import main; main()"]
    environment = {**os.environ, "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(
            words, input=asked, env=environment, capture_output=True, text=True, timeout=deadline_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Unreadable(f"hudi-rs did not end within {deadline_s:.0f} s") from error
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        said = " ".join(done.stderr.split())[-_SAID_MAX:]
        raise Unreadable(f"hudi-rs ended with {done.returncode} and no answer: {said}") from error
    if "missing" in answer:
        raise HarnessError(f"the rows of a Hudi table need hudi-rs ({answer['missing']}); {REQUIREMENTS['hudi'].how}")
    if "error" in answer:
        limited = any(limit in answer["error"] for limit in _LIMITS)
        raise Unreadable(f"{UNSUPPORTED} {answer['error']}" if limited else answer["error"])
    return tuple(answer["rows"])


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


def main() -> None:
    """Answer the question on standard input."""
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
