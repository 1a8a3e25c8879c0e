"""A worker of a night: performs one unit after another and answers each with a JSON-ready dict."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from marker_sim.campaign.nightly import work
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.campaign.nightly.opening import FOREIGN
from marker_sim.campaign.nightly.work import NightlyTask, canary, exhaustive, stored, swarm
from marker_sim.campaign.sources.exhaustive import Space
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.targets.table import parse_target

Kept = TypeVar("Kept")


class Desk(Keeper):
    """Performs one unit after another; expensive resources are kept for the next unit of the same kind."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: Any = None
        self._of = ""

    def do(self, task: NightlyTask) -> Line:
        """The answer to a task; `trouble` in it is an error, `refused` the reason why the system cannot be judged."""
        try:
            return self._done(task)
        except (HarnessError, UsageError) as error:
            refused = isinstance(error, UsageError) and task.failure is None
            return {"refused" if refused else "trouble": str(error)}
        except Exception as error:
            traceback.print_exc()
            sys.stderr.flush()
            return {"trouble": f"unexpected {type(error).__name__}: {error}; its traceback is in the worker's log"}

    def _done(self, task: NightlyTask) -> Line:
        if task.failure is not None and task.failure.world == "simulated":
            return stored(task)
        if not parse_target(task.sut).can.plans:
            return self._on_servers(task)
        match task.stream:
            case "swarm":
                return swarm(task)
            case "canary":
                return canary(task)
            case "exhaustive" | work.SPACE:
                return exhaustive(task, self._keep("exhaustive", lambda: Space(load_system(task.sut))))
        # Imported here, because the swarm does not need these extras.
        from marker_sim.campaign.nightly import work_played as played
        from marker_sim.campaign.sources.processes import Processes
        from marker_sim.campaign.sources.spark import SparkRuns

        if task.stream == "spark":
            return played.spark(task, self._keep("spark", lambda: SparkRuns(task.sut, task.seed)))
        real = self._keep("real", lambda: Processes(task.sut))
        if task.failure is not None:
            return played.stored_again(task.failure, load_profile(task.failure.profile), real)
        return played.processes(task, real)

    def _on_servers(self, task: NightlyTask) -> Line:
        from marker_sim.campaign.nightly import work_played as played
        from marker_sim.campaign.sources.servers import ServerRuns

        stream = task.space if task.stream == "canary" else task.stream
        storage = FOREIGN[stream] if task.failure is None else task.failure.storage
        made = (task.sut, storage, task.server, task.profile, task.seed)
        runs = self._keep(storage, lambda: ServerRuns(*made))
        runs.until = task.until
        if task.failure is not None:
            return played.stored_again(task.failure, load_profile(task.profile), runs)
        return played.false_statement(task, runs) if task.stream == "canary" else played.servers(task, runs)

    def _keep(self, of: str, make: Callable[[], Kept]) -> Kept:
        """The resource that units of one kind share, made for the first; that of the previous kind is closed."""
        if self._of != of:
            self._stack.close()
            self._of, self._kept = "", make()
            if isinstance(self._kept, AbstractContextManager):
                self._stack.enter_context(self._kept)
            self._of = of
        kept: Kept = self._kept
        return kept
