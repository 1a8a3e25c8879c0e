"""The lives of children: forked by the template, known by name, and ended when the template reports it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.host import Life
from marker_sim.worlds.processes.coordinator import TEMPLATE, Coordinator
from marker_sim.worlds.processes.storages import LocalFront, check_storage

FORK_TIMEOUT_S = 20.0
END_TIMEOUT_S = 10.0
POLL_S = 0.05


@dataclass(eq=False)
class ManagedProcess:
    """One child process.

    actor: its name in the plan, over all lives.
    started: index of a server's first event. port: its port, 0 until it listens.
    kill_sent: the kit ended it, or knows why it ends.
    program: what it leads, None for a process alone.
    follow: what follows from its death, None where nothing does.
    """

    name: str
    actor: str
    role: str
    life: Life = None
    pid: int = 0
    port: int = 0
    started: int | None = None
    kill_sent: bool = False
    paused: bool = False
    follow: Callable[[], None] | None = None
    program: supervisor.StartedProgram | None = None

    def __post_init__(self) -> None:
        self.ready, self.forked, self.gone = threading.Event(), threading.Event(), threading.Event()

    @property
    def ended(self) -> bool:
        """Whether no call of it is answered any more."""
        return not self.alive

    @property
    def alive(self) -> bool:
        """Whether it has not ended and nobody has ended it."""
        return not self.kill_sent and not self.gone.is_set()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that is gone is fine. A program that it leads is killed, whatever the signal."""
        if self.gone.is_set():
            return
        if self.program is not None:
            self.program.kill()
        elif self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServer:
    """The template, the coordinator and the children of successive runs; a context manager that leaves no process.

    front: intercepts local file calls of children, None where they cannot be watched.
    on_gone: called when a child has ended. HarnessError, without a process, if a package is missing that children
    import.
    """

    def __init__(self) -> None:
        check_storage("local")
        self.scratch = Path(tempfile.mkdtemp(prefix="marker-sim-")).resolve()
        self.coordinator = Coordinator(self.scratch / "hub", {"forked": self._forked, "gone": self._ended})
        self.lives: dict[str, ManagedProcess] = {}
        self.on_gone: Callable[[ManagedProcess, int | None], None] = lambda life, code: None
        self._forking = threading.Lock()
        self._over = False
        self._counts: Counter[str] = Counter()
        self._by_pid: dict[int, ManagedProcess] = {}
        self._log = (self.scratch / "children.log").open("wb")
        self._process: subprocess.Popen[bytes] | None = None
        self.front: LocalFront | None = None

    def __enter__(self) -> ForkServer:
        """Start the template."""
        words = [sys.executable, "-m", "marker_sim.worlds.processes", self.coordinator.address]
        if not refused():
            self.front = LocalFront(self.scratch / "files", self._caller)
        start = supervisor.start_program if self.front is None else self.front.start
        self._process = start(words, {}, process=TEMPLATE, role="", stdout=self._log).popen
        return self

    def __exit__(self, *_: object) -> None:
        """End every process and remove what was written."""
        self.end_lives()
        if self.front is not None:
            self.front.door.close()
        elif self._process is not None:
            supervisor.end(self._process)
        self.coordinator.close()
        self._log.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def begin(self, on_gone: Callable[[ManagedProcess, int | None], None]) -> None:
        """A run begins: no life of an earlier one is known any more."""
        self.lives, self._counts, self.on_gone = {}, Counter(), on_gone
        self._over = False

    def new(self, actor: str, role: str, life: Life) -> ManagedProcess:
        """Register a life of an actor, not forked yet."""
        self._counts[actor] += 1
        process = ManagedProcess(f"{actor}#{self._counts[actor]}", actor, role, life)
        self.lives[process.name] = process
        return process

    def fork(self, life: ManagedProcess, spec: Mapping[str, Any]) -> None:
        """Fork the process of a life, unless the run is over; HarnessError when the template fails."""
        with self._forking:
            if self._over:
                life.gone.set()
                return
            self.coordinator.post(TEMPLATE, "fork", spec)
        if not self._is_forked(life):
            raise HarnessError(f"no process could be forked for {life.name}: {self.last_words()}")

    def _is_forked(self, life: ManagedProcess) -> bool:
        """Wait until a life is forked; False when it does not come, at once when the template has ended."""
        deadline = time.monotonic() + FORK_TIMEOUT_S
        while not life.forked.wait(POLL_S):
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                return life.forked.is_set()
        return True

    def _forked(self, name: str, pid: int) -> None:
        """Handle the template's answer to "fork"."""
        life = self.lives[name]
        life.pid = pid
        self._by_pid[pid] = life
        life.forked.set()

    def _ended(self, pid: int, code: int | None) -> None:
        """A process is gone, with an exit code if that is known; what follows from it is done elsewhere, in order."""
        life = self._by_pid.pop(pid, None)
        if life is not None:
            life.gone.set()
            self.on_gone(life, code)

    def _caller(self, pid: int) -> ManagedProcess | None:
        """The life with a pid; None while its calls must wait: it is paused, or its pid is not yet known."""
        life = self._by_pid.get(pid)
        return None if life is not None and life.paused and life.alive else life

    def end_lives(self) -> None:
        """Kill every child of the run and wait for its end; later forks are refused."""
        with self._forking:
            self._over = True
        for life in tuple(self.lives.values()):
            life.kill_sent = True
            if not life.gone.is_set():
                self._is_forked(life)
            life.signal(signal.SIGKILL)
        for life in tuple(self.lives.values()):
            if life.pid and not life.gone.wait(END_TIMEOUT_S):
                raise HarnessError(f"{life.name}, process {life.pid}, did not end after SIGKILL")

    def last_words(self) -> str:
        """The end of the children's output, for messages."""
        self._log.flush()
        return supervisor.last_lines(Path(self._log.name))
