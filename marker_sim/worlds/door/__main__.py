"""The launcher: a process between the kit and a command. It runs as a separate script and imports nothing of the kit.

It forks; the child installs the filter, sends the listener to the kit and executes the command. The launcher itself is
not filtered. It adopts orphans of the command (PR_SET_CHILD_SUBREAPER), so it can end all of them: when the command
ends, and when its socket to the kit closes, which also happens when the kit dies. It forwards signals to the command
and exits with the command's status.

Arguments: the descriptor of the socket, the number of seccomp(2) on this machine, the command's limit of open files,
the path of the program, the command. The first message on the socket is the filter. No file is read between installing
the filter and executing the program: if reads are watched, nobody would answer.
"""

import array  # noqa: F401  (socket.send_fds imports it)
import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import sys

_DEATH_SIGNAL, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 36, 38  # PR_SET_*
_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_LOOKS_MS = 500
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def main() -> None:
    """Start the command, and end with it."""
    control, seccomp, words = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[5:]
    control.set_inheritable(False)
    program = control.recv(1 << 20)
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SUBREAPER, 1, 0, 0, 0)
    running, until_then = os.pipe()  # exec closes both ends.
    child = os.fork()
    if child == 0:
        _become(library, control, seccomp, program, words)
    os.close(until_then)
    os.read(running, 1)
    with contextlib.suppress(OSError):  # The kit may be gone, which is noticed below.
        control.send(b"running")  # Not sent if the child already reported a refusal.
    for number in _FORWARDED:
        signal.signal(number, lambda number, _: os.kill(child, number))
    status = _until_its_end(control, child)
    _end_all()
    if not os.WIFSIGNALED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ended_by = os.WTERMSIG(status)
    if ended_by != signal.SIGKILL:
        signal.signal(ended_by, signal.SIG_DFL)
    os.kill(os.getpid(), ended_by)


def _become(library: ctypes.CDLL, control: socket.socket, seccomp: int, program: bytes, words: list[str]) -> None:
    """In the child: install the filter, then execute the command. A refusal is sent to the kit as a line of text."""
    doing = "prctl"
    try:
        launcher = os.getppid()
        library.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            os._exit(1)
        # The kit cannot put a file at a descriptor above the soft limit.
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        # Python ignores these signals, and the command would inherit that.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "")
        doing = "seccomp"
        flags = _NEW_LISTENER | _WAIT_KILLABLE
        listener = library.syscall(seccomp, _MODE_FILTER, flags, ctypes.byref(_Program(len(program) // 8, program)))
        if listener < 0:
            raise OSError(ctypes.get_errno(), "")
        socket.send_fds(control, [b"listener %d" % os.getpid()], [listener, os.pidfd_open(os.getpid())])
        os.close(listener)
        doing = "exec"
        os.execv(sys.argv[4], words)
    except OSError as error:
        with contextlib.suppress(OSError):
            control.send(b"refused %s %d" % (doing.encode(), error.errno or 0))
    finally:
        os._exit(127)  # Printing an error would stop at the listener, which nobody serves after the kit's death.


def _until_its_end(control: socket.socket, child: int) -> int:
    """Wait until the command ends; return its status, or that of SIGKILL when the kit ended or asked for the end."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(os.pidfd_open(child), select.POLLIN)
    while True:
        ready = {number for number, _ in poll.poll(_LOOKS_MS)}
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == child:
                    return found[1]
        except ChildProcessError:
            return int(signal.SIGKILL)
        if control.fileno() in ready:
            return int(signal.SIGKILL)


def _end_all() -> None:
    """Send SIGKILL until no process is left; the orphans of a killed process become children of this one."""
    while True:
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    """The children of this process; all processes are searched where the kernel keeps no list."""
    me, found = os.getpid(), []
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{me}/task/{me}/children") as listed:
        return [int(word) for word in listed.read().split()]
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                if int(stat.read().rpartition(b")")[2].split()[1]) == me:
                    found.append(int(name))
    return found


if __name__ == "__main__":
    main()
