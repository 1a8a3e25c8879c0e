"""The processes of one server: a parent that serves nothing, and workers that share its port.

    parent ─ fork ─► worker 0 … N-1     each with its own listener on the port (SO_REUSEPORT) and its own Unix socket

The parent opens all sockets and keeps them, so what connects while a worker is being restarted waits for it. A worker
that a signal killed is started again at once, and recovers from storage as a restarted server does. One that ends by
itself met a defect, or cannot start: the parent ends with EXIT_DIED, as it does when a worker is killed START_TRIES
times before it listens. The kernel kills the workers when their parent dies. SIGTERM and SIGINT reach the parent, which
closes the port and passes them on; the workers answer what waits, each other's requests too, and end. The parent has
no threads and no event loop: it is forked from at any time, and its pages stay shared.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, NoReturn

from marker_sim.errors import HarnessError
from marker_sim.supervisor import die_with_parent

START_TIMEOUT_S = 60.0
START_TRIES = 3
STOP_MARGIN_S = 5.0
POLL_S = 0.02
SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})


class ServerWorker(NamedTuple):
    """What a worker is given.

    number: from 0.
    listener: its share of the port.
    between: a listening Unix socket of each worker, its own at `number`.
    ready: to be called when it listens and its signal handlers are there.
    """

    number: int
    listener: socket.socket
    between: tuple[socket.socket, ...]
    ready: Callable[[], None]


class Died(Exception):
    """A worker ended in a way that another one would, too."""


class Workers:
    """The workers of a server, and the parent that calls `run`.

    listeners: one for each worker.
    serve: what a worker does; it returns after SIGTERM.
    stop_timeout_s: what `serve` needs for that at most.
    exit_died: the exit code of a server that ended because of a defect.
    """

    def __init__(
        self,
        listeners: list[socket.socket],
        serve: Callable[[ServerWorker], None],
        stop_timeout_s: float,
        exit_died: int,
    ) -> None:
        self._listeners = listeners
        self._between = tuple(_between(len(listeners)) for _ in listeners)
        self._serve = serve
        self._stop_timeout_s = stop_timeout_s
        self._exit_died = exit_died
        self._pids: dict[int, int] = {}

    def run(self, ready: Callable[[], object]) -> int:
        """Start the workers, call `ready`, and keep them until SIGTERM or SIGINT; the exit code."""
        gc.collect()
        gc.freeze()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._start(list(range(len(self._listeners))))
            ready()
            while signal.sigwait(SIGNALS) == signal.SIGCHLD:
                self._start([number for number, _ in self._ended()])
            return self._stop()
        except Died as died:
            print(f"marker-sim serve: {died}; the server ends", file=sys.stderr, flush=True)
            return self._exit_died
        finally:
            self._kill()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self, numbers: list[int]) -> None:
        """Start these workers and wait until they listen; those that are killed before are started again."""
        for _ in range(START_TRIES):
            starting = {number: self._fork(number) for number in numbers}
            until_s = time.monotonic() + START_TIMEOUT_S
            # Its end of the pipe closes when a worker ends; a byte says that it listens.
            numbers = [n for n, pipe in starting.items() if not _says_ready(pipe, until_s - time.monotonic())]
            if not numbers:
                return
            for number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(self._pids[number], signal.SIGKILL)
                self._judge(number, os.waitpid(self._pids.pop(number), 0)[1])
        raise Died(f"worker {numbers[0]} was killed {START_TRIES} times before it listened")

    def _fork(self, number: int) -> int:
        reading, writing = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._work(number, parent, writing)
        os.close(writing)
        self._pids[number] = pid
        return reading

    def _work(self, number: int, parent: int, pipe: int) -> NoReturn:
        code = self._exit_died
        try:
            die_with_parent()
            if os.getppid() == parent:
                for other, listener in enumerate(self._listeners):
                    if other != number:
                        listener.close()

                def ready() -> None:
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                    os.write(pipe, b"1")
                    os.close(pipe)

                self._serve(ServerWorker(number, self._listeners[number], self._between, ready))
                code = 0
        except HarnessError as error:
            print(f"marker-sim: {error}", file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _ended(self) -> list[tuple[int, int]]:
        """(number, status) of the workers that ended, killed by a signal; Died for another end."""
        ended = []
        for number, pid in list(self._pids.items()):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                del self._pids[number]
                self._judge(number, status)
                ended.append((number, status))
        return ended

    def _judge(self, number: int, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            raise Died(f"worker {number} ended with exit code {code}")
        print(f"marker-sim serve: worker {number} was killed by signal {-code}", file=sys.stderr, flush=True)

    def _stop(self) -> int:
        for listener in self._listeners:
            listener.close()
        for pid in self._pids.values():
            os.kill(pid, signal.SIGTERM)
        until_s = time.monotonic() + self._stop_timeout_s + STOP_MARGIN_S
        codes = []
        while self._pids and time.monotonic() < until_s:
            for number, pid in list(self._pids.items()):
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    del self._pids[number]
                    codes.append(os.waitstatus_to_exitcode(status))
            signal.sigtimedwait({signal.SIGCHLD}, POLL_S)
        return self._exit_died if self._pids or any(codes) else 0

    def _kill(self) -> None:
        for pid in self._pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._pids.clear()


def _says_ready(pipe: int, timeout_s: float) -> bool:
    try:
        return bool(select.select([pipe], [], [], max(0.0, timeout_s))[0] and os.read(pipe, 1))
    finally:
        os.close(pipe)


def _between(workers: int) -> socket.socket:
    """A Unix socket in the abstract namespace, which leaves no file behind."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("")
    listener.listen(max(128, 4 * workers))
    return listener
