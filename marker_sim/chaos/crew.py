"""Worker processes that do units and die with this process, however it ends.

A worker asks the kernel for SIGKILL when its parent ends. Whatever workers start carries a mark of the chaos directory
in its environment, so what outlives a killed night is found and ended when the next one begins.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from marker_sim.chaos.failures import make_folder
from marker_sim.chaos.work import Task
from marker_sim.errors import HarnessError

VARIABLE = "MARKER_SIM_CHAOS"
LIMIT_S = 900.0
END_S = 10.0
_SAID_LINES = 4


@dataclass(slots=True)
class Worker:
    """One process. task: what it is doing, None when it is idle. since: time.monotonic() of when it began that."""

    process: subprocess.Popen[bytes]
    log: Path
    task: Task | None = None
    since: float = 0.0


class Crew:
    """So many workers; a context manager that leaves no process."""

    def __init__(self, directory: Path, jobs: int, scratch: Path) -> None:
        self._mark = str(directory.resolve())
        self._logs = directory / "logs"
        self._scratch = scratch
        self._jobs = jobs
        self.workers: list[Worker] = []

    def __enter__(self) -> Crew:
        self._end_marked()
        make_folder(self._logs)
        for number in range(self._jobs):
            self.workers.append(self._start(number))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.wait(END_S)
        self._end_marked()

    @property
    def idle(self) -> list[Worker]:
        """Those without a task."""
        return [worker for worker in self.workers if worker.task is None]

    @property
    def busy(self) -> list[Worker]:
        """Those with one."""
        return [worker for worker in self.workers if worker.task is not None]

    def give(self, worker: Worker, task: Task) -> None:
        """Let an idle worker do a task; should it be dead, `answers` says so."""
        worker.task, worker.since = task, time.monotonic()
        assert worker.process.stdin is not None
        try:
            worker.process.stdin.write(json.dumps(asdict(task)).encode() + b"\n")
            worker.process.stdin.flush()
        except OSError:
            return

    def answers(self, timeout_s: float) -> Iterator[tuple[Task, float, dict[str, Any]]]:
        """Tasks that were done within `timeout_s`, each with its seconds and what came of it.

        A worker that dies at a task, or takes longer than LIMIT_S, answers with `trouble` and `died`, and is replaced.
        """
        outputs = {worker.process.stdout: worker for worker in self.busy}
        for output in wait(list(outputs), max(0.0, timeout_s)):  # type: ignore[arg-type]
            worker = outputs[output]  # type: ignore[index]
            yield self._answer(worker, worker.process.stdout.readline())  # type: ignore[union-attr]
        for worker in self.busy:
            if time.monotonic() - worker.since > LIMIT_S:
                worker.process.kill()
                yield self._answer(worker, b"")

    def abandon(self) -> list[Task]:
        """End the workers that are still busy; their tasks, which nobody will answer any more."""
        left = []
        for worker in self.busy:
            worker.process.kill()
            worker.process.wait(END_S)
            assert worker.task is not None
            left.append(worker.task)
            worker.task = None
        return left

    def _answer(self, worker: Worker, line: bytes) -> tuple[Task, float, dict[str, Any]]:
        task, seconds = worker.task, time.monotonic() - worker.since
        assert task is not None
        worker.task = None
        if line.endswith(b"\n"):
            return task, seconds, json.loads(line)
        code = worker.process.wait(END_S)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        trouble = f"the worker ended with {how} after {seconds:.0f} s: {_last_lines(worker.log)}"
        number = self.workers.index(worker)
        self.workers[number] = self._start(number)
        return task, seconds, {"trouble": trouble, "died": True}

    def _start(self, number: int) -> Worker:
        log = self._logs / f"worker-{number}.log"
        environment = {**os.environ, VARIABLE: self._mark, "TMPDIR": str(self._scratch)}
        try:
            with log.open("ab") as errors:
                process = subprocess.Popen(
                    [sys.executable, "-m", "marker_sim.chaos", str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=environment,
                    start_new_session=True,  # Ctrl-C is for this process; it ends the workers.
                )
        except OSError as error:
            raise HarnessError(f"no worker can be started: {error.strerror or error}") from error
        return Worker(process, log)

    def _end_marked(self) -> None:
        """End what carries the mark; the directory's lock says that nobody else can be using it."""
        deadline = time.monotonic() + END_S
        while left := [pid for pid in _pids() if _mark_of(pid) == self._mark]:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            if time.monotonic() > deadline:
                raise HarnessError(f"processes {left} of an earlier night do not end")
            time.sleep(0.02)


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit() and int(entry.name) != os.getpid())


def _mark_of(pid: int) -> str | None:
    """The mark in the environment of a process that lives, None without one or for somebody else's process."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()  # Empty for a zombie.
    except OSError:
        return None
    prefix = f"{VARIABLE}=".encode()
    found = next((word for word in environment.split(b"\0") if word.startswith(prefix)), None)
    return None if found is None else os.fsdecode(found[len(prefix) :])


def _last_lines(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:  # Somebody removed it, or the whole directory; the ledger says so soon enough.
        lines = []
    return " | ".join(lines[-_SAID_LINES:]) or "(no output)"
