"""Where the kit keeps what it fetched or built once: MARKER_SIM_CACHE, else ~/.cache/marker-sim."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "MARKER_SIM_CACHE"


def cache_directory() -> Path:
    """The cache; it need not exist yet."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "marker-sim"
