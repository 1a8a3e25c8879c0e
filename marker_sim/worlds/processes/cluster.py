"""One run of a plan with real processes: writes and clients, misfortunes, healing, probes, a look at what is stored.

The phases and what follows from a death are those of the simulated cluster (worlds/simulated/cluster.py,
worlds/simulated/writes.py); the clock is
real, so whatever races may come out in another order each time.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.history import Header, History
from marker_sim.loading import load_system
from marker_sim.markers.choice import Choice
from marker_sim.names import MarkerDirectory, parse_directory
from marker_sim.options import MarkerOptions
from marker_sim.plan import PROBE, Op, Plan
from marker_sim.requirements import lacking
from marker_sim.system import MARKERS_TYPES
from marker_sim.worlds.interceptor import Interceptor, Trigger
from marker_sim.worlds.processes.clients import Clients
from marker_sim.worlds.processes.closing import header_of, observe
from marker_sim.worlds.processes.fault_injector import ProcessFaultInjector
from marker_sim.worlds.processes.fork_server import ForkServer, ManagedProcess
from marker_sim.worlds.processes.servers import Servers
from marker_sim.worlds.processes.steps import Counters
from marker_sim.worlds.processes.storages import ClusterStorage, LocalClusterStorage, S3ClusterStorage
from marker_sim.worlds.processes.writes import Writes
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.simulated.fresh_reader import FreshReader
from marker_sim.worlds.simulated.steps import by_steps

DEADLINE_SECS = 30
READY_S = 20.0


def run_real(
    plan: Plan, system: str = "reference", triggers: tuple[Trigger, ...] = (), fork_server: ForkServer | None = None
) -> History:
    """Execute a plan with real processes on a fresh local directory or behind a fresh S3 front.

    system: as in --sut. aims: faults at the gate besides those of the plan. nursery: where children are forked, for
    many runs one after another; a fresh one if None. HarnessError when the kit fails.
    """
    if fork_server is None:
        with ForkServer() as fresh:
            return ProcessCluster(plan, system, fresh, triggers).run()
    return ProcessCluster(plan, system, fork_server, triggers).run()


class ProcessCluster:
    """All processes of one run, from the kit's side. trouble: what went wrong in the kit's own threads."""

    def __init__(self, plan: Plan, system: str, fork_server: ForkServer, triggers: tuple[Trigger, ...] = ()) -> None:
        if plan.storage not in ("local", "s3"):
            raise HarnessError(f"storage {plan.storage} has no real processes; local and s3 have")
        why = lacking(f"real processes on {plan.storage}")
        if why:
            raise HarnessError(f"real processes need {why}")
        self.system = load_system(system)
        self.plan = plan = by_steps(plan, self.system)
        self.trouble: list[BaseException] = []
        self.identity = True
        self.recorder = Recorder()
        self.injector = ProcessFaultInjector(self)
        self.interceptor = Interceptor(self.recorder, self.injector.hurt)
        self.interceptor.arm(*triggers)
        self.fork_server, self.coordinator = fork_server, fork_server.coordinator
        self._scratch = Path(tempfile.mkdtemp(prefix="run-", dir=fork_server.scratch))
        self.world: ClusterStorage = (
            LocalClusterStorage(self._scratch / "storage")
            if plan.storage == "local"
            else S3ClusterStorage(self.interceptor, plan.seed)
        )
        self.options = MarkerOptions(
            markers_type=MARKERS_TYPES[plan.mode],
            batch_num_threads=plan.num_threads,
            batch_interval_ms=plan.interval_ms,
            remote_timeout_secs=DEADLINE_SECS,
        )
        self.choice = self.system.choose(self.options, self.world.capabilities)
        self.writes, self.servers, self.clients = Writes(self), Servers(self), Clients(self)
        self._directories = tuple(parse_directory(path) for path in plan.directories)
        self._system_name = system
        self._counters = self._scratch / "steps"
        self._triggers = triggers
        self._slots: dict[str, int] = {}
        Counters(self._counters)
        answers: dict[str, Callable[..., Any]] = {
            "ready": lambda name: self.fork_server.lives[name].ready.set(),
            "strike": self.injector.strike,
            "healed": lambda _: self.injector.healed,
            "mode": lambda _, markers: (self.mode_of(markers).mode, self.mode_of(markers).reason),
            "no-identity": lambda _: setattr(self, "identity", False),
            **self.writes.answers(),
            **self.servers.answers(),
            **self.clients.answers(),
        }
        self.fork_server.begin(self._gone)
        lives = self.fork_server.lives
        self.coordinator.attach(
            self.interceptor,
            answers,
            self.world.stored,
            paused=lambda name: lives[name].paused,
            failed=self.fail,
            dead=lambda name: name in lives and lives[name].kill_sent,
        )

    def run(self) -> History:
        """Play the phases and close the history; no process is left."""
        try:
            self._phase("faults")
            why = self.choice.reason or None
            self.recorder.record("kit", "kit", "observe", "mode", value=self.choice.mode, error=why)
            if self.choice.mode == "timeline":
                self.servers.start("server")
            self.clients.play(self.plan.ops)
            for write in self.plan.writes:
                self.writes.play(write)
            self._end()
        finally:
            self.injector.healed = True
            try:
                self.fork_server.end_lives()
            finally:
                try:
                    self.world.close()
                finally:
                    shutil.rmtree(self._scratch, ignore_errors=True)
        if self.trouble:
            raise self.trouble[0]
        return History(self._header(), self.recorder.close())

    def fail(self, error: BaseException) -> None:
        """Something of the kit's own went wrong; the run ends and is not judged."""
        self.trouble.append(error)
        self.writes.wake()
        self.clients.wake()

    def later(self, after_ms: int, body: Callable[[], Any]) -> None:
        """Do something in a while, unless the run is over by then."""

        def guarded() -> None:
            try:
                if not self.recorder.closed:
                    body()
            except BaseException as error:
                self.fail(error)

        timer = threading.Timer(max(0, after_ms) / 1000, guarded)
        timer.daemon = True
        timer.start()

    def marker_directories(self) -> tuple[MarkerDirectory, ...]:
        """Those of the plan and those of the writes so far."""
        return self._directories + tuple(self.writes.instants)

    def mode_of(self, markers: str) -> Choice:
        """The marker mode of a write that asks for `markers`, "" for the mode of the plan."""
        return self.system.chosen_for_write(markers, self.choice, self.plan.mode, self.world.capabilities, self.options)

    def tell(self, driver: ManagedProcess, *message: Any) -> None:
        """Let a driver hear something."""
        if driver.alive:
            self.coordinator.post(driver.name, *message)

    def spawn(self, actor: str, role: str, slot: int = 0, ops: tuple[Op, ...] = ()) -> ManagedProcess:
        """Fork a child."""
        life = self.fork_server.new(actor, role, slot)
        life.ops = ops
        self.world.expect(life.name, role)
        faults = () if actor == PROBE else tuple((n, f) for n, f in enumerate(self.plan.faults) if f.actor == actor)
        self.fork_server.fork(
            life,
            {
                "process": life.name,
                "role": role,
                "ops": ops,
                "plan": self.plan,
                "options": self.options,
                "system": self._system_name,
                "hub": self.coordinator.address,
                "counters": str(self._counters),
                "slot": self._slots.setdefault(actor, len(self._slots)),
                "faults": faults,
                "storage": self.world.spec(),
            },
        )
        return life

    def ready(self, *lives: ManagedProcess) -> None:
        """Wait until children are at work, or dead; HarnessError when they are neither in time."""
        for life in lives:
            deadline = time.monotonic() + READY_S
            while not life.ready.wait(0.02) and life.alive:
                if time.monotonic() > deadline:
                    raise HarnessError(f"{life.name} did not get ready: {self.fork_server.last_words()}")

    def _gone(self, life: ManagedProcess, code: int) -> None:
        threading.Thread(target=self._mourn, args=(life, code), daemon=True).start()

    def _mourn(self, life: ManagedProcess, code: int) -> None:
        """What follows from a death."""
        try:
            with self.recorder.lock:
                if not life.kill_sent:
                    life.kill_sent = True
                    said = f"exit code {code}: {self.fork_server.last_words()[-200:]}"
                    self.recorder.record(life.name, life.role, "observe", "exited", error=said)
            if life.ops:
                self.clients.gone(life)
            elif life.role == "timeline-server":
                self.servers.gone(life)
            else:
                self.writes.gone(life)
        except BaseException as error:
            self.fail(error)

    def _phase(self, name: str) -> None:
        self.recorder.record("kit", "kit", "observe", "phase", value=name)

    def _end(self) -> None:
        """Heal, probe, kill every process and read what is stored."""
        self.injector.healed = True
        self.interceptor.disarm()
        for life in tuple(self.fork_server.lives.values()):
            self.injector.proceed(life)
        self.servers.heal()
        self._phase("healed")
        if self.plan.faults or self._triggers:
            time.sleep(self.world.settle_ms / 1000)
        self._phase("probe")
        self.clients.play(self.plan.probes(self.choice.mode))
        self.writes.probe()
        self._phase("end")
        for life in tuple(self.fork_server.lives.values()):
            with self.recorder.lock:
                if life.alive and not life.kill_sent and life.role == "timeline-server":
                    self.recorder.record(life.name, life.role, "fault", "kill", value="end-of-run")
                life.kill_sent = True
        self.fork_server.end_lives()
        self._observe()

    def _observe(self) -> None:
        files, directories = self.world.files(), self.marker_directories()
        fresh = FreshReader(self.system, self.choice.mode, self.plan.storage, self.options, files, time.time_ns())
        observe(self.recorder, files, directories, self.writes.tables(), fresh.names)

    def _header(self) -> Header:
        capabilities, events = self.world.capabilities, self.recorder.events
        return header_of("real", self.plan, self.system, self.options, capabilities, events, self.identity)
