"""Tables that real Hudi releases wrote, kept as their timelines and the names and sizes of their files.

data/<release>-<cow|mor>.zip holds `.hoodie` as it was, but for the address of the table, which is `/lake/t`, and
`files.txt` with "<size> <path>" of each data file. All of them: three writes, one of which was rolled back when its
driver had been killed (mor), then an insert_overwrite and cleans (cow), or a compaction (mor).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from marker_sim.history import Header, History
from marker_sim.judges import Finding, judge
from marker_sim.names import MarkerDirectory
from properties.faces.tables import StoredFile
from properties.faces.worlds import Recorder, observe_table

TABLE = "t"
RELEASES = ("0.15.0", "1.0.2", "1.2.0")
TABLES = tuple(f"{release}-{kind}" for release in RELEASES for kind in ("cow", "mor"))
_DATA = Path(__file__).parent / "data"


class Frozen:
    """A tree that a test may bend: `files` by path relative to the table, `sizes` of those without a content."""

    def __init__(self, files: dict[str, bytes], sizes: dict[str, int]) -> None:
        self.files = files
        self.sizes = sizes

    def tree(self, path: str = "") -> list[StoredFile]:
        sizes = {each: len(content) for each, content in self.files.items()} | self.sizes
        return [StoredFile(f"{TABLE}/{each}", size, 0.0) for each, size in sizes.items()]

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        return self.files.get(path.removeprefix(f"{TABLE}/"))

    def entry(self, instant: str, end: str) -> str:
        """The only entry of an instant whose name ends so."""
        (found,) = (path for path in self.files if f"/{instant}" in path and path.endswith(end))
        return found

    def data(self, *words: str) -> str:
        """The first data file that has all these words."""
        return min(path for path in self.sizes if all(word in path for word in words))


@lru_cache(maxsize=16)
def _unpacked(name: str) -> tuple[tuple[tuple[str, bytes], ...], tuple[tuple[str, int], ...]]:
    with zipfile.ZipFile(_DATA / f"{name}.zip") as archive:
        files = {entry: archive.read(entry) for entry in archive.namelist()}
    rows = (line.partition(" ") for line in files.pop("files.txt").decode().splitlines())
    return tuple(files.items()), tuple((path, int(size)) for size, _, path in rows)


def frozen(name: str) -> Frozen:
    """A table that a real release wrote, fresh for each caller."""
    files, sizes = _unpacked(name)
    return Frozen(dict(files), dict(sizes))


class Writes:
    """A black-box history in the making: writes of one table, faults, and looks at it."""

    def __init__(self, **header: Any) -> None:
        self.header = Header(**{"world": "spark", "witness": "reads", "storage": "local", **header})
        self.recorder = Recorder()
        self.place = MarkerDirectory(TABLE, "")

    def write(self, outcome: str = "ok", *rows: str, process: str = "driver-1") -> int:
        asked = self.recorder.record(process, "driver", "invoke", "write", *self.place, value=tuple(sorted(rows)))
        kind: Any = outcome
        return self.recorder.record(process, "driver", kind, "write", *self.place, caused_by=asked)

    def serve(self, service: str, outcome: str = "ok", error: str | None = None, process: str = "driver-1") -> int:
        asked = self.recorder.record(process, "driver", "invoke", "write", *self.place, value=service)
        kind: Any = outcome
        return self.recorder.record(process, "driver", kind, "write", *self.place, error=error, caused_by=asked)

    def killed(self, path: str = f"{TABLE}/a/x.parquet", phase: str = "data-file", process: str = "driver-1") -> None:
        self.recorder.fault(process, "kill", path=path, error=phase)

    def effect(self, path: str, content: bytes | None = b"x", process: str = "driver-1") -> int:
        operation = "delete" if content is None else "put"
        full = f"{TABLE}/{path}"
        return self.recorder.record(process, "driver", "effect", operation, path=full, value=content)

    def audit(self, tree: Frozen, caused_by: int, end: bool = True) -> None:
        observe_table(self.recorder, TABLE, tree, caused_by)
        if end:
            self.recorder.record("kit", "kit", "observe", "audit", *self.place, value="end", caused_by=caused_by)

    def read(self, *rows: str, reader: str = "hudi", error: str | None = None) -> None:
        value = None if error else tuple(sorted(rows))
        self.recorder.record(reader, "kit", "observe", "rows", *self.place, value=value, error=error)

    def history(self) -> History:
        return History(self.header, self.recorder.close())

    def judged(self, guarantee: str) -> Finding:
        return judge(self.history(), frozenset({guarantee}))[0]


def at_rest(tree: Frozen, bend: Iterable[Callable[[Frozen], object]] = (), **header: Any) -> Writes:
    """A killed write, a write that recovered, and an audit of a table that was bent meanwhile."""
    for change in bend:
        change(tree)
    story = Writes(**header)
    story.write("info", "k=1")
    story.killed()
    story.audit(tree, story.write("ok", "k=2", process="driver-2"))
    return story
