"""What is done to a table in one step of a round: one write, or one rollback, and the faults that it meets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from marker_sim.faults import Call, Fault
from marker_sim.worlds.interceptor import ArmedFault

Stage = Literal["write", "rollback"]
At = Literal["made", "whole", "cut"]
DRIVER, EXECUTOR, STORAGE = "driver", "executor", "storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFault:
    """One fault of a write, of its driver, an executor or the storage, at a call on paths below the table.

    word: the place, in `fault` events of kills.
    at: the moment of a file on a local file system.
    """

    fault: Fault
    word: str
    at: At = "whole"

    @property
    def call(self) -> Call:
        """Where it strikes."""
        assert isinstance(self.fault.trigger, Call)
        return self.fault.trigger

    def armed(self, table: str, process: str) -> ArmedFault:
        """It in a write of a process; a fault of executors leaves the driver's calls alone."""
        call = self.call._replace(pattern=f"^{table}/{self.call.pattern}")
        exempt = (DRIVER,) if self.fault.target == EXECUTOR else ()
        return ArmedFault(replace(self.fault, trigger=call), process, exempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStep:
    """One step of a round, met when its last fault happened.

    name: how it is counted.
    stage: "rollback" when the write before it must fail first.
    """

    name: str
    stage: Stage
    faults: tuple[WriteFault, ...]
