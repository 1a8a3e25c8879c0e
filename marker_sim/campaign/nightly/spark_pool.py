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
import pickle
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, Self

import marker_sim
from marker_sim.campaign.nightly.units import NightlyTask
from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.surroundings.spark_session import open_session, said_by, ship
from marker_sim.surroundings.worker_pool import VARIABLE, Answer, Do, TaskPool, guarded
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


class SparkPool(TaskPool):
    """The executors of a Spark cluster; a context manager that ends its Spark application.

    master: as `spark.master`, checked.
    jobs: how many cores to ask for, 0 for all that the cluster gives.
    sut: whose module, unless it is installed, is sent along.
    HarnessError when no executor comes, or one with another kit.
    """

    waits = False

    def __init__(self, master: str, do: Do, directory: Path, jobs: int, scratch: Path, sut: str) -> None:
        super().__init__(do)
        self._master, self._sut, self._jobs = master, sut, jobs
        self._directory, self._scratch = directory, scratch
        self._mark = str(directory.resolve())
        self._session: SparkSession | None = None

    def __enter__(self) -> Self:
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
            self._threads = self._begin() + BESIDE
            self._stack = stack
            super().__enter__()
            stack.callback(self._cancel)
            self._stack = stack.pop_all()
        return self

    def answers(self, timeout_s: float) -> Iterator[Answer]:
        """As of every pool, with the seconds that the executor needed.

        A task that ended its Python worker as often as Spark tried, or takes longer than LIMIT_S, answers with `died`.
        HarnessError when the application is over, or an executor has another kit.
        """
        for answer in super().answers(timeout_s):
            if answer.error is None:
                seconds, result = answer.result
                yield replace(answer, seconds=seconds, result=result)
            else:
                died = said_by(answer.error)
                self._check(died)
                yield replace(answer, error=None, died=died)

    def _perform(self, slot: int, task: NightlyTask) -> tuple[float, Any]:
        """The answer of a job of one task, which is cancelled after LIMIT_S."""
        left_s = task.until - time.monotonic()
        timer = Timer(LIMIT_S, self._context().cancelJobGroup, (_group(slot),))
        timer.daemon = True
        timer.start()
        try:
            return self._ask(slot, pickle.dumps((self._do, task)), left_s)
        finally:
            timer.cancel()

    def _cancel(self) -> None:
        with suppress(Exception):  # The application may be over.
            self._context().cancelAllJobs()

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
        asked = partial(answer_of, kit(), task, left_s)
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


def answer_of(of_driver: str, task: bytes | None, left_s: float, _: object) -> tuple[float, Any]:
    """What an executor does: the seconds that the task took and its result; HarnessError when the kits differ.

    of_driver: its kit. task: pickled with what does it, so that it is read by the same kit; None to see only whether
        that is the same.
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
    do, given = pickle.loads(task)
    result = do(replace(given, until=began + left_s))
    return time.monotonic() - began, result
