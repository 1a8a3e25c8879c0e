"""One simulated run: the cluster (worlds/cluster/) on a simulated host; and the faults that cannot happen in it.

The effects of faults are in scheduler.py, storage.py, wire.py and host.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from greenlet import getcurrent

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind, FaultSettings, Step
from marker_sim.history import Header, History
from marker_sim.plan import Plan, Write
from marker_sim.system import System
from marker_sim.worlds.cluster.run import ClusterRun
from marker_sim.worlds.cluster.work import run_stage_again
from marker_sim.worlds.cluster.writes import Instruction
from marker_sim.worlds.host import ClientLife, ExecutorLife
from marker_sim.worlds.simulated.host import SimulatedHost
from marker_sim.worlds.simulated.scheduler import MS, Process

# Families of faults that do not exist in the simulated world.
FOREIGN = {"proxy": "no proxy stands between these processes", "job": "these executors are not Spark's"}


class Branch(NamedTuple):
    """The point where a run departs from its plan's run, and the seed of what follows.

    events: the number of common events.
    seed: of the latencies of all later steps, and of the step of each fault that has not struck yet.
    steps: the number of steps that each name of the plan may make, from which steps of faults are drawn.

    The workload and the settings of faults stay those of the plan.
    """

    events: int
    seed: int
    steps: Mapping[str, int]


def why_not(fault: Fault) -> str:
    """The reason why simulated processes cannot have a fault, "" when they can."""
    if isinstance(fault.trigger, Call):
        return "it is due at a call on storage, for real processes alone; give it a step or a site"
    return FOREIGN.get(fault.kind.row.family, "")


def run(plan: Plan, system: System, branch: Branch | None = None) -> History:
    """Execute a plan in the simulated world; equal arguments give equal histories, byte for byte."""
    return Cluster(plan, system, branch).run()


def by_steps(plan: Plan, system: System) -> Plan:
    """The plan with each fault at a site keyed by the step at which it arms here, for worlds that know no sites.

    One that never arms here is left out. A real process makes its n-th seam call at the same place as long as nothing
    races; where something does, the fault is due at another call of the same actor.
    """
    if not any(fault.site for fault in plan.faults):
        return plan
    here = tuple(fault for fault in plan.faults if not why_not(fault))
    cluster = Cluster(replace(plan, faults=here), system)
    cluster.run()
    armed = {id(fault): step for fault, step in cluster.scheduler.armed}
    faults = tuple(
        replace(fault, trigger=Step(armed[id(fault)])) if fault.site else fault
        for fault in plan.faults
        if not fault.site or id(fault) in armed
    )
    return replace(plan, faults=faults)


class Cluster(ClusterRun):
    """All processes of one run, which can also be played step by step."""

    host: SimulatedHost

    def __init__(self, plan: Plan, system: System, branch: Branch | None = None) -> None:
        for fault in plan.faults:
            if why := why_not(fault):
                raise UsageError(f"fault {fault.kind.value!r} cannot be simulated: {why}")
        host = SimulatedHost(plan, self._strike, self._exited)
        super().__init__(plan, system, host)
        host.cluster = self
        self.scheduler = host.scheduler
        self.store = host.store
        self.store.tear = self.faults.tear
        if any(fault.kind is FaultKind.POWER_LOST for fault in plan.faults):
            self.store.unsynced = []
        if branch is not None:
            self.scheduler.awaited = (branch.events - 1, lambda: host.draw_anew(branch.seed, branch.steps))

    def run(self) -> History:
        """Play the phases and close the history."""
        try:
            self.begin()
            self.play()
            self.end()
        finally:
            self.close()
        history = self.history()
        self.scheduler.release()
        for process in self.host.processes:
            # Its actors refer to it, and would stay until garbage collection.
            process.environment = process.backend = process.life = None
            process.calls.clear()
        return history

    def close(self) -> None:
        """End all actors; HarnessError when a part of the system outside of the kit failed."""
        self.scheduler.close()
        for process in self.host.processes:
            process.environment.ended()
        if self.settings.system.outside is not None:
            self.settings.system.outside.check()

    def add_write(self, write: Write) -> None:
        """Add a write to the plan and perform it; running the longer plan at once gives the same history."""
        self.plan = replace(self.plan, writes=(*self.plan.writes, write))
        self.writes.play(write)

    def add_fault(self, kind: FaultKind, target: str, ahead: int, settings: FaultSettings) -> None:
        """Add a fault to the plan, `ahead` (1 or more) steps of its target from now."""
        state = self.host.actor(target)
        fault = Fault(kind=kind, target=target, trigger=Step(state.steps + ahead), settings=settings)
        self.plan = replace(self.plan, faults=(*self.plan.faults, fault))
        self.host.faults = self.plan.faults
        state.expect(fault)

    def history(self) -> History:
        """The recorded history with its header; nothing is recorded after this."""
        return History(self._header(), tuple(self.scheduler.events))

    def _strike(self, process: Process, fault: Fault) -> None:
        """Inject a fault of a process; called within the step of one of its actors."""
        running: dict[Any, Any] = process.life.running if isinstance(process.life, ExecutorLife) else {}
        match self.faults.strike(process, fault, running.get(getcurrent())):
            case ("end", _):
                del running[getcurrent()]
                self.host.locks.drop_actor(process, getcurrent())
                self.scheduler.park()
            case ("sleep", duration_ms):
                self.scheduler.sleep(process, duration_ms * MS)
            case ("run-again", _):
                run_stage_again(process.environment, process.backend)

    def _own_fault(self, process: Process, fault: Fault) -> Instruction:
        self.host.strike(process, fault)
        return None

    def _exited(self, process: Process) -> None:
        """Remove a process that ended by itself during its work; it is not restarted."""
        self.host.end(process)
        if isinstance(process.life, ClientLife):
            self.clients.left()

    def _header(self) -> Header:
        identity = all(process.environment.identity for process in self.host.processes)
        return self.settings.header("simulated", self.plan, self.scheduler.events, identity)
