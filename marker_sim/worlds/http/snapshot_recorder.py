"""What looks at storage found, told to the history: files that changed as `observe file`, then one `observe snapshot`.

Where markers are not stored in Hudi's format, a command of the user's prints the names.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from marker_sim.errors import HarnessError, UsageError
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.recorder import Recorder

READER_TIMEOUT_S = 20.0
STOPPED_TIMEOUT_S = 1.0


class Snapshot(NamedTuple):
    """The result of one scan: files by storage path, or names where the format is not Hudi's."""

    files: dict[str, bytes]
    names: frozenset[str]


class SnapshotRecorder:
    """Records snapshots of directories, and keeps the last of each. Not thread-safe: a reader has a lock."""

    def __init__(self, recorder: Recorder, layout: str) -> None:
        self.recorder = recorder
        self.layout = layout
        self._files: dict[str, dict[str, bytes]] = {}

    def files(self, place: MarkerDirectory) -> Mapping[str, bytes]:
        """The files of a directory as recorded last."""
        return self._files.get(place.path, {})

    def tell(self, place: MarkerDirectory, seen: Snapshot, mark: int) -> tuple[str, ...]:
        """Record what was read after the event `mark`; the paths that changed."""
        recorder = self.recorder
        with recorder.lock:
            told = self._files.get(place.path, {})
            paths = sorted(told.keys() | seen.files.keys())
            changed = tuple(path for path in paths if told.get(path) != seen.files.get(path))
            for path in changed:
                recorder.record("kit", "kit", "observe", "file", place, path, seen.files.get(path))
            self._files[place.path] = dict(seen.files)
            names = tuple(sorted(seen.names)) if self.layout == "names" else None
            recorder.record("kit", "kit", "observe", "snapshot", place, place.path, names, caused_by=mark)
            return changed


def run_reader(
    command: str, directory: str, environment: Mapping[str, str] | None = None, timeout_s: float = READER_TIMEOUT_S
) -> list[str]:
    """The names that a reader's command prints, one a line; HarnessError when it fails.

    directory: replaces {dir}, as servers are told it.
    environment: added to the kit's own.
    """
    try:
        words = [word.replace("{dir}", directory) for word in shlex.split(command)]
    except ValueError as error:
        raise UsageError(f"--reader {command!r} is not a valid command line: {error}") from error
    if not words:
        raise UsageError("--reader was given an empty command; write one that prints the names stored in {dir}")
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            text=True,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise HarnessError(f"the reader {words[0]!r} cannot be run: {error}") from error
    if done.returncode != 0:
        said = done.stderr.strip()[-300:] or "no output"
        raise HarnessError(f"the reader {words[0]!r} ended with exit code {done.returncode}: {said}")
    return [line for line in done.stdout.split("\n") if line]
