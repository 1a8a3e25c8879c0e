"""A Spark standalone cluster on loopback: a master on 127.0.0.1, one worker each on 127.0.0.2 and 127.0.0.3.

Spark starts no speculative copy of a task on the host of the original, and all executors of `local-cluster` share one
host; two workers with addresses of their own are two hosts, so copies start. Source: TaskSetManager of Spark 3.5 and
tried. Executors are children of their worker's JVM, a process for each application and worker.

Limits: the cluster must be started by a thread that lives as long as it, for its processes die with that thread.
"""

from __future__ import annotations

import os
import re
import sys
import time
import uuid
from pathlib import Path

import psutil

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.worlds.door.front import DoorFront
from marker_sim.worlds.http.servers import VARIABLE
from marker_sim.worlds.spark.plans import EXECUTOR

HOSTS = ("127.0.0.2", "127.0.0.3")
SCALA = "2.12"  # Of PySpark's jars; a worker that is not told looks for a build directory.
_PREFIX = f"{EXECUTOR}-"
MEMORY = "4096m"  # Of each worker.
START_S = 60.0
POLL_S = 0.05
# Of the processes of the cluster itself, which do little. Executors get what their application asks for.
_SMALL = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_LISTENS = re.compile(r"Starting Spark master at (spark://[\w.:]+)")


def spark_environment(java: str, home: Path, mark: str) -> dict[str, str]:
    """Variables of the processes of an application: where Java, Spark and the kit are, and the mark in VARIABLE."""
    return {
        VARIABLE: mark,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(Path(java).resolve().parent.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


class Standalone:
    """A cluster during the block. url: for `spark.master`. mark: the value of VARIABLE in every process of it.

    cores: of each worker.
    java, home: the JVM and where PySpark lies.
    door: workers start behind it, and calls of their executors bear the name of the worker's host (`host_of`).
    HarnessError when it does not start.
    """

    def __init__(self, scratch: Path, *, java: str, home: Path, cores: int = 2, door: DoorFront | None = None) -> None:
        self.mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self.url = ""
        self._home = home
        self._java = java
        self._scratch = scratch
        self._cores = cores
        self.door = door
        self._programs: dict[str, supervisor.StartedProgram] = {}

    def __enter__(self) -> Standalone:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def environment(self) -> dict[str, str]:
        """The environment variables that a driver of this cluster needs."""
        return spark_environment(self._java, self._home, self.mark)

    def executors(self) -> dict[str, list[psutil.Process]]:
        """The live executor JVMs, by host of their worker; HarnessError when a process of the cluster has ended."""
        self.check()
        found: dict[str, list[psutil.Process]] = {}
        for host in HOSTS:
            found[host] = [
                child for child in _children(self._programs[host].pid) if _runs(child, "CoarseGrainedExecutorBackend")
            ]
        return found

    def check(self) -> None:
        """HarnessError when a process of the cluster ended by itself."""
        for name, program in self._programs.items():
            if (code := program.popen.poll()) is not None:
                said = supervisor.last_lines(self._log(name))
                raise HarnessError(f"the Spark process {name} ended with {code}: {said}")

    def _start(self) -> None:
        self._scratch.mkdir(parents=True, exist_ok=True)
        self._launch("master", "127.0.0.1", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1")
        self.url = self._wait("master", _LISTENS)
        for host in HOSTS:
            words = ("--host", host, "--cores", str(self._cores), "--memory", MEMORY)
            work = ("--work-dir", str(self._scratch / f"work-{host}"))
            self._launch(host, host, "org.apache.spark.deploy.worker.Worker", *words, *work, self.url)
        for host in HOSTS:
            self._wait(host, re.compile("(Successfully registered) with master"))

    def _launch(self, name: str, host: str, main: str, *arguments: str) -> None:
        words = [self._java, *_SMALL, "-cp", str(self._home / "jars" / "*"), main]
        words += ["--port", "0", "--webui-port", "0", *arguments]
        environment = {**self.environment(), "SPARK_LOCAL_IP": host, "SPARK_SCALA_VERSION": SCALA}
        with self._log(name).open("wb") as log:
            if self.door is None or name not in HOSTS:
                started = supervisor.start_program(words, environment, stdout=log, dies_with_kit=True)
            else:
                started = self.door.start(words, environment, process=_PREFIX + name, role=EXECUTOR, stdout=log)
            self._programs[name] = started

    def _wait(self, name: str, said: re.Pattern[str]) -> str:
        deadline = time.monotonic() + START_S
        log = self._log(name)
        while (found := said.search(log.read_text(errors="replace"))) is None:
            self.check()
            if time.monotonic() > deadline:
                end = supervisor.last_lines(log)
                raise HarnessError(f"the Spark process {name} was not there within {START_S:.0f} s: {end}")
            time.sleep(POLL_S)
        return found[1]

    def _log(self, name: str) -> Path:
        return self._scratch / f"{name}.log"

    def _end(self) -> None:
        for program in self._programs.values():
            supervisor.end(program.popen)
        supervisor.end_marked(VARIABLE, self.mark)


def host_of(process: str) -> str:
    """The host of a worker, from the name under which storage calls of its executors are recorded."""
    return process.removeprefix(_PREFIX)


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def _runs(process: psutil.Process, name: str) -> bool:
    try:
        return any(name in word for word in process.cmdline())
    except psutil.Error:
        return False
