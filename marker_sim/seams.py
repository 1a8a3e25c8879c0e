"""The three seams between an implementation and the world it runs in: Storage, Wire, Runtime, and their errors.

An implementation is plain blocking Python that touches the outside only through these. Each call through a seam is a
step: the simulated world counts it, may fail it and may kill the process at it. `definite` on an error says whether
the operation provably had no effect.

    SeamError
     ├── StorageError
     │    ├── NotFound            definite    no such object (404)
     │    ├── PreconditionFailed  definite    it exists, or it changed (412, EEXIST)
     │    ├── Conflicted          definite    another request was under way (409); nothing is known about the object
     │    ├── Throttled           definite    503 SlowDown
     │    ├── StorageFailed       indefinite  500, I/O error
     │    ├── DiskFull            definite    nothing was replaced; but an `overwrite` may have torn the file
     │    ├── PathRefused         definite    no storage can hold the path, or it must not be followed
     │    └── StorageTimeout      indefinite  applied before the time-out, never, or later (Capabilities.late_effect_ms)
     └── WireError
          ├── Refused             definite    no server listens
          └── NoAnswer            indefinite  deadline passed or the connection broke

    Unsupported (a ValueError)    the storage has not the ability (Capabilities); no run on it is judged
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol


class SeamError(Exception):
    """Something outside failed; `definite` is True when the call provably had no effect."""

    definite: ClassVar[bool] = False


class StorageError(SeamError):
    """A storage call failed."""


class NotFound(StorageError):
    """There is nothing at the path."""

    definite = True


class PreconditionFailed(StorageError):
    """The object exists (if absent) or is not the version expected (if unchanged)."""

    definite = True


class Conflicted(StorageError):
    """Another request for the object was under way, and nothing was done: ask again. Source: S3, PutObject, 409."""

    definite = True


class Throttled(StorageError):
    """The store asked to slow down and did nothing (503 SlowDown)."""

    definite = True


class StorageFailed(StorageError):
    """The store failed and does not say whether it did anything (500, EIO)."""


class DiskFull(StorageError):
    """No space left; an atomic put replaced nothing."""

    definite = True


class StorageTimeout(StorageError):
    """No answer in time: applied, never applied, or applied later."""


class PathRefused(StorageError, ValueError):
    """The path is too long for the storage, leads through a symbolic link or through a file; nothing was changed.

    A ValueError as well, so that a server answers 400: no later try of the same call can succeed.
    """

    definite = True


class WireError(SeamError):
    """A call to a server failed."""


class Refused(WireError):
    """No server listens at the address; the request was never read."""

    definite = True


class NoAnswer(WireError):
    """The request may have been read, and no answer came."""


class Unsupported(ValueError):
    """The storage lacks an ability, named in a few words. An implementation that needs the ability may raise it too."""


class Condition(Enum):
    """The condition under which a put replaces the object."""

    NONE = "none"
    IF_ABSENT = "if-absent"


class Content(NamedTuple):
    """An object as read: its bytes and a version to hand to `put`. Versions of equal content may be equal (ETag)."""

    data: bytes
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of a storage, as data, so that the reference decides by capability and never by name.

    request_timeout_ms: how long a request whose sender died may still be under way; 0 where it dies with its sender.
    late_effect_ms: a request that was not answered may be applied up to this long after its time-out; 0 means never.
    """

    scheme: str
    put_if_absent: bool
    put_if_unchanged: bool
    atomic_replace: bool
    host_lock: bool
    batched_markers: bool
    request_timeout_ms: int = 0
    late_effect_ms: int = 0

    def lacks(self, operation: str, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """The ability that a call needs and this storage lacks, "" when there is none."""
        if operation == "overwrite":
            return "" if self.host_lock else "writing in place"
        if condition is Condition.IF_ABSENT and not self.put_if_absent:
            return "put-if-absent"
        return "put-if-unchanged" if expected is not None and not self.put_if_unchanged else ""


LOCAL = Capabilities(
    scheme="local",
    put_if_absent=True,
    put_if_unchanged=False,
    atomic_replace=True,
    host_lock=True,
    batched_markers=True,
)


class Storage(Protocol):
    """Objects by path ("a/b/c", no leading slash, relative to the storage root). Safe to call from any thread.

    put      replaces atomically, or under a condition; returns the new version. `expected` is a version to replace.
    overwrite replaces in place, not atomically: a killed writer leaves an empty or torn file (local only).
    get      raises NotFound. list returns every path that starts with `prefix`, sorted.
    delete   of a missing path is fine. All raise StorageError.
    """

    capabilities: Capabilities

    def put(
        self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None
    ) -> str: ...
    def overwrite(self, path: str, data: bytes) -> None: ...
    def get(self, path: str) -> Content: ...
    def list(self, prefix: str) -> tuple[str, ...]: ...
    def delete(self, path: str) -> None: ...


class StorageWrapper:
    """A storage whose calls go to another one, each by `_call`, which wrappers extend."""

    def __init__(self, inner: Storage) -> None:
        self.capabilities = inner.capabilities
        self._inner = inner

    def _call(self, operation: str, path: str, *arguments: Any) -> Any:
        """The answer of the inner storage. arguments: of `put` and `overwrite`, behind the path."""
        return getattr(self._inner, operation)(path, *arguments)

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        version: str = self._call("put", path, data, condition, expected)
        return version

    def overwrite(self, path: str, data: bytes) -> None:
        self._call("overwrite", path, data)

    def get(self, path: str) -> Content:
        content: Content = self._call("get", path)
        return content

    def list(self, prefix: str) -> tuple[str, ...]:
        paths: tuple[str, ...] = self._call("list", prefix)
        return paths

    def delete(self, path: str) -> None:
        self._call("delete", path)


class Request(NamedTuple):
    """A call to a marker server, in the words of Hudi's HTTP interface: "/create", {"markername": ...}."""

    path: str
    parameters: Mapping[str, str]


class Reply(NamedTuple):
    """An answer: HTTP status and the decoded JSON body."""

    status: int
    body: Any


class Wire(Protocol):
    """Calls to a server. One call is one request on the wire: nothing below it resends."""

    def call(self, server: str, request: Request, deadline_ms: int) -> Reply: ...


class Mailbox(Protocol):
    """An unbounded queue between actors of one process. `get` returns None when `timeout_ms` passed."""

    def put(self, item: Any) -> None: ...
    def get(self, timeout_ms: float | None = None) -> Any: ...


class Runtime(Protocol):
    """Time, actors and what they share. There is no thread, clock or randomness but through it.

    spawn    starts an actor of this process. sleep(0) is the checkpoint of long loops.
    lock     is a lock by name that dies with its process: between all processes where `Capabilities.host_lock`, else
             only between the actors of one (they may be on several hosts).
    unique_id is new in every process and life.
    """

    def now_ms(self) -> float: ...
    def sleep(self, duration_ms: float) -> None: ...
    def spawn(self, name: str, body: Callable[[], None]) -> None: ...
    def mailbox(self) -> Mailbox: ...
    def lock(self, name: str) -> AbstractContextManager[None]: ...
    def unique_id(self) -> str: ...
