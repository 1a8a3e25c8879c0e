"""Every crash point of a short real workload, one by one: before and after each effect of each process.

A first run without faults shows how many effects each kind of process has; then the plan is run once for each of them,
with an aim that kills the process there. The probe at the end of every run is the next write, which recovers. A process
that is started again counts on, so the n-th effect of "driver" is the n-th of all drivers of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from marker_sim.faults import FaultKind
from marker_sim.history import History
from marker_sim.plan import Plan
from marker_sim.real.gate import Aim, When
from marker_sim.real.jobs.cluster import run_real
from marker_sim.real.jobs.lives import Nursery

WHO = ("driver", "executor", "server")
TRIES = 5
WHENS: tuple[When, ...] = ("before", "after")


class Point(NamedTuple):
    """A place to die: the `nth` effect of the processes whose names begin with `who`."""

    who: str
    nth: int
    when: When


def crash_points(plan: Plan, nursery: Nursery, who: tuple[str, ...] = WHO) -> tuple[Point, ...]:
    """Every point of a plan, as one run of it without faults shows them; the probe's own effects are none."""
    history = run_real(plan, nursery=nursery)
    healed = next(e.index for e in history.events if e.operation == "phase" and e.value == "healed")
    effects = [e for e in history.events[:healed] if e.kind == "effect"]
    counts = {name: sum(e.process.startswith(name) for e in effects) for name in who}
    return tuple(Point(name, nth, when) for name in who for nth in range(1, counts[name] + 1) for when in WHENS)


def walk(
    plan: Plan, points: tuple[Point, ...], nursery: Nursery, system: str = "reference"
) -> Iterator[tuple[Point, bool, History]]:
    """Run the plan once for each point: the point, whether it was met, and the history.

    How many batches a server makes of the same creates is a matter of time, so a point that a run has not reached is
    tried again a few times; what then remains was not met.
    """
    for point in points:
        for _ in range(TRIES):
            aim = Aim(kind=FaultKind.KILL, process=point.who, nth=point.nth, when=point.when)
            history = run_real(plan, system, (aim,), nursery)
            if aim.fired:
                break
        yield point, aim.fired > 0, history
