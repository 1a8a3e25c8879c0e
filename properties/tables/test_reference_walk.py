"""The reference in the place of Hudi's Java client: the walk of hudi-java accuses nothing of it, and a mutant of it.

Every call of its writes and rollbacks meets every fate, as those of Hudi do, and the same judges judge. Where it is
accused, the judges are wrong or it is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from marker_sim.judges import judge
from marker_sim.plan import Plan
from properties.faces.judges import load_profile
from properties.faces.outcome import KEPT, NOT_MET, failures_in
from properties.faces.search import WalkPoint
from properties.faces.targets import FAILED, KILLED, TableWalk
from properties.faces.worlds import DRIVER as DRIVER_ROLE
from properties.faces.worlds import (
    Application,
    JavaDrivers,
    Pace,
    Program,
    StorageCall,
    aimed_at,
    play_table,
    traits,
    with_future,
)
from properties.volume import CI_ONLY, volume

DRIVER = "properties.tables.reference_driver"
ROOT = Path(__file__).parents[2]
MARKERS = StorageCall("driver-1", DRIVER_ROLE, "list", "t/.hoodie/.temp/20261127091528056")
PROFILE = load_profile("reference")
POINTS = volume(1_000, quick=30)  # Of a mode; some 800 are no pairs, on the two tables without a metadata table.


@dataclass(slots=True)
class ReferenceRuns:
    """Runs of the walk in one process of the reference's driver. came: what points broke, by guarantee."""

    folder: Path
    mode: str
    driver: Application
    words: list[str]
    walk: TableWalk
    came: dict[WalkPoint, set[str]] = field(default_factory=dict)

    def run(self, plan: Plan, point: WalkPoint | None) -> None:
        """One run, judged."""
        program = Program(
            home=self.folder, java="", jars=(), mark="", logs=self.folder / "logs", deadline=math.inf
        )  # fmt: skip
        played = play_table(  # The reference has no table services.
            with_future(plan, ()), number=len(self.came), version="1.2.0", program=program, scratch=self.folder,
            pace=Pace(), sut="reference", profile=PROFILE.name,
            java=JavaDrivers("1.2.0", self.words, lambda: self.driver),
        )  # fmt: skip
        assert not played.trouble, played.trouble
        broken = {kind.guarantee for kind in failures_in(played.history, judge(played.history), PROFILE)}
        if point is None:
            assert not broken and not played.refused, "a write without a fault keeps every promise"
            self.walk.number(plan, played.calls)
            return
        self.came[point] = broken
        struck = any(played.met.get(name) for name in (*KILLED.values(), *FAILED.values()))
        self.walk.took(point, struck, broken, calls=played.calls)

    def walk_through(self, chosen: Callable[[WalkPoint], bool], most: int) -> None:
        """Up to so many of the chosen points."""
        while len(self.came) < most and (found := self.walk.next()) is not None:
            if isinstance(found, Plan):
                self.run(found, None)
            elif found.death:  # Pairs: two deaths may leave a temporary file of the reference (docs/hudi-java.md).
                return
            elif chosen(found):
                self.run(found.plan, found)

    @property
    def accused(self) -> list[str]:
        """What each point broke that broke anything."""
        return [
            f"{' '.join(sorted(broken))} by {self.walk.shown(each)}" for each, broken in self.came.items() if broken
        ]


@contextmanager
def runs(folder: Path, mode: str, *mutant: str) -> Iterator[ReferenceRuns]:
    """Runs of the reference, or a mutant of it, whose tables are plain ones."""
    words = [sys.executable, "-m", DRIVER, *mutant]
    driver = Application("reference", words, {"PYTHONPATH": str(ROOT)}, folder / "driver.txt")
    walk = TableWalk((mode,), 1)
    walk.bases = [base for base in walk.bases if base[0] in ("write", "rollback") and not traits(base[1])]
    walk.controls = [with_future(plan, ()) for plan in walk.controls]
    try:
        driver.wait_ready()
        yield ReferenceRuns(folder, mode, driver, words, walk)
    finally:
        driver.kill()


@pytest.mark.parametrize("mode", [pytest.param("direct", marks=CI_ONLY), "timeline"])
def test_no_failure_of_any_call_makes_the_walk_accuse_the_reference(tmp_path: Path, mode: str) -> None:
    with runs(tmp_path, mode) as made:
        made.walk_through(lambda point: True, POINTS)
        assert not made.accused
        came = [what for row in made.walk.rows() for what in row.fates.values() if what]
        assert came.count(KEPT) > 0.9 * len(came) and set(came) <= {KEPT, NOT_MET}


def test_the_walk_accuses_a_rollback_that_takes_a_listing_that_failed_for_an_empty_one(tmp_path: Path) -> None:
    def lists(point: WalkPoint) -> bool:
        (fault,) = point.plan.faults  # Three listings of the timeline come first, which list what is below it as well.
        rollback = made.walk.bases[point.base][0] == "rollback"
        return rollback and point.fate == "4 errors" and fault.n == 4 and aimed_at(fault, "t").fits(MARKERS)

    with runs(tmp_path, "direct", "swallows-listing-errors") as made:
        made.walk_through(lists, 2)
        assert len(made.accused) == 2 and all(
            each.startswith("G15 by 4 errors at list .hoodie/.temp/#") for each in made.accused
        )
