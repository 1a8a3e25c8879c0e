"""Faults at named sites, drawn in two levels: a seed selects some sites, each with its own rate.

A seed first draws the number of armed sites, then for each of them the possible kinds and their rate. So some
runs have many faults at one site, and others a single fault. The arrival of a fault is drawn from about as many as the
workload makes there; a fault at a later one never fires.
"""

from __future__ import annotations

from collections.abc import Mapping

from marker_sim.faults import Fault, FaultKind, FaultSettings, Site
from marker_sim.faults.sites import WIRE, SiteRow
from marker_sim.search.seeds import Draws

SHARES = (0.1, 0.25, 0.5)  # Share of the sites that are armed.
RATES = (0.0, 0.0, 0.1, 0.3, 1.0)  # Share of the arrivals at which a fault is due; 0.0: at one of them.
FAULTS_MAX = (2, 4, 8, 12)  # For all sites: a run in which everything fails makes no progress.
AT_A_SITE_MAX = 4


def draw_settings(rng: Draws, kind: FaultKind) -> FaultSettings:
    """The settings of a fault. Two numbers are drawn for every kind, so that the plan of a seed never changes."""
    row = kind.row
    drawn = [(name, rng.choice(row.settings.get(name, (0,)))) for name in row.slots]
    return FaultSettings(**{name: value for name, value in drawn if name})


def kinds_at(site: SiteRow, kinds: tuple[FaultKind, ...]) -> tuple[FaultKind, ...]:
    """The kinds that are possible at a site."""
    return tuple(kind for kind in kinds if _fits(site, kind))


def _fits(site: SiteRow, kind: FaultKind) -> bool:
    row = kind.row
    if site.actor not in row.roles:
        return False
    if row.family in ("process", "task"):
        return kind is not FaultKind.STAGE_RETRIED or site.actor != "driver" or site.part in ("finalize", "*")
    if site.after or not site.operation:
        return False
    if row.family == "wire":
        return site.operation == WIRE or site.what == "marker directory"
    return ("put" if site.operation == WIRE else site.operation) in row.operations  # For sites without a server.


def _groups(kinds: tuple[FaultKind, ...]) -> tuple[tuple[FaultKind, ...], ...]:
    """Kinds by effect, all groups equally likely: storage has many kinds, deaths are few."""
    groups = [tuple(kind for kind in kinds if kind.row.kills)]
    for family in ("process", "wire", "task", "storage"):
        groups.append(tuple(kind for kind in kinds if kind.row.family == family and not kind.row.kills))
    return tuple(group for group in groups if group)


def draw_at_sites(
    rng: Draws,
    sites: tuple[SiteRow, ...],
    kinds: tuple[FaultKind, ...],
    actors: Mapping[str, tuple[str, ...]],
    arrivals: Mapping[str, int],
) -> list[Fault]:
    """Faults of these kinds at these sites. actors: names of processes by role ("server", "driver", "executor").

    arrivals: about how often one of them reaches a site, by the unit of work in `SiteRow.per`.
    """
    share, faults = rng.choice(SHARES), []
    armed = [site for site in sites if rng.random() < share]
    rng.shuffle(armed)
    for site in armed:
        groups = _groups(kinds_at(site, kinds))
        if not groups:
            continue
        chosen = [rng.choice(rng.choice(groups)) for _ in range(rng.of(1, 1, 2))]
        rate, most = rng.choice(RATES), max(1, arrivals[site.per])
        due = [rng.randint(1, most)] if not rate else [n for n in range(1, most + 1) if rng.random() < rate]
        for step in due[:AT_A_SITE_MAX]:
            kind = rng.choice(chosen)
            settings = draw_settings(rng, kind)
            actor = rng.choice(actors[site.actor])
            faults.append(Fault(kind=kind, target=actor, trigger=Site(site.name, step), settings=settings))
    return faults[: rng.choice(FAULTS_MAX)]
