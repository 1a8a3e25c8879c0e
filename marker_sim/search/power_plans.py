"""Losses of power in plans for a server that promises to survive them, on a local directory."""

from __future__ import annotations

import random
from dataclasses import replace

from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.faults.model import Trigger
from marker_sim.faults.sites import REPLY, REQUEST_QUEUED
from marker_sim.plan import Plan
from marker_sim.search.walks import CHANGES, workload

DEATHS = 0.7  # Share of the deaths of servers that become losses of power.
KEEPS: tuple[dict[str, bool], ...] = ({}, {"names": True}, {"lengths": True})
REQUESTS, CALLS = range(2, 17), range(4, 61)
# Share of plans in which a server dies alone first: what it had not synced, the next one finds and answers for.
DIES_FIRST, FIRST_CALLS, FIRST_REPLIES = 0.5, range(2, 16), (1, 1, 2, 3)


def losing_power(plan: Plan) -> Plan:
    """The plan with losses of power for most deaths of its server, in each way; as it is where there are two."""
    if any(fault.kind is FaultKind.SECOND_SERVER for fault in plan.faults):
        return plan
    rng = random.Random(f"power/1/{plan.seed}")

    def lost(fault: Fault) -> Fault:
        if fault.kind is not FaultKind.KILL or fault.target != "server" or rng.random() > DEATHS:
            return fault
        return fault.of_kind(FaultKind.POWER_LOST).but(**rng.choice(KEEPS))

    return replace(plan, faults=tuple(map(lost, plan.faults)))


def make_power_plan(seed: int, threads: tuple[int, ...], intervals_ms: tuple[int, ...]) -> Plan:
    """The plan of a seed: the workload of walks, in which power is lost in each way, at a request or at a call; in some
    after a death.
    """
    rng = random.Random(f"power plan/1/{seed}")
    plan = workload("local", min(threads), min(intervals_ms), seed)
    triggers: list[Trigger] = [Site(rng.choice((REPLY, REPLY, REQUEST_QUEUED)), n) for n in rng.sample(REQUESTS, 2)]
    triggers.append(Call("", CHANGES["local"], rng.choice(CALLS), "after"))
    deaths = []
    if rng.random() < DIES_FIRST:
        found = Call("", CHANGES["local"], rng.choice(FIRST_CALLS), "after")
        deaths.append(Fault.of(FaultKind.KILL, "server", found))
        triggers[0] = Site(REPLY, rng.choice(FIRST_REPLIES))
    losses = (
        Fault(kind=FaultKind.POWER_LOST, target="server", trigger=trigger).but(**keeps)
        for trigger, keeps in zip(triggers, rng.sample(KEEPS, len(KEEPS)), strict=True)
    )
    return replace(plan, faults=(*deaths, *losses))
