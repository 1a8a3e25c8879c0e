"""Rounds in which the wire between clients and server fails: each server life has a proxy of its own before it.

A life has a wire of its own, and not one wire that follows the server from port to port, because a request that was
meant for a dead life must never reach the next one: nobody could tell which of them it met.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.http.fault_injector import PROBE_INSTANT, NobodyLives
from marker_sim.worlds.http.http_client import BASE, ROUTES
from marker_sim.worlds.http.round_stage import RoundStage, ServerProxies
from marker_sim.worlds.proxies.faults import PADDING_BYTES, Evidence, WireFaults, described, draw
from marker_sim.worlds.proxies.install import missing

WIRE = "wire"
CLIENTS = "clients"
HELD_UP = Fault.of(FaultKind.WIRE_LATENCY, WIRE, Step(1), late_ms=250, for_ms=300, upstream=True)


@contextmanager
def doors(stage: RoundStage) -> Iterator[None]:
    """In a round of kind wire, clients meet servers through proxies while the block runs."""
    if stage.spec.kind != WIRE:
        yield
        return
    from marker_sim.worlds.proxies.toxiproxy import Toxiproxy

    with Toxiproxy() as toxiproxy:
        stage.doors = ServerProxies(toxiproxy)
        stage.injector.before = stage.doors.before
        yield


def wire(stage: RoundStage, until: float) -> None:
    """Every fault of a wire once, in a drawn order, and again until the time; then a server dies."""
    assert stage.doors is not None
    injector, rng = stage.injector, stage.rng
    faults = WireFaults(stage.recorder, CLIENTS, harmless_request(stage), injector.wait)
    while True:
        for fault in draw(rng):
            evidence = _strike(stage, faults, stage.doors, fault)
            injector.note(f"{fault.kind.value} seen on the wire", int(evidence.happened))
            if not evidence.happened:
                injector.missed.append(f"{fault.kind.value} {described(fault)}: {evidence.seen}")
            injector.note("requests that a wire fault broke", evidence.broken)
            injector.wait(rng.uniform(0.05, 0.2))
        if time.monotonic() > until:
            break
    server = injector.first
    with faults.span(stage.doors.of(server), HELD_UP):
        injector.wait(HELD_UP.settings.for_ms / 1000)
        injector.kill(server, stage.places)
    injector.restart()
    injector.wait(0.3)


def _strike(stage: RoundStage, faults: WireFaults, doors: ServerProxies, fault: Fault) -> Evidence:
    """Put a fault on the wire before the first server; NobodyLives when that ended by itself, which is recorded."""
    server = stage.injector.first
    try:
        evidence = faults.strike(doors.of(server), fault)
    except HarnessError:
        stage.injector.check()
        if not server.ended:
            raise
        raise NobodyLives from None
    stage.injector.check()
    if server.ended:
        raise NobodyLives
    return evidence


def harmless_request(stage: RoundStage) -> bytes:
    """Asks a server whether a marker directory exists that nothing uses, in more bytes than it takes."""
    method, route = ROUTES["exists"]
    directory = stage.world.address(MarkerDirectory("kit-probe", PROBE_INSTANT))
    target = f"{BASE}{route}?{urlencode({'markerdirpath': directory})}"
    padding = "p" * PADDING_BYTES
    return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Padding: {padding}\r\n\r\n".encode()


def kinds_here(kinds: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of `kinds` that can be played on this machine, and what is left out, with the reason."""
    why = missing() if WIRE in kinds else ""
    if not why:
        return kinds, ()
    return tuple(kind for kind in kinds if kind != WIRE), (f"a round of kind {WIRE}: {why}",)
