"""Where the kit keeps what it fetched or built once: MARKER_SIM_CACHE, else ~/.cache/marker-sim."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE_VARIABLE = "MARKER_SIM_CACHE"


def cache_directory() -> Path:
    """The cache; it need not exist yet."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "marker-sim"


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """One process on this machine at a time, by a lock that dies with its holder; OSError when it cannot be had."""
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
