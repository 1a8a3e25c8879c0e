"""What an executor does with a task of a night: the same as a worker process, in a Python worker that Spark keeps.

Every executor needs the kit that the driver has, for another one would make other runs of the same numbers.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import marker_sim
from marker_sim.errors import HarnessError

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "answer binary"


@cache
def kit() -> str:
    """The kit of this process: its version and a digest of its sources."""
    root = Path(marker_sim.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{marker_sim.__version__} ({digest.hexdigest()[:12]})"


@cache
def _desk(name: str) -> Any:
    """The desk of this process, which loads the kit and the system once; it ends with the process."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)().__enter__()


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTask:
    """The function of a `mapInArrow`: its one row is the task's answer.

    kit: of the driver.
    task: pickled; None to see only whether the kit is the same.
    left_s: how long after it begins plans may be made small; clocks of other hosts are not ours.
    """

    desk: str
    kit: str
    task: bytes | None = None
    left_s: float = 0.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pickled: the seconds that it took and what the desk said, or a sentence in which the kits differ."""
        import pyarrow as pa

        for _ in batches:
            answer = pickle.dumps(self._answer())
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["answer"])

    def _answer(self) -> tuple[float, Any]:
        if kit() != self.kit:
            import socket

            where = socket.gethostname()
            raise HarnessError(
                f"the executor on {where} has marker-sim {kit()} and the driver {self.kit}, which make different runs"
                " of the same numbers; install the same one on every host"
            )
        if self.task is None:
            return 0.0, None
        desk = _desk(self.desk)
        task, began = pickle.loads(self.task), time.monotonic()
        result = desk.do(replace(task, until=began + self.left_s))
        return time.monotonic() - began, result
