"""Tasks done in parallel, each in a slot: by this thread, by threads, or by processes that die with this one.

A worker process asks the kernel for SIGKILL when its parent ends. Processes started by workers carry the pool's mark in
their environment, so those that outlive a killed command are found and ended when the next pool with that mark begins.

    TaskPool      the thread that asks for answers, or threads beside it
    WorkerPool    processes on this machine; what they print goes to a log each
    SparkPool     executors of a cluster (campaign/nightly/spark_pool.py)

A task is what the pool's function `do` is called with. Both are sent to a worker by a connection of multiprocessing.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor

VARIABLE = "MARKER_SIM_POOL"
LIMIT_S = 900.0
END_S = 10.0
WAIT_S = 0.5
_CHILD = "from marker_sim.surroundings.worker_pool import main; main()"
# The guard imports modules only when it has something to do, because each campaign on servers starts one.
_GUARD = """import sys
if not sys.stdin.buffer.read():
    from marker_sim.surroundings.supervisor import end_marked
    end_marked(*sys.argv[1:])"""
Do = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a task.

    error: the exception that `do` raised, None when it returned.
    died: how the worker of the task ended, "" if it lives.
    """

    task: Any
    seconds: float
    result: Any = None
    error: Exception | None = None
    died: str = ""


class WorkerDied(Exception):
    """The worker of a task ended; the text says how."""


class GivenTask(NamedTuple):
    """A task in a slot. since: the time.monotonic() at which it was given."""

    task: Any
    since: float
    result: Future[Any]


class Keeper:
    """A base class for owners of resources, which `_stack` closes at the end, the last first."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class TaskPool(Keeper):
    """Slots that perform one task each and answer in any order; a context manager that ends unfinished tasks.

    threads: their number; 0 for a single slot whose task runs in the thread that asks for answers, which gets Ctrl-C.
    """

    waits = True  # Whether its end waits for unfinished tasks.

    def __init__(self, do: Do, threads: int = 0) -> None:
        super().__init__()
        self._do, self._threads = do, threads
        self._given: dict[int, GivenTask] = {}
        self._executor: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._threads:
            self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix="task")
            self._stack.callback(self._executor.shutdown, wait=self.waits, cancel_futures=True)
        return self

    @property
    def idle(self) -> list[int]:
        """The slots without a task."""
        return [slot for slot in range(max(1, self._threads)) if slot not in self._given]

    @property
    def busy(self) -> list[int]:
        """The slots that have a task."""
        return list(self._given)

    def give(self, slot: int, task: Any) -> None:
        """Start a task in an idle slot."""
        result = Future[Any]() if self._executor is None else self._executor.submit(self._perform, slot, task)
        self._given[slot] = GivenTask(task, time.monotonic(), result)

    def answers(self, timeout_s: float) -> Iterator[Answer]:
        """The answers that arrive within `timeout_s`; returns as soon as there is one."""
        if self._executor is None:
            for slot, (task, _, result) in self._given.items():
                try:
                    result.set_result(self._perform(slot, task))
                except Exception as error:
                    result.set_exception(error)
        wait([given.result for given in self._given.values()], max(0.0, timeout_s), FIRST_COMPLETED)
        for slot, (task, since, result) in list(self._given.items()):
            if result.done():
                del self._given[slot]
                yield self._answer(task, time.monotonic() - since, result)

    def _perform(self, slot: int, task: Any) -> Any:
        """The result of `do`; WorkerDied when the slot's worker ended."""
        return self._do(task)

    def _answer(self, task: Any, seconds: float, result: Future[Any]) -> Answer:
        error = result.exception(0)
        if isinstance(error, WorkerDied):
            return Answer(task=task, seconds=seconds, died=str(error))
        if isinstance(error, Exception):
            return Answer(task=task, seconds=seconds, error=error)
        return Answer(task=task, seconds=seconds, result=result.result(0))


@dataclass(slots=True)
class WorkerProcess:
    """One process of a pool."""

    popen: subprocess.Popen[bytes]
    link: Connection
    log: Path


class WorkerPool(TaskPool):
    """A pool of processes on this machine, one a slot. A worker that dies at a task is replaced for the next one.

    do: a function that can be pickled.
    directory: its path is the mark; logs/ in it has the output of workers.
    scratch: their TMPDIR. hash_seed: their PYTHONHASHSEED, "" for that of this process.
    """

    def __init__(self, do: Do, directory: Path, jobs: int, scratch: Path | None = None, hash_seed: str = "") -> None:
        super().__init__(do, jobs)
        self._mark = str(directory.resolve())
        self._logs = directory / "logs"
        self._own = {VARIABLE: self._mark} | ({} if scratch is None else {"TMPDIR": str(scratch)})
        self._own |= {"PYTHONHASHSEED": hash_seed} if hash_seed else {}
        self._workers: dict[int, WorkerProcess] = {}
        self._ended = False

    def __enter__(self) -> Self:
        supervisor.end_marked(VARIABLE, self._mark)
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HarnessError(f"{self._logs} cannot be made: {error.strerror or error}") from error
        with ExitStack() as stack:
            stack.callback(supervisor.end_marked, VARIABLE, self._mark)
            self._stack = stack
            super().__enter__()
            stack.callback(self._kill)  # Ends the tasks that threads wait for.
            for slot in range(self._threads):
                self._workers[slot] = self._start(slot)
            self._stack = stack.pop_all()
        return self

    def _kill(self) -> None:
        self._ended = True
        workers = list(self._workers.values())
        for worker in workers:
            worker.popen.kill()
        for worker in workers:
            worker.popen.wait(END_S)

    def _perform(self, slot: int, task: Any) -> Any:
        """The result of `do` in the worker; WorkerDied also when it takes longer than LIMIT_S and is killed."""
        began = time.monotonic()
        worker = self._workers.get(slot) or self._start(slot)
        self._workers[slot] = worker
        if self._ended:  # A worker that was just started may have been missed.
            worker.popen.kill()
        try:
            worker.link.send((self._do, task))
            if worker.link.poll(LIMIT_S):
                result, error = worker.link.recv()
            else:
                worker.popen.kill()
                raise EOFError
        except (EOFError, OSError):
            code = worker.popen.wait(END_S)
            del self._workers[slot]
            worker.link.close()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            seconds = time.monotonic() - began
            said = f"the worker ended with {how} after {seconds:.0f} s: {supervisor.last_lines(worker.log)}"
            raise WorkerDied(said) from None
        if error is not None:
            raise error
        return result

    def _start(self, slot: int) -> WorkerProcess:
        log = self._logs / f"worker-{slot}.log"
        try:
            link, theirs = Pipe()
            words = [sys.executable, "-c", _CHILD, str(os.getpid()), str(theirs.fileno())]
            with theirs, log.open("ab") as output:
                # In its own session, because Ctrl-C is for this process, which ends the workers.
                popen = supervisor.start(
                    words, environment_as_here() | self._own, stdout=output, numbers=(theirs.fileno(),)
                )
        except OSError as error:
            raise HarnessError(f"no worker can be started: {error.strerror or error}") from error
        return WorkerProcess(popen, link, log)


@contextmanager
def guarded(variable: str, mark: str) -> Iterator[Callable[[], object]]:
    """A context with a guard process, which kills marked processes when this one ends, however it ends.

    Servers need that: several threads use them, so they cannot end with the thread that started them. The value is a
    function that dismisses the guard, for an owner that knows that no server is left.
    """
    words = [sys.executable, "-S", "-c", _GUARD, variable, mark]
    guard = supervisor.start(words, environment_as_here(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert guard.stdin is not None
    try:
        yield partial(guard.stdin.write, b".")
    finally:
        with suppress(BrokenPipeError):  # The guard may have been ended.
            guard.stdin.close()
        try:
            guard.wait(2 * END_S)
        except subprocess.TimeoutExpired:
            supervisor.end(guard)


def in_order(tasks: Iterable[Any], pool: TaskPool) -> Generator[Any, None, None]:
    """The results of tasks in their order; tasks are drawn as they are needed.

    Raises errors of `do`, and HarnessError for a worker that died. Results of other tasks are still yielded.
    """
    left, given, done = iter(tasks), deque[Any](), dict[int, Any]()  # The results by the id of their task.
    try:
        while True:
            for slot, task in zip(pool.idle, left, strict=False):
                given.append(task)
                pool.give(slot, task)
            while given and id(given[0]) in done:
                yield done.pop(id(given.popleft()))
            if not given and pool.idle:  # Otherwise all slots have tasks of an earlier caller.
                return
            for answer in pool.answers(WAIT_S):
                if any(answer.task is task for task in given):  # Otherwise the answer belongs to an earlier caller.
                    done[id(answer.task)] = _result(answer)
    except (Exception, KeyboardInterrupt):
        yield from (done[id(task)] for task in given if id(task) in done)
        raise


def as_done(draw: Callable[[], Any], pool: TaskPool) -> Iterator[tuple[Any, Any]]:
    """Tasks with their results in the order of completion, until no slot has a task; raises errors of `do`.

    draw: returns the next task for a free slot, None for none; called again after each result.
    """
    while True:
        for slot in pool.idle:
            if (task := draw()) is None:
                break
            pool.give(slot, task)
        if not pool.busy:
            return
        answers: list[Answer] = []
        while not answers:
            answers = list(pool.answers(WAIT_S))
        yield from ((answer.task, _result(answer)) for answer in answers)


def _result(answer: Answer) -> Any:
    if answer.died:
        raise HarnessError(f"{answer.died}; what it was at is not counted")
    if answer.error is not None:
        raise answer.error
    return answer.result


@contextmanager
def workers(do: Do, jobs: int, here: Do | None = None) -> Iterator[TaskPool]:
    """A pool of `jobs` workers with a directory removed at its end; for one, this thread, which calls `here`."""
    if jobs == 1:
        with TaskPool(here or do) as pool:
            yield pool
        return
    with TemporaryDirectory(prefix="marker-sim-workers-") as directory, WorkerPool(do, Path(directory), jobs) as pool:
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
    link = Connection(int(sys.argv[2]))
    with suppress(EOFError):
        while True:
            (do, task), result, error = link.recv(), None, None
            try:
                result = do(task)
            except Exception as raised:
                error = portable(raised)
            link.send((result, error))


def portable(error: Exception) -> Exception:
    """The error in a form that can be sent to another process, with its traceback as a note."""
    note = "".join(traceback.format_exception(error))
    error.add_note(note)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # Its arguments or attributes cannot be pickled.
        error = RuntimeError(f"{type(error).__name__}: {error}")
        error.add_note(note)
    return error
