"""A driver from the kit's side: a Python program with the JVM that PySpark starts for it, or a JVM alone.

It leads a session of processes of its own and is asked with one JSON line, which it answers with one (session.py); what
else it says goes to its log. It ends when its input ends, so that nothing outlives the kit. Killing it is SIGKILL for
the whole session at once: Python, JVM and what they started.
"""

from __future__ import annotations

import json
import math
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.worlds.door.front import DoorFront
from marker_sim.worlds.spark.plans import DRIVER

START_S = 90.0
MIN_S = 0.05


class Gone(Exception):
    """The driver ended before it answered."""


class Hangs(HarnessError):
    """The driver did not answer within its time; it is alive."""


class OutOfTime(Exception):
    """The budget ended while the driver worked; that says nothing about it."""


class Driver(Protocol):
    """What writes a table, one write after another; `Application` says what each method does."""

    name: str

    @property
    def alive(self) -> bool: ...
    def wait_ready(self) -> None: ...
    def ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]: ...
    def kill_now(self) -> None: ...
    def kill(self) -> None: ...
    def last_lines(self) -> str: ...


def driver_words(program: str, spec: Mapping[str, Any], given: Path) -> list[str]:
    """The command of a driver. program: as worlds/spark/__main__.py names it. spec: stored in the file `given`."""
    given.parent.mkdir(parents=True, exist_ok=True)
    given.write_bytes(pickle.dumps(spec))
    return [sys.executable, "-m", "marker_sim.worlds.spark", program, str(given)]


class Application:
    """A driver process.

    name: its process in the history.
    words: its command.
    deadline: when the budget is over (time.monotonic).
    door: it starts behind it, None for an application whose storage calls nobody stops.
    """

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        deadline: float = math.inf,
        door: DoorFront | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._deadline = deadline
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        log.parent.mkdir(parents=True, exist_ok=True)
        start = supervisor.start_program if door is None else door.start
        with log.open("ab") as errors:
            self._program = start(words, environment, process=name, role=DRIVER, stdin=subprocess.PIPE, stderr=errors)
        self._popen = self._program.popen
        threading.Thread(target=self._listen, daemon=True, name=f"answers-of-{name}").start()

    @property
    def alive(self) -> bool:
        """Whether the driver's process is running."""
        return self._popen.poll() is None

    def wait_ready(self) -> None:
        """Wait until it is ready for questions. HarnessError when it does not start; OutOfTime."""
        try:
            self._answer(START_S)
        except Gone as gone:
            raise HarnessError(f"the driver {self.name} did not start: {self.last_lines()}") from gone

    def ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """An answer. Gone when the driver ended; Hangs after `timeout_s`; OutOfTime when the budget ends before."""
        self.tell(message)
        return self._answer(timeout_s)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message without waiting for the answer. Gone when the driver has ended."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(json.dumps(message).encode() + b"\n")
            self._popen.stdin.flush()
        except OSError as error:
            raise Gone(self.name) from error

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        left_s = self._deadline - time.monotonic()
        try:
            line = self._answers.get(timeout=max(MIN_S, min(timeout_s, left_s)))
        except queue.Empty as error:
            if time.monotonic() >= self._deadline:
                raise OutOfTime from error
            raise Hangs(f"{self.name} did not answer in {timeout_s:.0f} s: {self.last_lines()}") from error
        if not line:
            self._answers.put(line)
            raise Gone(self.name)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill_now(self) -> None:
        """Send SIGKILL to the driver's session; it may be called with a lock held, for which nothing of it waits."""
        self._program.kill()

    def kill(self) -> None:
        """Send SIGKILL to the driver's session and wait until no process of it is left."""
        self.kill_now()
        supervisor.end(self._popen)

    def last_lines(self) -> str:
        """The end of its log, for messages."""
        return supervisor.last_lines(self.log)

    def _listen(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self._answers.put(line)
        self._popen.wait()
        self._answers.put(b"")
