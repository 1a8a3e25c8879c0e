"""What is done to a table in one step of a run: one write, or one rollback, and the faults that it meets.

A plan has the steps as its writes: one that is abandoned comes before each whose rollback is what meets the faults.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from marker_sim.faults import Call, Fault
from marker_sim.faults.trigger import CUT
from marker_sim.plan import Plan, Write
from marker_sim.worlds.interceptor import ArmedFault

Stage = Literal["write", "rollback"]
At = Literal["made", "whole", "cut"]
DRIVER, EXECUTOR, STORAGE = "driver", "executor", "storage"
KILLED_AT = "driver killed at "


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStep:
    """One step of a run, met when its last fault happened.

    name: how it is counted, "" for one that is not.
    stage: "rollback" when the write before it must fail first.
    faults: of its driver, an executor or the storage, each at a call on paths below the table.
    """

    name: str
    stage: Stage
    faults: tuple[Fault, ...]

    @property
    def word(self) -> str:
        """The place, in `fault` events of kills."""
        return self.name.removeprefix(KILLED_AT)


def steps_of(plan: Plan) -> tuple[TableStep, ...]:
    """The steps of a plan."""
    found, left_behind = list[TableStep](), False
    for write in plan.writes:
        if not write.abandon:
            faults = tuple(plan.faults[number] for number in write.faults)
            found.append(TableStep(name=write.name, stage="rollback" if left_behind else "write", faults=faults))
        left_behind = write.abandon
    return tuple(found)


def with_steps(plan: Plan, steps: Iterable[TableStep]) -> Plan:
    """The plan with other steps."""
    writes, faults = list[Write](), list[Fault]()
    for step in steps:
        writes += [Write(abandon=True)] if step.stage == "rollback" else []
        writes.append(Write(name=step.name, faults=tuple(range(len(faults), len(faults) + len(step.faults)))))
        faults += step.faults
    return replace(plan, writes=tuple(writes), faults=tuple(faults))


def call_of(fault: Fault) -> Call:
    """Where it strikes."""
    assert isinstance(fault.trigger, Call), f"{fault} is not due at a call"
    return fault.trigger


def moment_of(fault: Fault) -> At:
    """Of a file on a local file system, where before the call there is nothing to see: when it is made, or whole."""
    call = call_of(fault)
    return "cut" if CUT in call.operations else "made" if call.when == "before" else "whole"


def armed(fault: Fault, table: str, process: str) -> ArmedFault:
    """It in a write of a process; a fault of executors leaves the driver's calls alone."""
    call = call_of(fault)
    there = call._replace(pattern=f"^{table}/{call.pattern}")
    exempt = (DRIVER,) if fault.target == EXECUTOR else ()
    return ArmedFault(replace(fault, trigger=there), process, exempt)
