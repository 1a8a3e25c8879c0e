"""Processes and actors under one virtual clock; every step of a process is counted, and faults arm at steps.

An actor is a greenlet; it runs until it parks. What happens next is the earliest entry of one heap, ties in the order
of insertion, so a run is a function of its plan. Latencies are the model's, times a factor that a process draws from
its own stream (`Plan.jitter`), one number for each of its steps: a change of one actor leaves the others' as they are.

A killed process is a tombstone: its actors are never resumed, so no `finally` of theirs runs before the history is
closed; then they are unwound in the order of their birth, every seam call raising again. Limits: code that blocks
outside the seams blocks the whole process (see worlds/simulated/watchdog.py); actors switch at seam calls only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush, heappushpop
from typing import Any, NamedTuple

from greenlet import getcurrent, greenlet

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import Fault
from marker_sim.faults.sites import SITES
from marker_sim.history import Event
from marker_sim.markers.checked import WrongReturn
from marker_sim.worlds.cluster.recording import Events
from marker_sim.worlds.host import Life

MS = 1_000_000
_new = tuple.__new__
STEPS_MAX = 1_000_000
STEPS_BETWEEN_LOOKS = 4_096  # Steps of an actor between two checks of the number of all steps.
UNWIND_CALLS_MAX = 1_000
LAST = 1 << 62  # Added to the number of an entry that must come last among those of the same time.
_Entry = tuple[int, int, Callable[[Any], None], Any]


class ProcessKilled(BaseException):
    """Unwinds an actor of a dead process after the history is closed."""


@dataclass(slots=True, eq=False)
class Process:
    """A life of a client or server, which a kill ends. `actor` is its name in the plan, over all lives."""

    name: str
    role: str
    actor: ActorState
    life: Life = None
    alive: bool = True
    clock_ms: int = 0  # How far its clock is ahead, in ms.
    busy: Any = None  # The last attempt sent to an executor.
    part: str = ""  # The part of a write that a driver is performing.
    paused_until_ns: int = 0
    started: int | None = None
    invoke: int | None = None  # The index of its last invocation.
    environment: Any = None  # The environment of its code.
    backend: Any = None  # The driver's view of its executors and their messages.
    # For an overloaded server, the time for each request, and the end of the overload, in ns.
    overload: tuple[int, int] = (0, 0)
    free_ns: int = 0  # When an overloaded server serves the next request.
    calls: dict[Any, None] = field(default_factory=dict)
    locks: dict[str, None] = field(default_factory=dict)


class LinkFault(NamedTuple):
    """A SLOW_LINK or CUT_LINK between a client and servers, with its end."""

    fault: Fault
    until_ns: int


class ActorState:
    """The state that belongs to a name of the plan: steps so far, faults still to arm, and armed ones.

    sited: faults at sites that are not armed yet, by site. arrivals: arrivals at these sites so far.
    """

    __slots__ = ("arrivals", "draw", "link", "next_step", "pending", "sited", "steps", "storage_faults", "wire_faults")

    def __init__(self, name: str, faults: tuple[Fault, ...], jitter: int) -> None:
        self.steps = 0
        self.pending = sorted((f for f in faults if not f.site), key=lambda f: f.n)
        self.next_step = 1  # The first step is always due: with it the scheduler registers the actor.
        self.sited: dict[str, list[Fault]] = {}
        for fault in sorted((f for f in faults if f.site), key=lambda f: f.n):
            self.sited.setdefault(fault.site, []).append(fault)
        self.arrivals: dict[str, int] = {}
        self.link: LinkFault | None = None  # The current fault of its link to servers, if any.
        self.storage_faults: list[Fault] = []
        self.wire_faults: list[Fault] = []
        self.draw = random.Random(f"{jitter}/{name}").random if jitter else None

    def expect(self, fault: Fault) -> None:
        """Add a fault at a later step."""
        self.pending = sorted([*self.pending, fault], key=lambda f: f.n)
        self.next_step = min(self.next_step, fault.n)

    def draw_anew(self, name: str, jitter: int) -> tuple[Fault, ...]:
        """Take latencies from another stream; remove and return the faults that have not struck yet."""
        open_faults = (self.pending, *self.sited.values(), self.storage_faults, self.wire_faults)
        left = tuple(fault for faults in open_faults for fault in faults)
        for faults in open_faults:
            faults.clear()  # In place, because `arrive` may be iterating over one of them.
        self.sited = {}
        self.draw = random.Random(f"{jitter}/{name}").random
        return left


class Scheduler(Events):
    """The event queue, virtual clock and history of one run.

    An actor that parks determines the next event itself and switches to it, or continues at once if the event is its
    own; the hub, which began the run, is needed only to start a greenlet and to end a phase.
    """

    def __init__(
        self,
        on_process_fault: Callable[[Process, Fault], None],
        on_exit: Callable[[Process], None],
        steps_max: int = STEPS_MAX,
    ) -> None:
        self.now_ns = 0
        self._steps_max = steps_max
        self.closed = False
        self.events: list[Event] = []
        # The index of an event, and a function called once that event is recorded.
        self.awaited: tuple[int, Callable[[], None]] = (-1, self.close)
        self.states: list[ActorState] = []
        self._heap: list[_Entry] = []
        self._inserted = 0
        self._phase = LAST
        self._actors: list[greenlet] = []
        self._idle: list[greenlet] = []
        # The greenlet to run after the current callback, with the value for it.
        self._ready: tuple[greenlet | None, Any] | None = None
        self._to_start: Any = None
        self.stop = False
        self.armed: list[tuple[Fault, int]] = []  # Faults armed at sites, with the step of their actor.
        self._coordinator = getcurrent()
        self._on_process_fault = on_process_fault
        self._on_exit = on_exit
        self._unwind_calls = 0
        self.resume = self._resume  # Bound once, because it is passed at every step and compared by identity.

    @property
    def steps(self) -> int:
        """The steps of all actors."""
        return sum(state.steps for state in self.states)

    # Called by the world, in the hub.

    def append(self, row: tuple[Any, ...]) -> int:
        """Append an event at the present time and return its index."""
        if self.closed:
            return -1  # Events of a dead actor during unwinding are not part of the run.
        events = self.events
        index = len(events)
        events.append(_new(Event, (index, self.now_ns, *row)))
        if index == self.awaited[0]:
            self.awaited[1]()
        return index

    def at(self, time_ns: int, call: Callable[[Any], None], argument: Any = None) -> None:
        """Run `call(argument)` in the hub at a virtual time."""
        self._inserted = inserted = self._inserted + 1
        heappush(self._heap, (time_ns, inserted, call, argument))

    def spawn(self, process: Process, body: Callable[[], None]) -> None:
        """Start an actor of a process, at the present time."""
        self._inserted = inserted = self._inserted + 1
        heappush(self._heap, (self.now_ns, inserted, self._begin, (process, body)))

    def start(self, process: Process, body: Callable[[], None]) -> None:
        """Start an actor without delay, from the hub: must be the last thing that a callback does."""
        self._begin((process, body))

    def _begin(self, work: tuple[Process, Callable[[], None]]) -> None:
        process = work[0]
        if not process.alive:
            return
        if process.paused_until_ns > self.now_ns:
            self.at(process.paused_until_ns, self._begin, work)
            return
        assert self._ready is None, "a call of the world lets one actor go on"
        # The greenlet of a finished actor is reused: creating one costs as much as ten switches.
        self._ready = (self._idle.pop() if self._idle else None, work)

    def _perform(self, work: tuple[Process, Callable[[], None]]) -> None:
        while not self.closed:
            process, body = work
            try:
                body()
            except (SystemExit, GeneratorExit) as error:
                self.record(process.name, process.role, "observe", "exited", error=repr(error))
                self._on_exit(process)
            except WrongReturn as wrong:
                raise UsageError(str(wrong)) from None  # Raised in the coordinator, whose run ends.
            except Exception as error:
                # As with a thread, the actor ends and its process lives on.
                self.record(process.name, process.role, "observe", "actor-died", error=repr(error))
            if self.closed:
                return
            self._idle.append(getcurrent())
            work = self.park()

    def _resume(self, argument: tuple[Process, greenlet, Any]) -> None:
        """Continue an actor with a value, unless its process died; later, if it is paused."""
        process, actor, value = argument
        if not process.alive:
            return
        if process.paused_until_ns > self.now_ns:
            self.at(process.paused_until_ns, self.resume, argument)
            return
        assert self._ready is None, "a call of the world lets one actor go on"
        self._ready = (actor, value)

    def run_until_stop(self, limit_ns: int) -> None:
        """Let time pass until `stop` is set, nothing is left to happen, or the limit is reached."""
        self.stop = False
        self._inserted += 1
        phase = self._phase = LAST + self._inserted
        heappush(self._heap, (limit_ns, phase, self._over, phase))
        self._go_on(self._coordinator)
        while self._to_start is not None:
            work, self._to_start = self._to_start, None
            actor = greenlet(self._perform, self._coordinator)
            self._actors.append(actor)
            actor.switch(work)
            self._go_on(self._coordinator)

    def _over(self, phase: int) -> None:
        # Time advances to the limit although nothing happens. Limits of ended phases have no meaning.
        if phase == self._phase:
            self.stop = True

    def _go_on(self, me: greenlet, entry: _Entry | None = None) -> Any:
        """Run the next entries, until `me` is resumed (returns the value) or, in the hub, until this phase is over.

        entry: one more entry, not yet in the heap.
        """
        heap, resume, coordinator = self._heap, self.resume, self._coordinator
        if entry is not None and (self.stop or self._to_start is not None):
            heappush(heap, entry)
            entry = None
        while not self.stop and self._to_start is None:
            if entry is None:
                self.now_ns, _, call, argument = heappop(heap)
            else:
                self.now_ns, _, call, argument = heappushpop(heap, entry)
                entry = None
            if call is resume:  # Half of all entries; this saves a call for each.
                process, actor, value = argument
                if not process.alive or process.paused_until_ns > self.now_ns:
                    resume(argument)
                    continue
            else:
                try:
                    call(argument)
                except BaseException as error:
                    if me is coordinator:
                        raise
                    # An error of the world, which the code of this actor must not receive.
                    coordinator.throw(error)
                if self._ready is None:
                    continue
                (actor, value), self._ready = self._ready, None
            if actor is me:
                return value
            if actor is None:
                self._to_start = value
            elif me is coordinator:
                actor.switch(value)
            else:
                return actor.switch(value)
        return None if me is coordinator else coordinator.switch()

    def passes(self, time_ns: int) -> bool:
        """Let time pass until `time_ns` if nothing else happens by then; returns whether it did."""
        if self.stop or self._heap[0][0] <= time_ns:
            return False
        self.now_ns = time_ns
        return True

    def close(self) -> None:
        """End the history, then unwind every actor in the order of its birth."""
        self.closed = True
        for state in self.states:
            state.next_step = 0  # Every step is due now, and raises.
        for actor in self._idle:
            actor.switch(None)  # Nothing to unwind, and an exception costs more than a whole call.
        for actor in self._actors:
            if actor and not actor.dead:
                self._unwind_calls = 0
                try:
                    actor.throw(ProcessKilled)
                except (ProcessKilled, Exception):
                    # Errors of a dying actor do not matter: the history is closed.
                    continue

    def release(self) -> None:
        """Drop references within a finished run, most of which form cycles; counts and `armed` stay."""
        self._heap.clear()
        self._actors.clear()
        self._idle.clear()
        self.events = []

    # Called by actors.

    def step(self, process: Process) -> float:
        """Count a step, arm faults that are due, and return the latency factor of this step."""
        state = process.actor
        state.steps = steps = state.steps + 1
        if steps >= state.next_step:
            self._due(process, state)
        draw = state.draw
        return 1.0 if draw is None else 0.25 + 3.0 * draw() * draw()

    def arrive(self, process: Process, site: str) -> None:
        """Count an arrival at a site and arm the faults due there; called only while `process.actor.sited` has any."""
        state = process.actor
        waiting = state.sited.get(site)
        if waiting is None or self.closed:
            return
        count = state.arrivals[site] = state.arrivals.get(site, 0) + 1
        while waiting and waiting[0].n <= count:
            fault = waiting.pop(0)
            self.armed.append((fault, state.steps + SITES[site].after))
            self._arms(process, state, fault)
        if not waiting:
            state.sited.pop(site, None)
        if not process.alive or process.paused_until_ns > self.now_ns:
            self._halt(process)

    def sleep(self, process: Process, duration_ns: int) -> None:
        """Suspend the calling actor for a while."""
        self.sleep_until(process, self.now_ns + duration_ns)

    def sleep_until(self, process: Process, time_ns: int) -> None:
        """Suspend the calling actor until a time."""
        if not self.passes(time_ns):
            self.park_until(time_ns, self.resume, (process, getcurrent(), None))

    def park_until(self, time_ns: int, call: Callable[[Any], None], argument: Any) -> Any:
        """`at` and `park` in one, because this is the most frequent call."""
        if self.closed:
            self._unwind()
        self._inserted = inserted = self._inserted + 1
        return self._go_on(getcurrent(), (time_ns, inserted, call, argument))

    def park(self) -> Any:
        """Suspend the calling actor until it is resumed; returns the value it is resumed with."""
        if self.closed:
            self._unwind()
        return self._go_on(getcurrent())

    def _halt(self, process: Process) -> None:
        if process.alive:
            self.at(process.paused_until_ns, self.resume, (process, getcurrent(), None))
        self.park()

    def _unwind(self) -> None:
        self._unwind_calls += 1
        if self._unwind_calls > UNWIND_CALLS_MAX:
            # It catches the exception that should end it, so it can only be abandoned.
            self._coordinator.switch()
        raise ProcessKilled

    def _due(self, process: Process, state: ActorState) -> None:
        if self.closed:
            self._unwind()
        if state.steps == 1:
            self.states.append(state)
        if self.steps > self._steps_max:
            self._coordinator.throw(HarnessError(f"a simulated run did not end within {self._steps_max} steps"))
        while state.pending and state.pending[0].n <= state.steps:
            self._arms(process, state, state.pending.pop(0))
        look = state.steps + STEPS_BETWEEN_LOOKS
        state.next_step = min(look, state.pending[0].n) if state.pending else look
        if not process.alive or process.paused_until_ns > self.now_ns:
            self._halt(process)

    def _arms(self, process: Process, state: ActorState, fault: Fault) -> None:
        family = fault.kind.row.family
        if family == "storage":
            state.storage_faults.append(fault)
        elif family == "wire":
            state.wire_faults.append(fault)
        else:
            self._on_process_fault(process, fault)
