"""Random healthy tables are never accused, and one damage in any of them is always found."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from marker_sim.names import TYPE_BATCHED
from properties.audit.hand_table import HandTable

NUMBERS_MAX = 40


class _Writer:
    """Writes, cleans, rolls back, replaces and archives as a healthy Hudi does, drawn by a seed."""

    def __init__(self, table: HandTable, draw: random.Random) -> None:
        self.table, self.draw = table, draw
        self.number = 1
        self.slices: dict[tuple[str, str], list[str]] = {}
        self.done: list[tuple[int, str, dict[str, Any]]] = []

    def write(self) -> None:
        """An insert or an upsert of some groups."""
        groups = [(self.draw.choice("pq"), f"f{self.draw.randrange(5)}") for _ in range(self.draw.randint(1, 3))]
        paths = [self.table.base(self.number, group, part) for part, group in dict.fromkeys(groups)]
        self.done.append((self.number, "commit", self.table.commit(self.number, *paths)))
        for (part, group), path in zip(dict.fromkeys(groups), paths, strict=True):
            self.slices.setdefault((part, group), []).append(path)

    def clean(self) -> None:
        """Deletes older slices of some groups."""
        old = [path for paths in self.slices.values() for path in paths[:-1] if self.draw.random() < 0.7]
        for paths in self.slices.values():
            paths[:] = [path for path in paths if path not in old]
        self.done.append((self.number, "clean", self.table.clean(self.number, *old)))

    def fail(self) -> None:
        """A write that is rolled back by the next one."""
        target = self.number
        self.table.begin(target)
        path = self.table.base(target, "failed")
        self.table.store(path)
        (self.table.root / path).unlink()
        for entry in self.table.timeline.glob(f"{self.table.instant(target)}*"):
            entry.unlink()
        self.number += 1
        self.done.append((self.number, "rollback", self.table.rollback(self.number, target, path)))

    def archive(self) -> None:
        """The older half of the entries leaves the timeline."""
        half = len(self.done) // 2
        if half and not (self.table.timeline / "history").exists():
            self.table.archive(*self.done[:half], number=self.number)
            self.done = self.done[half:]

    def live(self) -> None:
        """A writer at work at the end."""
        path = self.table.base(self.number, "live")
        self.table.begin(self.number)
        names = f"{path}.marker.CREATE\n".encode()
        self.table.markers(self.number, {"MARKERS.type": TYPE_BATCHED, "MARKERS0": names})
        self.table.store(path)

    def run(self, steps: int) -> None:
        """So many of these, and perhaps a writer that is at work."""
        for _ in range(steps):
            self.draw.choice([self.write, self.write, self.write, self.clean, self.fail])()
            self.number += 1
        self.archive()
        self.write()
        self.number += 1
        if self.draw.random() < 0.3:
            self.live()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([6, 8]), st.integers(0, NUMBERS_MAX // 3))
def test_random_healthy_tables_are_not_accused_and_a_lost_or_stray_file_is_found(
    seed: int, version: int, steps: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = HandTable(Path(folder) / "t", version)
        writer = _Writer(table, random.Random(seed))
        writer.run(steps)
        assert [finding for finding in table.found() if finding[1] != "note"] == []
        lost = writer.draw.choice(sorted(paths[-1] for paths in writer.slices.values()))
        (table.root / lost).unlink()
        stray = table.base(
            writer.draw.choice([number for number, action, _ in writer.done if action == "commit"]), "zz"
        )
        table.store(stray)
        assert [f for f in table.found() if f[1] != "note"] == [
            ("missing-file", "damage", lost), ("unnamed-data-file", "damage", stray),
        ]  # fmt: skip
