"""Faults at named sites, drawn in two levels: a seed arms some sites, and each of them fires at a rate of its own.

A seed first draws how many of the sites are armed at all, then for each armed site which kinds may happen there and
how often. So some runs have one site where everything goes wrong, and others a single fault somewhere. Which arrival a
fault is at is drawn from about as many as the workload makes there; one too many never arms and costs nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from marker_sim.faults import TASK_FAULTS, WIRE_FAULTS, FaultKind
from marker_sim.faults.sites import WIRE, Site
from marker_sim.plan import Fault

SHARES = (0.1, 0.25, 0.5)  # Of the sites, that are armed.
RATES = (0.0, 0.0, 0.1, 0.3, 1.0)  # Of the arrivals, that a fault is due at; 0.0: at one of them.
FAULTS_MAX = (2, 4, 8, 12)  # Of all sites; a run in which everything fails gets nowhere.
AT_A_SITE_MAX = 4
_WRITES = ("put", "overwrite")
_DEADLY = (FaultKind.KILL, FaultKind.ORPHANED, FaultKind.TORN_WRITE)
_WHOSE = {  # Processes that may be struck by what strikes not all of them.
    FaultKind.SECOND_SERVER: ("server",),
    FaultKind.OVERLOADED: ("server",),
    FaultKind.CLOCK_JUMPED: ("driver",),
    FaultKind.TYPE_DAMAGED: ("server", "driver"),
    FaultKind.PLACEHOLDER: ("server", "driver", "executor"),
}
_LIVES = (FaultKind.PAUSE, *_WHOSE)
_ANYWHERE = (FaultKind.KILL, FaultKind.PAUSE)
_ON_CALLS = {  # A fault of storage fits these operations, all where nothing is said.
    FaultKind.TIMEOUT_LATE: ("put", "delete"),
    FaultKind.CONFLICT: ("put",),
    FaultKind.ORPHANED: ("put", "delete"),
    FaultKind.TORN_WRITE: _WRITES,
    FaultKind.DISK_FULL: _WRITES,
}
_EXTENTS: dict[FaultKind, tuple[tuple[int, ...], tuple[int, ...]]] = {
    FaultKind.KILL: ((0, 20, 100, 400), (1,)),
    FaultKind.TORN_WRITE: ((0, 20, 100, 400), (1,)),
    FaultKind.ATTEMPT_KILLED: ((0, 20, 300), (1,)),
    FaultKind.ZOMBIE: ((0, 10, 40, 150, 600, 4000), (1,)),
    FaultKind.SPECULATIVE: ((0,), (1, 1, 2)),
    FaultKind.ORPHANED: ((0, 20, 100, 400), (5, 120, 900, 2500)),
    FaultKind.PAUSE: ((20, 200, 1500, 4000), (1,)),
    FaultKind.SECOND_SERVER: ((300, 1500, 5000), (1,)),
    FaultKind.DUPLICATED: ((0, 5, 60, 400, 2500), (1,)),
    FaultKind.DELAYED: ((5, 60, 400, 2500), (1,)),
    FaultKind.OVERLOADED: ((200, 1500, 4000), (5, 40, 300)),
    FaultKind.CLOCK_JUMPED: ((0,), (-3_600_000, -40, 3_600_000)),
    FaultKind.RESET: ((0,), (1, 1, 2)),
    FaultKind.SLOW_LINK: ((200, 2000), (30, 400)),
    FaultKind.CUT_LINK: ((100, 1500, 40_000), (1, 2)),
    FaultKind.SERVER_ERROR: ((0,), (1, 2)),
    FaultKind.IO_ERROR: ((0,), (1, 2)),
    FaultKind.TIMEOUT_LATE: ((10, 300, 1900), (1,)),
    FaultKind.SLOW_STORAGE: ((30, 120, 900), (1,)),
    FaultKind.DISK_FULL: ((50, 500, 2000), (1,)),
    FaultKind.TYPE_DAMAGED: ((0,), (1, 2)),
    FaultKind.THROTTLED: ((0,), (1, 2, 5, 12)),
    FaultKind.TIMEOUT_LOST: ((0,), (1, 2, 6, 40)),
}


def extent(rng: random.Random, kind: FaultKind) -> tuple[int, int]:
    """Duration in milliseconds and value of a fault."""
    durations_ms, values = _EXTENTS.get(kind, ((0,), (1,)))
    return rng.choice(durations_ms), rng.choice(values)


def kinds_at(site: Site, kinds: tuple[FaultKind, ...]) -> tuple[FaultKind, ...]:
    """Those kinds that can happen to whoever is at a site."""
    return tuple(kind for kind in kinds if _fits(site, kind))


def _fits(site: Site, kind: FaultKind) -> bool:
    if kind in _ANYWHERE:
        return True
    if kind in TASK_FAULTS:
        retried = kind is FaultKind.STAGE_RETRIED and site.part in ("finalize", "*") and site.actor == "driver"
        return site.actor == "executor" or retried
    if kind in _WHOSE:
        return site.actor in _WHOSE[kind]
    if site.after or not site.operation:
        return False
    asked = site.operation == WIRE or (site.actor != "server" and site.what == "marker directory")
    if kind in WIRE_FAULTS:
        return asked
    operation = "put" if site.operation == WIRE else site.operation  # Of a marker, where no server is asked.
    return operation in _ON_CALLS.get(kind, (operation,))


def _groups(kinds: tuple[FaultKind, ...]) -> tuple[tuple[FaultKind, ...], ...]:
    """Kinds by what they do, each group as likely as another: storage has many kinds, and deaths are few."""
    named = (_DEADLY, _LIVES, WIRE_FAULTS, TASK_FAULTS)
    rest = tuple(kind for kind in kinds if not any(kind in group for group in named))
    groups = (*(tuple(kind for kind in kinds if kind in group) for group in named), rest)
    return tuple(group for group in groups if group)


def draw_at_sites(
    rng: random.Random,
    sites: tuple[Site, ...],
    kinds: tuple[FaultKind, ...],
    actors: Mapping[str, tuple[str, ...]],
    arrivals: Mapping[str, int],
) -> list[Fault]:
    """Faults of these kinds at these sites. actors: the names of those who are a "server", "driver" or "executor".

    arrivals: about how often one of them comes to a site, by what it is met once for (`Site.per`).
    """
    share, faults = rng.choice(SHARES), []
    armed = [site for site in sites if rng.random() < share]
    rng.shuffle(armed)
    for site in armed:
        groups = _groups(kinds_at(site, kinds))
        if not groups:
            continue
        chosen = [rng.choice(rng.choice(groups)) for _ in range(rng.choice((1, 1, 2)))]
        rate, most = rng.choice(RATES), max(1, arrivals[site.per])
        due = [rng.randint(1, most)] if not rate else [n for n in range(1, most + 1) if rng.random() < rate]
        for step in due[:AT_A_SITE_MAX]:
            kind = rng.choice(chosen)
            duration_ms, value = extent(rng, kind)
            actor = rng.choice(actors[site.actor])
            faults.append(
                Fault(kind=kind, actor=actor, step=step, duration_ms=duration_ms, value=value, site=site.name)
            )
    return faults[: rng.choice(FAULTS_MAX)]
