"""What is done to a table in one step of a round: one write, or one rollback, and the blows that it meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from marker_sim.faults import FaultKind
from marker_sim.real.gate import WRITES, Aim, When

Stage = Literal["write", "rollback"]
At = Literal["made", "whole", "cut"]
Who = Literal["driver", "executor", "storage"]
DRIVER = "driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """One misfortune and the effect on storage at which it comes. who: suffers it. pattern: of paths below the table.

    nth, times, when, duration_ms, value: as of an Aim. at: the moment of a file on a local file system. word: the
    place, in `fault` events of kills.
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

    def aim(self, table: str, process: str) -> Aim:
        """The aim at a write of a process; who is not the driver goes on being answered when somebody else is hurt."""
        return Aim(
            kind=self.kind,
            pattern=f"^{table}/{self.pattern}",
            operations=self.operations,
            process=process,
            nth=self.nth,
            times=self.times,
            when=self.when,
            duration_ms=self.duration_ms,
            value=self.value,
            spares=(DRIVER,) if self.who == "executor" else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """name: what is counted when it was met. stage: "rollback" when the write before it must fail first.

    It is met when its last blow fell.
    """

    name: str
    stage: Stage
    blows: tuple[Blow, ...]
