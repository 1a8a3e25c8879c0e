"""A file system of its own for a run, small enough to be filled: writes to it fail with ENOSPC, and nobody else's do.

It is a tmpfs, which root alone can mount. A shell stays beside it and unmounts it when its standard input ends, so also
when the kit is killed.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

SIZE = "32m"
TRIES = 100
_GUARD = f'mount -t tmpfs -o size={SIZE},mode=700 marker-sim "$1" && echo mounted && {{ read -r _; umount -l "$1"; }}'
_BALLAST = ".ballast"


class SmallDisk:
    """A mounted disk; `mounted` says whether this machine allows it. Nothing is left after `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        pipe = subprocess.PIPE
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", str(path)],
            stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert self._guard.stdout is not None
        self.mounted = self._guard.stdout.readline() == b"mounted\n"

    def fill(self) -> None:
        """No block is left, from now on until `free`."""
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
        assert self._guard.stdin is not None and self._guard.stdout is not None
        self._guard.stdin.close()
        self._guard.wait()
        self._guard.stdout.close()


@functools.cache
def why_not() -> str:
    """Why there can be no such disk here, "" when there can."""
    with tempfile.TemporaryDirectory(prefix="marker-sim-") as path:
        disk = SmallDisk(Path(path))
        disk.close()
    return "" if disk.mounted else "only root may mount a file system to fill it"
