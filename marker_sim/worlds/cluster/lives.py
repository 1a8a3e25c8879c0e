"""The state that a cluster keeps of each process, by its role."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from marker_sim.plan import Op


@dataclass(slots=True, kw_only=True)
class ClientLife:
    """A client without writes, over all its processes.

    done: how many of its operations were begun.
    """

    name: str
    role: str
    ops: tuple[Op, ...]
    done: int = 0

    def rest(self) -> Iterator[Op]:
        """The operations that are left; each counts as begun when it is handed out."""
        while self.done < len(self.ops):
            self.done += 1
            yield self.ops[self.done - 1]


@dataclass(slots=True, kw_only=True)
class WriteDriverLife:
    """The driver of writes.

    working: it was given a write and is not through.
    """

    working: bool = False


@dataclass(slots=True, kw_only=True)
class ExecutorLife:
    """An executor of a driver.

    running: the attempts that it works at, by whatever tells them apart there.
    """

    driver: Any
    slot: int
    running: dict[Any, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class TimelineServerLife:
    """A timeline server started by a command.

    first: no server was there before it.
    """

    first: bool


Life = ClientLife | WriteDriverLife | ExecutorLife | TimelineServerLife | None


class Restarts:
    """Killed processes that will be restarted, by name."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Any, Callable[[Any], None]]] = {}

    def expect(self, process: Any, restart: Callable[[Any], None]) -> None:
        """Register a process that will be restarted when `due` is called, unless `forget` is called before."""
        self._waiting[process.name] = (process, restart)

    def forget(self, process: Any) -> None:
        """Cancel the restart of a process."""
        self._waiting.pop(process.name, None)

    def due(self, process: Any) -> None:
        """Restart a process now."""
        _, restart = self._waiting.pop(process.name, (None, None))
        if restart is not None:
            restart(process)

    def all_due(self) -> None:
        """Restart all registered processes now."""
        for process, _ in list(self._waiting.values()):
            self.due(process)
