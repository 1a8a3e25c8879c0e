"""The storage of a run against real servers, as a protocol: runs do not depend on the kind of storage.

local_world.py   a new directory behind the door (worlds/door)
front_world.py   the kit's S3 front
external_s3.py   the user's S3 endpoint: read by requests, no faults

In the first two every effect is seen in order, and faults are injected at calls.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from marker_sim.faults import Call, Fault
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.interceptor import Interceptor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from marker_sim.worlds.door.launch import DoorCommand
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

    start: starts it behind a door; None where its storage calls are seen elsewhere, or not at all.
    """

    values: Mapping[str, str]
    environment: Mapping[str, str]
    start: Callable[..., DoorCommand] | None = None


def within(table: str, call: Call) -> Call:
    """A call of a plan, whose paths begin with its own tables, in a run, whose tables lie below a folder."""
    return call._replace(pattern=f"^{re.escape(table)}/{call.pattern.removeprefix('^')}")


class DirectoryReader(Protocol):
    """The kit's own eyes on marker directories. Safe to call from any thread.

    live: whether looks while servers live tell anything; where every effect is seen they do not.
    look              while servers live; False when it could not decide
    look_at_dead      while none lives
    look_at_stopped   while all are stopped, whose processes are `pids`; False when it could not decide
    """

    live: bool

    def look(self, place: MarkerDirectory) -> bool: ...
    def look_at_dead(self, place: MarkerDirectory) -> None: ...
    def look_at_stopped(self, place: MarkerDirectory, pids: Iterable[int]) -> bool: ...


class RunStorage(Protocol):
    """The storage of one run, as seen by servers and fault injectors.

    interceptor   where calls pass and faults are armed, None where the kit does not see calls
    wire          what servers reach storage through, None for no proxy
    describe      the fields of a history's header that are about storage
    address       how requests write a marker directory
    surroundings  of the server life of that name
    unseen        sentences about storage calls that are known to have escaped the interceptor; HarnessError when the
                  kit itself failed at a call
    echo          asks the kit's own storage for nothing, as a server would; returns when it answered
    begin, heal   a fault of a plan that lasts a while, and its end; the recorder's lock may be held. `heal` says
                  whether anything met it
    remove        takes away a marker directory with all it holds, as a process of that name that is no server would
    close         removes what the run stored; called after the history is closed, may be called twice
    """

    @property
    def interceptor(self) -> Interceptor | None: ...

    wire: ProxiedWire | None
    reader: DirectoryReader

    def describe(self) -> dict[str, Any]: ...
    def address(self, place: MarkerDirectory) -> str: ...
    def surroundings(self, process: str) -> Surroundings: ...
    def unseen(self) -> tuple[str, ...]: ...
    def echo(self) -> None: ...
    def begin(self, fault: Fault) -> None: ...
    def heal(self, fault: Fault) -> bool: ...
    def remove(self, place: MarkerDirectory, process: str) -> None: ...
    def close(self) -> None: ...
