"""Rounds in which the wire between servers and the object store fails: resets, cuts and latency, each healed.

To a server this is its storage that fails: requests end without an answer, or late. So the faults are storage's, under
words of their own, and count under the class that a simulated store's time-outs do.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault
from marker_sim.worlds.http.round_stage import RoundStage
from marker_sim.worlds.proxies.evidence import exchange
from marker_sim.worlds.proxies.faults import PATIENCE_S, afflicted, draw, observe

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire


def storage_wire(stage: RoundStage, until: float) -> None:
    """Every fault once in a drawn order, and again until the time."""
    injector, rng, wire = stage.injector, stage.rng, stage.world.wire
    assert wire is not None, "the world of such a round has a wire"
    while True:
        for fault in draw(rng, "storage"):
            _strike(stage, wire, fault)
            injector.wait(rng.uniform(0.3, 0.6))
        if time.monotonic() > until:
            return


def _strike(stage: RoundStage, wire: ProxiedWire, fault: Fault) -> None:
    injector, word = stage.injector, fault.kind.value
    calm = exchange(wire.port, _harmless(stage), PATIENCE_S * 3)
    if calm.end != "reply":
        raise HarnessError(f"the wire to the S3 front answers nothing without a fault ({calm.end})")
    injector.recorder.fault("storage", word, "begin")
    try:
        with afflicted(wire, fault):
            happened, _ = observe(wire.port, fault, _harmless(stage), calm)
            injector.wait(fault.settings.for_ms / 1000)
    finally:
        injector.recorder.fault("storage", word, "end")
    injector.declare(f"{word} seen", int(happened))


def _harmless(stage: RoundStage) -> bytes:
    """A listing below a prefix that nothing uses, signed by nobody."""
    bucket = stage.world.surroundings("kit").values["bucket"]
    return f"GET /{bucket}?list-type=2&prefix=kit-probe/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
