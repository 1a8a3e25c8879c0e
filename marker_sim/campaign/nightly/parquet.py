"""The night as Parquet, for queries in SQL: three tables below `tables/`, with one file for each unit.

    runs         a row a judged run
    violations   a row a run, guarantee and cause
    coverage     a row a unit and thing that was counted in it: kind is reached, looked, faults, judged or excused

A unit's files are named by its stream and numbers and are in place before its line is in the ledger. Files without a
line, after a kill, are deleted at the next start before any unit is done: so each run occurs once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from marker_sim.campaign.nightly.failures import make_folder
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.errors import HarnessError
from marker_sim.outcome.result import BROKEN, RunRow
from marker_sim.report.columns import write_rows
from marker_sim.surroundings.files import replacing, synced

FOLDER = "tables"
UNIT = {"night": "int32", "stream": "string", "space": "string"}
RUN = UNIT | {"number": "int64", "run": "int64"}
# The columns of each table with their Arrow types.
SCHEMAS: dict[str, dict[str, str]] = {
    "runs": RUN
    | {"seed": "int64", "mode": "string", "storage": "string", "plans": "string", "entries": "int64", "steps": "int64"}
    | {"events": "int64", "faults": "int64", "judged": "int64", "violations": "int64"},
    "violations": RUN
    | {"seed": "int64", "mode": "string", "storage": "string", "guarantee": "string", "cause": "string"}
    | {"under": "string", "message": "string"},
    "coverage": UNIT | {"first": "int64", "count": "int64", "kind": "string", "name": "string", "times": "int64"},
}
COVERAGE = ("reached", "looked", "faults", "judged", "excused")


def write_tables(directory: Path, place: Line, result: Line, rows: Iterable[RunRow]) -> None:
    """Write a unit's three files and sync them; HarnessError when they cannot be written.

    place: what tells the unit: night, stream, first, count, and space where it has one. result: its counts.
    """
    unit = {"night": place["night"], "stream": place["stream"], "space": place.get("space", "")}
    rows = tuple(rows)
    content = {
        "runs": [
            unit
            | {name: value for name, value in row._asdict().items() if name != "broken"}
            | {"violations": len(row.broken)}
            for row in rows
        ],
        "violations": [
            unit
            | {"number": row.number, "run": row.run, "seed": row.seed, "mode": row.mode, "storage": row.storage}
            | dict(zip(BROKEN, broken, strict=True))
            for row in rows
            for broken in row.broken
        ],
        "coverage": [
            unit | {"first": place["first"], "count": place["count"], "kind": kind, "name": name, "times": times}
            for kind in COVERAGE
            for name, times in result.get(kind, {}).items()
        ],
    }
    for table, lines in content.items():
        folder = directory / FOLDER / table
        make_folder(folder)
        _write(folder / _file_name(place), lines, SCHEMAS[table])


def sweep(directory: Path, lines: Iterable[Line]) -> list[Path]:
    """Delete the files that belong to no unit of the ledger, and return their paths."""
    present = sorted(path for table in SCHEMAS for path in (directory / FOLDER / table).glob("*") if path.is_file())
    if not present:
        return []
    known = {_file_name(line) for line in lines if line["kind"] == "unit"}
    gone = [path for path in present if path.name not in known]
    for path in gone:
        path.unlink()
    return gone


def _file_name(place: Line) -> str:
    space = f"-{place['space']}" if place.get("space") else ""
    return f"{place['stream']}{space}-{place['first']:09}-{place['count']}.parquet"


def _write(path: Path, lines: list[dict[str, Any]], columns: dict[str, str]) -> None:
    """Write a table so that its file is complete or absent, also after a loss of power."""
    try:
        with replacing(path) as beside:
            write_rows(beside, columns, lines)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
        synced(path.parent)
    except OSError as error:
        raise HarnessError(f"{path} cannot be written: {error.strerror or error}") from error
