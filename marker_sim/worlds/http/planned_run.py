"""Runs one plan against real servers and returns its history.

start ─► faults, while clients ask ─► healed ─► probes ─► end ─► look, kill, look

A server that met no fault and answered everything serves the next run, unless servers wrote to files outside of tables;
such a run costs only as long as its clients take. All tables of a run lie below a folder of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from marker_sim import __version__
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.faults.row import READS
from marker_sim.history import Header, History
from marker_sim.judges.promises.profiles import Profile
from marker_sim.names import MarkerDirectory, parse_directory
from marker_sim.outcome.conditions import conditions_met
from marker_sim.plan import Plan
from marker_sim.worlds.door.front import OTHERWISE, UNSEEN
from marker_sim.worlds.http.clients import Requests, Scripts
from marker_sim.worlds.http.fault_injector import KIT_PROBE, ServerFaultInjector
from marker_sim.worlds.http.plan_faults import PlanFaults, at_a_call, call_of, refuses_calls
from marker_sim.worlds.http.plan_wires import STORAGE_WIRE, wires_of
from marker_sim.worlds.http.probes import Probes, Watch
from marker_sim.worlds.http.servers import Fleet, Server
from marker_sim.worlds.http.starvation import Idleness
from marker_sim.worlds.http.world import UNREAD, RunGround, RunStorage
from marker_sim.worlds.interceptor import ArmedFault, StorageCall
from marker_sim.worlds.played import PlayedRun
from marker_sim.worlds.recorder import Recorder

SCRIPTS_S = 8.0
# Longer than any answer may take, so that a request that hangs because of a failing directory is seen to hang.
LONGER_S = 13.0
IDLE_S = 3.0  # All open requests wait for an answer; one that hangs is noticed during the probes.
# The same after storage failed: together with the probes, longer than its time-out and any answer may take.
REFUSED_IDLE_S = 4.5
REUSED_MAX = 12
KEEPS = ("write", "rename", "link", "put")  # Calls that change what is stored.
OF_PLANS = "in plans: "
HOSTILE = "hostile directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSystem:
    """The system under test as a run needs it.

    world: the storage of a run.
    identity: whether the server honours the identity of a request, our extension `requestid`.
    batching: how its batches are assumed to be limited, and why.
    """

    name: str
    version: str
    profile: Profile
    world: Callable[[RunGround], RunStorage]
    identity: bool = False
    batching: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPlan(PlayedRun):
    """A run of a plan against servers.

    hung: requests hung, and the caller asked not to wait for them.
    calls: storage calls of servers while faults were armed, with paths as in the plan: below its tables, or with a
    slash
        from the root of storage, where a server has files of its own. struck: the faults that happened at a call.
    """

    hung: bool
    calls: tuple[StorageCall, ...]
    struck: tuple[Fault, ...]


@dataclass(eq=False)
class ServerSlot:
    """A server that may live on from one run to the next, and its storage; one run at a time."""

    name: str
    system: ForeignSystem
    fleet: Fleet
    _world: RunStorage | None = None
    _server: Server | None = None
    _ground: tuple[object, ...] = ()
    _runs: int = 0
    _worlds: int = 0

    def run(self, plan: Plan, deadline: float, probing: bool = True, patient: bool = True) -> PlayedPlan:
        """Run a plan; HarnessError when the kit's surroundings failed.

        deadline: when the campaign has to be over (time.monotonic).
        probing: whether it ends with probes. patient: whether requests that hang are awaited, without which G6 is not
            judged.
        """
        ground = (plan.num_threads, plan.interval_ms, reads_fail(plan), power_fails(plan), wires_of(plan))
        if self._ground != ground or self._runs % REUSED_MAX == 0:
            self.close()
        self._runs += 1
        system = replace(self.system, world=self._bind)
        run = PlannedRun(system, self.fleet, plan, f"{self.name}-{self._runs}", deadline, patient)
        keep = False
        try:
            keep = run.play(self._server, probing)
            return run.over()
        finally:
            self._server = run.leave(keep)
            self._ground = ground
            if self._server is None:
                self.close()

    def close(self) -> None:
        """End the server and remove what was stored."""
        server, self._server = self._server, None
        world, self._world = self._world, None
        if world is not None:
            self.fleet.end_ahead(world.surroundings)
        if server is not None:
            server.kill()
        if world is not None:
            self._worlds += 1
            world.close()

    def _bind(self, ground: RunGround) -> RunStorage:
        if self._world is None:
            self._world = self.system.world(ground._replace(storage=f"{self.name}-s{self._worlds}"))
        else:
            self._world.bind(ground)
        return self._world


def reads_fail(plan: Plan) -> bool:
    """Whether a plan has faults that need reads to be watched, which costs time."""
    return any(not READS.isdisjoint(call_of(fault).operations) for fault in plan.faults if at_a_call(fault))


def power_fails(plan: Plan) -> bool:
    """Whether a plan has a loss of power."""
    return any(fault.kind is FaultKind.POWER_LOST for fault in plan.faults)


class PlannedRun:
    """One run of a plan.

    table: the folder that all tables of the run lie below. places: the marker directories that are read and probed.
    deadline: when the campaign has to be over (time.monotonic).
    """

    def __init__(
        self, system: ForeignSystem, fleet: Fleet, plan: Plan, table: str, deadline: float, patient: bool = True
    ) -> None:
        self.system = system
        self.plan = plan
        self.table = table
        self.recorder = Recorder()
        found = map(parse_directory, plan.directories)
        self.places = tuple(MarkerDirectory(f"{table}/{each.table}", each.instant) for each in found)
        self.deadline = deadline
        self.injector = ServerFaultInjector(fleet, self.recorder, plan, table, self._open_world)
        self.world = self.injector.world
        self.faults = PlanFaults(plan, self.injector, self.places)
        requests = Requests(self.recorder, self.world.address, system.identity)
        self.scripts = Scripts(plan.single_ops, self.places, requests, self.faults, self.injector)
        self.probes = Probes(plan, self.places, requests, self.injector, deadline, self.gives_up)
        self.watch = Watch(self.injector, self.places)
        self._idleness = None if patient else Idleness()
        self._hung = False

    def _open_world(self, injector: ServerFaultInjector) -> RunStorage:
        plan, table = self.plan, self.table
        wire, reads, power = STORAGE_WIRE in wires_of(plan), reads_fail(plan), power_fails(plan)
        serves, restarts = injector.serves, injector.restarts
        return self.system.world(
            RunGround(self.recorder, self._inject, serves, restarts, table, table, wire, reads, power)
        )

    def _inject(self, armed: ArmedFault, call: StorageCall) -> None:
        """Inject a fault that is due at a storage call; the recorder's lock is held, so nothing here waits."""
        self.faults.inject(armed, call)

    def play(self, living: Server | None, probing: bool) -> bool:
        """Run all phases; returns whether the server may serve another run."""
        injector, recorder = self.injector, self.recorder
        self.faults.wires.open()
        if living is not None:
            injector.take_over(living)
        else:
            injector.start()
        recorder.phase("faults")
        self.watch.begin()
        self.faults.arm(self.world)
        self.scripts.start()
        takes_time = any(
            fault.kind is FaultKind.SECOND_SERVER or isinstance(fault.trigger, Call) for fault in self.plan.faults
        )
        longer = takes_time or wires_of(self.plan)
        self.faults.drive(self._through, LONGER_S if longer else SCRIPTS_S, self.deadline)
        self.scripts.stop()
        self.faults.heal()
        recorder.phase("healed")
        if probing:
            self.probes.run()
        quiet = not recorder.open_since()
        keep = quiet and self.scripts.over and not wires_of(self.plan) and self._unharmed()
        injector.check()
        recorder.phase("end")
        recorder.clients_over = True
        self.watch.end()
        if not keep:
            injector.end()
        for place in self.places:
            if not keep:
                self.world.reader.look_at_dead(place)
            elif injector.servers:
                self.world.reader.look(place)
        recorder.close()
        return keep

    def _through(self) -> bool:
        """Whether clients and wire faults are finished, or every open request waits for an answer."""
        if self.scripts.over:
            return self.faults.wires.idle
        if self.gives_up():
            return True
        refusing, struck = list(filter(refuses_calls, self.plan.faults)), self.faults.struck
        idle_s = REFUSED_IDLE_S if refusing else IDLE_S
        over = all(each.settings.for_ms or struck.get(each, 0) >= each.settings.calls for each in refusing)
        return over and self.scripts.idle_s > idle_s

    def gives_up(self) -> bool:
        """Whether requests hang and are not awaited: servers are idle."""
        if self._idleness is None:
            return False
        hangs = self._idleness.lasts(self.recorder, self.world, self.injector.servers)
        self._hung = self._hung or hangs
        return hangs

    def _unharmed(self) -> bool:
        """Whether one server lives, met no fault since its start, and the run left only tables behind."""
        living = self.injector.servers
        if len(living) != 1:
            return False
        faults = (event for event in self.recorder.events[living[0].started :] if event.kind == "fault")
        own = (call for call in self._planned() if call.path.startswith("/") and call.operation in KEEPS)
        return all(event.operation == "restart" for event in faults) and not any(own)

    def over(self) -> PlayedPlan:
        """Close the run and return it with its history."""
        history, usual = self._history(), (None, *(place.path for place in self.places))
        escaped = self.world.unseen()  # HarnessError when the kit failed, before a server is judged.
        unseen = escaped if history.header.layout == "hudi" else ()
        if any(sentence.endswith(OTHERWISE) for sentence in unseen):
            history = replace(history, events=())  # The history is incomplete, so nothing is judged by it.
        ended = [each for each in history.events if each.operation == "hostile" and each.kind in ("ok", "fail")]
        hostile = sum(each.path not in usual for each in ended)
        met = {**self.faults.met, "plan": 1, HOSTILE: hostile, **conditions_met(history)}
        known = [UNSEEN + sentence for sentence in unseen]
        known += [UNREAD + self.world.reader.unread] if self.world.reader.unread else []
        counts = {OF_PLANS + name: count for name, count in met.items()}
        return PlayedPlan(
            history=history,
            counts={**counts, **self.injector.counts, **dict.fromkeys(known, 1)},
            plan=self.plan,
            cut=time.monotonic() >= self.deadline,
            struck=tuple(self.faults.struck),
            hung=self._hung,
            calls=tuple(self._planned()),
        )

    def _history(self) -> History:
        """The recorded history, with its header."""
        system, plan = self.system, self.plan
        header = Header(
            world="foreign",
            mode="timeline",
            sut=system.name,
            sut_version=system.version,
            kit_version=__version__,
            profile=system.profile.name,
            identity=system.identity,
            num_threads=plan.num_threads,
            answer_bound_ms=self.recorder.bound_ms(),
            seed=plan.seed,
            plan=plan.to_dict(),
            options={"interval_ms": str(plan.interval_ms)} | system.batching,
            **self.world.describe(),
        )
        return History(header, tuple(self.recorder.events))

    def _planned(self) -> Iterator[StorageCall]:
        """The calls with paths as in the plan, without calls in tables of earlier runs that a server may still make."""
        others = re.compile(rf"({re.escape(self.table.rpartition('-')[0])}-\d+|{KIT_PROBE}[^/]*)(/|$)")
        for call in self.faults.calls:
            if call.path.startswith(f"{self.table}/"):
                yield call._replace(path=call.path.removeprefix(f"{self.table}/"))
            elif not others.match(call.path):
                yield call._replace(path=f"/{call.path}")

    def leave(self, keep: bool) -> Server | None:
        """Stop every thread, and every server except one that is kept."""
        self.recorder.close()
        self.scripts.end()
        self.watch.end()
        kept = self.injector.servers[0] if keep and self.injector.servers else None
        for server in self.injector.servers:
            if server is not kept:
                server.kill()
        self.faults.wires.close()
        return kept
