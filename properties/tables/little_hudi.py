"""A stand-in for `pyspark.sql` with a Hudi of a few lines, to run scripts of tables in seconds; its drivers do die.

Each commit stores the rows it was given; a write first rolls back what was left behind, by its markers. The environment
variable LITTLE_HUDI breaks it: "leaves" a file of what it rolls back, "forgets" a row, "refuses" to write after that.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

BROKEN = os.environ.get("LITTLE_HUDI", "")


class SparkSession:
    """As much of it as the scripts use."""

    class Builder:
        def master(self, _: str) -> SparkSession.Builder:
            return self

        def config(self, *_: object) -> SparkSession.Builder:
            return self

        def getOrCreate(self) -> SparkSession:
            return SparkSession()

    builder = Builder()

    def sql(self, query: str) -> Frame:
        values = query.partition("FROM VALUES ")[2].rpartition(" AS t(")[0]
        return Frame(json.loads("[" + values.replace("(", "[").replace(")", "]") + "]"))

    @property
    def read(self) -> Reader:
        return Reader()


class Frame:
    """Rows that are written: key, partition, value and order."""

    def __init__(self, rows: list[list[str]]) -> None:
        self.rows = rows

    write = property(lambda self: self)
    format = mode = lambda self, _: self

    def options(self, **_: object) -> Frame:
        return self

    def save(self, table: str) -> None:
        root, timeline = Path(table), Path(table) / ".hoodie" / "timeline"
        timeline.mkdir(parents=True, exist_ok=True)
        instant = f"{time.time_ns():020d}"
        for left in pending(timeline):
            if BROKEN == "refuses":
                raise RuntimeError("no more")
            roll_back(root, timeline, left)
        (timeline / f"{instant}.commit.requested").touch()
        (timeline / f"{instant}.inflight").touch()
        markers = root / ".hoodie" / ".temp" / instant
        for part in sorted({row[1] for row in self.rows}):
            name = f"{part}/f{part}-0_0-1-2_{instant}.parquet"
            (markers / part).mkdir(parents=True)
            (markers / f"{name}.marker.CREATE").touch()
            (root / part).mkdir(exist_ok=True)
            time.sleep(0.1)
            (root / name).write_text(json.dumps([row for row in self.rows if row[1] == part]))
            time.sleep(0.1)
        (timeline / f"{instant}_{time.time_ns():020d}.commit").write_text("done")
        remove(markers)


class Reader:
    """The rows of completed commits, each key as the last of them has it."""

    format = option = lambda self, *_: self

    def load(self, table: str) -> Rows:
        root, found = Path(table), dict[str, str]()
        for commit in sorted((root / ".hoodie" / "timeline").glob("*_*.commit")):
            for path in root.glob(f"*/*_{commit.name.partition('_')[0]}.parquet"):
                found |= {row[0]: row[2] for row in json.loads(path.read_text())}
        if BROKEN == "forgets" and list((root / ".hoodie" / "timeline").glob("*.rollback")):
            found.pop(min(found))
        return Rows([{"key": key, "value": value} for key, value in found.items()])


class Rows(list[dict[str, str]]):
    """What was read."""

    def select(self, *_: str) -> Rows:
        return self

    def collect(self) -> Rows:
        return self


def pending(timeline: Path) -> list[str]:
    """The instants that were left behind."""
    begun = {path.name.partition(".")[0] for path in timeline.glob("*.requested")}
    return sorted(begun - {path.name.partition("_")[0] for path in timeline.glob("*_*.*")})


def roll_back(root: Path, timeline: Path, left: str) -> None:
    """Delete what the markers of an instant name."""
    markers = root / ".hoodie" / ".temp" / left
    kept = BROKEN == "leaves"
    for marker in sorted(markers.rglob("*.marker.CREATE")):
        path = root / re.sub(r"\.marker\.CREATE$", "", str(marker.relative_to(markers)))
        if path.exists() and not kept:
            path.unlink()
        kept = False
    now = f"{time.time_ns():020d}"
    (timeline / f"{now}_{now}.rollback").write_text("done")
    for path in (*timeline.glob(f"{left}.commit.requested"), *timeline.glob(f"{left}.inflight")):
        path.unlink()
    remove(markers)


def remove(folder: Path) -> None:
    """A folder with all that is in it."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
