"""A file system of its own for a run, small enough to be filled: writes to it fail with ENOSPC, and nobody else's do.

It is a tmpfs, which root alone can mount. Who ends what a dead kit left unmounts it too (surroundings/supervisor.py).
"""

from __future__ import annotations

import functools
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from marker_sim.surroundings import supervisor

OPTIONS = "size=32m,mode=700"
TRIES = 100
_BALLAST = ".ballast"


class SmallDisk:
    """A mounted disk; `mounted` says whether this machine allows it. Nothing is left after `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.mounted = supervisor.mount("tmpfs", OPTIONS, path)

    def fill(self) -> None:
        """Fill the disk until no block is free; `free` undoes it."""
        with (self._path / _BALLAST).open("ab") as ballast:
            for _ in range(TRIES):
                disk = os.statvfs(self._path)
                if not disk.f_bavail:
                    break
                with suppress(OSError):  # A server took a block meanwhile.
                    os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), disk.f_bavail * disk.f_frsize)

    def free(self) -> None:
        """There is room again."""
        (self._path / _BALLAST).unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it, with all that it holds."""
        if self.mounted:
            supervisor.unmount(str(self._path))


@functools.cache
def why_not() -> str:
    """The reason why such a disk cannot be mounted here, "" when it can."""
    with tempfile.TemporaryDirectory(prefix="marker-sim-") as path:
        disk = SmallDisk(Path(path))
        disk.close()
    return "" if disk.mounted else "only root may mount a file system to fill it"
