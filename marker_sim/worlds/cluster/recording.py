"""Calls as the history has them: an invocation, the call itself, and its completion.

How an error of an implementation is taken: Rejected and Refused had no effect (`fail`), every other is `info`, because
an operation is several storage calls and the last one's error does not speak for those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from marker_sim.history import UNSUPPORTED, CallError, Kind, Value
from marker_sim.markers.protocol import create_with_identity
from marker_sim.markers.store import Created, MarkerStore, Rejected
from marker_sim.names import MarkerDirectory
from marker_sim.seams import Refused, SeamError, Unsupported

_MADE = {made.value: made for made in Created}


class Events(Protocol):
    """The receiver of events: the simulated scheduler, the recorder, or the link of a real process to the kit."""

    def append(self, row: tuple[Any, ...]) -> int:
        """Append an event, given its fields from `process` on; its index, -1 once the history is closed."""

    def record(
        self,
        process: str,
        role: str,
        kind: Kind,
        operation: str,
        table: str | None = None,
        instant: str | None = None,
        path: str | None = None,
        value: Value = None,
        error: str | None = None,
        caused_by: int | None = None,
    ) -> int:
        """Append an event and return its index."""
        return self.append((process, role, kind, operation, table, instant, path, value, error, caused_by))


class Actor(Protocol):
    """The process and role whose calls are recorded.

    invoke: the index of its last invocation.
    part: of a write, as a driver does it: what its calls are for.
    """

    name: str
    role: str
    part: str

    @property
    def invoke(self) -> int | None: ...
    @invoke.setter
    def invoke(self, index: int) -> None: ...


class CallEnd(NamedTuple):
    """How a call ended: "ok" with its value, or "fail" or "info" with the error that was raised."""

    kind: Kind
    value: Any
    error: Exception | None


def record_call(
    events: Events,
    process: Actor,
    operation: str,
    place: tuple[str | None, str | None],
    path: str | None,
    asked: Value,
    server: int | None,
    act: Callable[[], Any],
) -> CallEnd:
    """The result of a function, recorded as a call. place: table and instant. server: `started` event of its server."""
    table, instant = place
    invoke = events.record(process.name, process.role, "invoke", operation, table, instant, path, asked, None, server)
    process.invoke = invoke
    kind: Kind = "ok"
    value, text = None, None
    error: Exception | None = None
    try:
        value = act()
    except (Rejected, Refused) as refused:
        kind, error, text = "fail", _without_tracebacks(refused), str(refused)
    except SeamError as unknown:
        kind, error, text = "info", _without_tracebacks(unknown), str(unknown) or repr(unknown)
    except Unsupported as lacking:
        kind, error, text = "info", lacking, f"{CallError.RAISED}{lacking!r}"
        events.record(process.name, process.role, "observe", UNSUPPORTED, error=str(lacking))
    except Exception as unexpected:
        kind, error, text = "info", unexpected, f"{CallError.RAISED}{unexpected!r}"
    if operation == "begin" and value is not None:
        instant, shown = value, None  # Only now is the instant of the write known.
    else:
        shown = value if isinstance(value, str | bool | tuple) and not hasattr(value, "_fields") else None
    events.record(process.name, process.role, kind, operation, table, instant, path, shown, text, invoke)
    return CallEnd(kind, value, error)


def _without_tracebacks(error: Exception) -> Exception:
    """The error without its traceback and those of the errors it came from.

    They would hold the frame of `record_call`, which holds the error, and so all that the system had read until the
    next garbage collection, which comes between runs.
    """
    earlier: BaseException | None = error
    while earlier is not None:
        earlier.__traceback__ = None
        earlier = earlier.__cause__ or earlier.__context__
    return error


def ask_store(store: MarkerStore, operation: str) -> Any:
    """The answer of a store to an operation that is no create, as the history has it."""
    match operation:
        case "list":
            return tuple(sorted(store.list_all()))
        case "list-data":
            return tuple(sorted(store.list_data_paths()))
        case "list-log":
            return tuple(sorted(store.list_log_paths()))
        case "exists":
            return bool(store.exists())
        case "delete":
            return bool(store.delete())
        case _:
            raise AssertionError(operation)


@dataclass(eq=False)
class RecordedMarkers:
    """A marker store of one process for one directory that records every call.

    server: finds the `started` event of the server that a call goes to, None for direct markers.
    """

    store: MarkerStore
    events: Events
    process: Actor
    place: MarkerDirectory
    server: Callable[[], int | None]

    def __post_init__(self) -> None:
        self._creates = create_with_identity(self.store)

    def create(self, name: str, request: str = "") -> Created:
        """Create a marker."""

        def act() -> str:
            return self._creates(name, request)._value_

        return _MADE[self._call("create", act, name, request or None)]

    def list_all(self) -> tuple[str, ...]:
        """Every marker."""
        return self._list("list")

    def list_data_paths(self) -> tuple[str, ...]:
        """Data paths of CREATE and MERGE markers."""
        return self._list("list-data")

    def list_log_paths(self) -> tuple[str, ...]:
        """Data paths of APPEND markers."""
        return self._list("list-log")

    def exists(self) -> bool:
        """Whether the marker directory exists."""
        return bool(self._call("exists"))

    def delete(self) -> bool:
        """Delete the marker directory."""
        return bool(self._call("delete"))

    def _list(self, operation: str) -> tuple[str, ...]:
        names: tuple[str, ...] = self._call(operation)
        return names

    def _call(
        self, operation: str, act: Callable[[], Any] | None = None, path: str | None = None, asked: Value = None
    ) -> Any:
        act = act or partial(ask_store, self.store, operation)
        ended = record_call(self.events, self.process, operation, self.place, path, asked, self.server(), act)
        if ended.error is not None:
            raise ended.error
        return ended.value
