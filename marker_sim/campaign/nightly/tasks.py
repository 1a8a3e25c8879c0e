"""What a worker of a night does: one unit after another, each answered by a JSON-ready dict."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from marker_sim.campaign.nightly.work import SPACE, NightlyTask, canary, shrunk, stored, swarm
from marker_sim.errors import HarnessError, UsageError
from marker_sim.targets.table import parse_target


class Desk:
    """Does one unit after another; expensive resources are kept for the next one of its stream."""

    def __init__(self) -> None:
        self._kept: Any = None
        self._of = ""

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def do(self, task: NightlyTask) -> dict[str, Any]:
        """The answer to a task; trouble is part of it, and so is why the system cannot be judged, `refused`."""
        try:
            return self._done(task)
        except (HarnessError, UsageError) as error:
            refused = isinstance(error, UsageError) and task.failure is None
            return {"refused" if refused else "trouble": str(error)}
        except Exception as error:
            traceback.print_exc()
            sys.stderr.flush()
            return {"trouble": f"unexpected {type(error).__name__}: {error}; its traceback is in the worker's log"}

    def _done(self, task: NightlyTask) -> dict[str, Any]:
        if task.sighting is not None:
            return shrunk(task)
        if task.failure is not None and task.failure["world"] == "simulated":
            return stored(task)
        foreign = not parse_target(task.sut).can.plans
        match task.stream:
            case "swarm":
                return swarm(task)
            case "canary" if not foreign:
                return canary(task)
        of = (
            "foreign"
            if foreign
            else {SPACE: "exhaustive", "exhaustive": "exhaustive", "spark": "spark"}.get(task.stream, "real")
        )
        if self._of != of:
            self._leave()
            self._kept, self._of = _station(of, task.sut), of
        do = self._kept.units if task.failure is None else self._kept.stored
        done: dict[str, Any] = self._kept.canary(task) if task.stream == "canary" else do(task)
        return done

    def _leave(self) -> None:
        if self._kept is not None:
            self._kept.__exit__(None, None, None)
            self._kept, self._of = None, ""


def _station(of: str, sut: str) -> Any:
    """Where units are done; imported here, for the swarm needs none of the extras."""
    if of == "exhaustive":
        from marker_sim.campaign.nightly.work_exhaustive import ExhaustiveWork

        return ExhaustiveWork(sut)
    if of == "foreign":
        from marker_sim.campaign.nightly.work_foreign import ForeignWork

        return ForeignWork()
    if of == "spark":
        from marker_sim.campaign.nightly.work_spark import SparkWork

        return SparkWork()
    from marker_sim.campaign.nightly.work_real import RealWork

    return RealWork()
