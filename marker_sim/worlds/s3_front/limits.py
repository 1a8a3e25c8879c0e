"""Request limits per key prefix, as token buckets: what S3 answers with 503 SlowDown.

S3 splits a bucket by key prefixes that it chooses itself, and grants each 3,500 writes and 5,500 reads a second. Our
decision: a prefix is a table's metadata, the path up to and including `.hoodie/`, else the first part of the path; so
the marker directories of one table share a limit and two tables never do. A bucket holds what it grants in a second.
Each key of a deletion of many counts as a write, and may overdraw the bucket; a listing counts as a read.
Source: "Best practices design patterns: optimizing Amazon S3 performance", the limits; the rest is our decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from marker_sim.errors import UsageError

WRITES_PER_S = 3_500.0
READS_PER_S = 5_500.0
_METADATA = ".hoodie/"


def prefix_of(path: str) -> str:
    """The prefix under which a path is counted."""
    before, found, _ = f"/{path}/".partition(f"/{_METADATA}")
    if found:
        return f"{before}/{_METADATA}".removeprefix("/")
    return path.partition("/")[0]


class Limits:
    """The token buckets of all prefixes. Callers of `take` hold a lock.

    clock: seconds, monotonic.
    """

    def __init__(
        self,
        writes_per_s: float = WRITES_PER_S,
        reads_per_s: float = READS_PER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if writes_per_s <= 0 or reads_per_s <= 0:
            raise UsageError(f"{writes_per_s:g} writes and {reads_per_s:g} reads a second: both must be above 0")
        self._per_s = {True: float(writes_per_s), False: float(reads_per_s)}
        self._clock = clock
        self._levels: dict[tuple[str, bool], tuple[float, float]] = {}

    def take(self, path: str, *, writes: bool, cost: int = 1) -> bool:
        """Whether the prefix of a path has a token left; if so, take `cost` of them."""
        key, rate, now = (prefix_of(path), writes), self._per_s[writes], self._clock()
        level, since = self._levels.get(key, (max(rate, 1.0), now))
        level = min(max(rate, 1.0), level + (now - since) * rate)
        granted = level >= 1
        self._levels[key] = (level - cost if granted else level, now)
        return granted
