"""The reference, which says by a file when runs are well under way, so that no test waits for lines of progress.

BUSY_FOLDER   where the files go
"""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from marker_sim.system import reference
from properties.faces.markers import Created, DirectMarkers

VARIABLE = "BUSY_FOLDER"
CREATES = 1600  # Those of direct markers in more than two pieces of work.
DEADLINE_S = 60.0


class Busy(DirectMarkers):
    """Direct markers that count creates."""

    made = 0

    def create(self, name: str, request: str = "") -> Created:
        Busy.made += 1
        if Busy.made == CREATES:
            Path(os.environ[VARIABLE], str(os.getpid())).touch()
        return super().create(name, request)


SYSTEM = replace(reference(), direct=Busy)


def busy_processes(folder: Path, count: int, command: subprocess.Popen[str]) -> set[int]:
    """The processes of a command that are in the middle of their runs, as soon as there are so many."""
    until = time.monotonic() + DEADLINE_S
    while len(found := {int(file.name) for file in folder.iterdir()}) < count:
        assert command.poll() is None and time.monotonic() < until, f"{len(found)} of {count} processes are busy"
        time.sleep(0.01)
    return found
