"""What a cluster asks of the ground it stands on: virtual time and greenlets, or real time and processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from marker_sim.plan import Write
from marker_sim.seams import Capabilities
from marker_sim.worlds.cluster.lives import Life
from marker_sim.worlds.cluster.recording import Events


class SentAttempt(Protocol):
    """An attempt that was sent to an executor.

    counted: its driver still expects to hear of it.
    """

    counted: bool

    @property
    def work(self) -> Any: ...


class Host(Events, Protocol):
    """Where processes live. Times are milliseconds of the host's clock; calls arrive in `run` and nowhere else.

    capabilities: of its storage.
    limit_ms: how long the clients of a phase, or a write, may take.
    linger_ms: how long executors outlive an application that ended by itself.
    """

    capabilities: Capabilities
    limit_ms: int
    linger_ms: int

    def now_ns(self) -> int:
        """What a clock of the host shows."""

    def mark(self) -> int:
        """The index of the last event."""

    def start(self, name: str, role: str, life: Life) -> Any:
        """A new process; a server has recorded `started` when it is ready."""

    def ready(self, *processes: Any) -> None:
        """Wait until new processes are at work, or dead."""

    def kill(self, process: Any, value: str | None = None, follow: Callable[[], None] | None = None) -> None:
        """The process dies here and now, recorded as a fault unless it was dead; follow: what follows from that."""

    def exit(self, process: Any, why: str) -> None:
        """The process ends by itself, recorded."""

    def pause(self, process: Any, duration_ms: int) -> None:
        """Stop a process for a while, recorded at both ends."""

    def resume(self, process: Any) -> None:
        """End a pause ahead of its time."""

    def after(self, duration_ms: float, call: Callable[[Any], None], argument: Any = None) -> None:
        """Call in a while."""

    def run(self, limit_ms: int) -> bool:
        """Let time pass until somebody says `stop`, or for so long; whether it was stopped in time."""

    def stop(self, _: Any = None) -> None:
        """End `run`."""

    def overdue(self, message: str) -> None:
        """Clients took longer than their phase lasts."""

    def heal(self) -> None:
        """No fault of the plan is done any more, and no process is paused but by `pause`."""

    def settle(self) -> None:
        """Let happen what is still on its way to storage."""

    def end_all(self) -> None:
        """Every process is ended; that of servers is recorded."""

    def give(self, driver: Any, write: Write, ordinal: int) -> None:
        """Hand a write to a driver, whose end `ClusterWrites.through` hears."""

    def tell(self, driver: Any, kind: str, attempt: Any, value: Any, after_ms: float) -> None:
        """Let a driver hear a message (writer.backend.Message) after a while, if it lives by then."""

    def lost_with(self, executor: Any, driver: Any) -> tuple[SentAttempt, ...]:
        """The attempts that a dead executor leaves."""

    def files(self) -> Mapping[str, bytes]:
        """Everything that is stored, by path."""

    def damage(self, path: str, data: bytes | None, fault: str) -> None:
        """Change what is stored at a path behind everybody's back, None to delete it; recorded as fault and effect."""

    def restore(self, path: str, data: bytes | None) -> None:
        """The same as an effect of the kit's alone, which nobody suffers."""
