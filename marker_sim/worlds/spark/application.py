"""One life of a Spark driver: a Python program with the JVM that PySpark starts for it, in a session of its own.

It is asked with one JSON line on its standard input and answers each with one JSON line on its standard output; what
else it says goes to its log. It must end when its input ends, so that nothing outlives the kit. Killing it is SIGKILL
for the whole session at once: Python, JVM and what they started.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor

END_S = 10.0
POLL_S = 0.05
SAID_MAX = 1_600


class Gone(Exception):
    """The driver ended before it answered."""


class Application:
    """A driver.

    name: its process in the history.
    words: the program.
    log: where its other output goes.
    """

    def __init__(self, name: str, words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._popen = supervisor.start(words, environment, stdin=subprocess.PIPE, stderr=errors)
        threading.Thread(target=self._listen, daemon=True, name=f"hears-{name}").start()

    @property
    def pid(self) -> int:
        """The Python process; it leads its session and process group."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether its Python runs."""
        return self._popen.poll() is None

    def ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Its answer. Gone when it ended instead; HarnessError after `timeout_s`."""
        self.tell(message)
        return self.hear(timeout_s)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a line, to hear the answer later. Gone when it ended."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(json.dumps(message).encode() + b"\n")
            self._popen.stdin.flush()
        except OSError as error:
            raise Gone(self.name) from error

    def hear(self, timeout_s: float) -> dict[str, Any]:
        """The next answer. Gone when it ended instead; HarnessError after `timeout_s`."""
        try:
            line = self._answers.get(timeout=timeout_s)
        except queue.Empty as error:
            raise HarnessError(f"{self.name} did not answer in {timeout_s:.0f} s: {self.last_lines()}") from error
        if line is None:
            self._answers.put(None)
            raise Gone(self.name)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill_now(self) -> None:
        """SIGKILL for the session; returns at once, so it may be called with a lock held."""
        supervisor.signal_session(self._popen, signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL for the session, and wait until no process of it is left."""
        supervisor.end(self._popen)

    def last_lines(self) -> str:
        """The end of its log, for messages."""
        lines = self.log.read_text(errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines if line.strip())[-SAID_MAX:] or "(no output)"

    def _listen(self) -> None:
        assert self._popen.stdout is not None
        for raw in self._popen.stdout:
            text = raw.decode(errors="replace").strip()
            if text.startswith("{"):
                self._answers.put(text)
        self._popen.wait()
        self._answers.put(None)
