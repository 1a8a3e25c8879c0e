"""The kit's own look at a marker directory, told to the history: files that changed as `observe file`, then one
`observe snapshot`.

Where every effect is in the history already, looks while servers live tell nothing, and only what is there when they
are dead is read, under the recorder's lock: the history's effects must add up to it. Elsewhere a look takes a mark,
lists and reads; names only come to a directory that nobody deletes, so what was stored at the mark is found. Where
markers are not stored in Hudi's format, a command of the user's prints the names.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext

from marker_sim.errors import HarnessError, UsageError
from marker_sim.names import MarkerDirectory
from marker_sim.seams import StorageError
from marker_sim.worlds.recorder import Recorder

READER_TIMEOUT_S = 20.0
REST = 4  # Times of a look: a user's reader is a process that takes its time from the servers.
STOPPED_TIMEOUT_S = 1.0
STOPPED_WAIT_S = 0.05
TRIES = 3
UNREAD = "dead servers' storage was not read: "  # Begins what a run counts where the user's reader failed.


class ReaderFailed(HarnessError):
    """The user's reader ran and printed no names."""


class DirectoryReader:
    """Reads marker directories and records what it finds; safe to call from any thread.

    objects: content by path of every object whose path starts so, raising StorageError.
    in_order: whether the history has every effect.
    names: what the user's reader prints within some seconds, None for Hudi's format.
    busy: whether a file below a directory is being written again in place, so that a reader's view decides nothing.
    live: whether looks while servers live tell anything.
    rest_s: how long to wait until the next look, if it is not needed.
    unread: why the user's reader could not read what dead servers left; what was there then is unknown.
    """

    def __init__(
        self,
        recorder: Recorder,
        objects: Callable[[str], dict[str, bytes]],
        in_order: bool,
        names: Callable[[MarkerDirectory, float], list[str]] | None,
        busy: Callable[[MarkerDirectory], bool] = lambda place: False,
    ) -> None:
        self.live = names is not None or not in_order
        self.rest_s = 0.0
        self.unread = self._failed = ""
        self._recorder = recorder
        self._objects = objects
        self._in_order = in_order
        self._names = names
        self._busy = busy
        self._lock = threading.Lock()
        self._files: dict[str, dict[str, bytes]] = {}  # Of each directory, as recorded last.

    def look(self, place: MarkerDirectory) -> bool:
        """Look while servers live, where that tells anything; False when storage failed or is being written."""
        if not self.live:
            return True
        with self._lock:
            return self._look(place, at_rest=True)

    def look_at_dead(self, place: MarkerDirectory) -> None:
        """Look when no server lives; HarnessError when storage cannot be read, but for the user's reader (`unread`)."""
        with self._lock:
            if any(self._look(place) for _ in range(TRIES)):
                return
            self.unread = self._failed
            if not self.unread:
                raise HarnessError(f"{place.path} could not be read from the object store, {TRIES} times")

    def look_at_stopped(self, place: MarkerDirectory) -> bool:
        """Look while every server is stopped; what one has sent already may still be applied meanwhile."""
        if not self._lock.acquire(timeout=STOPPED_WAIT_S):
            return False
        try:
            # A reader may wait for a lock that a stopped server has: a database in the middle of a write.
            return self._look(place, at_rest=True, timeout_s=STOPPED_TIMEOUT_S)
        finally:
            self._lock.release()

    def _look(self, place: MarkerDirectory, at_rest: bool = False, timeout_s: float = READER_TIMEOUT_S) -> bool:
        if self._names is not None:
            # Never under the recorder's lock: the user's reader asks the store, and the front needs the lock.
            mark = self._recorder.mark()
            if at_rest and self._busy(place):
                return False
            began = time.monotonic()
            try:
                names = self._names(place, timeout_s)
            except ReaderFailed as failed:
                self._failed = str(failed)
                return False
            self.rest_s = REST * (time.monotonic() - began)
            if at_rest and self._busy(place):
                return False
            self._record(place, mark, tuple(sorted(set(names))))
            return True
        with self._recorder.lock if self._in_order else nullcontext():
            mark = self._recorder.mark()
            try:
                files = self._objects(f"{place.path}/")
            except StorageError:
                return False
            with self._recorder.lock:
                known = self._files.get(place.path, {})
                for path in sorted(known.keys() | files.keys()):
                    if known.get(path) != files.get(path):
                        self._recorder.record("kit", "kit", "observe", "file", *place, path, files.get(path))
                self._files[place.path] = files
                self._record(place, mark, None)
        return True

    def _record(self, place: MarkerDirectory, mark: int, names: tuple[str, ...] | None) -> None:
        self._recorder.record("kit", "kit", "observe", "snapshot", *place, place.path, names, caused_by=mark)


def run_reader(command: str, directory: str, environment: Mapping[str, str], timeout_s: float) -> list[str]:
    """The names that a reader's command prints, one a line; ReaderFailed when it fails, HarnessError without it.

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
            words, capture_output=True, timeout=timeout_s, check=False, text=True, env={**os.environ, **environment}
        )
    except OSError as error:
        raise HarnessError(f"the reader {words[0]!r} cannot be run: {error}") from error
    except (subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise ReaderFailed(f"the reader {words[0]!r} printed no names: {error}") from error
    if done.returncode != 0:
        said = done.stderr.strip()[-300:] or "no output"
        raise ReaderFailed(f"the reader {words[0]!r} ended with exit code {done.returncode}: {said}")
    return [line for line in done.stdout.split("\n") if line]
