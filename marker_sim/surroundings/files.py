"""Files that others may read or write at the same time: put in place as a whole, and held by one process.

Files that the kit downloaded or built are in its cache: MARKER_SIM_CACHE, else ~/.cache/marker-sim.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from marker_sim.errors import HarnessError

CACHE_VARIABLE = "MARKER_SIM_CACHE"


def cache_directory() -> Path:
    """The cache; it need not exist yet."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "marker-sim"


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path to write in the block, which then replaces the target; readers see the old or the new file.

    A device or a pipe, such as /dev/null, is written to as it is.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    beside = target.with_name(f".{target.name}.new")
    try:
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def make_ignored(directory: Path) -> None:
    """Make a directory and its parents; git ignores what was missing, as it does Hypothesis' own."""
    missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    if missing:
        (missing[-1] / ".gitignore").write_text("*\n", encoding="utf-8")


def synced(directory: Path) -> None:
    """Sync a directory, so that its names survive a loss of power."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[None]:
    """A lock that one process of this machine holds during the block; it ends with its holder.

    path: a directory, or a file, which is made if need be. BlockingIOError when another process holds it and `wait`
    is false, another OSError when it cannot be held at all.
    """
    how = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else os.O_RDWR | os.O_CREAT
    handle = os.open(path, how | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)


@contextmanager
def scratch_directory(named: Path | None = None) -> Iterator[Path]:
    """A scratch directory, removed at the end; HarnessError when it cannot be made.

    named: its path, where one that a killed campaign left is to be deleted; a new path otherwise.
    """
    try:
        scratch = named or Path(tempfile.mkdtemp(prefix="marker-sim-")).resolve()
        if named:
            shutil.rmtree(named, ignore_errors=True)
            named.mkdir(mode=0o700)
    except OSError as error:
        raise HarnessError(
            f"no scratch directory can be made at {named or tempfile.gettempdir()}: {error.strerror or error}"
        ) from error
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
