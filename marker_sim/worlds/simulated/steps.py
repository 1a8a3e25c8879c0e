"""Plans whose faults are all keyed by steps, for worlds that count steps and know no sites."""

from __future__ import annotations

from dataclasses import replace

from marker_sim.faults import Step
from marker_sim.plan import Plan
from marker_sim.system import System
from marker_sim.worlds.simulated.cluster import Cluster
from marker_sim.worlds.simulated.faults import why_not


def by_steps(plan: Plan, system: System) -> Plan:
    """The plan with each fault at a site keyed by the step at which it arms in the simulated world.

    One that never arms there is left out. A real process makes its n-th seam call at the same place as long as nothing
    races; where something does, the fault is due at another call of the same actor.
    """
    if not any(fault.site for fault in plan.faults):
        return plan
    here = tuple(fault for fault in plan.faults if not why_not(fault))
    cluster = Cluster(replace(plan, faults=here), system)
    cluster.run()
    armed = {id(fault): step for fault, step in cluster.scheduler.armed}
    faults = tuple(
        replace(fault, trigger=Step(armed[id(fault)])) if fault.site else fault
        for fault in plan.faults
        if not fault.site or id(fault) in armed
    )
    return replace(plan, faults=faults)
