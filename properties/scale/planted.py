"""Facts of many markers in which a few are missing or strange: which ones is known, so every engine must find them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from marker_sim.judges.sets.rules import RULES, SHOWN, Difference

COLUMNS = ("fact", "directory", "name", "moment")
Rows = list[tuple[str, str, str | None, int | None]]
DIRECTORIES = 10


def planted(markers: int, every: int) -> tuple[Rows, dict[str, Difference]]:
    """Facts of so many markers, of which each rule is broken by one in `every`, and what the rules must find.

    Marker n belongs to directory n % 10. Directory 9 was deleted after all its creates, directory 8 rolled back.
    """
    rows: Rows = [("rolled-back", _directory(8), None, 5), ("deleted", _directory(9), None, markers + 1)]
    rows += [("finalized", _directory(number), None, 5) for number in range(8)]
    found: dict[str, list[tuple[str, str]]] = {rule.id: [] for rule in RULES}
    judged = dict.fromkeys(found, 0)
    excused = dict.fromkeys(found, 0)
    for number in range(markers):
        place, name, odd = number % DIRECTORIES, f"p/{number:07}.parquet", (number // DIRECTORIES) % every
        directory, marker = _directory(place), f"{name}.marker.CREATE"
        if odd != 1:
            rows.append(("requested", directory, marker, number))
        if odd != 0:
            rows.append(("stored", directory, marker, number))
        rows.append(("answered", directory, marker, number))
        rows += [("committed", directory, name, 9)] if place < 8 and odd != 3 else []
        rows += (
            [("present", directory, name, 1 if odd != 4 else 7)] if (place < 8 and odd != 2) or odd in (3, 4) else []
        )
        lost, strange = odd == 0, odd == 1
        excused["answered-not-stored"] += lost and place == 9
        judged["answered-not-stored"] += not (lost and place == 9)
        judged["stored-not-requested"] += not lost
        _note(found["answered-not-stored"], lost and place != 9, directory, marker)
        _note(found["stored-not-requested"], strange, directory, marker)
        _note(found["committed-not-stored"], place < 8 and odd == 2, directory, name)
        judged["committed-not-stored"] += place < 8 and odd != 3
        _note(found["stored-not-committed"], place < 8 and odd == 3, directory, name)
        judged["stored-not-committed"] += place < 8 and odd != 2
        _note(found["stored-and-rolled-back"], place == 8 and odd == 3, directory, name)
        judged["stored-and-rolled-back"] += place == 8 and odd == 3
        excused["stored-and-rolled-back"] += place == 8 and odd == 4
    shown = {rule: tuple(sorted(names)[:SHOWN]) for rule, names in found.items()}
    return rows, {
        rule.id: Difference(judged[rule.id], excused[rule.id], len(found[rule.id]), shown[rule.id]) for rule in RULES
    }


def as_columns(rows: Rows) -> pa.Table:
    """The facts as texts."""
    types = dict.fromkeys(COLUMNS, pa.string()) | {"moment": pa.int64()}
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(column, types[name]) for name, column in zip(COLUMNS, columns, strict=True)})


def as_ids(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The same facts with ids for texts, in the order of the texts, and what the ids stand for."""
    texts = sorted({*table["directory"].to_pylist(), *table["name"].to_pylist()} - {None})
    numbers = {text: number for number, text in enumerate(texts)}
    columns = {
        name: pa.array([None if text is None else numbers[text] for text in table[name].to_pylist()], pa.int64())
        for name in ("directory", "name")
    }
    ids = pa.table({"fact": table["fact"], **columns, "moment": table["moment"]})
    return ids, pa.table({"id": pa.array(range(len(texts)), pa.int64()), "text": texts})


def write(facts: pa.Table, place: Path, part: int) -> None:
    """Facts in a file of the form that a directory is named after; one part of two in JSON is an array."""
    match place.name.partition(" ")[0]:
        case "csv":
            pc_csv.write_csv(facts, place / f"facts-{part}.csv")
        case "json" if part:
            (place / f"facts-{part}.json").write_text(json.dumps(facts.to_pylist()))
        case "json":
            (place / f"facts-{part}.json").write_text("\n".join(map(json.dumps, facts.to_pylist())))
        case _:
            pq.write_table(facts, place / f"facts-{part}.parquet")


def _directory(number: int) -> str:
    return f"t{number}/.hoodie/.temp/20260101000000{number:03}"


def _note(found: list[tuple[str, str]], broken: bool, directory: str, name: str) -> None:
    if broken:
        found.append((directory, name))
