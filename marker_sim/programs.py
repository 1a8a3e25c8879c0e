"""A program that is run to its end, with everything that it started ended as well when it takes too long."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from marker_sim.errors import HarnessError


def run_to_end(
    words: Sequence[str], *, deadline_s: float, late: str, environment: Mapping[str, str], folder: Path | None = None
) -> tuple[int, str]:
    """The exit code of a program and what it said on both streams; HarnessError with `late` after the deadline."""
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"{late} {deadline_s:.0f} s") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10.0)
    return process.returncode, said
