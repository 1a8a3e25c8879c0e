"""Rounds in which the wire between clients and server fails: each server life has a proxy of its own before it.

A life has a wire of its own, and not one wire that follows the server from port to port, because a request that was
meant for a dead life must never reach the next one: nobody could tell which of them it met.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from marker_sim.errors import HarnessError
from marker_sim.names import MarkerDirectory
from marker_sim.real.client import BASE, ROUTES
from marker_sim.real.nemesis import PROBE_INSTANT, NobodyLives
from marker_sim.real.processes import Server
from marker_sim.real.wires.faults import PADDING_BYTES, Evidence, WireFault, WireFaultKind, WireFaults, described, draw
from marker_sim.real.wires.install import missing

if TYPE_CHECKING:
    from marker_sim.real.rounds import Stage
    from marker_sim.real.wires.toxiproxy import Toxiproxy, Wire

WIRE = "wire"
CLIENTS = "clients"
HELD_UP = WireFault(kind=WireFaultKind.LATENCY, stream="upstream", attributes=(("latency", 250),))


class Doors:
    """The proxies of one round, one before each server life."""

    def __init__(self, toxiproxy: Toxiproxy) -> None:
        self._toxiproxy = toxiproxy
        self._wires: dict[str, Wire] = {}

    def before(self, server: Server) -> int:
        """Put a wire before a server; its port."""
        wire = self._wires[server.name] = self._toxiproxy.proxy(server.name, server.port)
        return wire.port

    def of(self, server: Server) -> Wire:
        """The wire before a server."""
        return self._wires[server.name]


@contextmanager
def doors(stage: Stage) -> Iterator[None]:
    """In a round of kind wire, clients meet servers through proxies while the block runs."""
    if stage.spec.kind != WIRE:
        yield
        return
    from marker_sim.real.wires.toxiproxy import Toxiproxy

    with Toxiproxy() as toxiproxy:
        stage.doors = Doors(toxiproxy)
        stage.nemesis.before = stage.doors.before
        yield


def wire(stage: Stage, until: float) -> None:
    """Every fault of a wire once, in a drawn order, and again until the time; then a server dies."""
    assert stage.doors is not None
    nemesis, rng = stage.nemesis, stage.rng
    faults = WireFaults(stage.recorder, CLIENTS, harmless_request(stage), nemesis.wait)
    while True:
        for fault in draw(rng):
            evidence = _strike(stage, faults, stage.doors, fault)
            nemesis.note(f"{fault.kind.value} seen on the wire", int(evidence.happened))
            if not evidence.happened:
                nemesis.missed.append(f"{fault.kind.value} {described(fault)}: {evidence.seen}")
            nemesis.note("requests that a wire fault broke", evidence.broken)
            nemesis.wait(rng.uniform(0.05, 0.2))
        if time.monotonic() > until:
            break
    server = nemesis.first
    with faults.span(stage.doors.of(server), HELD_UP):
        nemesis.wait(HELD_UP.duration_ms / 1000)
        nemesis.kill(server, stage.places)
    nemesis.restart()
    nemesis.wait(0.3)


def _strike(stage: Stage, faults: WireFaults, doors: Doors, fault: WireFault) -> Evidence:
    """Put a fault on the wire before the first server; NobodyLives when that ended by itself, which is recorded."""
    server = stage.nemesis.first
    try:
        evidence = faults.strike(doors.of(server), fault)
    except HarnessError:
        stage.nemesis.check()
        if not server.ended:
            raise
        raise NobodyLives from None
    stage.nemesis.check()
    if server.ended:
        raise NobodyLives
    return evidence


def harmless_request(stage: Stage) -> bytes:
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
