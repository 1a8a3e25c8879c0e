"""One run of a plan with real processes: the cluster (worlds/cluster/) on a host of processes.

The clock is real, so whatever races may come out in another order each time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.history import History
from marker_sim.loading import load_system
from marker_sim.names import MarkerDirectory
from marker_sim.plan import PROBE, Plan
from marker_sim.system import System
from marker_sim.worlds.cluster.run import ClusterRun
from marker_sim.worlds.cluster.writes import LOST_EXECUTOR_MS, Instruction
from marker_sim.worlds.host import ClientLife, ExecutorLife
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.processes.faults import CallerIsDead, at_next_calls, why_not
from marker_sim.worlds.processes.fork_server import ForkServer, ManagedProcess
from marker_sim.worlds.processes.host import ProcessAttempt, ProcessHost
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.processes.seams import step_counters
from marker_sim.worlds.processes.storages import check_storage, open_storage
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.simulated.cluster import by_steps


class ProcessCluster(ClusterRun):
    """All processes of one run, from the kit's side.

    world: as headers name it.
    host_type: of its processes.
    """

    host: ProcessHost
    host_type = ProcessHost
    world: Literal["real", "spark"] = "real"
    rows_as = PARQUET

    def __init__(self, plan: Plan, system: str, fork_server: ForkServer) -> None:
        check_storage(plan.storage)
        loaded = load_system(system)
        self.recorder = Recorder()
        self.interceptor = Interceptor(self.recorder, self._inject)
        self._at_steps: tuple[tuple[int, Fault], ...] = ()
        plan = self._prepared(plan, loaded)
        self._scratch = Path(tempfile.mkdtemp(prefix="run-", dir=fork_server.scratch))
        self.storage = open_storage(plan.storage, self.interceptor, self._scratch / "storage", fork_server.front)
        host = self.host_type(
            fork_server,
            self.storage,
            self.interceptor,
            self._specification,
            self._exited,
            bool(plan.faults),
        )
        super().__init__(plan, loaded, host)
        self._system_name = system
        self._counters = self._scratch / "steps"
        step_counters(self._counters)
        self._identity = True
        self._slots: dict[str, int] = {}
        self._struck: set[int] = set()
        lives = fork_server.lives
        fork_server.coordinator.attach(
            self.interceptor,
            self._answers(lives),
            failed=host.fail,
            dead=lambda name: name in lives and lives[name].kill_sent,
        )

    def _prepared(self, plan: Plan, system: System) -> Plan:
        """The plan as it is run, after the faults that are known by calls are armed."""
        plan = by_steps(plan, system)
        possible = [(n, fault) for n, fault in enumerate(plan.faults) if not why_not(fault, plan.storage)]
        self.interceptor.arm(*(ArmedFault(fault) for _, fault in possible if isinstance(fault.trigger, Call)))
        self._at_steps = tuple(each for each in possible if not isinstance(each[1].trigger, Call))
        return plan

    def _exited(self, process: ManagedProcess) -> None:
        """Do what follows when a process ended by itself."""
        self.faults.died(process, None)

    def run(self) -> History:
        """Run the phases and close the history; no process is left."""
        with ExitStack() as last_first:
            last_first.callback(shutil.rmtree, self._scratch, ignore_errors=True)
            last_first.callback(self.storage.close)
            last_first.callback(self.host.fork_server.end_lives)
            last_first.callback(self.host.close)
            last_first.callback(setattr, self.faults, "healed", True)
            self.begin()
            self.play()
            self.end()
        events = self.recorder.close()
        return History(self.settings.header(self.world, self.plan, events, self._identity), events)

    def _specification(self, process: ManagedProcess) -> dict[str, Any]:
        actor, life = process.actor, process.life
        faults = () if actor == PROBE else tuple(each for each in self._at_steps if each[1].target == actor)
        return {
            "process": process.name,
            "role": process.role,
            "kind": type(life).__name__,
            "ops": life.ops[life.done :] if isinstance(life, ClientLife) else (),
            "plan": self.plan,
            "system": self._system_name,
            "hub": self.host.fork_server.coordinator.address,
            "counters": str(self._counters),
            "slot": self._slots.setdefault(actor, len(self._slots)),
            "faults": faults,
            "storage": self.storage.spec,
        }

    # Requests of children.

    def _answers(self, lives: dict[str, ManagedProcess]) -> dict[str, Callable[..., Any]]:
        """The answers to children by kind of request. Those that change the cluster run in the cluster's thread."""
        ask = self.host.ask
        return {
            "ready": lambda name: lives[name].ready.set(),
            "healed": lambda _: self.faults.healed,
            "no-identity": lambda _: setattr(self, "_identity", False),
            "strike": ask(self._strike),
            "op": lambda name: next(lives[name].life.rest()) and None,  # type: ignore[union-attr]
            "client-through": ask(self._client_through),
            "launch": ask(self._launch),
            "ended": self._ended,
            "through": ask(self._through),
            "began": lambda _, table, instant: self.writes.instants.setdefault(MarkerDirectory(table, instant)),
            "listening": self._listening,
            "need-server": ask(lambda _: self.servers.need()),
            "server-started": lambda _, server: getattr(self.servers.address(server), "started", None),
            "address": self._address,
        }

    def _strike(self, process: ManagedProcess, number: int, attempt: int | None) -> Instruction:
        """The instruction to a child for a fault of the plan that is due at its step."""
        fault = self.plan.faults[number]
        if self.faults.healed or not process.alive or number in self._struck:
            return None  # Two lives of an actor may count at the same time: executors outlive their driver a little.
        self._struck.add(number)
        family = fault.kind.row.family
        if family == "storage":
            self.interceptor.arm(at_next_calls(fault, process.name))
            return None
        if family == "wire":
            return ("wire", 0)
        sent = None if attempt is None else self.host.attempts[attempt]
        instruction = self.faults.strike(process, fault, sent)
        if not process.alive:
            raise CallerIsDead
        if instruction is not None and instruction[0] == "end" and isinstance(process.life, ExecutorLife):
            process.life.running.pop(attempt, None)
        return instruction

    def _inject(self, armed: ArmedFault, call: StorageCall) -> None:
        """Kill or pause the process whose storage call meets a fault; the interceptor's lock is held."""
        process, fault = self.host.fork_server.lives[call.process], armed.fault
        if fault.kind is FaultKind.PAUSE:
            self.host.pause(process, fault.settings.for_ms)
        elif fault.kind is not FaultKind.KILL and process.alive:
            self.faults.tear(process, fault)
        else:
            self.faults.kill(process, fault)

    def _client_through(self, process: ManagedProcess, well: bool) -> None:
        if process.alive:
            process.kill_sent = True
            if well:
                self.clients.left()
            else:
                self.clients.go_on(process)

    def _launch(self, driver: ManagedProcess, slot: int, work: Any, slow_ms: int, mode: str) -> int:
        if not driver.alive:
            raise CallerIsDead
        host, executor = self.host, self.writes.executors[slot]
        number = len(host.attempts)
        attempt = host.attempts[number] = executor.life.running[number] = ProcessAttempt(number, driver, work)
        if executor.alive:
            host.fork_server.coordinator.post(executor.name, number, work, slow_ms, mode)
        else:
            self.writes.lose(driver, attempt, LOST_EXECUTOR_MS)
        return number

    def _ended(self, name: str, number: int, result: Any, well: bool) -> None:
        life, attempt = self.host.fork_server.lives[name].life, self.host.attempts[number]
        assert isinstance(life, ExecutorLife)
        life.running.pop(number, None)
        self.host.tell(attempt.driver, "ended", attempt, (result, well), 0)

    def _through(self, driver: ManagedProcess, why: str) -> None:
        if driver.alive:
            self.writes.through(driver, why)

    def _listening(self, name: str, port: int) -> None:
        process = self.host.fork_server.lives[name]
        process.port = port
        process.started = self.host.record(name, process.role, "observe", "started")
        process.ready.set()

    def _address(self, _: str, server: str) -> tuple[str, int] | None:
        process = self.servers.address(server)
        return (process.name, process.port) if process is not None and process.alive and process.port else None
