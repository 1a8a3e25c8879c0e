"""The simulated host (worlds/host.py): processes of greenlets, one virtual clock, a model of storage."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.plan import PROBE, Plan, Write
from marker_sim.worlds.cluster.run import ClusterRun
from marker_sim.worlds.cluster.store import ROLE
from marker_sim.worlds.host import ClientLife, ExecutorLife, Life, WriteDriverLife
from marker_sim.worlds.simulated.environment import SimulatedBackend, SimulatedEnvironment
from marker_sim.worlds.simulated.runtime import SimHostLocks
from marker_sim.worlds.simulated.scheduler import MS, ActorState, Process, Scheduler
from marker_sim.worlds.simulated.storage import LATE_EFFECT_MS, STORAGE_TIMEOUT_MS, SimStorage, Store
from marker_sim.writer.backend import Attempt, Message

SETTLE_MS = STORAGE_TIMEOUT_MS + LATE_EFFECT_MS + 500


class SimulatedHost:
    """All processes of one run. The host's callbacks run in the hub, between two steps of actors.

    faults: the faults added to the plan so far.
    make_storage: creates the Storage seam of a process.
    steps_of_faults: the steps that each name of the plan made until all faults were healed.
    """

    limit_ms = 900_000
    linger_ms = 5_000

    def __init__(
        self, plan: Plan, on_fault: Callable[[Process, Fault], None], on_exit: Callable[[Process], None]
    ) -> None:
        self.cluster: ClusterRun
        self.scheduler = scheduler = Scheduler(on_fault, on_exit)
        self.append, self.record = scheduler.append, scheduler.record
        self.store = Store(scheduler, plan.storage)
        self.capabilities = self.store.capabilities
        self.locks = SimHostLocks(scheduler, one_host=self.capabilities.host_lock)
        self.actors: dict[str, ActorState] = {}
        self.processes: list[Process] = []
        self.faults = plan.faults
        self.make_storage: Callable[[Process], SimStorage] = partial(SimStorage, self.store)
        self._jitter = plan.jitter
        self.steps_of_faults: dict[str, int] = {}
        self._lives: dict[str, int] = {}
        self._kit = Process("kit", "kit", ActorState("kit", (), 0))

    def actor(self, name: str) -> ActorState:
        """The state that belongs to a name of the plan."""
        if name not in self.actors:
            faults = () if name == PROBE else tuple(f for f in self.faults if f.target == name)
            self.actors[name] = ActorState(name, faults, self._jitter)
        return self.actors[name]

    def draw_anew(self, seed: int, steps: Mapping[str, int]) -> None:
        """Draw the latencies of all later steps, and the step of each fault that has not struck yet, from a seed.

        steps: how many steps a name may make; a fault strikes at one of the remaining steps of its target.
        """
        self._jitter, drawn = seed, random.Random(f"{seed}/faults")

        def moved(fault: Fault, made: int) -> Fault:
            last = steps.get(fault.target, 0)
            return replace(fault, trigger=Step(drawn.randint(made + 1, last))) if last > made else fault

        self.faults = tuple(moved(fault, 0) if fault.target not in self.actors else fault for fault in self.faults)
        for name, state in self.actors.items():
            for fault in state.draw_anew(name, seed):
                state.expect(moved(fault, state.steps))

    # Processes.

    def start(self, name: str, role: str, life: Life = None) -> Process:
        """Start a process under a name of the plan, perhaps again after its death."""
        self._lives[name] = self._lives.get(name, 0) + 1
        process = Process(f"{name}#{self._lives[name]}", role, self.actor(name), life)
        self.processes.append(process)
        scheduler, storage = self.scheduler, self.make_storage(process)
        environment = SimulatedEnvironment(self.cluster, scheduler, self.locks, process, storage)
        process.environment = environment
        if role == ROLE:
            process.started = self.record(process.name, role, "observe", "started")
        elif isinstance(life, ClientLife):
            scheduler.spawn(process, environment.operate)
        elif isinstance(life, WriteDriverLife):
            process.backend = SimulatedBackend(self.cluster, scheduler, process)
        return process

    def ready(self, *processes: Process) -> None:
        """Do nothing: new processes work at once."""

    def kill(self, process: Process, value: str | None = None, follow: Callable[[], None] | None = None) -> None:
        """Kill the process now, and call `follow`."""
        self.record(process.name, process.role, "fault", "kill", value=value)
        self.end(process)
        if follow is not None:
            follow()

    def exit(self, process: Process, why: str) -> None:
        """End the process as if by itself."""
        self.record(process.name, process.role, "observe", "exited", error=why)
        self.end(process)

    def end(self, process: Process) -> None:
        """Remove the process: its locks are free, its connections break, its actors never continue."""
        process.alive = False
        process.paused_until_ns = 0
        self.locks.drop(process)
        process.environment.wire.break_connections(process)
        process.environment.ended()

    def pause(self, process: Process, duration_ms: int) -> None:
        """Pause all actors of the process for a while."""
        self.record(process.name, process.role, "fault", "pause", value="begin")
        process.paused_until_ns = self.scheduler.now_ns + duration_ms * MS
        self.scheduler.at(process.paused_until_ns, self._resumed, process)

    def resume(self, process: Process) -> None:
        """End a pause before its time."""
        if process.paused_until_ns:
            process.paused_until_ns = self.scheduler.now_ns
            self._resumed(process)

    def _resumed(self, process: Process) -> None:
        if process.alive and process.paused_until_ns and process.paused_until_ns <= self.scheduler.now_ns:
            process.paused_until_ns = 0
            self.record(process.name, process.role, "fault", "pause", value="end")

    def end_all(self) -> None:
        """End all processes, so that no abandoned attempt stores its marker while the kit reads."""
        for process in self.processes:
            if process.alive:
                self.end(process)
                if process.role == ROLE:
                    self.record(process.name, process.role, "fault", "kill", value="end-of-run")

    # Time.

    def now_ns(self) -> int:
        """Virtual time since the run began."""
        return self.scheduler.now_ns

    def mark(self) -> int:
        """The index of the last event."""
        return len(self.scheduler.events) - 1

    def after(self, duration_ms: float, call: Callable[[Any], None], argument: Any = None) -> None:
        """Call a function in the hub after a while."""
        self.scheduler.at(self.scheduler.now_ns + int(duration_ms * MS), call, argument)

    def run(self, limit_ms: int) -> bool:
        """Let virtual time pass until `stop` is called, nothing is left to happen, or the limit is reached."""
        self.scheduler.run_until_stop(self.scheduler.now_ns + limit_ms * MS)
        return True

    def stop(self, _: Any = None) -> None:
        """End `run`."""
        self.scheduler.stop = True

    def overdue(self, message: str) -> None:
        """Do nothing: judges find calls without an answer in virtual time."""

    def settle(self) -> None:
        """Wait until everything sent to storage is applied, or never will be."""
        self.run(SETTLE_MS)

    def heal(self) -> None:
        """Disarm all faults."""
        self.steps_of_faults = {name: state.steps for name, state in self.actors.items()}
        for state in self.actors.values():
            state.pending, state.next_step, state.sited = [], 0, {}
            state.storage_faults.clear()
            state.wire_faults.clear()
            state.link = None
        self.store.throttled.clear()
        self.store.throttled_until_ns.clear()
        self.store.silent.clear()
        self.store.full_until_ns = 0

    # Writes.

    def give(self, driver: Process, write: Write, ordinal: int) -> None:
        """Let the driver perform a write."""
        self.scheduler.spawn(driver, partial(driver.environment.write, write, ordinal))

    def tell(self, driver: Process, kind: str, attempt: Attempt | None, value: Any, after_ms: float) -> None:
        """Send the driver a message, if it lives by then."""
        self.after(after_ms, self._deliver, (driver, Message(kind, attempt, value)))

    def _deliver(self, argument: tuple[Process, Message]) -> None:
        driver, message = argument
        if driver.alive:
            driver.backend.mailbox.post(message)

    def lost_with(self, executor: Process, driver: Process) -> tuple[Attempt, ...]:
        """The attempt that an executor was sent last, and those it works on."""
        assert isinstance(executor.life, ExecutorLife)
        attempts = dict.fromkeys([executor.busy, *executor.life.running.values()])
        return tuple(attempt for attempt in attempts if attempt is not None)

    # Storage.

    def files(self) -> Mapping[str, bytes]:
        """Every stored object."""
        return self.store.objects

    def damage(self, path: str, data: bytes | None, fault: str) -> None:
        """Change stored content, as a fault of the kit."""
        self.record("kit", "nemesis", "fault", fault, path=path)
        self.restore(path, data)

    def restore(self, path: str, data: bytes | None) -> None:
        """Change stored content as an effect of the kit that is no fault."""
        self.store.write(self._kit, "delete" if data is None else "put", path, data)

    # Faults that only the simulated world has.

    def strike(self, process: Process, fault: Fault) -> None:
        """Inject a fault of storage; `POWER_LOST` also kills the process."""
        match fault.kind:
            case FaultKind.OVERLOADED:
                self._overload(process, fault)
            case FaultKind.CLOCK_JUMPED:
                if process.role == "driver":
                    process.clock_ms += fault.settings.jump_ms
                    self.record(process.name, "nemesis", "fault", fault.kind.value, value=str(fault.settings.jump_ms))
            case FaultKind.PLACEHOLDER:
                # Keys that end in "/", which consoles and other clients create for directories.
                for path in (f"{directory.path}/" for directory in self.cluster.marker_directories()):
                    if self.store.model.startswith("s3") and path not in self.store.objects:
                        self.damage(path, b"", fault.kind.value)
            case FaultKind.POWER_LOST:
                self._lose_power(process, fault)
            case _:
                raise AssertionError(fault)

    def _overload(self, server: Process, fault: Fault) -> None:
        """Overload a server: for a while it handles requests one after the other, at a slow pace."""
        now_ns, kind = self.scheduler.now_ns, fault.kind.value
        if server.role != ROLE or server.free_ns > now_ns:
            return
        until_ns = now_ns + fault.settings.for_ms * MS
        pace_ns = max(1, fault.settings.pace_ms) * MS
        server.overload, server.free_ns = (pace_ns, until_ns), min(now_ns + pace_ns, until_ns)
        self.record(server.name, server.role, "fault", kind, value="begin")

        def over(_: object) -> None:
            server.free_ns = 0
            if server.alive:
                self.record(server.name, server.role, "fault", kind, value="end")

        self.scheduler.at(until_ns, over)

    def _lose_power(self, process: Process, fault: Fault) -> None:
        """Kill the process and undo what any process wrote in the last `unsynced_ms`: nothing was synced."""
        store = self.store
        if store.model != "local" or store.unsynced is None:
            return
        self.record(process.name, "nemesis", "fault", fault.kind.value)
        unsynced, store.unsynced = store.unsynced, []
        since_ns = self.scheduler.now_ns - fault.settings.unsynced_ms * MS
        for time_ns, path, before in reversed(unsynced):
            if time_ns >= since_ns and store.objects.get(path) != before:
                self.restore(path, before)
        self.cluster.faults.kill(process, fault)
