"""The host of real processes (worlds/host.py): a fork server, real time, a storage behind the interceptor.

The cluster acts only in callbacks of this host: for requests of children, timers and deaths. They run one after another
in the thread that is in `run`, so the cluster needs no lock.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.plan import Write
from marker_sim.worlds.cluster.store import ROLE
from marker_sim.worlds.host import ExecutorLife, Life
from marker_sim.worlds.interceptor import Interceptor
from marker_sim.worlds.processes.fork_server import ForkServer, ManagedProcess
from marker_sim.worlds.processes.storages import ClusterStorage

GONE_S = 20.0


@dataclass(slots=True, eq=False)
class ProcessAttempt:
    """An attempt that a driver launched.

    number: by which driver and executor identify it.
    """

    number: int
    driver: ManagedProcess
    work: Any
    counted: bool = True


@dataclass(eq=False)
class ProcessHost:
    """The processes of one run.

    specification: what a child has to know besides its name, role and life.
    exited: hears of a process that ended and nobody had ended it.
    settles: whether anything can be on its way to storage when faults are over.
    ready_s: how long a process may take until it works.
    """

    limit_ms = 120_000
    linger_ms = 200
    ready_s = 20.0

    fork_server: ForkServer
    storage: ClusterStorage
    interceptor: Interceptor
    specification: Callable[[ManagedProcess], Mapping[str, Any]]
    exited: Callable[[ManagedProcess], None]
    settles: bool
    attempts: dict[int, ProcessAttempt] = field(default_factory=dict)
    _calls: list[tuple[float, int, Callable[[Any], None], Any]] = field(default_factory=list)
    _inserted: int = 0
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _stopped: bool = False
    _closed: bool = False
    _trouble: BaseException | None = None

    def __post_init__(self) -> None:
        self.capabilities = self.storage.capabilities
        recorder = self._recorder = self.interceptor.recorder
        self.append, self.record, self.mark = recorder.append, recorder.record, recorder.mark
        self.fork_server.begin(lambda process, code: self.after(0, self._gone, (process, code)))

    # Processes.

    def start(self, name: str, role: str, life: Life) -> ManagedProcess:
        """Fork a child."""
        process = self.fork_server.new(name, role, life)
        self.storage.expect(process.name, role)
        self.fork_server.fork(process, self.specification(process))
        return process

    def ready(self, *processes: ManagedProcess) -> None:
        """Wait until children work or are dead; HarnessError when one is neither in time."""
        for process in processes:
            deadline = time.monotonic() + self.ready_s
            while not process.ready.wait(0.02) and process.alive:
                if time.monotonic() > deadline:
                    raise HarnessError(f"{process.name} did not get ready: {self.fork_server.last_words()}")

    def kill(
        self,
        process: ManagedProcess,
        value: str | None = None,
        follow: Callable[[], None] | None = None,
        path: str | None = None,
        error: str | None = None,
    ) -> None:
        """SIGKILL, recorded in the same moment; nothing of the process is recorded after it.

        path, error: of the event: at which file and where in a write, if that is known.
        """
        killed = partial(self.record, process.name, process.role, "fault", "kill")
        self._end(process, follow, partial(killed, path=path, value=value, error=error))

    def exit(self, process: ManagedProcess, why: str) -> None:
        """End a process, recorded as one that exited by itself."""
        self._end(process, None, partial(self.record, process.name, process.role, "observe", "exited", error=why))

    def _end(self, process: ManagedProcess, follow: Callable[[], None] | None, record: Callable[[], int]) -> None:
        with self._recorder.lock:
            if not process.alive:
                return
            process.kill_sent = True
            process.follow = follow
            record()
            process.signal(signal.SIGKILL)
        if follow is None:
            process.gone.wait(GONE_S)

    def _gone(self, argument: tuple[ManagedProcess, int | None]) -> None:
        """Do what follows from a process's death; one that was not killed is recorded as exited."""
        process, code = argument
        if process.kill_sent:
            if process.follow is not None:
                process.follow()
            return
        process.kill_sent = True
        said = "its executor ended it" if code is None else f"exit code {code}: {self.fork_server.last_words()[-200:]}"
        self.record(process.name, process.role, "observe", "exited", error=said)
        self.exited(process)

    def pause(self, process: ManagedProcess, duration_ms: int) -> None:
        """Pause a process by SIGSTOP."""
        with self._recorder.lock:
            if process.paused or not process.alive:
                return
            process.paused = True
            self.record(process.name, process.role, "fault", "pause", value="begin")
            process.signal(signal.SIGSTOP)
        self.after(duration_ms, self.resume, process)

    def resume(self, process: ManagedProcess) -> None:
        """End a pause."""
        with self._recorder.lock:
            if process.paused:
                process.paused = False
                if process.alive:
                    self.record(process.name, process.role, "fault", "pause", value="end")
                process.signal(signal.SIGCONT)

    def end_all(self) -> None:
        """Kill every child and wait for its end."""
        for process in tuple(self.fork_server.lives.values()):
            with self._recorder.lock:
                if process.alive and process.role == ROLE:
                    self.record(process.name, process.role, "fault", "kill", value="end-of-run")
                process.kill_sent = True
        self.fork_server.end_lives()
        self.settles = False

    # Time.

    def now_ns(self) -> int:
        """The time since 1970, in ns."""
        return time.time_ns()

    def after(self, duration_ms: float, call: Callable[[Any], None], argument: Any = None) -> None:
        """Schedule a call for the thread that is in `run`; may be called from any thread."""
        with self._turn:
            if self._closed:
                self._drop(call, argument)
                return
            self._inserted += 1
            heappush(self._calls, (time.monotonic() + duration_ms / 1000, self._inserted, call, argument))
            self._turn.notify()

    def run(self, limit_ms: int) -> bool:
        """Make due calls until `stop` is called or `limit_ms` have passed (False); raises an error of the kit."""
        deadline = time.monotonic() + limit_ms / 1000
        self._stopped = False
        while not self._stopped:
            if self._trouble is not None:
                raise self._trouble
            with self._turn:
                due = min(deadline, self._calls[0][0]) if self._calls else deadline
                now = time.monotonic()
                if due > now:
                    self._turn.wait(due - now)
                    continue
                if not self._calls or self._calls[0][0] > now:
                    return False
                _, _, call, argument = heappop(self._calls)
            call(argument)
        if self._trouble is not None:
            raise self._trouble
        return True

    def stop(self, _: Any = None) -> None:
        """End `run`."""
        self._stopped = True

    def fail(self, error: BaseException) -> None:
        """End the run because of an error of the kit; it is not judged."""
        with self._turn:
            self._trouble = self._trouble or error
            self._turn.notify()

    def overdue(self, message: str) -> None:
        """Raise HarnessError: a busy machine may be why clients hang, so no implementation is blamed for it."""
        raise HarnessError(message)

    def settle(self) -> None:
        """Wait until no request that was sent can still be applied."""
        deadline = time.monotonic() + self.storage.settle_ms / 1000
        while self.settles and (left_s := deadline - time.monotonic()) > 0:
            self.run(int(left_s * 1000) + 1)

    def heal(self) -> None:
        """Disarm all faults, resume every process, and handle all deaths so far."""
        self.interceptor.disarm()
        for process in tuple(self.fork_server.lives.values()):
            self.resume(process)
            if not process.alive:
                process.gone.wait(GONE_S)
        while self.run(0):
            continue

    def ask(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap an answer so that the cluster's thread computes it while the calling thread waits."""

        def asked(name: str, *arguments: Any) -> Any:
            future: Future[Any] = Future()
            self.after(0, self._answer, (future, partial(answer, self.fork_server.lives[name], *arguments)))
            return future.result()

        return asked

    def _answer(self, argument: tuple[Future[Any], Callable[[], Any]]) -> None:
        future, answer = argument
        try:
            future.set_result(answer())
        except Exception as error:
            future.set_exception(error)

    def close(self) -> None:
        """Drop scheduled calls; threads that wait for an answer of one get EOFError."""
        with self._turn:
            self._closed = True
            for _, _, call, argument in self._calls:
                self._drop(call, argument)

    def _drop(self, call: Callable[[Any], None], argument: Any) -> None:
        if call == self._answer:
            argument[0].set_exception(EOFError())

    # Writes.

    def give(self, driver: ManagedProcess, write: Write, ordinal: int) -> None:
        """Send a write to a driver."""
        self.fork_server.coordinator.post(driver.name, "write", write, ordinal)

    def tell(
        self, driver: ManagedProcess, kind: str, attempt: ProcessAttempt | None, value: Any, after_ms: float
    ) -> None:
        """Send the driver a message after a while, if it lives by then."""
        self.after(after_ms, self._hears, (driver, kind, None if attempt is None else attempt.number, value))

    def _hears(self, argument: tuple[ManagedProcess, str, int | None, Any]) -> None:
        driver, *message = argument
        if driver.alive:
            self.fork_server.coordinator.post(driver.name, *message)

    def lost_with(self, executor: ManagedProcess, driver: ManagedProcess) -> tuple[ProcessAttempt, ...]:
        """The attempts of a dead executor, after its driver was notified of the loss."""
        assert isinstance(executor.life, ExecutorLife)
        self.tell(driver, "executor-lost", None, executor.life.slot, 0)
        return tuple(executor.life.running.values())

    # Storage.

    def files(self) -> Mapping[str, bytes]:
        """Everything that is stored."""
        return self.storage.files()

    def damage(self, path: str, data: bytes | None, fault: str) -> None:
        """Change stored content, as a fault of the kit."""
        with self.interceptor.lock:
            if data is not None or path in self.storage.files():
                self.record("kit", "nemesis", "fault", fault, path=path)
                self.restore(path, data)

    def restore(self, path: str, data: bytes | None) -> None:
        """Change stored content as an effect of the kit that is no fault."""
        with self.interceptor.lock:
            self.storage.damage(path, data)
            self.record("kit", "kit", "effect", "delete" if data is None else "put", path=path, value=data)
