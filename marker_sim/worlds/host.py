"""The interface between a cluster and its host: virtual time with greenlets, or real time with processes; and what a
cluster keeps of each process, by its role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from marker_sim.plan import Op, Write
from marker_sim.seams import Capabilities
from marker_sim.worlds.cluster.recording import Events


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


class SentAttempt(Protocol):
    """An attempt that was sent to an executor.

    counted: its driver still expects to hear of it.
    """

    counted: bool

    @property
    def work(self) -> Any: ...


class Host(Events, Protocol):
    """Runs processes. Times are milliseconds of the host's clock; its callbacks come only during `run`.

    capabilities: of its storage.
    limit_ms: how long the clients of a phase, or a write, may take.
    linger_ms: how long executors outlive an application that ended by itself.
    """

    capabilities: Capabilities
    limit_ms: int
    linger_ms: int

    def now_ns(self) -> int:
        """The time of the host's clock."""

    def mark(self) -> int:
        """The index of the last event."""

    def start(self, name: str, role: str, life: Life) -> Any:
        """Start a new process; a server has recorded `started` when it is ready."""

    def ready(self, *processes: Any) -> None:
        """Wait until new processes work, or are dead."""

    def kill(self, process: Any, value: str | None = None, follow: Callable[[], None] | None = None) -> None:
        """Kill the process now, recorded as a fault unless it was dead; follow: the callback after that."""

    def exit(self, process: Any, why: str) -> None:
        """End the process as if by itself, recorded."""

    def pause(self, process: Any, duration_ms: int) -> None:
        """Pause a process for a while; both ends are recorded."""

    def resume(self, process: Any) -> None:
        """End a pause before its time."""

    def after(self, duration_ms: float, call: Callable[[Any], None], argument: Any = None) -> None:
        """Call a function after a while."""

    def run(self, limit_ms: int) -> bool:
        """Let time pass until `stop` is called, or for so long; returns whether it was stopped."""

    def stop(self, _: Any = None) -> None:
        """End `run`."""

    def overdue(self, message: str) -> None:
        """Handle clients that took longer than their phase allows: leave them to judges, or raise HarnessError."""

    def heal(self) -> None:
        """End every fault and every pause that is not one of `pause`."""

    def settle(self) -> None:
        """Wait until everything on its way to storage has arrived."""

    def end_all(self) -> None:
        """End every process; the ends of servers are recorded."""

    def give(self, driver: Any, write: Write, ordinal: int) -> None:
        """Give a write to a driver, which reports its end to `ClusterWrites.through`."""

    def tell(self, driver: Any, kind: str, attempt: Any, value: Any, after_ms: float) -> None:
        """Send a driver a message (writer.backend.Message) after a while, if it lives by then."""

    def lost_with(self, executor: Any, driver: Any) -> tuple[SentAttempt, ...]:
        """The attempts that end with a dead executor."""

    def files(self) -> Mapping[str, bytes]:
        """Every stored file, by path."""

    def damage(self, path: str, data: bytes | None, fault: str) -> None:
        """Change a stored file without any process's knowledge, None to delete it; recorded as fault and effect."""

    def restore(self, path: str, data: bytes | None) -> None:
        """Change a stored file as an effect of the kit that is no fault."""
