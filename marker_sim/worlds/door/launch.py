"""Commands behind the door: started through the launcher (`__main__.py`), ended with all of their descendants."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.worlds.door.kernel import own_numbers
from marker_sim.worlds.door.table import assemble, this_machine

START_S = 10.0
FILES_MAX = 16_384  # Programs that close every descriptor up to the limit would take seconds for a million.
BASE_MAX = 2_000  # Below the 4,096 to which scripts lower the limit, and above the descriptors of most programs.
LAUNCHER = Path(__file__).with_name("__main__.py")


@dataclass(slots=True, eq=False)
class DoorCommand(supervisor.StartedProgram):
    """A command behind the door. `popen` is its launcher, which exits with the command's status.

    pid, handle: process id of the command, and a pidfd of it.
    listener: descriptor on which calls of the command and its descendants arrive; -1 after it was closed.
    base: first descriptor of watched files. ended: its calls are no longer answered.
    cursors: where to search for the next free descriptor, by process.
    """

    name: str
    role: str
    popen: subprocess.Popen[bytes]
    pid: int
    handle: int
    listener: int
    base: int
    control: socket.socket
    ended: bool = False
    cursors: dict[int, int] = field(default_factory=dict)

    def pids(self) -> list[int]:
        """The process ids of the command and its live descendants; its launcher adopts orphans."""
        return supervisor.family(self.popen.pid)[1:]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command and its descendants, but not to the launcher, which has to end them."""
        for pid in self.pids() if self.popen.returncode is None else ():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Kill the command with all its descendants; none of its calls is answered any more."""
        self.end()

    def end(self) -> int:
        """Kill the command and all its descendants; return the exit status when none is left."""
        self.ended = True
        if self.popen.poll() is None and self.handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)
            self.popen.send_signal(signal.SIGCONT)  # A stopped launcher would end nothing.
        self.control.close()
        try:
            return self.popen.wait(supervisor.END_S)
        except subprocess.TimeoutExpired as error:
            raise HarnessError(f"{self.name} did not end after SIGKILL") from error

    def forget(self) -> None:
        """Close the file descriptors of the door; a forked child that kept them would keep held processes alive."""
        self.control.close()
        for number in {self.listener, self.handle} - {-1}:
            os.close(number)
        self.listener = self.handle = -1


def start(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    name: str,
    role: str,
    reads: bool,
    stdin: supervisor.Stream,
    stdout: supervisor.Stream,
    stderr: supervisor.Stream,
    folder: Path | None,
) -> DoorCommand:
    """Start a command; HarnessError when the kernel refuses the filter, or when there is no such command."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    base = min(BASE_MAX, files // 2)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    popen: subprocess.Popen[bytes] | None = None
    numbers: list[int] = []
    try:
        with theirs:
            found = None if "/" in words[0] else shutil.which(words[0], path=environment.get("PATH"))
            program = found or words[0]
            launcher = [sys.executable, "-I", "-S", str(LAUNCHER)]
            launcher += [str(theirs.fileno()), str(own_numbers()["seccomp"]), str(files), program]
            popen = supervisor.start(
                [*launcher, *words],
                environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                folder=folder,
                numbers=(theirs.fileno(),),
            )
        ours.settimeout(START_S)
        ours.send(assemble(this_machine(), base, reads))
        text, numbers, _, _ = socket.recv_fds(ours, 100, 2, socket.MSG_CMSG_CLOEXEC)
        state = ours.recv(100) if numbers else text
        if state != b"running":
            raise HarnessError(_refusal(words, state.decode()))
    except (OSError, HarnessError) as error:
        for number in numbers:
            os.close(number)
        ours.close()  # This ends the launcher.
        if popen is not None:
            popen.wait(supervisor.END_S)
        if isinstance(error, HarnessError):
            raise
        raise HarnessError(f"{words[0]} could not be started behind the door: {error}") from error
    listener, handle = numbers
    return DoorCommand(name, role, popen, int(text.split()[1]), handle, listener, base, ours)


def _refusal(words: Sequence[str], text: str) -> str:
    """The error message for a refusal that a launcher reported."""
    _, doing, number = text.split() if text else ("", "nothing", "0")
    why = f"{errno.errorcode.get(int(number), number)} ({os.strerror(int(number))})"
    match doing, int(number):
        case "exec", _:
            return f"{words[0]} cannot be started: {os.strerror(int(number))}"
        case "seccomp", errno.EBUSY:
            return "seccomp refuses the filter (EBUSY): this process is under the listener of another program already"
        case "seccomp", errno.EINVAL:
            return f"seccomp refuses the filter ({why}): Linux 5.19 or later is needed, this is {platform.release()}"
        case _:
            return f"{doing} is refused: {why}"
