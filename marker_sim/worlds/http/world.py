"""The storage of runs against real servers, independent of its kind.

local_world.py   a new directory behind the door (worlds/door)
s3_worlds.py     the kit's S3 front; the user's S3 endpoint, read by requests, without faults

In the first two every effect is seen in order, and faults are injected at calls.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from marker_sim.errors import HarnessError
from marker_sim.faults import Call
from marker_sim.names import MarkerDirectory
from marker_sim.reading import read_command
from marker_sim.seams import StorageError
from marker_sim.surroundings.supervisor import StartedProgram, start_program
from marker_sim.worlds.door.calls import HeldCalls
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire

READER_TIMEOUT_S = 20.0
# The pause after a read, as a multiple of its duration: a user's reader takes processor time from the servers.
REST = 4
STOPPED_TIMEOUT_S = 1.0
STOPPED_WAIT_S = 0.05
TRIES = 3
UNREAD = "dead servers' storage was not read: "  # Prefix of a run's counters of failures of the user's reader.


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An object store of the user: its address, the bucket that may be written to, and credentials.

    prefix: the prefix of this campaign's keys. The secret is not shown.
    """

    url: str
    bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    prefix: str = field(default_factory=lambda: f"marker-sim-{uuid.uuid4().hex[:12]}")

    def to_dict(self) -> dict[str, str]:
        """The JSON-ready form, without keys and secrets."""
        return {"url": self.url, "bucket": self.bucket}


class Surroundings(NamedTuple):
    """The values that a server's command gets: placeholders of the storage, and environment variables.

    start: starts the process, behind the door if its storage calls are watched there.
    """

    values: Mapping[str, str]
    environment: Mapping[str, str]
    start: Callable[..., StartedProgram] = start_program


class RunGround(NamedTuple):
    """What a run's storage needs to know of the run.

    recorder, inject: record its history and inject its faults at calls. serves, restarts: whether the named process is
    a
        server that answered and lives, or one that is being started again after a death.
    table: the folder of all its tables. storage: the name of its servers' private storage.
    wire: whether a proxy stands between servers and storage. reads: whether reads of local files can fail. power:
    whether
        a local directory can lose its power.
    """

    recorder: Recorder
    inject: Callable[[ArmedFault, StorageCall], None]
    serves: Callable[[str], bool]
    restarts: Callable[[str], bool]
    table: str
    storage: str
    wire: bool = False
    reads: bool = False
    power: bool = False

    def interceptor(self, below: str) -> Interceptor:
        """The interceptor of the run. below: effects on paths with another prefix are not recorded."""
        return Interceptor(self.recorder, self.inject, below, self.serves, self.restarts)


def within(table: str, call: Call) -> Call:
    """A plan's call with its pattern adapted to a run.

    The plan's tables lie below the folder `table`; a pattern with a leading slash begins at the root of storage.
    """
    if call.pattern.startswith("^/"):
        return call._replace(pattern=f"^{call.pattern[2:]}")
    rest = call.pattern[1:] if call.pattern.startswith("^") else f".*{call.pattern}"
    return call._replace(pattern=f"^{re.escape(table)}/{rest}")


class ReaderFailed(HarnessError):
    """The user's reader ran and printed no names."""


class DirectoryReader:
    """Reads marker directories and records what it finds; safe to call from any thread.

    objects: maps a prefix to the content of each object by path; raises StorageError.
    in_order: whether the history has every effect.
    names: runs the user's reader within some seconds, None for Hudi's format.
    busy: whether a file below a directory is being rewritten in place, so that a read decides nothing.
    live: whether reads while servers live are meaningful.
    rest_s: the pause before the next optional read.
    unread: why the user's reader could not read what dead servers left, "" if it could.
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
        self._files: dict[str, dict[str, bytes]] = {}  # The files of each directory, as recorded last.

    def look(self, place: MarkerDirectory) -> bool:
        """Read while servers live, if that is meaningful; False when storage failed or is being written."""
        if not self.live:
            return True
        with self._lock:
            return self._look(place, at_rest=True)

    def look_at_dead(self, place: MarkerDirectory) -> None:
        """Read when no server lives; HarnessError when storage cannot be read, but for the user's reader (`unread`)."""
        with self._lock:
            if any(self._look(place) for _ in range(TRIES)):
                return
            self.unread = self._failed
            if not self.unread:
                raise HarnessError(f"{place.path} could not be read from the object store, {TRIES} times")

    def look_at_stopped(self, place: MarkerDirectory) -> bool:
        """Read while every server is stopped; a request sent before may still be applied meanwhile."""
        if not self._lock.acquire(timeout=STOPPED_WAIT_S):
            return False
        try:
            # The reader may wait for a lock of a stopped server, such as a database in the middle of a write.
            return self._look(place, at_rest=True, timeout_s=STOPPED_TIMEOUT_S)
        finally:
            self._lock.release()

    def _look(self, place: MarkerDirectory, at_rest: bool = False, timeout_s: float = READER_TIMEOUT_S) -> bool:
        if self._names is not None:
            # Not under the recorder's lock: the user's reader sends requests to the front, which needs the lock.
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

    directory: replaces {dir}, in the form that servers get.
    environment: added to the kit's own.
    """
    empty = "was given an empty command; write one that prints the names stored in {dir}"
    words = [word.replace("{dir}", directory) for word in read_command("--reader", command, empty)]
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


class RunStorage(ABC):
    """The storage of successive runs, as seen by servers and fault injectors.

    interceptor: sees storage calls and injects faults, None where the kit does not see calls.
    wire: the proxy between servers and storage, None for no proxy.
    reader: the kit's own reader. Methods with a body are the defaults for storage that is not watched.
    command: the user's reader, "" where markers are in Hudi's format.
    uri: the root of storage in requests; shown, environment: the root and the variables for the user's reader.
    """

    interceptor: Interceptor | None = None
    wire: ProxiedWire | None = None
    reader: DirectoryReader

    def __init__(self, command: str, uri: str, shown: str, environment: Mapping[str, str]) -> None:
        self.command, self.uri = command, uri
        self._shown, self._environment = shown, environment

    @abstractmethod
    def bind(self, ground: RunGround) -> None:
        """Serve the next run, whose servers may still live."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The fields of a history's header that are about storage."""

    @abstractmethod
    def surroundings(self, process: str) -> Surroundings:
        """The surroundings of the server life with this name."""

    @abstractmethod
    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Remove a marker directory with its content, in the name of a process that is no server."""

    @abstractmethod
    def close(self) -> None:
        """Remove what runs stored, after the history is closed. May be called twice."""

    def address(self, place: MarkerDirectory) -> str:
        """A marker directory in the form of requests."""
        return f"{self.uri}/{place.path}"

    @property
    def layout(self) -> str:
        """The `layout` of a header: "hudi" for Hudi's format, else "names", which the user's reader prints."""
        return "names" if self.command else "hudi"

    def unseen(self) -> tuple[str, ...]:
        """Sentences about storage calls that are known to have escaped; HarnessError when the kit failed at one."""
        return ()

    def echo(self) -> None:  # noqa: B027
        """Make an empty call to the kit's own storage, as a server would; returns when it was answered."""

    def held(self, process: str) -> HeldCalls:
        """The storage calls of a server that stopped at the kit so far; none where calls are not watched."""
        return HeldCalls()

    def rewriting(self) -> bool:
        """Whether a server has begun and not finished to rewrite a file of this run in place."""
        return False

    def has_called(self, process: str) -> bool:
        """Whether a call of this server was seen here."""
        return False

    def fill_disk(self) -> Callable[[], bool]:
        """Fill the disk; the returned function ends that and says whether any call failed by it.

        The recorder's lock may be held.
        """
        return lambda: False

    def lose_power(self, names: bool, lengths: bool) -> None:  # noqa: B027
        """Revert what was not synced, after all servers died; the recorder's lock is held.

        names, lengths: whether unsynced names and lengths are kept.
        """

    @property
    def _names(self) -> Callable[[MarkerDirectory, float], list[str]] | None:
        """Runs the user's reader for a directory within some seconds; None for Hudi's format."""
        if not self.command:
            return None
        return lambda place, timeout_s: run_reader(
            self.command, f"{self._shown}/{place.path}", self._environment, timeout_s
        )
