"""Every crash point of a short workload, then every pair of them: a finite space, walked in one order.

    space      parts: a marker mode on a storage under one of the schedules
    depth 1    a part with one crash: of each actor, at each of its seam calls, in each way it can die there
    depth 2    the same with a second crash, at each call that is made after the first one in the run with the first one
    order      by number: all of depth 1, then all of depth 2; a case is made from its number alone

A storage on which timeline-server markers fall back to direct ones makes no part of that mode: the run would be the
same. Not in this space: other faults than crashes, three crashes, other workloads. A second crash during recovery is
covered as long as a write is left in which faults arm; the probe write, which recovers last, has no faults.

Every schedule has one write of 3 tasks of 2 attempts each, and then a write that recovers while faults still arm; the
probe write of every run, after the last fault, recovers once more. Schedules differ in latencies, the reason for the
second attempts, the previous content of the table, and which processes die first.

Crash points are the seam calls of each actor after the last crash of its plan, in each way it can die there. A call is
identified by its actor and that actor's step. A run with one more crash, at a call after the last crash of the plan, is
the same until that call. So the crash always happens, and each pair of crashes occurs once, the earlier one first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

from marker_sim.campaign.pieces import RECHECK_EVERY, NumberedRun
from marker_sim.errors import UsageError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.plan import MODES, STORAGES, Plan, Task, Write
from marker_sim.seams import Capabilities
from marker_sim.system import System
from marker_sim.worlds.simulated.cluster import Cluster
from marker_sim.worlds.simulated.scheduler import Process
from marker_sim.worlds.simulated.storage import CAPABILITIES, SimStorage, Store
from marker_sim.worlds.simulated.watchdog import watched

COVERED = "exhaustive runs in which each crash happened"
RUNS = "exhaustive runs"
EXECUTORS = 3
LINGER_MS = 2_000
LATE_SERVER_MS = 3_000
SOON_MS = 30
_PARTITION = "dt=2020-01-01"
_TASKS = (Task(), Task(group="f1", partition=_PARTITION), Task(group="f2", partition=_PARTITION))
_BEFORE = Write(tasks=_TASKS)
_TWICE = Write(tasks=tuple(replace(task, copies=2) for task in _TASKS))
_GIVEN_UP = replace(_TWICE, abandon=True)
_NEXT = Write(tasks=(Task(kind="MERGE"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A workload of the exhaustive search.

    before: how many of its first writes are not crashed.
    changes: fields of the plan.
    only: marker modes in which it differs from the others.
    needs_both: the storage must have both modes.
    """

    name: str
    writes: tuple[Write, ...] = (_TWICE, _NEXT)
    before: int = 0
    faults: tuple[Fault, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] = ("direct", "timeline")
    needs_both: bool = False

    def plan(self, mode: str, storage: str) -> Plan:
        """The plan without crashes. A write in the "other" mode gets its name here."""
        other = "direct" if mode == "timeline" else "timeline"
        writes = tuple(replace(write, markers=other if write.markers else "") for write in self.writes)
        plan = Plan(mode=mode, storage=storage, directories=(), writes=writes, faults=self.faults, executors=EXECUTORS)
        return replace(plan, **self.changes)


def _of_kind(write: Write, kind: str) -> Write:
    return replace(write, tasks=tuple(replace(task, kind=kind) for task in write.tasks))


# Steps: take the task, request the marker, write, report. The fourth is after the marker in both modes.
_FIRST_ATTEMPTS_FAIL = tuple(Fault.of(FaultKind.ATTEMPT_KILLED, f"executor-{n}", Step(4)) for n in range(EXECUTORS))
_SLOW = replace(_TWICE, tasks=(_TWICE.tasks[0], replace(_TWICE.tasks[1], slow_ms=60), _TWICE.tasks[2]))

SCHEDULES = (
    Schedule(name="uniform"),
    Schedule(name="jitter-1", changes={"jitter": 1}),
    Schedule(name="jitter-2", changes={"jitter": 2}),
    Schedule(name="jitter-3", changes={"jitter": 3}),
    Schedule(name="retried", writes=(_BEFORE, _NEXT), faults=_FIRST_ATTEMPTS_FAIL),
    Schedule(name="slow-attempt", writes=(_SLOW, _NEXT), changes={"jitter": 4}),
    Schedule(
        name="merge-on-read",
        writes=(_BEFORE, _of_kind(_TWICE, "APPEND"), _of_kind(_NEXT, "APPEND")),
        before=1,
        changes={"merge_on_read": True},
    ),
    Schedule(name="given-up", writes=(_GIVEN_UP, _NEXT, _NEXT)),
    Schedule(name="other-mode", writes=(_GIVEN_UP, replace(_NEXT, markers="other"), _NEXT), needs_both=True),
    # Two batches in one file, because other schedules never rewrite answered content.
    Schedule(name="one-file", changes={"num_threads": 1, "jitter": 5}, only=("timeline",)),
    Schedule(name="server-outlives", changes={"embedded": False}, only=("timeline",)),
)


NAMES = tuple(schedule.name for schedule in SCHEDULES)


class Crash(NamedTuple):
    """One kind of crash: a fault without target and step, and the storage calls it needs, None for any seam call."""

    fault: Fault
    calls: tuple[str, ...] | None = None

    def fits(self, call: str | None) -> bool:
        """Whether this crash can happen at a call; `call` is None where no storage call writes."""
        return self.calls is None or call in self.calls


def crashes(actor: str, capabilities: Capabilities) -> tuple[Crash, ...]:
    """The ways in which a driver, an executor or a timeline server can die on a storage."""
    kill = Fault.of(FaultKind.KILL, "", Step(0))
    if capabilities.host_lock:
        torn = kill.of_kind(FaultKind.TORN_WRITE)
        under_way = [Crash(torn, ("put", "overwrite")), Crash(torn.but(empty=True), ("overwrite",))]
    else:
        latest_ms = capabilities.request_timeout_ms + capabilities.late_effect_ms - 1
        sent = kill.of_kind(FaultKind.ORPHANED)
        under_way = [Crash(sent.but(late_ms=ms), ("put", "delete")) for ms in (SOON_MS, latest_ms)]
    if actor == "driver":
        return (Crash(kill.but(executors_ms=0)), Crash(kill.but(executors_ms=LINGER_MS)), *under_way)
    if actor.startswith("executor"):
        return (Crash(kill), Crash(kill.of_kind(FaultKind.ATTEMPT_KILLED)), *under_way)
    return (Crash(kill), Crash(kill.but(restart_ms=LATE_SERVER_MS)), *under_way)


class WatchedCluster(Cluster):
    """The cluster, with its crash points: those after the last of some crashes of its plan.

    happened: those of the crashes that did.
    """

    def __init__(self, plan: Plan, system: System, crashed: tuple[Fault, ...]) -> None:
        super().__init__(plan, system)
        self.happened: list[Fault] = []
        self.changes: dict[tuple[str, int], str] = {}  # The storage call of an actor at a step.
        self._begun: dict[str, int] = {}  # Steps of actors before crash points begin.
        self._crashed = crashed
        self.store.tear = self._tear
        self.host.make_storage = partial(_WatchedStorage, self.store, self.changes)

    def mark(self) -> None:
        """Count calls as crash points from now on."""
        self._begun = self._steps()

    def play_watched(self, before: int) -> None:
        """Play the plan; without crashes, its first `before` writes have no crash points."""
        with watched(lambda: self.scheduler.steps):
            self.begin()
            for number, write in enumerate(self.plan.writes):
                if number == before and not self._crashed:
                    self.mark()
                self.writes.play(write)
            self._ended = self._steps()
            self.end()

    def points(self) -> tuple[Fault, ...]:
        """The possible places and kinds of one more crash, by actor, step and kind."""
        found = []
        for actor in sorted(self._ended):
            ways = crashes(actor, CAPABILITIES[self.plan.storage])
            for step in range(self._begun.get(actor, 0) + 1, self._ended[actor] + 1):
                call = self.changes.get((actor, step))
                found += [replace(way.fault, target=actor, trigger=Step(step)) for way in ways if way.fits(call)]
        return tuple(found)

    def _steps(self) -> dict[str, int]:
        return {name: state.steps for name, state in self.host.actors.items()}

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
    """The storage of a process, which notes each call under the step that it is about to make."""

    def __init__(self, store: Store, calls: dict[tuple[str, int], str], process: Process) -> None:
        super().__init__(store, process)
        self._actor, self._calls = process.name.partition("#")[0], calls

    def _note(self, operation: str) -> None:
        self._calls[self._actor, self._process.actor.steps + 1] = operation

    def _call(self, operation: str, *rest: Any) -> Any:
        self._note(operation)
        return super()._call(operation, *rest)

    def overwrite(self, path: str, data: bytes) -> None:
        """Overwrite as the model does."""
        self._note("overwrite")
        super().overwrite(path, data)


def watch(plan: Plan, system: System, crashed: tuple[Fault, ...] = (), before: int = 0) -> WatchedCluster:
    """Run a plan and collect its crash points: those after the last fault of `crashed`, or, without a crash, those of
    all writes but the first `before`.
    """
    cluster = WatchedCluster(plan, system, crashed)
    try:
        cluster.play_watched(before)
    finally:
        cluster.close()
    return cluster


class Part(NamedTuple):
    """One workload on one storage, whose crash points are searched."""

    mode: str
    storage: str
    schedule: Schedule

    @property
    def plan(self) -> Plan:
        """The plan without crashes."""
        return self.schedule.plan(self.mode, self.storage)


class Case(NamedTuple):
    """One run of the space.

    place: its number, and its place among the runs of that number.
    crashes: the last faults of the plan, in the order in which they happen.
    """

    place: tuple[int, int]
    part: Part
    plan: Plan
    crashes: tuple[Fault, ...]


class Space:
    """The single crashes and pairs of crashes of a system, by number.

    A space of n crash points is 2n numbers: number k below n is the case with the k-th crash alone, n + k stands for
    all cases with the k-th crash first and another one after it.
    """

    def __init__(
        self,
        system: System,
        modes: tuple[str, ...] = MODES,
        storages: tuple[str, ...] = STORAGES,
        schedules: tuple[str, ...] = NAMES,
    ) -> None:
        self.system = system
        self._points: dict[int, tuple[Fault, ...]] = {}
        self.parts = tuple(
            Part(mode, storage, schedule)
            for mode in modes
            for storage in storages
            if system.factory(mode) is not None and self._stays(mode, storage)
            for schedule in SCHEDULES
            if schedule.name in schedules
            and mode in schedule.only
            and (not schedule.needs_both or all(self._stays(other, storage) for other in MODES))
        )

    def _stays(self, mode: str, storage: str) -> bool:
        """Whether markers of a mode do not fall back to the other one."""
        return self.system.chosen(mode, CAPABILITIES[storage]).mode == mode

    @property
    def points(self) -> tuple[tuple[Fault, ...], ...]:
        """The crash points of each part."""
        return tuple(map(self.points_of, range(len(self.parts))))

    def points_of(self, at: int) -> tuple[Fault, ...]:
        """The crash points of a part, counted by one run of it when they are first asked for."""
        if at not in self._points:
            part = self.parts[at]
            points = watch(part.plan, self.system, before=part.schedule.before).points()
            self._points[at] = tuple(point for point in points if point not in part.plan.faults)
        return self._points[at]

    @cached_property
    def size(self) -> int:
        """The number of crash points; the space has twice as many numbers."""
        return sum(map(len, self.points))

    def place(self, number: int) -> tuple[int, Fault, bool]:
        """The part and crash of a number, and whether it stands for pairs; later parts are not counted."""
        left = number
        for pairs in (False, True):
            for at in range(len(self.parts)):
                points = self.points_of(at)
                if left < len(points):
                    return at, points[left], pairs
                left -= len(points)
        raise UsageError(f"crash {number} is not in a space of {2 * self.size} numbers")

    @cached_property
    def digest(self) -> str:
        """The digest of all parts and points: under another digest the same numbers mean other runs."""
        parts = [
            (part.mode, part.storage, part.plan, points) for part, points in zip(self.parts, self.points, strict=True)
        ]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def cases(self, numbers: Iterable[int], every: int = 1) -> Iterator[Case]:
        """The cases of these numbers. every: of the second crashes after a first one only one in so many."""
        for number in numbers:
            at, crash, pairs = self.place(number)
            part = self.parts[at]
            plan = replace(part.plan, faults=(*part.plan.faults, crash))
            if not pairs:
                yield Case((number, 0), part, plan, (crash,))
                continue
            seconds = watch(plan, self.system, (crash,)).points()
            for run in range(number % self.size % every, len(seconds), every):
                crashes = (crash, seconds[run])
                yield Case((number, run), part, replace(plan, faults=(*part.plan.faults, *crashes)), crashes)


class Crashes:
    """The runs of a space of crashes, or of some of its cases in their order."""

    def __init__(self, space: Space, cases: Iterable[Case] | None = None) -> None:
        self.system = space.system
        self._space = space
        self._cases = cases

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The runs of the numbers from `first` on; where cases were given, of the cases from the `first`-th on."""
        if self._cases is None:
            cases = self._space.cases(range(first, first + count))
        else:
            cases = islice(self._cases, first, first + count)
        for made, case in enumerate(cases):
            seen = watch(case.plan, self.system, case.crashes)
            yield NumberedRun(
                number=case.place[0],
                plan=case.plan,
                history=seen.history(),
                steps=seen.scheduler.steps,
                place=case.place,
                again=made % RECHECK_EVERY == 0,
                reached=((RUNS, 1), (COVERED, int(set(case.crashes) <= set(seen.happened)))),
            )
