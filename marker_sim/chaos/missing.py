"""Which streams cannot run on this machine, why, and how they could."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

from marker_sim.chaos.stages import STREAMS

_HOW = "pip install '.[{}]' in a clone of marker-sim"
_NEEDS = {
    "real-local": (("httptools", "uvicorn"), "serve"),
    "real-s3": (("httptools", "uvicorn", "boto3", "moto"), "s3,serve"),
    "spark": (("pyspark", "psutil", "httptools", "uvicorn", "boto3", "moto"), "spark"),
}


def missing_here() -> dict[str, str]:
    """By stream, what it lacks and how to get it."""
    found: dict[str, str] = {}
    for streams in STREAMS.values():
        for stream in streams:
            packages, extra = _NEEDS.get(stream, ((), ""))
            lacking = [package for package in packages if find_spec(package) is None]
            if lacking:
                found[stream] = f"without {', '.join(lacking)}; {_HOW.format(extra)}"
            elif stream == "spark" and not _has_java():
                found[stream] = "without Java; `marker-sim doctor` says which and how to get it"
    return found


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java") is not None
