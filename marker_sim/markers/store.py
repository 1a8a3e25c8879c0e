"""The contract of a marker implementation: it receives a `Context` and provides a `MarkerStore`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from marker_sim.options import MarkerOptions
from marker_sim.seams import Runtime, Storage, Wire


class Created(Enum):
    """The answer to a create; both mean that the marker is stored."""

    CREATED = "created"
    EXISTS = "exists"


class Rejected(ValueError):
    """The error for a malformed or hostile request, which changed nothing. HTTP 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything an implementation may use of its surroundings.

    directory: the marker directory, a storage path without trailing slash. process: a place that all stores of one
    process share and that dies with it (the timeline server keeps its dispatcher there).
    """

    storage: Storage
    runtime: Runtime
    wire: Wire
    directory: str
    options: MarkerOptions
    process: dict[str, Any] = field(default_factory=dict)


class MarkerStore(Protocol):
    """The markers of one directory, called from any actor of its process, also at the same time.

    create may take a second argument, the identity of the request ("" for none), and honour it. Errors of the seams
    pass through; `Rejected` refuses a name.
    """

    def create(self, name: str) -> Created: ...
    def list_all(self) -> tuple[str, ...]: ...
    def list_data_paths(self) -> tuple[str, ...]: ...
    def list_log_paths(self) -> tuple[str, ...]: ...
    def exists(self) -> bool: ...
    def delete(self) -> bool: ...


Factory = Callable[[Context], MarkerStore]
