"""The drivers of a run, one after another: each is started, asked, killed, and gone before the next one writes.

Every process of a driver carries the mark of the campaign in its environment, so that none outlives it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.worlds.http.servers import VARIABLE
from marker_sim.worlds.spark.application import Application, Gone

START_S = 90.0
ASK_S = 90.0
MIN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What every driver of a campaign has in common.

    deadline: when all must be over (time.monotonic).
    """

    home: Path
    java: str
    jars: tuple[Path, ...]
    mark: str
    logs: Path
    deadline: float

    def environment(self) -> dict[str, str]:
        """Of a driver's processes."""
        return {
            VARIABLE: self.mark,
            "SPARK_HOME": str(self.home),
            "JAVA_HOME": str(Path(self.java).resolve().parent.parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

    def left_s(self) -> float:
        """What is left of the campaign's time."""
        return self.deadline - time.monotonic()


class OutOfTime(Exception):
    """The budget ended while a driver worked; that says nothing about it."""


class Hangs(Exception):
    """A driver did not answer within its time; it is alive."""


class DriverLife:
    """One driver. It is asked one thing at a time.

    log: the name of its file in the report.
    """

    def __init__(self, name: str, log: str, program: Program, spec: Mapping[str, Any], scratch: Path) -> None:
        self.name = name
        self._program = program
        path = scratch / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(spec), encoding="utf-8")
        words = [sys.executable, "-m", "marker_sim.worlds.hudi_spark", str(path)]
        self._application = Application(name, words, program.environment(), program.logs / f"{log}.txt")

    @property
    def alive(self) -> bool:
        """Whether its Python runs."""
        return self._application.alive

    def wait_ready(self) -> None:
        """Its session is there. HarnessError when it cannot be had, OutOfTime."""
        try:
            self._bounded(self._application.hear, START_S)
        except Gone as gone:
            raise HarnessError(f"the driver {self.name} did not start: {self._application.last_lines()}") from gone
        except Hangs as hangs:
            raise HarnessError(f"the driver {self.name} did not start within {START_S:.0f} s: {hangs}") from hangs

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer. Gone when it ended instead; Hangs; OutOfTime."""
        self._application.tell(message)
        return self._bounded(self._application.hear, ASK_S)

    def strike(self) -> None:
        """SIGKILL for all of it at once; returns at once."""
        self._application.kill_now()

    def end(self) -> None:
        """It is gone when this returns, killed if need be."""
        self._application.kill()

    def said(self) -> str:
        """The end of what it wrote, for messages."""
        return self._application.last_lines()

    def _bounded(self, hear: Callable[[float], dict[str, Any]], longest_s: float) -> dict[str, Any]:
        left_s = self._program.left_s()
        try:
            return hear(max(MIN_S, min(longest_s, left_s)))
        except HarnessError as error:
            if self._program.left_s() <= 0:
                raise OutOfTime from error
            raise Hangs(str(error)) from error
