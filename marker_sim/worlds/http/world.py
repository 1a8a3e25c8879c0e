"""The storage of runs against real servers: runs do not depend on its kind.

local_world.py   a new directory behind the door (worlds/door)
s3_worlds.py     the kit's S3 front; the user's S3 endpoint, read by requests, without faults

In the first two every effect is seen in order, and faults are injected at calls.
"""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from marker_sim.faults import Call, Fault
from marker_sim.names import MarkerDirectory
from marker_sim.surroundings.supervisor import StartedProgram, start_program
from marker_sim.worlds.door.calls import HeldCalls
from marker_sim.worlds.http.directory_reader import DirectoryReader, run_reader
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An object store of the user's own: where it listens, which bucket may be written to, and who signs.

    prefix: what this campaign keeps its keys below. The secret is not shown.
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

    start: how it is started, behind a door where its storage calls are seen there.
    """

    values: Mapping[str, str]
    environment: Mapping[str, str]
    start: Callable[..., StartedProgram] = start_program


class RunGround(NamedTuple):
    """What a run brings to its storage.

    recorder, inject: of its history and of its faults at calls. serves, restarts: whether the process of that name is a
        server that answered and lives, or one that is started again after a death.
    table: what all its tables lie below. storage: the name of what its servers have for themselves.
    wire: whether a proxy stands between servers and storage. reads: whether reads of local files can fail. power:
        whether a local directory can lose its power.
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
        """Where the calls of the run pass; of paths that start otherwise no effect is recorded."""
        return Interceptor(self.recorder, self.inject, below, self.serves, self.restarts)


def within(table: str, call: Call) -> Call:
    """A call of a plan in a run. The paths of a plan begin with its own tables, which lie below a folder, or with a
    slash, at the root of storage.
    """
    if call.pattern.startswith("^/"):
        return call._replace(pattern=f"^{call.pattern[2:]}")
    rest = call.pattern[1:] if call.pattern.startswith("^") else f".*{call.pattern}"
    return call._replace(pattern=f"^{re.escape(table)}/{rest}")


class RunStorage(ABC):
    """The storage of one run after another, as seen by servers and fault injectors.

    interceptor: where calls pass and faults are armed, None where the kit does not see calls.
    wire: what servers reach storage through, None for no proxy.
    reader: the kit's own look at it. A method that is not abstract says what holds where nothing else is known.
    command: the user's reader, "" where markers are in Hudi's format.
    uri: how requests write the root of storage; shown, environment: the same for the user's reader, and its variables.
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
        """Of the server life of that name."""

    @abstractmethod
    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Take away a marker directory with all it holds, as a process of that name that is no server would."""

    @abstractmethod
    def close(self) -> None:
        """Remove what runs stored; called after the history is closed, may be called twice."""

    def address(self, place: MarkerDirectory) -> str:
        """A marker directory as requests write it."""
        return f"{self.uri}/{place.path}"

    @property
    def layout(self) -> str:
        """Whether markers are in Hudi's format or in one whose names the user's reader prints, as in a header."""
        return "names" if self.command else "hudi"

    def unseen(self) -> tuple[str, ...]:
        """Sentences about storage calls that are known to have escaped; HarnessError when the kit failed at one."""
        return ()

    def echo(self) -> None:  # noqa: B027
        """Ask the kit's own storage for nothing, as a server would; returns when it answered."""

    def held(self, process: str) -> HeldCalls:
        """The storage calls of a server that the kit held until now; none where it holds no calls."""
        return HeldCalls()

    def rewriting(self) -> bool:
        """Whether a server is writing a file of this run again in place, and has not written all of it."""
        return False

    def has_called(self, process: str) -> bool:
        """Whether a call of this server was seen here."""
        return False

    def begin(self, fault: Fault) -> None:  # noqa: B027
        """Begin a fault that lasts a while. The recorder's lock may be held."""

    def heal(self, fault: Fault) -> bool:
        """End a fault that was begun; whether anything met it. The recorder's lock may be held."""
        return False

    def lose_power(self, names: bool, lengths: bool) -> None:  # noqa: B027
        """Take back what was not synced; servers are dead. names, lengths: are kept. The recorder's lock is held."""

    @property
    def _names(self) -> Callable[[MarkerDirectory, float], list[str]] | None:
        """What the user's reader prints of a directory within some seconds, None for Hudi's format."""
        if not self.command:
            return None
        return lambda place, timeout_s: run_reader(
            self.command, f"{self._shown}/{place.path}", self._environment, timeout_s
        )
