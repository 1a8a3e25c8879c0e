"""Losses of power in plans for a server that promises to survive them, on a local directory."""

from __future__ import annotations

from dataclasses import replace

from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.faults.model import Trigger
from marker_sim.faults.sites import REPLY, REQUEST_QUEUED
from marker_sim.plan import Plan
from marker_sim.search.numbered_calls import CHANGES
from marker_sim.search.seeds import Draws
from marker_sim.search.walks import workload

DEATHS = 0.7  # Share of the deaths of servers that become losses of power.
KEEPS: tuple[dict[str, bool], ...] = ({}, {"names": True}, {"lengths": True})
AFTER_DELETION = 0.5  # Share of the other plans in which it is lost as soon as a deletion was answered.
REQUESTS, CALLS = range(2, 17), range(4, 61)
# Share of plans in which a server dies alone first: what it had not synced, the next one answers for, and all is lost.
DIES_FIRST, FIRST_REPLIES = 0.5, (2, 2, 2, 3)  # The first one is of the request that it died in.
FIRST_CALLS = (*(("rename", n) for n in (1, 2, 2, 3)), ("write", 1), ("write", 2), ("", 4), ("", 8), ("", 12))


def losing_power(plan: Plan) -> Plan:
    """The plan with losses of power for most deaths of its server, in each way; as it is where there are two."""
    if any(fault.kind is FaultKind.SECOND_SERVER for fault in plan.faults):
        return plan
    rng = Draws(f"power/1/{plan.seed}")

    def lost(fault: Fault) -> Fault:
        if fault.kind is not FaultKind.KILL or fault.target != "server" or rng.random() > DEATHS:
            return fault
        return fault.of_kind(FaultKind.POWER_LOST).but(**rng.choice(KEEPS))

    return replace(plan, faults=tuple(map(lost, plan.faults)))


def make_power_plan(seed: int, threads: tuple[int, ...], intervals_ms: tuple[int, ...]) -> Plan:
    """The plan of a seed: the workload of walks, in which power is lost in each way, at a request or at a call; in some
    one client asks, and it is lost after a death, or as soon as a deletion was answered and after the next request.
    """
    rng = Draws(f"power plan/1/{seed}")
    plan = workload("local", min(threads), min(intervals_ms), seed)
    triggers: list[Trigger] = [Site(rng.of(REPLY, REPLY, REQUEST_QUEUED), n) for n in rng.sample(REQUESTS, 2)]
    triggers.append(Call("", CHANGES["local"], rng.choice(CALLS), "after"))
    keeps = rng.sample(KEEPS, len(KEEPS))
    if rng.random() < DIES_FIRST:
        operation, n = rng.choice(FIRST_CALLS)
        found = Call("", (operation,) if operation else CHANGES["local"], n, "after")
        lost = Fault.of(FaultKind.POWER_LOST, "server", Site(REPLY, rng.choice(FIRST_REPLIES)))
        ops = tuple(op for op in plan.ops if op.actor == plan.ops[0].actor)
        return replace(plan, ops=ops, faults=(Fault.of(FaultKind.KILL, "server", found), lost))
    if rng.random() < AFTER_DELETION:
        gone = next(op for op in plan.ops if op.kind == "delete")
        own = [op for op in plan.ops if op.actor == gone.actor]
        triggers, keeps = [Site(REPLY, 1 + own.index(gone) + later) for later in (0, 1)], [{}, rng.choice(KEEPS)]
        plan = replace(plan, ops=tuple(own))
    faults = (
        Fault(kind=FaultKind.POWER_LOST, target="server", trigger=trigger).but(**kept)
        for trigger, kept in zip(triggers, keeps, strict=True)
    )
    return replace(plan, faults=tuple(faults))
