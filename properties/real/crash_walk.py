"""Every crash point of a short real workload, one by one: before and after each effect of each process.

Two runs without faults show how many effects each kind of process has; then the plan is run once for each of them,
with a fault that kills the process there. The probe at the end of every run is the next write, which recovers. A
restarted process continues the count, so the n-th effect of "driver" is the n-th of all drivers of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.history import History
from marker_sim.plan import Plan
from properties.faces.worlds import ForkServer
from properties.real.running import run_real

WHO = ("driver", "executor", "server")
TRIES = 5
WHENS: tuple[When, ...] = ("before", "after")


class Point(NamedTuple):
    """A place to die: the `nth` effect of the processes whose names begin with `who`."""

    who: str
    nth: int
    when: When


def crash_points(plan: Plan, fork_server: ForkServer, who: tuple[str, ...] = WHO) -> tuple[Point, ...]:
    """Every point that two runs of a plan without faults have; the probe's own effects are none.

    Two, for a server that was slow makes more batches of the same creates than it does again.
    """
    runs = [_effects(run_real(plan, fork_server=fork_server)) for _ in range(2)]
    counts = {name: min(sum(process.startswith(name) for process in run) for run in runs) for name in who}
    return tuple(Point(name, nth, when) for name in who for nth in range(1, counts[name] + 1) for when in WHENS)


def _effects(history: History) -> list[str]:
    """The process of each effect until all is well."""
    healed = next(e.index for e in history.events if e.operation == "phase" and e.value == "healed")
    return [e.process for e in history.events[:healed] if e.kind == "effect"]


def walk(
    plan: Plan, points: tuple[Point, ...], fork_server: ForkServer, system: str = "reference"
) -> Iterator[tuple[Point, bool, History]]:
    """Run the plan once for each point: the point, whether it was met, and the history.

    How many batches a server makes of the same creates is a matter of time, so a point that a run has not reached is
    tried again a few times; what then remains was not met.
    """
    for point in points:
        for _ in range(TRIES):
            call = Call(n=point.nth, when=point.when)
            fault = Fault.of(FaultKind.KILL, point.who, call, executors_ms=0)
            history = run_real(replace(plan, faults=(*plan.faults, fault)), system, fork_server=fork_server)
            if met := died(history, point.who):
                break
        yield point, met > 0, history


def died(history: History, who: str) -> int:
    """How often a fault of the plan killed a process whose name begins so."""
    deaths = (event for event in history.events if (event.kind, event.operation) == ("fault", "kill"))
    return sum(event.value is None and event.process.startswith(who) for event in deaths)
