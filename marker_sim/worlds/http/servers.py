"""Starts a server by its command in a session of its own, signals all of it, and leaves nothing running.

A process belongs to a fleet when it is in the session of a server, is a descendant of one, or carries the fleet's
environment variable; the last finds what left its group on purpose. Trouble here is HarnessError: it is the kit or
its surroundings, and never held against the system under test. Limits: POSIX; looking for escaped processes reads
/proc through psutil and sees only processes of the same user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from marker_sim.errors import HarnessError
from marker_sim.reading import read_command
from marker_sim.surroundings import supervisor
from marker_sim.surroundings.supervisor import StartedProgram
from marker_sim.surroundings.worker_pool import guarded
from marker_sim.worlds.http.world import Surroundings

VARIABLE = "MARKER_SIM_FLEET"
ANSWER_TIMEOUT_S = 60.0
PORTS_TRIED = 4
# The time limit of a restart while faults are active: seconds, or a multiple of the slowest start so far.
AGAIN_S, AGAIN_TIMES = 10.0, 20
POLL_S = 0.02
END_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 1.0
_TAKEN = ("address already in use", "eaddrinuse", "address in use", "failed to bind", "port already in use")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command that starts a server.

    startup_s: how long it may take to answer.
    ahead: its start does nothing on storage and nothing in {workdir}, so it may begin before the server is needed.
    """

    text: str
    startup_s: float = ANSWER_TIMEOUT_S
    ahead: bool = False

    def arguments(self, values: Mapping[str, str]) -> list[str]:
        """The command as words, with every placeholder that has a value replaced and every other brace left alone."""
        empty = "was given an empty command; write the command that starts the server"
        words = read_command("--start", self.text, empty)
        for name, value in values.items():
            words = [word.replace("{" + name + "}", value) for word in words]
        return words


class ServerPlace(NamedTuple):
    """The settings of a server's start. surroundings: by name of the server. threads, interval_ms: of its batches."""

    surroundings: Callable[[str], Surroundings]
    threads: int
    interval_ms: int


@dataclass(slots=True, eq=False)
class Server:
    """One life of a server process. `name` is the process of the history, `started` the index of its first event.

    lease: the socket of `lease_port`, until the server is killed. slot: as of `Fleet.start`.
    proxy: the port of a proxy between the server and its clients, None for none. ended: it was killed, or has exited.
    """

    name: str
    port: int
    program: StartedProgram
    log: Path
    lease: socket.socket | None = None
    slot: str = ""
    proxy: int | None = None
    started: int = -1
    ended: bool = False
    since_s: float = field(default_factory=time.time)

    @property
    def door(self) -> int:
        """The port to which clients connect: its own, or that of the proxy before it."""
        return self.proxy or self.port

    def pids(self) -> list[int]:
        """The process ids of the server and its live descendants."""
        return self.program.pids()

    def exited(self) -> int | None:
        """The exit code of the server, None while it runs."""
        return self.program.popen.poll()

    def stop(self) -> bool:
        """Pause the server and wait until all its threads have stopped; False when they did not in time."""
        self.program.signal(signal.SIGSTOP)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while not all(_is_stopped(pid) for pid in self.pids()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0005)
        return True

    def proceed(self) -> None:
        """Resume the server after `stop`."""
        self.program.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL to all its processes and wait until they are gone."""
        self.ended = True
        self.program.kill()
        try:
            self.program.popen.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise HarnessError(f"process {self.program.pid} of {self.name} did not end after SIGKILL") from error
        if self.lease is not None:
            self.lease.close()

    def last_lines(self) -> str:
        """The end of its output, for messages."""
        return supervisor.last_lines(self.log)


class Fleet:
    """Every server of one campaign; as a context manager it ends all of them, however the block is left."""

    def __init__(self, command: Command, workdir: Path, logs: Path) -> None:
        self.command = command
        self.mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._workdir = workdir
        self._logs = logs
        self._servers: list[Server] = []
        self._ahead: dict[ServerPlace, Server] = {}
        self._count = 0
        self._slowest_s = 0.0
        self._lock = threading.Lock()
        self._guard = contextlib.ExitStack()
        self.closing = threading.Event()

    @property
    def again_s(self) -> float:
        """How long a restarted server may take to answer while faults are active."""
        return min(self.command.startup_s, max(AGAIN_S, AGAIN_TIMES * self._slowest_s))

    def __enter__(self) -> Fleet:
        self._dismiss_guard = self._guard.enter_context(guarded(VARIABLE, self.mark))
        return self

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self.end_all()
            self._dismiss_guard()

    def start(
        self,
        place: ServerPlace,
        slot: str,
        probe: Callable[[int], str],
        startup_s: float | None = None,
        begin: Callable[[Callable[[], Server]], Server] = lambda launch: launch(),
    ) -> Server:
        """Start a server and wait until it serves; from any thread.

        slot: servers of one slot share {workdir}, one after another.
        probe: asks the server at a port, and says what came instead of an answer; "" when it serves.
        begin: calls what it is given, which begins the start.

        A port that is taken is replaced by a fresh one a few times. Raises HarnessError when the command is not there,
        `NotServing` when it exits, or does not answer in time.
        """
        said = ""
        for _ in range(PORTS_TRIED):
            server = begin(partial(self._next, place, slot))
            began = time.monotonic()
            try:
                self._await(server, probe, startup_s or self.command.startup_s)
            except _PortTaken as taken:
                said = str(taken)
                continue
            except BaseException:
                server.kill()
                raise
            self._slowest_s = max(self._slowest_s, time.monotonic() - began)
            return server
        raise HarnessError(
            f"the port given was in use {PORTS_TRIED} times, each time a fresh one; does the command pass {{port}} on?"
            f" Its last output: {said}"
        )

    def start_ahead(self, place: ServerPlace) -> None:
        """Begin the start of the server that the next `start` at this place takes, if the command allows it."""
        if self.command.ahead and place not in self._ahead and not self.closing.is_set():
            self._ahead[place] = self._launch(place, "ahead")

    def end_ahead(self, surroundings: Callable[[str], Surroundings]) -> None:
        """End servers that `start_ahead` began and that are not needed."""
        for place in [place for place in self._ahead if place.surroundings == surroundings]:
            self._ahead.pop(place).kill()

    def end_all(self) -> None:
        """Kill every server and every process that carries the fleet's variable. May be called again.

        From any thread: what another thread starts meanwhile is found by the fleet's variable.
        """
        self.closing.set()
        for server in list(self._servers):
            server.ended = True
            server.program.kill()
        supervisor.end_marked(VARIABLE, self.mark, {each.program.popen.pid: each.since_s for each in self._servers})
        for server in self._servers:
            server.exited()

    def _next(self, place: ServerPlace, slot: str) -> Server:
        """The server whose start began ahead, or a new one if there is none alive."""
        server = self._ahead.pop(place, None)
        if server is None or server.exited() is not None:
            return self._launch(place, slot)
        server.slot = slot
        return server

    def _launch(self, place: ServerPlace, slot: str) -> Server:
        with self._lock:
            self._count += 1
            name = f"server-{self._count}"
        around = place.surroundings(name)
        (port, lease), workdir = lease_port(), self._workdir / slot
        log = self._logs / f"{name}.log"
        values = {
            "port": str(port),
            "workdir": str(workdir),
            "threads": str(place.threads),
            "interval_ms": str(place.interval_ms),
            **around.values,
        }
        words = self.command.arguments(values)
        try:
            workdir.mkdir(parents=True, exist_ok=True)
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as output:
                if shutil.which(words[0]) is None:
                    missing = errno.EACCES if os.path.exists(words[0]) else errno.ENOENT
                    raise OSError(missing, os.strerror(missing), words[0])
                mine = {**around.environment, VARIABLE: self.mark}
                program = around.start(words, mine, process=name, stdout=output)
        except OSError as error:
            raise _not_started(words[0], error) from error
        server = Server(name, port, program, log, lease, slot)
        self._servers.append(server)
        return server

    def _await(self, server: Server, probe: Callable[[int], str], startup_s: float) -> None:
        """Wait until the server serves at its port."""
        deadline = time.monotonic() + startup_s
        while not self.closing.is_set():
            code = server.exited()
            if code is not None:
                said, killed = server.last_lines(), server.ended
                server.kill()
                if any(words in said.lower() for words in _TAKEN):
                    raise _PortTaken(said)
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                raise NotServing(
                    f"the server's command ended with {how} before it answered; its last output: {said} (all of it in"
                    f" {server.log})",
                    server,
                    f"ended with {how} before it served",
                    killed,
                )
            wrong = probe(server.port)
            if not wrong:
                return
            if time.monotonic() > deadline:
                raise NotServing(
                    f"the server did not answer GET /v1/hoodie/marker/dir/exists on 127.0.0.1:{server.port} with true"
                    f" or false within {startup_s:.0f} s ({wrong}); its last output: {server.last_lines()} (all of it"
                    f" in {server.log})",
                    server,
                    f"did not serve within {startup_s:.0f} s",
                )
            time.sleep(POLL_S)
        raise HarnessError("the campaign ended while a server was starting")


class NotServing(HarnessError):
    """A server does not come up. how: a description. killed: whether the kit ended it."""

    def __init__(self, text: str, server: Server, how: str, killed: bool = False) -> None:
        super().__init__(text)
        self.server, self.how, self.killed = server, how, killed


class _PortTaken(Exception):
    """A server reports that its port is in use; the text is its last output."""


def lease_port() -> tuple[int, socket.socket]:
    """A port of 127.0.0.1 that was free a moment ago; no other kit here chooses it until the socket is closed."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        lease = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            if sys.platform == "linux":  # An abstract socket name, which the kernel frees with its process.
                lease.bind(f"\0marker-sim/port/{port}")
        except OSError:
            lease.close()
            continue
        return port, lease


def _not_started(program: str, error: OSError) -> HarnessError:
    if error.errno == errno.ENOSPC:
        return HarnessError(f"there is no space left for the server's output ({error.filename}); free some")
    if isinstance(error, FileNotFoundError):
        return HarnessError(f"the server's command {program!r} was not found; give its full path or put it on PATH")
    return HarnessError(f"the server's command {program!r} cannot be started: {error.strerror or error}")


def _is_stopped(pid: int) -> bool:
    """Whether all threads of a process are stopped; a process that is gone counts as stopped."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return True
    for thread in threads:
        try:
            state = supervisor.read_kernel(f"/proc/{pid}/task/{thread}/stat").rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state not in b"TtZXx":
            return False
    return True
