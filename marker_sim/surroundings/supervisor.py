"""Starts and ends operating system processes, each in its own session, so that its children end with it.

Processes that may leave their session carry a mark: an environment variable, which their children inherit.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from marker_sim.errors import HarnessError

END_S = 10.0
POLL_S = 0.02
SAID_MAX = 1_600
_PR_SET_PDEATHSIG = 1
Stream = int | IO[bytes]


class StartedProgram:
    """A started program with its descendants. It leads its session, unless a launcher does.

    popen: the leader of the session. pid: the program itself.
    """

    popen: subprocess.Popen[bytes]
    pid: int

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.popen, self.pid = popen, popen.pid

    def pids(self) -> list[int]:
        """The process ids of the program and its live descendants."""
        return family(self.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group and to descendants that left it; what is gone already is fine."""
        strays = list(filter(self._has_left, self.pids())) if self.popen.returncode is None else []
        signal_session(self.popen, number)  # Before the signal, because a dead program has no descendants.
        for pid in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _has_left(self, pid: int) -> bool:
        with suppress(ProcessLookupError):
            return os.getpgid(pid) != self.pid
        return False

    def kill(self) -> None:
        """SIGKILL for all of it, without waiting until it is gone."""
        # Finding stray descendants takes milliseconds, during which it must not go on.
        signal_session(self.popen, signal.SIGSTOP)
        self.signal(signal.SIGKILL)


def start_program(words: Sequence[str], environment: Mapping[str, str], **rest: Any) -> StartedProgram:
    """Start a program with the signature of `Door.start`, whose process and role are ignored; `rest` as for `start`."""
    return StartedProgram(
        start(words, environment, **{name: rest[name] for name in rest if name not in ("process", "role")})
    )


def start(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.STDOUT,
    folder: Path | None = None,
    dies_with_kit: bool = False,
    numbers: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program with `environment` added to the kit's own; HarnessError when it does not start.

    folder: its working directory, None for this process's.
    dies_with_kit: whether it is killed when the thread that started it ends.
    numbers: open file descriptors that it inherits besides its streams.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    try:
        return subprocess.Popen(
            list(words),
            env={**os.environ, **environment},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            start_new_session=True,
            pass_fds=numbers,
            # Only a system call: another thread might hold a lock of any Python object.
            preexec_fn=(lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)) if dies_with_kit else None,  # noqa: PLW1509
        )
    except OSError as error:
        raise HarnessError(f"{words[0]} cannot be started: {error.strerror or error}") from error


def run_to_end(
    words: Sequence[str],
    *,
    deadline_s: float,
    late: str,
    environment: Mapping[str, str],
    folder: Path | None = None,
    stdin: Stream = subprocess.DEVNULL,
) -> tuple[int, str]:
    """The exit code and output of a program run to its end; HarnessError with `late` after the deadline."""
    process = start(words, environment, folder=folder, stdin=stdin)
    try:
        said, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"{late} {deadline_s:.0f} s") from error
    finally:
        if process.poll() is None:
            end(process)
    return process.returncode, said.decode(errors="replace")


def signal_session(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    """Send a signal to a process started here and to its whole group; processes that ended already are fine."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def end(process: subprocess.Popen[Any]) -> int:
    """Kill a whole session, even without its leader; returns the exit code when all of it ended, else HarnessError."""
    deadline = time.monotonic() + END_S
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    while process.poll() is None or any(_in_session(process.pid)):
        if time.monotonic() > deadline:
            raise HarnessError(f"process {process.pid} or another of its session did not end after SIGKILL")
        time.sleep(POLL_S)
    return int(process.returncode)


def end_process(pid: int) -> None:
    """Kill one process; HarnessError when it, or a thread of it, is still there after a while."""
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(END_S * 1000):
            raise HarnessError(f"process {pid} did not end after SIGKILL")
    finally:
        os.close(handle)


def family(pid: int) -> list[int]:
    """A process and its descendants, from the kernel's lists, or by a scan of all processes where there are none."""
    found = [pid]
    for each in found:
        with suppress(OSError):  # The process has ended.
            for thread in os.listdir(f"/proc/{each}/task"):
                with suppress(OSError), open(f"/proc/{each}/task/{thread}/children", "rb", buffering=0) as children:
                    found += map(int, children.read().split())
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        with suppress(psutil.NoSuchProcess):
            found += (child.pid for child in psutil.Process(pid).children(recursive=True))
    return found


def _in_session(session: int) -> Iterator[int]:
    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):
            if os.getsid(pid) == session and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                yield pid


def read_kernel(path: str) -> bytes:
    """The content of a file in /proc. Called several times per answer, and pathlib takes four times as long."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def last_lines(log: Path) -> str:
    """The end of what a process wrote into its log, in one line for messages."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return " | ".join(line.strip() for line in lines if line.strip())[-SAID_MAX:] or "(no output)"


def marked(variable: str, mark: str, sessions: Mapping[int, float] | None = None) -> Iterator[psutil.Process]:
    """The living processes in whose environment a variable has this value; those of other users are invisible.

    sessions: also the processes in one of these sessions, by their start (time.time), because an id may be reused.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            since_s = sessions.get(os.getsid(process.pid)) if sessions else None
            ours = since_s is not None and process.create_time() >= since_s - 1
            if ours or process.environ().get(variable) == mark:
                yield process


def end_marked(variable: str, mark: str, sessions: Mapping[int, float] | None = None) -> None:
    """Kill all processes that `marked` finds except this one. HarnessError when one survives."""
    deadline = time.monotonic() + END_S
    while left := [process for process in marked(variable, mark, sessions) if process.pid != os.getpid()]:
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        if time.monotonic() > deadline:
            raise HarnessError(f"processes {[process.pid for process in left]} do not end")
        time.sleep(POLL_S)


def die_with_parent() -> None:
    """Ask the kernel to send SIGKILL to this process when its parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
