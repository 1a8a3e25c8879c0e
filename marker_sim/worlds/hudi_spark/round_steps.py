"""What is done to a table in one step of a round: one write, or one rollback, and the blows that it meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from marker_sim.faults import FaultKind
from marker_sim.worlds.interceptor import WRITES, Trigger, When

Stage = Literal["write", "rollback"]
At = Literal["made", "whole", "cut"]
Who = Literal["driver", "executor", "storage"]
DRIVER = "driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFault:
    """One fault and the effect on storage at which it comes.

    who: the process, or the storage, that it affects.
    pattern: of paths below the table.
    nth, times, when, duration_ms, value: as of a Trigger.
    at: the moment of a file on a local file system.
    word: the place, in `fault` events of kills.
    """

    who: Who
    word: str
    kind: FaultKind
    pattern: str
    operations: tuple[str, ...] = WRITES
    nth: int = 1
    times: int = 1
    when: When = "before"
    at: At = "whole"
    duration_ms: int = 0
    value: int = 1

    def trigger(self, table: str, process: str) -> Trigger:
        """The trigger in a write of a process; a fault of executors leaves the driver's calls alone."""
        return Trigger(
            kind=self.kind,
            pattern=f"^{table}/{self.pattern}",
            operations=self.operations,
            process=process,
            nth=self.nth,
            times=self.times,
            when=self.when,
            duration_ms=self.duration_ms,
            value=self.value,
            exempt_roles=(DRIVER,) if self.who == "executor" else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStep:
    """One step of a round, met when its last fault happened.

    name: how it is counted.
    stage: "rollback" when the write before it must fail first.
    """

    name: str
    stage: Stage
    blows: tuple[WriteFault, ...]
