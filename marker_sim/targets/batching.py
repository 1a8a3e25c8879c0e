"""The batching of a foreign server: the options it is given, and the bounds it is judged by.

A server is told by the placeholders `{threads}` and `{interval_ms}` of its start command. What it was not told is not
held against it: then the number of `--batch-threads` counts, or Hudi's default, in every run and every server life.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from marker_sim.errors import UsageError
from marker_sim.options import MarkerOptions

THREADS = (1, 2, 3, 20)
INTERVALS_MS = (10, 25, 50, 50, 120)
THREADS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """The batching settings that plans choose from.

    threads: batch threads.
    intervals_ms: between batches.
    words: where each comes from.
    """

    threads: tuple[int, ...]
    intervals_ms: tuple[int, ...]
    words: dict[str, str]


def batching(start: str, batch_threads: int | None) -> Batching:
    """The settings by which a server started by `start` is judged. batch_threads: the user's option, or None."""
    default = MarkerOptions()
    threads: tuple[int, ...] = THREADS
    intervals_ms: tuple[int, ...] = INTERVALS_MS
    said = f"{_either(THREADS)}, told by {{threads}}"
    if batch_threads is not None:
        threads = (batch_threads,)
        said = f"{batch_threads}, said by --batch-threads"
    elif "{threads}" not in start:
        threads = (default.batch_num_threads,)
        said = f"{default.batch_num_threads}, Hudi's default, for --start has no {{threads}}"
    interval = f"{_either(sorted(set(INTERVALS_MS)))}, told by {{interval_ms}}"
    if "{interval_ms}" not in start:
        intervals_ms = (default.batch_interval_ms,)
        interval = f"{default.batch_interval_ms}, Hudi's default, for --start has no {{interval_ms}}"
    return Batching(
        threads=threads, intervals_ms=intervals_ms, words={"batch threads": said, "batch interval in ms": interval}
    )


def parse_batch_threads(text: str) -> int:
    """The number given by `--batch-threads`; UsageError for anything else."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= THREADS_MAX):
        raise UsageError(f"--batch-threads was given {text!r}; write a whole number from 1 to {THREADS_MAX}")
    return int(text)


def _either(numbers: Iterable[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}"
