"""One simulated run: clients work through the plan, misfortunes happen, everything heals, probes, and storage is read.

    faults   every client performs its operations in order, then the driver its writes; faults arm at steps
    healed   nothing fails any more, paused and killed processes are back, the second server is gone
    probe    in each directory num_threads + 1 creates, one a batch, and a list, by a fresh client; a write to each
             table that was written to, by a fresh driver
    end      every process is killed, what was under way arrives, and a fresh reader sees what is stored

A client process never acts again after an unknown outcome: its operations go on under a new process name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marker_sim import __version__
from marker_sim.faults import FaultKind
from marker_sim.history import Header, History, answer_bound_before_faults
from marker_sim.markers.protocol import Creates, handle
from marker_sim.markers.store import Context, MarkerStore
from marker_sim.names import MarkerDirectory, parse_directory
from marker_sim.options import MarkerOptions, format_options
from marker_sim.plan import PROBE, Fault, Op, Plan, Write
from marker_sim.seams import Reply, Request
from marker_sim.system import MARKERS_TYPES, System
from marker_sim.worlds.simulated.clients import Client
from marker_sim.worlds.simulated.fault_injector import SimulatedFaultInjector
from marker_sim.worlds.simulated.fresh_reader import FreshReader
from marker_sim.worlds.simulated.runtime import SimHostLocks, SimRuntime
from marker_sim.worlds.simulated.scheduler import MS, ActorState, Process, Scheduler
from marker_sim.worlds.simulated.storage import LATE_EFFECT_MS, STORAGE_TIMEOUT_MS, SimStorage, Store
from marker_sim.worlds.simulated.wire import SimWire
from marker_sim.worlds.simulated.writes import SimulatedWrites
from marker_sim.writer.recording import create_with_identity, takes_identity

FAULT_PHASE_NS = 900_000 * MS
HEAL_PHASE_NS = (STORAGE_TIMEOUT_MS + LATE_EFFECT_MS + 500) * MS
PROBE_PHASE_NS = 900_000 * MS
DEADLINE_SECS = 30


def run(plan: Plan, system: System) -> History:
    """Execute a plan in the simulated world; equal arguments give equal histories, byte for byte."""
    return Cluster(plan, system).run()


class Cluster:
    """All processes of one run."""

    def __init__(self, plan: Plan, system: System) -> None:
        self.plan = plan
        self.system = system
        self.scheduler = Scheduler(self._strike, self._exited)
        self.store = Store(self.scheduler, plan.storage)
        self.locks = SimHostLocks(self.scheduler)
        self.options = MarkerOptions(
            markers_type=MARKERS_TYPES[plan.mode],
            batch_num_threads=plan.num_threads,
            batch_interval_ms=plan.interval_ms,
            remote_timeout_secs=DEADLINE_SECS,
        )
        fewer = min(plan.num_threads, plan.restart_threads or plan.num_threads)
        self.later_options = replace(self.options, batch_num_threads=fewer)
        self.directories = tuple(parse_directory(path) for path in plan.directories)
        self.choice = system.choose(self.options, self.store.capabilities)
        self.actors: dict[str, ActorState] = {}
        self.lives: dict[str, int] = {}
        self._processes: list[Process] = []
        self.servers: dict[str, Process | None] = {"server": None, "second": None}
        self.clients_left = 0
        self.kit = Process("kit", "kit", ActorState("kit", (), 0))
        self.identity = True
        self.injector = SimulatedFaultInjector(self)
        self.store.tear = self.injector.tear
        if any(fault.kind is FaultKind.POWER_LOST for fault in plan.faults):
            self.store.unsynced = []
        self.jobs = SimulatedWrites(self)

    def run(self) -> History:
        """Play the phases and close the history."""
        try:
            self.begin()
            self.play(self.plan.ops, FAULT_PHASE_NS)
            for write in self.plan.writes:
                self.jobs.play(write)
            self.end()
        finally:
            self.scheduler.close()
        history = self.history()
        self.scheduler.release()
        for process in self._processes:
            process.state.clear()  # What it ran refers to it, and would wait for a collection.
            process.calls.clear()
        return history

    def begin(self) -> None:
        """Choose the mode and start the server."""
        self._phase("faults")
        self.scheduler.record("kit", "kit", "observe", "mode", value=self.choice.mode, error=self.choice.reason or None)
        if self.choice.mode == "timeline":
            self.start_server("server")

    def play(self, ops: tuple[Op, ...], limit_ns: int) -> None:
        """Let one client for each name perform its operations, until all are through or the time is over."""
        by_actor: dict[str, list[Op]] = {}
        for op in ops:
            by_actor.setdefault(op.actor, []).append(op)
        for name, own in by_actor.items():
            self._start_client(name, tuple(own))
        if ops:
            self.scheduler.run_until_stop(self.scheduler.now_ns + limit_ns)

    def add_write(self, write: Write) -> None:
        """One more write at the end of the plan, performed now; the longer plan run at once gives the same history."""
        self.plan = replace(self.plan, writes=(*self.plan.writes, write))
        self.jobs.play(write)

    def add_fault(self, kind: FaultKind, actor: str, ahead: int, duration_ms: int = 0, value: int = 1) -> None:
        """One more fault in the plan, `ahead` (1 and more) steps of its actor from now."""
        state = self._actor(actor)
        fault = Fault(kind=kind, actor=actor, step=state.steps + ahead, duration_ms=duration_ms, value=value)
        self.plan = replace(self.plan, faults=(*self.plan.faults, fault))
        state.expect(fault)

    def end(self) -> None:
        """Heal, probe, kill every server and read what is stored."""
        scheduler = self.scheduler
        self.injector.heal()
        self._phase("healed")
        scheduler.run_until_stop(scheduler.now_ns + HEAL_PHASE_NS)
        self._phase("probe")
        self.play(self.plan.probes(self.choice.mode), PROBE_PHASE_NS)
        self.jobs.probe()
        self._phase("end")
        self._kill_all()
        scheduler.run_until_stop(scheduler.now_ns + HEAL_PHASE_NS)
        self._observe()

    def history(self) -> History:
        """What was recorded, with its header; nothing may be recorded any more."""
        return History(self._header(), tuple(self.scheduler.events))

    # Processes.

    def _actor(self, name: str) -> ActorState:
        if name not in self.actors:
            faults = () if name == PROBE else tuple(f for f in self.plan.faults if f.actor == name)
            self.actors[name] = ActorState(name, faults, self.plan.jitter)
        return self.actors[name]

    def new_process(self, name: str, role: str) -> Process:
        """A new life under a name of the plan."""
        self.lives[name] = self.lives.get(name, 0) + 1
        process = Process(f"{name}#{self.lives[name]}", role, self._actor(name))
        self._processes.append(process)
        return process

    def start_server(self, name: str) -> Process:
        """A new life of "server" or "second"."""
        process = self.new_process(name, "timeline-server")
        process.state["first"] = self.servers["server"] is None
        self.servers[name] = process
        process.started = self.scheduler.record(process.name, process.role, "observe", "started")
        return process

    def _start_client(self, name: str, ops: tuple[Op, ...]) -> None:
        self.clients_left += 1
        process = self.new_process(name, "driver" if name.startswith("driver") else "executor")
        client = Client(self, name, process, ops)
        self.scheduler.spawn(process, client.work)
        process.state["client"] = client

    def client_left(self) -> None:
        """A client is through, or will never go on; the last one ends the phase."""
        self.clients_left -= 1
        self.scheduler.stop = self.clients_left == 0

    def _strike(self, process: Process, fault: Fault) -> None:
        self.injector.strike(process, fault)

    def _exited(self, process: Process) -> None:
        self.injector.exited(process)

    def marker_directories(self) -> tuple[MarkerDirectory, ...]:
        """Those of the plan and those of the writes so far."""
        return self.directories + tuple(self.jobs.instants)

    def wire(self, process: Process) -> SimWire:
        """The Wire seam of a process."""
        return SimWire(self.scheduler, process, self.address, self._handle)

    def context(self, process: Process, directory: str) -> Context:
        """What an implementation is given in this process."""
        storage, runtime, wire, shared = self.seams(process)
        options = self.options if process.state.get("first", True) else self.later_options
        return Context(
            storage=storage, runtime=runtime, wire=wire, directory=directory, options=options, process=shared
        )

    def seams(self, process: Process) -> tuple[SimStorage, SimRuntime, SimWire, dict[str, Any]]:
        """The seams of a process and the place its stores share, made once."""
        seams: tuple[SimStorage, SimRuntime, SimWire, dict[str, Any]] | None = process.state.get("seams")
        if seams is None:
            storage = SimStorage(self.store, process)
            runtime = SimRuntime(self.scheduler, process, self.locks)
            seams = process.state["seams"] = (storage, runtime, self.wire(process), {})
        return seams

    def address(self, name: str) -> Process | None:
        """The process behind a server's name; the first server stands in for a second that is gone."""
        second = self.servers["second"]
        if name == "second" and second is not None and second.alive:
            return second
        return self.servers["server"]

    def _handle(self, server: Process, request: Request) -> Reply:
        try:
            return handle(
                request,
                lambda directory: self._served(server, directory)[0],
                lambda directory: self._served(server, directory)[1],
            )
        except Exception as error:
            return Reply(500, f"the implementation raised {error!r}")

    def _served(self, server: Process, directory: str) -> tuple[MarkerStore, Creates]:
        stores: dict[str, tuple[MarkerStore, Creates]] = server.state.setdefault("stores", {})
        if directory not in stores:
            assert self.system.server is not None
            store = self.system.server(self.context(server, directory))
            stores[directory] = (store, create_with_identity(store))
            self.identity &= takes_identity(type(store))
        return stores[directory]

    # What the kit does by itself.

    def _phase(self, name: str) -> None:
        self.scheduler.record("kit", "kit", "observe", "phase", value=name)

    def _kill_all(self) -> None:
        """Nobody acts after the end: an attempt that its driver gave up would store its marker while the kit reads."""
        for process in self._processes:
            if process.alive:
                self.injector.end(process)
                if process.role == "timeline-server":
                    self.scheduler.record(process.name, process.role, "fault", "kill", value="end-of-run")

    def _observe(self) -> None:
        record = self.scheduler.record
        began = len(self.scheduler.events) - 1
        for path in sorted(self.store.objects):
            record("kit", "kit", "observe", "file", path=path, value=self.store.objects[path])
        files, now_ns = self.store.objects, self.scheduler.now_ns
        fresh = FreshReader(self.system, self.choice.mode, self.plan.storage, self.options, files, now_ns)
        for directory in self.marker_directories():
            names = fresh.names(directory.path)
            record(
                "kit",
                "kit",
                "observe",
                "snapshot",
                directory.table,
                directory.instant,
                directory.path,
                value=names,
                caused_by=began,
            )
        self.jobs.observe()

    def _header(self) -> Header:
        capabilities = self.store.capabilities
        names = ("put_if_absent", "put_if_unchanged", "atomic_replace", "host_lock", "batched_markers")
        return Header(
            world="simulated",
            mode="direct" if self.plan.mode == "direct" else "timeline",
            storage=self.plan.storage,
            sut=self.system.name,
            sut_version=self.system.version or __version__,
            kit_version=__version__,
            profile=self.system.profile,
            layout="hudi" if self.system.layout == "hudi" else "names",
            identity=self.identity,
            num_threads=self.plan.num_threads,
            late_effect_ms=capabilities.late_effect_ms,
            answer_bound_ms=answer_bound_before_faults(self.scheduler.events),
            storage_timeout_ms=STORAGE_TIMEOUT_MS,
            seed=self.plan.seed,
            options=format_options(self.options),
            capabilities={name: getattr(capabilities, name) for name in names},
            plan=self.plan.to_dict(),
        )
