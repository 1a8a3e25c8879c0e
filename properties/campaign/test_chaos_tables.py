"""The tables of a night: each run is there once whatever was killed when, and what Parquet cannot hold is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from marker_sim.campaign.nightly.units import swarm
from marker_sim.system import reference
from properties.faces.campaign import (
    FOLDER,
    ROWS,
    SCHEMAS,
    NightlyTask,
    Space,
    exhaustive,
    read_lines,
    sweep,
    write_tables,
    writing,
)
from properties.faces.outcome import RunRow

MUTANT = "mutant:no-type-file"


def _rows(directory: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(directory / FOLDER / table).to_pylist()
    return rows


def _unit(first: int, count: int, listing: bool = True) -> dict[str, Any]:
    task = NightlyTask(
        stream="swarm", first=first, count=count, sut=MUTANT, profile="reference", until=0.0, seed=5, listing=listing
    )
    return swarm(task)


def _done(directory: Path, place: Mapping[str, Any], result: dict[str, Any], line: bool = True) -> None:
    """A unit is recorded as a night does it; line: or it is killed just before its line is written."""
    rows = result.pop(ROWS)
    write_tables(directory, {"night": 1, **place}, result, rows)
    if line:
        with writing(directory) as ledger:
            ledger.append("unit", night=1, **place, **result)


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A directory in which a night has begun."""
    with writing(tmp_path) as ledger:
        ledger.append("chaos", schema=1, sut=MUTANT, profile="reference", seed=5)
    return tmp_path


def test_rows_are_those_of_the_runs_that_were_counted_and_every_broken_promise_is_one(night: Path) -> None:
    place, result = {"stream": "swarm", "first": 4, "count": 3}, _unit(4, 3)
    counted = {key: value for key, value in result.items() if key != ROWS}
    assert counted == _unit(4, 3, listing=False), "rows change nothing of what is counted"
    _done(night, place, result)
    runs, broken = _rows(night, "runs"), _rows(night, "violations")
    keys = [(row["number"], row["run"]) for row in runs]
    assert len(set(keys)) == len(keys) == result["runs"] and {number for number, _ in keys} == {4, 5, 6}
    assert sum(row["steps"] for row in runs) == result["steps"] and result["violations"]
    assert sum(row["violations"] for row in runs) == len(broken)
    pairs = {"G21"}  # Of two runs, so it is in no row of one.
    assert {row["guarantee"] for row in broken} - pairs == set(result["violations"]) - pairs
    coverage = {(row["kind"], row["name"]): row["times"] for row in _rows(night, "coverage")}
    assert {name: times for (kind, name), times in coverage.items() if kind == "faults"} == result["faults"]
    assert {name: times for (kind, name), times in coverage.items() if kind == "judged"} == result["judged"]


def test_a_unit_killed_before_its_line_leaves_no_row_behind_however_it_is_cut_the_next_time(night: Path) -> None:
    _done(night, {"stream": "swarm", "first": 0, "count": 2}, _unit(0, 2))
    _done(night, {"stream": "swarm", "first": 2, "count": 2}, _unit(2, 2), line=False)
    torn = night / FOLDER / "runs" / ".swarm-000000004-2.parquet.new"
    torn.write_bytes(b"PAR1 and no more")
    whole = set((night / FOLDER).rglob("*-000000000-2.parquet"))
    gone = sweep(night, read_lines(night))
    assert len(gone) == len(SCHEMAS) + 1 and torn in gone
    assert {path for path in (night / FOLDER).rglob("*") if path.is_file()} == whole
    _done(night, {"stream": "swarm", "first": 2, "count": 1}, _unit(2, 1))
    assert sweep(night, read_lines(night)) == []
    keys = [(row["number"], row["run"]) for row in _rows(night, "runs")]
    assert len(set(keys)) == len(keys) and {number for number, _ in keys} == {0, 1, 2}
    _done(night, {"stream": "swarm", "first": 2, "count": 1}, _unit(2, 1), line=False)
    assert len(_rows(night, "runs")) == len(keys), "the same unit again replaces its rows"


def test_rows_of_the_exhaustive_search_tell_the_runs_of_one_number_apart(night: Path) -> None:
    crashes = Space(reference())
    space = f"{crashes.size}.{crashes.digest}.1"
    words: dict[str, Any] = {"stream": "exhaustive", "sut": "reference", "profile": "reference", "until": 0.0}
    task = NightlyTask(first=crashes.size + 100, count=2, space=space, listing=True, **words)
    result = exhaustive(task, crashes)
    keys = [(row.number, row.run) for row in result[ROWS]]
    assert len(set(keys)) == len(keys) == result["runs"] > 2
    assert {number for number, _ in keys} == {crashes.size + 100, crashes.size + 101}
    _done(night, {"stream": "exhaustive", "first": task.first, "count": 2, "space": space}, result)
    assert {row["space"] for row in _rows(night, "runs")} == {space}


def test_a_table_without_rows_is_there_and_a_damaged_name_is_escaped(night: Path) -> None:
    row = RunRow(
        number=1, run=0, seed=1, mode="direct", storage="s3", plans="writes", entries=1, steps=1, events=1, faults=0,
        judged=1, broken=(("G1", "lost", "none", "the name \udcff is gone"),),
    )  # fmt: skip
    _done(night, {"stream": "swarm", "first": 1, "count": 1}, {ROWS: (row,)}, line=False)
    _done(night, {"stream": "swarm", "first": 2, "count": 1}, {ROWS: ()}, line=False)
    (broken,) = _rows(night, "violations")
    assert broken["message"] == "the name \\udcff is gone"
    assert _rows(night, "coverage") == []
    for table, columns in SCHEMAS.items():
        assert pq.read_table(night / FOLDER / table).column_names == list(columns)
