"""What happens in each kind of round while clients ask: a function of the stage, until a time, whatever the storage.

Most runs are plans (planned_run.py). These are rounds for what a plan cannot have yet: faults that last until somebody
heals them, and proxies.

storage-wire   the connections between server and object store fail (storage_wire_rounds.py)
wire           the connections between clients and server fail in every way a proxy can make them (wire_rounds.py)
"""

from __future__ import annotations

from collections.abc import Callable

from marker_sim.worlds.http.round_stage import STORAGE_WIRE, RoundStage
from marker_sim.worlds.http.storage_wire_rounds import storage_wire
from marker_sim.worlds.http.wire_rounds import WIRE, wire

PLAYS: dict[str, Callable[[RoundStage, float], None]] = {
    WIRE: wire,
    STORAGE_WIRE: storage_wire,
}

# The guarantees that each kind decides: none of them holds before a round of it was played (docs/foreign-servers.md).
DECIDES = {
    WIRE: ("G4", "G5", "G6"),
    STORAGE_WIRE: ("G3", "G6"),
}

# Seconds of a round with the shortest faults, from the start of its server to the last look, on a quiet machine
# and for a server that starts at once: what a budget is planned with.
LEAST_S = {
    WIRE: 8.0,
    STORAGE_WIRE: 8.0,
}
