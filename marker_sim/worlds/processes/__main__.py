"""The template process from which children are forked: all imports are done once, so a fork takes milliseconds.

Its argument is the address of the kit's coordinator. It has one thread and one connection to the kit, and dies with the
kit; its children die with it. It answers each "fork" with the child's pid, and reports how each child ended.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from multiprocessing.connection import Client, wait
from typing import Any

from marker_sim.surroundings.supervisor import die_with_parent
from marker_sim.worlds.door.table import LOW
from marker_sim.worlds.processes.children import prepare, run_child


def serve(address: str) -> None:
    """Fork a child for each request of the kit, until the kit closes the connection."""
    die_with_parent()
    # The door watches descriptors below LOW, which connections to the kit must not use.
    while os.open(os.devnull, os.O_RDONLY) < LOW - 1:
        continue
    connection = Client(address, "AF_UNIX")
    connection.send(("template", "inbox"))
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    while True:
        ready = wait([connection, heard])
        if heard in ready:
            os.read(heard, 4096)
            while (gone := _reap()) is not None:
                connection.send(("gone", *gone))
        if connection not in ready:
            continue
        try:
            what, spec = connection.recv()
        except (EOFError, OSError):
            return
        assert what == "fork", what
        prepare(spec["storage"]["kind"], spec["kind"])
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.close()
            _child(spec)
        connection.send(("forked", spec["process"], pid))


def _reap() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None


def _child(spec: dict[str, Any]) -> None:
    code = 1
    try:
        die_with_parent()
        threading.current_thread().name = spec["process"]
        run_child(spec)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(code)


serve(sys.argv[1])
