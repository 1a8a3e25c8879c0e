"""The crash points of one run: the seam calls of each actor after the last crash of its plan, and their kinds.

A call is identified by its actor and that actor's step. A run with one more crash, at a call after the last crash of
the plan, is the same until that call. So the crash always happens, and each pair of crashes occurs once, the earlier
one first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from marker_sim.faults import Fault, Step
from marker_sim.history import History
from marker_sim.plan import Plan
from marker_sim.seams import Condition
from marker_sim.search.schedules import crashes
from marker_sim.system import System
from marker_sim.worlds.simulated.cluster import Cluster
from marker_sim.worlds.simulated.scheduler import Process
from marker_sim.worlds.simulated.storage import CAPABILITIES, SimStorage, Store
from marker_sim.worlds.simulated.watchdog import watched


@dataclass(slots=True, kw_only=True)
class _Calls:
    """Calls by actor: steps before crash points begin, and all steps; by actor and step: the calls that write."""

    begun: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    writes: dict[tuple[str, int], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A run with its history, its steps, and the given crashes that happened."""

    history: History
    steps: int
    happened: tuple[Fault, ...]
    _calls: _Calls

    def points(self) -> tuple[Fault, ...]:
        """The possible places and kinds of one more crash, by actor, step and kind."""
        calls, found = self._calls, []
        for actor in sorted(calls.ended):
            ways = crashes(actor, CAPABILITIES[self.history.header.storage])
            for step in range(calls.begun.get(actor, 0) + 1, calls.ended[actor] + 1):
                call = calls.writes.get((actor, step))
                found += [replace(way.fault, target=actor, trigger=Step(step)) for way in ways if way.fits(call)]
        return tuple(found)


def watch(plan: Plan, system: System, crashed: tuple[Fault, ...] = (), before: int = 0) -> Watched:
    """The run of a plan, with the crash points after the last of those faults of the plan that are in `crashed`.

    Without a crash these are the points of all writes except the first `before`.
    """
    cluster = _Watching(plan, system, crashed)
    try:
        with watched(lambda: cluster.scheduler.steps):
            cluster.begin()
            for number, write in enumerate(plan.writes):
                if number == before and not crashed:
                    cluster.mark()
                cluster.writes.play(write)
            cluster.calls.ended = {name: state.steps for name, state in cluster.host.actors.items()}
            cluster.end()
    finally:
        cluster.close()
    return Watched(
        history=cluster.history(),
        steps=cluster.scheduler.steps,
        happened=tuple(cluster.happened),
        _calls=cluster.calls,
    )


class _Watching(Cluster):
    """The cluster, with its storage calls and its crashes observed."""

    def __init__(self, plan: Plan, system: System, crashed: tuple[Fault, ...]) -> None:
        super().__init__(plan, system)
        self.calls = _Calls()
        self.happened: list[Fault] = []
        self._crashed = crashed
        self.store.tear = self._tear
        self.host.make_storage = partial(_WatchedStorage, self.store, self.calls)

    def mark(self) -> None:
        """Count calls as crash points from now on."""
        self.calls.begun = {name: state.steps for name, state in self.host.actors.items()}

    def _strike(self, process: Process, fault: Fault) -> None:
        # Recorded before the call, because a killed attempt never returns from it.
        if process.alive and not self.faults.healed:
            self._note(fault)
        super()._strike(process, fault)

    def _tear(self, process: Process, fault: Fault) -> None:
        self._note(fault)
        self.faults.tear(process, fault)

    def _note(self, fault: Fault) -> None:
        if fault in self._crashed:
            self.happened.append(fault)
            self.mark()


class _WatchedStorage(SimStorage):
    """The storage of a process, which notes each changing call under the step that it is about to make."""

    def __init__(self, store: Store, calls: _Calls, process: Process) -> None:
        super().__init__(store, process)
        self._actor, self._calls = process.name.partition("#")[0], calls

    def _note(self, operation: str) -> None:
        self._calls.writes[self._actor, self._process.actor.steps + 1] = operation

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Put as the model does."""
        self._note("put")
        return super().put(path, data, condition, expected)

    def overwrite(self, path: str, data: bytes) -> None:
        """Overwrite as the model does."""
        self._note("overwrite")
        super().overwrite(path, data)

    def delete(self, path: str) -> None:
        """Delete as the model does."""
        self._note("delete")
        super().delete(path)
