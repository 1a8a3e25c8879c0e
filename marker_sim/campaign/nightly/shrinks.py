"""Units that broke a promise: each waits until its violations that are worth it were made small, then it is a line.

Every violation is a task of its own, so that those of one unit are made small beside each other, by any worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from marker_sim.campaign.nightly.failures import read_record
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.campaign.nightly.work import NightlyTask, worth_shrinking


@dataclass(slots=True)
class ExploredUnit:
    """A unit whose runs are over.

    seconds: of workers, what was spent on shrinking included.
    waiting: how many of its violations are not small yet.
    """

    task: NightlyTask
    seconds: float
    result: Line
    waiting: int = 0


@dataclass(slots=True)
class Shrinks:
    """Violations to be made small, the oldest first. `due`: the tasks nobody has begun."""

    due: deque[NightlyTask] = field(default_factory=deque)
    _units: dict[tuple[str, str, int], ExploredUnit] = field(default_factory=dict)

    def explored(self, task: NightlyTask, seconds: float, result: Line, seen: Mapping[str, int]) -> ExploredUnit | None:
        """Take a unit whose runs are over; itself when nothing of it is to be made small. seen: as in `NightlyTask`."""
        unit = ExploredUnit(task, seconds, result)
        for record in result.get("sightings", ()):
            known = read_record(record)
            if known.world == "simulated" and not known.shrunk and worth_shrinking(seen.get(known.place, 0)):
                self.due.append(replace(task, record=record))
                unit.waiting += 1
        if not unit.waiting:
            return unit
        self._units[_place(task)] = unit
        return None

    def shrunk(self, task: NightlyTask, seconds: float, result: Line) -> ExploredUnit | None:
        """Take what came of a task of `due`; its unit, when that was the last one it waited for."""
        unit = self._units[_place(task)]
        small, kept = result.get("record"), unit.result["sightings"]
        unit.result["sightings"] = [small if small and each is task.record else each for each in kept]
        unit.result["trouble"] = unit.result["trouble"] or result["trouble"]
        unit.seconds += seconds
        unit.waiting -= 1
        return None if unit.waiting else self._units.pop(_place(task))

    def rest(self) -> list[ExploredUnit]:
        """The units that still wait, as far as they came; they wait no more."""
        left = list(self._units.values())
        self._units.clear()
        self.due.clear()
        return left


def _place(task: NightlyTask) -> tuple[str, str, int]:
    return task.stream, task.space, task.first
