"""Processes that perform tasks and die with this process, however it ends: the pool for all parallel work.

A worker asks the kernel for SIGKILL when its parent ends. Processes started by workers carry the pool's mark in their
environment, so those that outlive a killed command are found and ended when the next pool with that mark begins.

    asker    WorkerPool("package.module:Desk", ...): a task goes to a worker by a connection of multiprocessing
    worker   `main`: makes the desk once, a context manager, and answers each task with
             what `do` of it returns; what is printed goes to its log
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor

VARIABLE = "MARKER_SIM_POOL"
LIMIT_S = 900.0
END_S = 10.0
WAIT_S = 0.5
FUNCTIONS = "marker_sim.surroundings.worker_pool:FunctionDesk"
_CHILD = "from marker_sim.surroundings.worker_pool import main; main()"
# What the guard imports is imported when it has something to do: there is one for each campaign on servers.
_GUARD = """import sys
if not sys.stdin.buffer.read():
    from marker_sim.surroundings.supervisor import end_marked
    end_marked(*sys.argv[1:])"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a task.

    error: what `do` raised, None when it returned.
    died: how the worker ended, "" mostly.
    """

    task: Any
    seconds: float
    result: Any = None
    error: Exception | None = None
    died: str = ""


@dataclass(slots=True)
class PoolWorker:
    """One worker process.

    task: what it is doing, None when it is idle.
    since: time.monotonic() of when it began that.
    """

    process: subprocess.Popen[bytes]
    link: Connection
    log: Path
    task: Any = None
    since: float = 0.0


class Keeper:
    """A base class for owners of resources: what is opened on `_stack` is closed at the end, the last first."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class FunctionDesk(Keeper):
    """The desk whose tasks are functions, which it calls."""

    def do(self, task: Callable[[], Any]) -> Any:
        """What the function returns."""
        return task()


class TaskPool(Protocol):
    """Performs tasks in parallel and answers in any order; a context manager that ends its processes.

    A worker has the one task that it was given last (it is busy), or none (it is idle).

    give      starts a task on an idle worker
    answers   those that are there within `timeout_s`, or as soon as there is one
    abandon   ends what is unfinished; returns its tasks, which will have no answer
    """

    @property
    def idle(self) -> list[Any]: ...
    @property
    def busy(self) -> list[Any]: ...
    def give(self, worker: Any, task: Any) -> None: ...
    def answers(self, timeout_s: float) -> Iterator[Answer]: ...
    def abandon(self) -> list[Any]: ...


class WorkerPool:
    """A `TaskPool` of a number of processes on this machine.

    desk: "package.module:Name" of what does tasks there.
    directory: its path is the mark; logs/ in it has the output of workers.
    scratch: their TMPDIR. hash_seed: their PYTHONHASHSEED, "" for that of this process.
    """

    def __init__(self, desk: str, directory: Path, jobs: int, scratch: Path | None = None, hash_seed: str = "") -> None:
        self._desk = desk
        self._mark = str(directory.resolve())
        self._logs = directory / "logs"
        self._own = {VARIABLE: self._mark} | ({} if scratch is None else {"TMPDIR": str(scratch)})
        self._own |= {"PYTHONHASHSEED": hash_seed} if hash_seed else {}
        self._jobs = jobs
        self.workers: list[PoolWorker] = []

    def __enter__(self) -> WorkerPool:
        supervisor.end_marked(VARIABLE, self._mark)
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HarnessError(f"{self._logs} cannot be made: {error.strerror or error}") from error
        try:
            for number in range(self._jobs):
                self.workers.append(self._start(number))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            _end(worker)
        supervisor.end_marked(VARIABLE, self._mark)

    @property
    def idle(self) -> list[PoolWorker]:
        """The workers without a task."""
        return [worker for worker in self.workers if worker.task is None]

    @property
    def busy(self) -> list[PoolWorker]:
        """The workers that have a task."""
        return [worker for worker in self.workers if worker.task is not None]

    def give(self, worker: PoolWorker, task: Any) -> None:
        """Start a task on an idle worker; if it is dead, `answers` reports it."""
        worker.task, worker.since = task, time.monotonic()
        with suppress(OSError):
            worker.link.send(task)

    def answers(self, timeout_s: float) -> Iterator[Answer]:
        """The answers that are there within `timeout_s`, or as soon as there is one.

        A worker that dies at a task, or takes longer than LIMIT_S, answers with `died`, and is replaced.
        """
        waiting = self.busy
        ready = wait([worker.link for worker in waiting], max(0.0, timeout_s))
        for worker in waiting:
            if worker.link in ready:
                yield self._answer(worker, _received(worker))
        for worker in self.busy:
            if time.monotonic() - worker.since > LIMIT_S:
                worker.process.kill()
                yield self._answer(worker, None)

    def abandon(self) -> list[Any]:
        """End the busy workers; returns their tasks, which will have no answer."""
        left = []
        for worker in self.busy:
            worker.process.kill()
            worker.process.wait(END_S)
            left.append(worker.task)
            worker.task = None
        return left

    def _answer(self, worker: PoolWorker, received: tuple[Any, Exception | None] | None) -> Answer:
        task, seconds = worker.task, time.monotonic() - worker.since
        worker.task = None
        if received is not None:
            result, error = received
            return Answer(task=task, seconds=seconds, result=result, error=error)
        code = _end(worker)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        died = f"the worker ended with {how} after {seconds:.0f} s: {supervisor.last_lines(worker.log)}"
        number = self.workers.index(worker)
        self.workers[number] = self._start(number)
        return Answer(task=task, seconds=seconds, died=died)

    def _start(self, number: int) -> PoolWorker:
        log = self._logs / f"worker-{number}.log"
        try:
            link, theirs = Pipe()
            words = [sys.executable, "-c", _CHILD, str(os.getpid()), self._desk, str(theirs.fileno())]
            with theirs, log.open("ab") as output:
                # In its own session, because Ctrl-C is for this process, which ends the workers.
                process = supervisor.start(
                    words, environment_as_here() | self._own, stdout=output, numbers=(theirs.fileno(),)
                )
        except OSError as error:
            raise HarnessError(f"no worker can be started: {error.strerror or error}") from error
        return PoolWorker(process, link, log)


@contextmanager
def guarded(variable: str, mark: str) -> Iterator[Callable[[], object]]:
    """A context with a guard process, which kills marked processes when this one ends, however it ends.

    Servers need that: they are used by several threads, so they cannot end with the thread that started them. The value
    is a function that dismisses the guard, for an owner that has seen that no server is left.
    """
    words = [sys.executable, "-S", "-c", _GUARD, variable, mark]
    guard = supervisor.start(words, environment_as_here(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert guard.stdin is not None
    try:
        yield partial(guard.stdin.write, b".")
    finally:
        with suppress(BrokenPipeError):  # The guard was ended.
            guard.stdin.close()
        try:
            guard.wait(2 * END_S)
        except subprocess.TimeoutExpired:
            supervisor.end(guard)


def in_order(tasks: Iterable[Any], do: Callable[[Any], Any], pool: WorkerPool | None) -> Generator[Any, None, None]:
    """The results of tasks in their order; tasks are drawn as they are needed.

    do: what a worker's desk does as well; it is called here when there is no pool. What `do` raises is raised;
    HarnessError for a worker that died. What was done before and behind that is still given.
    """
    if pool is None:
        yield from map(do, tasks)
        return
    left, given, done = iter(tasks), deque[Any](), dict[int, Any]()  # The results by the id of their task.
    try:
        while True:
            for worker, task in zip(pool.idle, left, strict=False):
                given.append(task)
                pool.give(worker, task)
            while given and id(given[0]) in done:
                yield done.pop(id(given.popleft()))
            if not given and pool.idle:  # Else all of them are at tasks of an earlier caller.
                return
            for answer in pool.answers(WAIT_S):
                if not any(answer.task is task for task in given):
                    continue  # It is for an earlier caller.
                if answer.died:
                    raise HarnessError(f"{answer.died}; what it was at is not counted")
                if answer.error is not None:
                    raise answer.error
                done[id(answer.task)] = answer.result
    except (Exception, KeyboardInterrupt):
        yield from (done[id(task)] for task in given if id(task) in done)
        raise


@contextmanager
def workers(desk: str, jobs: int) -> Iterator[WorkerPool | None]:
    """A pool of `jobs` workers with a directory removed at its end; None for one, which is this process itself."""
    if jobs == 1:
        yield None
        return
    with TemporaryDirectory(prefix="marker-sim-workers-") as directory, WorkerPool(desk, Path(directory), jobs) as pool:
        yield pool


def cores() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def environment_as_here() -> dict[str, str]:
    """The environment for a process that imports from the same places, the working directory included."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def main() -> None:
    """The main function of a worker, until its connection ends."""
    supervisor.die_with_parent()
    if os.getppid() != int(sys.argv[1]):
        return  # The parent ended before this request to the kernel.
    link = Connection(int(sys.argv[3]))
    module, _, name = sys.argv[2].partition(":")
    with getattr(importlib.import_module(module), name)() as desk, suppress(EOFError):
        while True:
            task, result, error = link.recv(), None, None
            try:
                result = desk.do(task)
            except Exception as raised:
                error = portable(raised)
            link.send((result, error))


def portable(error: Exception) -> Exception:
    """The error in a form that can be sent to another process, with its traceback as a note."""
    note = "".join(traceback.format_exception(error))
    error.add_note(note)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # It cannot be pickled, by its arguments or its attributes.
        error = RuntimeError(f"{type(error).__name__}: {error}")
        error.add_note(note)
    return error


def _received(worker: PoolWorker) -> tuple[Any, Exception | None] | None:
    """The answer of a worker that is there, None when it ended, also within one."""
    try:
        received: tuple[Any, Exception | None] = worker.link.recv()
    except (EOFError, OSError):
        return None
    return received


def _end(worker: PoolWorker) -> int:
    """The exit code of a worker that ended; its connection is closed."""
    code = worker.process.wait(END_S)
    worker.link.close()
    return code
