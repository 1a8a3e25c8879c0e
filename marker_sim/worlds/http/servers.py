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
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from marker_sim.errors import HarnessError, UsageError
from marker_sim.surroundings import supervisor
from marker_sim.surroundings.worker_pool import guarded
from marker_sim.worlds.door.launch import DoorCommand
from marker_sim.worlds.http.world import Surroundings

VARIABLE = "MARKER_SIM_FLEET"
ANSWER_TIMEOUT_S = 60.0
PORTS_TRIED = 4
LOG_LINES_QUOTED = 8
POLL_S = 0.02
END_TIMEOUT_S = 5.0
_TAKEN = ("address already in use", "eaddrinuse", "address in use", "failed to bind", "port already in use")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command that starts a server.

    startup_s: how long it may take to answer.
    """

    text: str
    startup_s: float = ANSWER_TIMEOUT_S

    def arguments(self, values: Mapping[str, str]) -> list[str]:
        """The command as words, with every placeholder that has a value replaced and every other brace left alone."""
        try:
            words = shlex.split(self.text)
        except ValueError as error:
            raise UsageError(f"--start {self.text!r} is not a valid command line: {error}") from error
        if not words:
            raise UsageError("--start was given an empty command; write the command that starts the server")
        return [_fill(word, values) for word in words]


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word


class Server:
    """One life of a server process. `name` is the process of the history, `started` the index of its first event.

    door: the port that clients ask: its own, or that of a proxy before it.
    """

    def __init__(
        self, name: str, port: int, popen: subprocess.Popen[bytes], log: Path, behind: DoorCommand | None = None
    ) -> None:
        self.name = name
        self.port = port
        self.door = port
        self.log = log
        self.started = -1
        self.ended = False
        self.since_s = time.time()
        self._popen = popen
        self._behind = behind

    @property
    def pid(self) -> int:
        """The process of the command. It leads its session and group, but for a launcher that leads that of a door."""
        return self._popen.pid if self._behind is None else self._behind.pid

    @property
    def session(self) -> int:
        """The session of all that was started."""
        return self._popen.pid

    @property
    def proxied(self) -> bool:
        """Whether there is a proxy between the server and its clients."""
        return self.door != self.port

    def pids(self) -> list[int]:
        """The process ids of the server and its live descendants; a launcher adopts those that left their parents."""
        return supervisor.family(self.pid) if self._behind is None else supervisor.family(self._popen.pid)[1:]

    def exited(self) -> int | None:
        """The exit code of the server, None while it runs."""
        return self._popen.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group and to descendants that left it; what is gone already is fine."""
        if self._popen.returncode is not None:
            return
        if number is signal.SIGKILL and self._behind is not None:
            self._behind.end()  # Not a call of it is answered any more, and nothing of it is left.
            return
        if number is signal.SIGKILL:  # Finding strays takes milliseconds, in which a dying server would go on.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGSTOP)
        if self._behind is not None:  # Its launcher has to go on, to end it.
            targets = [(os.kill, pid) for pid in self.pids()]
        else:
            stray = [pid for pid in self.pids() if pid != self.pid and _group(pid) != self.pid]
            targets = [(os.killpg, self.pid), *((os.kill, pid) for pid in stray)]
        for send, target in targets:
            try:
                send(target, number)
            except (ProcessLookupError, PermissionError):
                continue

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Pause it and wait until every thread of it has stopped; False when it did not within the time."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + timeout_s
        while not all(_is_stopped(pid) for pid in self.pids()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0005)
        return True

    def proceed(self) -> None:
        """Let it go on after `stop`."""
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL for all of it, and wait until it is gone."""
        self.ended = True
        self.signal(signal.SIGKILL)
        try:
            self._popen.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise HarnessError(f"process {self.pid} of {self.name} did not end after SIGKILL") from error

    def last_lines(self) -> str:
        """The end of its output, for messages."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return "(no output)"
        shown = [line.strip() for line in lines if line.strip()][-LOG_LINES_QUOTED:]
        return " | ".join(shown) or "(no output)"


def _read(path: str) -> bytes:
    """A file of the kernel's. Servers are looked at several times per answer, and pathlib takes four times as long."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


class Fleet:
    """Every server of one campaign; as a context manager it ends all of them, however the block is left."""

    def __init__(self, command: Command, workdir: Path, logs: Path) -> None:
        self.command = command
        self.mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._workdir = workdir
        self._logs = logs
        self._servers: list[Server] = []
        self._count = 0
        self._lock = threading.Lock()
        self._guard = contextlib.ExitStack()
        self.closing = threading.Event()

    def __enter__(self) -> Fleet:
        self._dismiss_guard = self._guard.enter_context(guarded(VARIABLE, self.mark))
        return self

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self.end_all()
            self._dismiss_guard()

    def start(
        self,
        slot: str,
        num_threads: int,
        interval_ms: int,
        surroundings: Callable[[str], Surroundings],
        probe: Callable[[int], str],
        startup_s: float | None = None,
    ) -> Server:
        """Start a server and wait until it serves; from any thread.

        slot: servers of one slot share {workdir}, one after another.
        surroundings: of the server with a name.
        probe: asks the server at a port, and says what came instead of an answer; "" when it serves.

        A port that is taken is replaced by a fresh one a few times. Raises HarnessError when the command is not there,
        exits, or does not answer in time.
        """
        said = ""
        for _ in range(PORTS_TRIED):
            server = self._launch(slot, num_threads, interval_ms, surroundings)
            try:
                self._await(server, probe, startup_s or self.command.startup_s)
            except _PortTaken as taken:
                said = str(taken)
                continue
            except BaseException:
                server.kill()
                raise
            return server
        raise HarnessError(
            f"the port given was in use {PORTS_TRIED} times, each time a fresh one; does the command pass {{port}} on?"
            f" Its last output: {said}"
        )

    def living(self) -> list[Server]:
        """Servers that were not ended by the kit."""
        return [server for server in self._servers if not server.ended]

    def end_all(self) -> None:
        """Kill every server and every process that carries the fleet's variable. May be called again.

        From any thread: what another thread starts meanwhile is found by the fleet's variable.
        """
        self.closing.set()
        for server in list(self._servers):
            if server.exited() is None:
                server.signal(signal.SIGCONT)
            server.ended = True
            server.signal(signal.SIGKILL)
        deadline = time.monotonic() + END_TIMEOUT_S
        while strays := self.strays():
            for process in strays:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            if time.monotonic() > deadline:
                raise HarnessError(f"processes {[process.pid for process in strays]} did not end after SIGKILL")
            time.sleep(POLL_S)
        for server in self._servers:
            server.exited()

    def strays(self) -> list[psutil.Process]:
        """Living processes that carry the fleet's variable or are in a server's session, wherever they are."""
        sessions = {server.session: server.since_s for server in self._servers}
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                since_s = sessions.get(os.getsid(process.pid))
                ours = since_s is not None and process.create_time() >= since_s - 1
                if ours or process.environ().get(VARIABLE) == self.mark:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def _launch(
        self, slot: str, num_threads: int, interval_ms: int, surroundings: Callable[[str], Surroundings]
    ) -> Server:
        with self._lock:
            self._count += 1
            name = f"server-{self._count}"
        around = surroundings(name)
        port, workdir = free_port(), self._workdir / slot
        log = self._logs / f"{name}.log"
        values = {
            "port": str(port),
            "workdir": str(workdir),
            "threads": str(num_threads),
            "interval_ms": str(interval_ms),
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
                behind = None
                if around.start is not None:
                    mine = {**around.environment, VARIABLE: self.mark}
                    behind = around.start(words, mine, process=name, stdout=output)
                    popen = behind.popen
                else:
                    popen = subprocess.Popen(
                        words,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        env={**os.environ, **around.environment, VARIABLE: self.mark},
                        start_new_session=True,
                    )
        except OSError as error:
            raise _not_started(words[0], error) from error
        server = Server(name, port, popen, log, behind)
        self._servers.append(server)
        return server

    def _await(self, server: Server, probe: Callable[[int], str], startup_s: float) -> None:
        """Wait until the server serves at its port."""
        deadline = time.monotonic() + startup_s
        while not self.closing.is_set():
            code = server.exited()
            if code is not None:
                said = server.last_lines()
                server.kill()
                if any(words in said.lower() for words in _TAKEN):
                    raise _PortTaken(said)
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                raise HarnessError(
                    f"the server's command ended with {how} before it answered; its last output: {said} (all of it in"
                    f" {server.log})"
                )
            wrong = probe(server.port)
            if not wrong:
                return
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"the server did not answer GET /v1/hoodie/marker/dir/exists on 127.0.0.1:{server.port} with true"
                    f" or false within {startup_s:.0f} s ({wrong}); its last output: {server.last_lines()} (all of it"
                    f" in {server.log})"
                )
            time.sleep(POLL_S)
        raise HarnessError("the campaign ended while a server was starting")


class _PortTaken(Exception):
    """A server reports that its port is in use; the text is its last output."""


def free_port() -> int:
    """A port that was free a moment ago on 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _not_started(program: str, error: OSError) -> HarnessError:
    if error.errno == errno.ENOSPC:
        return HarnessError(f"there is no space left for the server's output ({error.filename}); free some")
    if isinstance(error, FileNotFoundError):
        return HarnessError(f"the server's command {program!r} was not found; give its full path or put it on PATH")
    return HarnessError(f"the server's command {program!r} cannot be started: {error.strerror or error}")


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


def _is_stopped(pid: int) -> bool:
    """Whether all threads of a process are stopped; a process that is gone counts as stopped."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return True
    for thread in threads:
        try:
            state = _read(f"/proc/{pid}/task/{thread}/stat").rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state not in b"TtZXx":
            return False
    return True
