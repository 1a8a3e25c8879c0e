"""Which streams cannot run on this machine, why, and how they could."""

from __future__ import annotations

from marker_sim.campaign.nightly.stages import STREAMS
from marker_sim.errors import HarnessError
from marker_sim.requirements import lacking
from marker_sim.targets.hudi import find_java

_PARTS = {"real-local": "real processes on local", "real-s3": "real processes on s3", "spark": "spark"}


def missing_here() -> dict[str, str]:
    """The missing requirements of each stream, and how to get them."""
    found: dict[str, str] = {}
    for streams in STREAMS.values():
        for stream in streams:
            why = lacking(_PARTS[stream]) if stream in _PARTS else ""
            if why:
                found[stream] = f"it needs {why}"
            elif stream == "spark" and not _has_java():
                found[stream] = "without Java; `marker-sim doctor` says which and how to get it"
    return found


def _has_java() -> bool:
    try:
        return bool(find_java())
    except HarnessError:
        return False
