"""Smaller plans of operations: which candidates the shrinker tries, in which order. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

from marker_sim.faults import FaultKind
from marker_sim.faults.sites import SITES
from marker_sim.plan import Fault, Op, Plan
from marker_sim.search.site_faults import kinds_at

# How long the second operation waits: until a batch is flushed, a request timed out, its late effect came.
_PAUSES_MS = (0, 60, 150, 1_050)
# What lasts: the kind, for how many calls at least (an implementation may give up after four), for how long.
_LASTING = (
    *((kind, calls, 0) for kind in (FaultKind.THROTTLED, FaultKind.TIMEOUT_LOST) for calls in (1, 4, 8)),
    *((FaultKind.DISK_FULL, 1, duration_ms) for duration_ms in (1, 500, 2000)),
)
_ARRIVALS = 12
_PLACES_MAX = 60  # In all, for one fault.
_CLIENT_STEPS = 6
_SERVER_STEPS = 24


def miniatures(plan: Plan) -> Iterator[Plan]:
    """One or two operations of the kinds of a plan, with none or one of its faults, wherever that may strike.

    One client or two, which ask for one name and one directory as the plan's last operations do. They are looked at
    from the smallest on.
    """
    if not plan.ops:
        return
    known = {op.kind: op for op in plan.ops}
    last = known.get("create", plan.ops[-1])
    ops = [
        Op(actor="executor-0", kind=op.kind, directory=last.directory, name=_name(op, last)) for op in known.values()
    ]
    simple = replace(plan, jitter=0, num_threads=1, interval_ms=50, faults=())
    faults = dict.fromkeys(replace(fault, step=1, actor=_whose(fault.actor)) for fault in plan.faults)
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
    last = 3 if fault.site else _SERVER_STEPS if fault.actor in ("server", "second") else _CLIENT_STEPS
    return (replace(fault, step=step) for step in range(1, last + 1))


def without_faults(plan: Plan, start: int, size: int) -> Iterator[Plan]:
    """The plan without some faults; and with those after them at the same sites as much earlier."""
    gone, kept = plan.faults[start : start + size], plan.faults[:start] + plan.faults[start + size :]
    yield replace(plan, faults=kept)
    sites = {(fault.actor, fault.site) for fault in gone if fault.site}
    yield replace(
        plan,
        faults=tuple(
            replace(f, step=f.step - size) if (f.actor, f.site) in sites and f.step > size else f for f in kept
        ),
    )


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
    """Very many operations without peculiarities, all at once, and halves: the first, the last, every other one."""
    now = tuple(replace(op, after_ms=0) for op in plan.ops)
    simple = replace(plan, jitter=0, num_threads=1, interval_ms=50, restart_threads=0)
    yield replace(simple, ops=now, faults=())
    yield replace(simple, faults=())
    yield replace(plan, ops=now)
    half = len(plan.ops) // 2
    for ops in (plan.ops[:half], plan.ops[half:], plan.ops[::2], plan.ops[1::2]):
        yield replace(plan, ops=ops)


def at_sites(faults: tuple[Fault, ...], fault: Fault) -> Iterator[tuple[Fault, ...]]:
    """The faults with one that has a step at the first arrivals at each site where it can strike its actor instead."""
    if fault.site:
        return
    actor = "server" if fault.actor in ("server", "second") else "executor" if fault.actor != "driver" else "driver"
    sites = [site.name for site in SITES.values() if site.actor == actor and kinds_at(site, (fault.kind,))]
    for step, site in islice(product(range(1, _ARRIVALS + 1), sites), _PLACES_MAX):
        yield tuple(replace(each, step=step, site=site) if each == fault else each for each in faults)


def lasting(plan: Plan) -> Iterator[Plan]:
    """The plan with one fault that lasts in place of all that make storage fail one actor, by actor and site."""
    for actor, site in dict.fromkeys((fault.actor, fault.site) for fault in plan.faults):
        several = [f for f in plan.faults if f.actor == actor and f.site == site and f.kind.row.fails]
        if len(several) > 1:
            rest = tuple(fault for fault in plan.faults if fault not in several)
            first = min(several, key=lambda fault: fault.step)
            for kind, calls, duration_ms in _LASTING:
                one = replace(first, kind=kind, value=max(calls, len(several)), duration_ms=duration_ms)
                yield replace(plan, faults=(*rest, one))


def renamed(plan: Plan, gone: str, stays: str) -> Plan:
    """The plan with the operations and faults of one client given to another."""
    ops = tuple(replace(op, actor=stays) if op.actor == gone else op for op in plan.ops)
    faults = tuple(replace(f, actor=stays) if f.actor == gone else f for f in plan.faults)
    return replace(plan, ops=ops, faults=faults)
