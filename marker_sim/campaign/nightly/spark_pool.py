"""A pool of workers whose tasks are carried out by the executors of a Spark cluster; a task is a job of one task.

This process is the driver. The unfinished tasks of a killed executor are lost: Spark gives them to another one, and
since a task is a function of its numbers, it does not matter which attempt answers. A killed driver ends the
application; the ledger has the finished units.

There is always one task more than cores, so that a free core need not wait for this process. An executor
does what a worker process does, in a Python worker that Spark keeps. It needs the driver's kit, because another one
would make other runs of the same numbers.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import socket
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, TimeoutError, wait
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import marker_sim
from marker_sim.campaign.nightly.work import NightlyTask
from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.surroundings.spark_session import open_session, said_by, ship
from marker_sim.surroundings.worker_pool import VARIABLE, Answer, guarded
from marker_sim.worlds.spark.session import JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JVM,
    "spark.locality.wait": "0",
    "spark.python.worker.reuse": "true",  # Each worker loads the kit only once.
    "spark.task.maxFailures": "4",
}
LIMIT_S = 900.0
FIRST_S = 90.0
BESIDE = 1


class SparkJob(NamedTuple):
    """A task that is running. since: time.monotonic() of its begin."""

    task: NightlyTask
    answer: Future[tuple[float, Any]]
    since: float


class SparkPool:
    """The executors of a Spark cluster as a `TaskPool`; a context manager that ends its Spark application.

    master: as `spark.master`, checked.
    jobs: how many cores to ask for, 0 for all that the cluster gives.
    sut: whose module, unless it is installed, is sent along.
    HarnessError when no executor comes, or one with another kit.
    """

    def __init__(self, master: str, desk: str, directory: Path, jobs: int, scratch: Path, sut: str) -> None:
        self._master, self._desk, self._sut, self._jobs = master, desk, sut, jobs
        self._directory, self._scratch = directory, scratch
        self._mark = str(directory.resolve())
        self._stack = ExitStack()
        self._slots = range(0)
        self._jobs_by_slot: dict[int, SparkJob] = {}
        self._session: SparkSession | None = None
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> SparkPool:
        supervisor.end_marked(VARIABLE, self._mark)
        with ExitStack() as stack:
            stack.callback(supervisor.end_marked, VARIABLE, self._mark)
            stack.enter_context(guarded(VARIABLE, self._mark))
            settings = SETTINGS | ({"spark.cores.max": str(self._jobs)} if self._jobs else {})
            self._session = stack.enter_context(
                open_session(
                    "chaos",
                    self._master,
                    self._scratch,
                    settings=settings,
                    mark=self._mark,
                    logs=self._directory / "logs",
                )
            )
            ship(self._session, self._sut, self._scratch)
            cores = self._begin()
            self._threads = ThreadPoolExecutor(cores + BESIDE, thread_name_prefix="spark-job")
            stack.callback(self._threads.shutdown, wait=False, cancel_futures=True)
            self._slots = range(cores + BESIDE)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()
        self._stack.close()

    @property
    def idle(self) -> list[int]:
        """The slots without a task."""
        return [slot for slot in self._slots if slot not in self._jobs_by_slot]

    @property
    def busy(self) -> list[int]:
        """The slots that have a task."""
        return list(self._jobs_by_slot)

    def give(self, slot: int, task: NightlyTask) -> None:
        """Start a task on the cluster."""
        assert self._threads is not None
        now = time.monotonic()
        answer = self._threads.submit(self._ask, slot, pickle.dumps(task), task.until - now)
        self._jobs_by_slot[slot] = SparkJob(task, answer, now)

    def answers(self, timeout_s: float) -> Iterator[Answer]:
        """The answers that are there within `timeout_s`, or as soon as there is one.

        A task that ended its Python worker as often as Spark tried, or takes longer than LIMIT_S, answers with `died`.
        HarnessError when the application is over, or an executor has another kit.
        """
        jobs = dict(self._jobs_by_slot)
        wait([job.answer for job in jobs.values()], max(0.0, timeout_s), FIRST_COMPLETED)
        for slot, (task, answer, since) in jobs.items():
            seconds = time.monotonic() - since
            if answer.done():
                del self._jobs_by_slot[slot]
                error = answer.exception()
                if error is None:
                    seconds, result = answer.result(0)
                    yield Answer(task=task, seconds=seconds, result=result)
                else:
                    died = said_by(error)
                    self._check(died)
                    yield Answer(task=task, seconds=seconds, died=died)
            elif seconds > LIMIT_S:
                del self._jobs_by_slot[slot]
                self._context().cancelJobGroup(_group(slot))
                yield Answer(task=task, seconds=seconds, died=f"the cluster did not do it within {LIMIT_S:.0f} s")

    def abandon(self) -> list[NightlyTask]:
        """Cancel the running tasks and return them; they will have no answer."""
        left = [job.task for job in self._jobs_by_slot.values()]
        if left:
            with suppress(Exception):  # The application may be over.
                self._context().cancelAllJobs()
        self._jobs_by_slot.clear()
        return left

    def _begin(self) -> int:
        """The number of cores, once an executor answered that it has the same kit."""
        asking = ThreadPoolExecutor(1)
        try:
            asking.submit(self._ask, -1).result(FIRST_S)
        except TimeoutError as error:
            raise HarnessError(
                f"no executor of {self._master} began within {FIRST_S:.0f} s; it needs free cores, and memory for"
                " spark.executor.memory"
            ) from error
        except HarnessError:
            raise
        except Exception as error:
            raise HarnessError(f"{self._master} cannot do a task: {said_by(error)}") from error
        finally:
            asking.shutdown(wait=False)
        cores = int(self._context().defaultParallelism)
        return min(self._jobs, cores) if self._jobs else cores

    def _ask(self, slot: int, task: bytes | None = None, left_s: float = 0.0) -> tuple[float, Any]:
        """The answer of a job of one task."""
        context = self._context()
        context.setJobGroup(_group(slot), "marker-sim chaos")
        asked = partial(answer_of, self._desk, kit(), task, left_s)
        answer: tuple[float, Any] = context.parallelize((slot,), 1).map(asked).first()
        return answer

    def _context(self) -> Any:
        assert self._session is not None
        return self._session.sparkContext

    def _check(self, died: str) -> None:
        """HarnessError when a job failed because kits differ or the application is over, not because of its task."""
        if "install the same one on every host" in died:
            raise HarnessError(died)
        try:
            over = self._context()._jsc.sc().isStopped()
        except Exception:
            over = True
        if over:
            raise HarnessError(f"Spark's application on {self._master} is over: {died}; the same command goes on")


def _group(slot: int) -> str:
    return f"marker-sim-{slot}"


@cache
def kit() -> str:
    """The identity of this process's kit: its version and a digest of its sources."""
    root = Path(marker_sim.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{marker_sim.__version__} ({digest.hexdigest()[:12]})"


@cache
def _desk(name: str) -> Any:
    """The desk of this process, which loads the kit and the system once."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)().__enter__()


def answer_of(desk: str, of_driver: str, task: bytes | None, left_s: float, _: object) -> tuple[float, Any]:
    """What an executor does: the seconds that the task took and the desk's answer; HarnessError when the kits differ.

    of_driver: its kit. task: pickled, so that it is read by the same kit; None to see only whether that is the same.
    left_s: how long after it begins plans may be made small; clocks of other hosts are not ours.
    """
    if kit() != of_driver:
        raise HarnessError(
            f"the executor on {socket.gethostname()} has marker-sim {kit()} and the driver {of_driver}, which make"
            " different runs of the same numbers; install the same one on every host"
        )
    if task is None:
        return 0.0, None
    began = time.monotonic()
    result = _desk(desk).do(replace(pickle.loads(task), until=began + left_s))
    return time.monotonic() - began, result
