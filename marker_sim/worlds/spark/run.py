"""One run of a plan as jobs of a Spark application, from the kit's side: it plays the writes and keeps the history.

Writes run one after another on one driver, until that dies; then the next write gets a new one. When the plan is
through, everything heals, a last write must leave the table in order, and all that is stored is read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.history import APPLICATION_ENDED, Header, History
from marker_sim.loading import load_system
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Plan
from marker_sim.worlds.cluster.run import observe
from marker_sim.worlds.cluster.settings import ClusterSettings
from marker_sim.worlds.cluster.writes import probe_of
from marker_sim.worlds.interceptor import Interceptor
from marker_sim.worlds.processes.coordinator import Coordinator
from marker_sim.worlds.processes.fork_server import ManagedProcess
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.processes.seams import step_counters
from marker_sim.worlds.processes.storages import LocalFront, check_storage, open_storage
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.application import Application, Gone, driver_words
from marker_sim.worlds.spark.fault_injector import JobFaultInjector
from marker_sim.worlds.spark.outcome import SparkRun, left_files
from marker_sim.worlds.spark.plans import DRIVER, SERVER
from marker_sim.worlds.spark.standalone import Standalone

WRITE_S = 120.0
NOT_FIRED = "fault on Spark that did not fire"
STRAY = "data file on Spark that no commit names at the end"
SERVER_S = 30.0


def run_spark(plan: Plan, cluster: Standalone, logs: Path, system: str = "reference") -> SparkRun:
    """Execute a plan on a cluster, on a fresh local directory or behind a fresh S3 front.

    system: as in --sut; a mutant's as well. HarnessError when the kit or Spark fails.
    """
    jobs = SparkWrites(plan, cluster, logs, system)
    history = jobs.run()
    missed, begun = jobs.injector.missed(), sum(e.kind == "ok" and e.operation == "begin" for e in history.events)
    counts = {NOT_FIRED: len(missed), STRAY: len(left_files(history).strays), "Spark job": begun}
    return SparkRun(history=history, plan=plan, counts=counts, missed=missed)


class SparkWrites:
    """The processes of one run. lives: those that registered, by name. server: the timeline server of the driver."""

    def __init__(self, plan: Plan, cluster: Standalone, logs: Path, system: str) -> None:
        check_storage(plan.storage)
        self.cluster = cluster
        self.plan = replace(plan, writes=(*plan.writes, probe_of(0, plan.writes)))
        self._given = plan
        self.system = load_system(system)
        self.identity = True
        self.recorder = Recorder()
        self.injector = JobFaultInjector(self)
        self.interceptor = Interceptor(self.recorder, self.injector.inject)
        self.lives: dict[str, ManagedProcess] = {}
        self._by_pid: dict[int, ManagedProcess] = {}  # Each says hello before its first call.
        self.server: ManagedProcess | None = None
        self.over = threading.Event()
        self._drivers = self._servers = 0
        self._serving = threading.Condition()
        self._application: Application | None = None
        self._instants: dict[MarkerDirectory, None] = {}
        self._trouble: list[BaseException] = []
        self._system_name, self._logs = system, logs
        self._scratch = Path(tempfile.mkdtemp(prefix="marker-sim-spark-")).resolve()
        front = cluster.door if isinstance(cluster.door, LocalFront) else None
        if front is not None:
            front.caller_of = self._by_pid.get
        self.storage = open_storage(plan.storage, self.interceptor, self._scratch / "storage", front)
        self.settings = ClusterSettings(self.plan, self.system, self.storage.capabilities)
        self.choice = self.settings.choice
        step_counters(self._scratch / "steps")
        self._coordinator = Coordinator(self._scratch / "hub")
        self._coordinator.attach(
            self.interceptor,
            self._answers(),
            failed=self._trouble.append,
            dead=self._dead,
            left=self._left,
        )

    def run(self) -> History:
        """Play the plan and close the history; of this run's processes none is left but executors about to end."""
        record = self.recorder.record
        try:
            record("kit", "kit", "observe", "phase", value="faults")
            record("kit", "kit", "observe", "mode", value=self.choice.mode, error=self.choice.reason or None)
            for number in range(len(self.plan.writes) - 1):
                self._write(number)
                self.interceptor.disarm()
            self.injector.healed = True
            record("kit", "kit", "observe", "phase", value="healed")
            record("kit", "kit", "observe", "phase", value="probe")
            self._write(len(self.plan.writes) - 1)
            record("kit", "kit", "observe", "phase", value="end")
            self._leave()
            self._observe()
        finally:
            self._close()
        if self._trouble:
            raise self._trouble[0]
        return History(self._header(), self.recorder.close())

    def _close(self) -> None:
        """End the driver, the coordinator and the storage, and delete the files of the run, whatever happened."""
        self.injector.healed = True
        self.over.set()
        with ExitStack() as last_first:
            last_first.callback(shutil.rmtree, self._scratch, ignore_errors=True)
            last_first.callback(self.storage.close)
            last_first.callback(self._coordinator.close)
            if self._application is not None:
                last_first.callback(self._application.kill)

    def driver_life(self) -> ManagedProcess | None:
        """The present driver, None when there is none or it has not registered yet."""
        return None if self._application is None else self.lives.get(self._application.name)

    def kill_application(self) -> None:
        """Send SIGKILL to the driver's session; returns at once."""
        assert self._application is not None
        self._application.kill_now()

    def _write(self, number: int) -> None:
        """Let the present driver, or a new one, perform a write, in which it may die."""
        self.injector.arm(number + 1)
        application = self._application or self._start_driver()
        try:
            application.ask({"number": number}, WRITE_S)
        except Gone:
            self._bury(application)
        if self._trouble:
            raise self._trouble[0]

    def _start_driver(self) -> Application:
        self._drivers += 1
        name = f"driver#{self._drivers}"
        spec = {
            "plan": self.plan,
            "system": self._system_name,
            "hub": self._coordinator.address,
            "counters": str(self._scratch / "steps"),
            "slot": 0,
            "faults": (),
            "storage": self.storage.spec,
            "driver": name,
            "settings": {"spark.master": self.cluster.url},
        }
        log = self._logs / f"driver-{self._drivers}.log"
        environment, door = self.cluster.environment(), self.cluster.door
        words = driver_words("jobs", spec, self._scratch / f"{name}.spec")
        application = Application(name, words, environment, log, door=door)
        self._application = application
        application.wait_ready()
        return application

    def _bury(self, application: Application) -> None:
        """Clean up after a driver that died; HarnessError when it was not the plan's faults that killed it."""
        life = self.lives[application.name]
        application.kill()
        self._application = None
        if not life.kill_sent:
            raise HarnessError(f"{application.name} ended by itself: {application.last_lines()}")

    def _leave(self) -> None:
        """End the application at the end of the run: record its driver's exit and its server's kill, and kill both."""
        application = self._application
        if application is None:
            return
        with self.recorder.lock:
            for life in (self.server, self.driver_life()):
                if life is not None and not life.kill_sent:
                    life.kill_sent = True
                    if life.role == SERVER:
                        self.recorder.record(life.name, life.role, "fault", "kill", value="end-of-run")
                    else:
                        self.recorder.record(life.name, life.role, "observe", "exited", error=APPLICATION_ENDED)
        application.kill()
        self._application = None

    # What processes ask.

    def _answers(self) -> dict[str, Callable[..., Any]]:
        return {
            "hello": self._hello,
            "moment": self.injector.moment,
            "step": self.injector.step,
            "healed": lambda _: self.injector.healed,
            "no-identity": lambda _: setattr(self, "identity", False),
            "began": lambda _, table, instant: self._instants.setdefault(MarkerDirectory(table, instant)),
            "new-server": self._new_server,
            "listening": self._listening,
            "server-ready": self._server_ready,
            "server-gone": self._server_gone,
            "server-started": lambda *_: self.server.started if self.server is not None else None,
            "address": self._address,
        }

    def _hello(self, name: str, role: str, pid: int, host: str) -> None:
        life = ManagedProcess(name, host, role)
        life.pid = pid
        self.storage.expect(name, role)
        self.lives[name] = self._by_pid[pid] = life

    def _new_server(self, _: str) -> str:
        self._servers += 1
        return f"server#{self._servers}"

    def _listening(self, name: str, port: int) -> None:
        with self._serving:
            life = self.lives[name]
            life.port = port
            life.started = self.recorder.record(name, life.role, "observe", "started")
            self.server = life
            self._serving.notify_all()

    def _server_ready(self, _: str) -> None:
        with self._serving:
            if not self._serving.wait_for(lambda: self.server is not None and not self.server.kill_sent, SERVER_S):
                raise HarnessError(f"no timeline server was there within {SERVER_S:.0f} s")

    def _server_gone(self, _: str, name: str, code: int) -> None:
        with self.recorder.lock:
            life = self.lives.get(name)
            if life is not None and not life.kill_sent:
                life.kill_sent = True
                self.recorder.record(name, SERVER, "observe", "exited", error=f"exit code {code}")

    def _address(self, _: str, server: str) -> tuple[str, int] | None:
        life = self.server
        return None if life is None or life.kill_sent else (life.name, life.port)

    def _dead(self, process: str) -> bool:
        life = self.lives.get(process)
        return life is not None and life.kill_sent

    def _left(self, process: str) -> None:
        """Record that a Python worker exited, when its connection was closed and Spark has ended its process."""
        life = self.lives.get(process)
        if life is not None and life.role not in (DRIVER, SERVER):
            with self.recorder.lock:
                if not life.kill_sent and not os.path.exists(f"/proc/{life.pid}"):
                    life.kill_sent = True
                    self.recorder.record(process, life.role, "observe", "exited", error="its executor ended it")

    def _observe(self) -> None:
        tables = [self.plan.tables[number] for number in sorted({write.table for write in self.plan.writes})]
        files, began, seen = self.storage.files(), self.recorder.mark(), (self._instants, tables, PARQUET)
        observe(self.recorder.record, began, files, time.time_ns(), self.settings, *seen)

    def _header(self) -> Header:
        return self.settings.header("spark", self._given, self.recorder.events, self.identity)
