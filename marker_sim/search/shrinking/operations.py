"""Smaller plans of operations: which candidates the shrinker tries, in which order. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

from marker_sim.faults import Fault, FaultKind, FaultSettings, Site
from marker_sim.faults.sites import SITES
from marker_sim.plan import Op, Plan
from marker_sim.search.scenarios import LASTING
from marker_sim.search.site_faults import kinds_at

# Waits of the second operation: until a batch is flushed, a request timed out, or took late effect.
_PAUSES_MS = (0, 60, 150, 1_050)
_CALLS_LEAST = (1, 4, 8)  # An implementation may give up after four.
_FULL_MS = (1, 500, 2000)
_ARRIVALS = 12
_PLACES_MAX = 60  # For one fault, in total.
_CLIENT_STEPS = 6
_SERVER_STEPS = 24


def miniatures(plan: Plan) -> Iterator[Plan]:
    """Plans of one or two operations of the kinds of a plan, with none or one of its faults at each possible place.

    One client or two, with one name and one directory, like the plan's last operations. The smallest are tried first.
    """
    if not plan.ops:
        return
    known = {op.kind: op for op in plan.ops}
    last = known.get("create", plan.ops[-1])
    ops = [
        Op(actor="executor-0", kind=op.kind, directory=last.directory, name=_name(op, last)) for op in known.values()
    ]
    simple = replace(plan, jitter=0, num_threads=1, interval_ms=50, faults=())
    faults = dict.fromkeys(replace(fault.at(1), target=_whose(fault.target)) for fault in plan.faults)
    workloads: list[tuple[Op, ...]] = [(op,) for op in ops]
    for first, second, pause_ms, actor in product(ops, ops, _PAUSES_MS, ("executor-0", "driver")):
        workloads.append((first, replace(second, actor=actor, after_ms=pause_ms)))
    for work in workloads:
        yield replace(simple, ops=work)
    for work, fault in product(workloads, faults):
        yield from (replace(simple, ops=work, faults=(hit,)) for hit in _everywhere(fault))


def _name(op: Op, last: Op) -> str:
    return last.name if op.kind == "create" else op.name


def _whose(actor: str) -> str:
    return actor if actor in ("server", "second") else "executor-0"


def _everywhere(fault: Fault) -> Iterator[Fault]:
    last = 3 if fault.site else _SERVER_STEPS if fault.target in ("server", "second") else _CLIENT_STEPS
    return (fault.at(step) for step in range(1, last + 1))


def without_faults(plan: Plan, start: int, size: int) -> Iterator[Plan]:
    """The plan without some faults; and with later faults at the same sites moved earlier accordingly."""
    gone, kept = plan.faults[start : start + size], plan.faults[:start] + plan.faults[start + size :]
    yield replace(plan, faults=kept)
    sites = {(fault.target, fault.site) for fault in gone if fault.site}
    yield replace(
        plan,
        faults=tuple(f.at(f.n - size) if (f.target, f.site) in sites and f.n > size else f for f in kept),
    )


def without_one(plan: Plan) -> Iterator[Plan]:
    """The plan without one of its entries, for each of them."""
    for n in range(len(plan.ops)):
        yield replace(plan, ops=plan.ops[:n] + plan.ops[n + 1 :])
    for n in range(len(plan.faults)):
        yield replace(plan, faults=plan.faults[:n] + plan.faults[n + 1 :])
    for n, write in enumerate(plan.writes):
        for t in range(len(write.tasks) if len(write.tasks) > 1 else 0):
            less = replace(write, tasks=write.tasks[:t] + write.tasks[t + 1 :])
            yield replace(plan, writes=(*plan.writes[:n], less, *plan.writes[n + 1 :]))
        if len(write.tasks) <= 1:
            yield replace(plan, writes=plan.writes[:n] + plan.writes[n + 1 :])


def without_two(plan: Plan) -> Iterator[Plan]:
    """The plan without any two of its operations and faults."""
    entries = [*plan.ops, *plan.faults]
    for one in range(len(entries)):
        for other in range(one + 1, len(entries)):
            kept = [position not in (one, other) for position in range(len(entries))]
            ops = tuple(op for op, keep in zip(plan.ops, kept, strict=False) if keep)
            faults = tuple(f for f, keep in zip(plan.faults, kept[len(plan.ops) :], strict=True) if keep)
            yield replace(plan, ops=ops, faults=faults)


def parts_of_a_crowd(plan: Plan) -> Iterator[Plan]:
    """Plans of very many operations: all, made simple or without delays; halves: the first, last, every other one."""
    now = tuple(replace(op, after_ms=0) for op in plan.ops)
    simple = replace(plan, jitter=0, num_threads=1, interval_ms=50, restart_threads=0)
    yield replace(simple, ops=now, faults=())
    yield replace(simple, faults=())
    yield replace(plan, ops=now)
    half = len(plan.ops) // 2
    for ops in (plan.ops[:half], plan.ops[half:], plan.ops[::2], plan.ops[1::2]):
        yield replace(plan, ops=ops)


def at_sites(faults: tuple[Fault, ...], fault: Fault) -> Iterator[tuple[Fault, ...]]:
    """The faults with one at a step moved to the first arrivals at each site where it can strike the same actor."""
    if fault.site:
        return
    actor = "server" if fault.target in ("server", "second") else "executor" if fault.target != "driver" else "driver"
    sites = [site.name for site in SITES.values() if site.actor == actor and kinds_at(site, (fault.kind,))]
    for step, site in islice(product(range(1, _ARRIVALS + 1), sites), _PLACES_MAX):
        yield tuple(replace(each, trigger=Site(site, step)) if each == fault else each for each in faults)


def lasting(plan: Plan) -> Iterator[Plan]:
    """The plan with one lasting fault in place of all that fail one actor's storage, by actor and site."""
    for actor, site in dict.fromkeys((fault.target, fault.site) for fault in plan.faults):
        several = [f for f in plan.faults if f.target == actor and f.site == site and f.kind.row.fails]
        if len(several) > 1:
            rest = tuple(fault for fault in plan.faults if fault not in several)
            first = min(several, key=lambda fault: fault.n)
            lasting: list[tuple[FaultKind, dict[str, Any]]] = [
                (kind, {"calls": max(n, len(several))}) for kind in LASTING for n in _CALLS_LEAST
            ]
            lasting += [(FaultKind.DISK_FULL, {"for_ms": for_ms}) for for_ms in _FULL_MS]
            for kind, settings in lasting:
                one = replace(first, kind=kind, settings=FaultSettings(**settings))
                yield replace(plan, faults=(*rest, one))


def renamed(plan: Plan, gone: str, stays: str) -> Plan:
    """The plan with one client's operations and faults given to another client."""
    ops = tuple(replace(op, actor=stays) if op.actor == gone else op for op in plan.ops)
    faults = tuple(replace(f, target=stays) if f.target == gone else f for f in plan.faults)
    return replace(plan, ops=ops, faults=faults)
