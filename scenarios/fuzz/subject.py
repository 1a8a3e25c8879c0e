"""A server process under fire: started by a command, watched for its output, its memory and its life."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from marker_sim.errors import HarnessError

STARTUP_S = 30.0
POLITE_S = 2.0
END_S = 10.0
POLL_S = 0.01
_LISTENING = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")
_ALARMS = (b"Traceback", b"Exception ignored", b"never retrieved", b"never awaited", b"Fatal")


class Subject:
    """One life of a server. command: "{port}" in it becomes a free port; without it the server says its port."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        self._read = 0
        wants_port = any("{port}" in word for word in command)
        self.port = free_port() if wants_port else 0
        words = [word.replace("{port}", str(self.port)) for word in command]
        with log.open("wb") as out:
            self._popen = subprocess.Popen(
                words,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            )
        try:
            self._await_port()
        except BaseException:
            self.end()
            raise
        self.pid = self._popen.pid

    def alive(self) -> bool:
        """Whether the process that was started still runs."""
        return self._popen.poll() is None

    def alarms(self) -> str:
        """The part of its output since the last call about an uncaught error, "" for none."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            new = log.read()
        self._read += len(new)
        at = min((new.find(word) for word in _ALARMS if word in new), default=-1)
        return new[at : at + 3000].decode("utf-8", "replace") if at >= 0 else ""

    def rss_bytes(self) -> int:
        """Resident memory of it and its children."""
        process = psutil.Process(self.pid)
        return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))

    def end(self) -> int | None:
        """Ask it to stop, then kill its group; the exit code of the polite way, None when it had to be killed."""
        try:
            self._popen.send_signal(signal.SIGTERM)
            return self._popen.wait(POLITE_S)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait(END_S)

    def _await_port(self) -> None:
        deadline = time.monotonic() + STARTUP_S
        while time.monotonic() < deadline:
            said = _LISTENING.search(self.log.read_bytes())
            if said:
                self.port = int(said[1])
            if self.port and _listens(self.port):
                return
            if self._popen.poll() is not None:
                break
            time.sleep(POLL_S)
        raise HarnessError(f"the server did not start: {self.log.read_text(errors='replace')[-2000:]}")


def serve_command(base: str, *extra: str) -> list[str]:
    """The command of the reference timeline server with short batches."""
    words = [sys.executable, "-m", "marker_sim", "serve", "--port", "0", "--base", base]
    return [*words, "--batch-interval-ms", "2", *extra]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True
