"""The stage of one round against real servers: its servers, its storage, its clients, and the phases it goes through.

    start ─► calm load ─► what the kind of round says ─► healed ─► probes ─► end ─► look, kill, look

What each kind of round says is in round_types.py, what is stored and how storage fails in the round's world.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marker_sim.names import MarkerDirectory
from marker_sim.seeds import plan_seed
from marker_sim.worlds.http.fault_injector import NobodyLives
from marker_sim.worlds.http.load import Load, LoadedDirectory
from marker_sim.worlds.http.servers import Fleet, Server
from marker_sim.worlds.http.stage import ForeignSystem, RunStage

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Toxiproxy

STORAGE_WIRE = "storage-wire"
CALM_S = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round is: everything that it chooses follows from `seed`, the campaign's, and `number`.

    faults_s: how long the faults may take.
    deadline: when the campaign has to be over (time.monotonic).
    """

    number: int
    kind: str
    seed: int
    num_threads: int
    interval_ms: int
    faults_s: float
    deadline: float

    @property
    def drawn(self) -> int:
        """The seed of its own."""
        return plan_seed(self.seed, self.number)

    @property
    def line(self) -> str:
        """Which it is, for whoever watches."""
        return f"round {self.number}: {self.kind}, {self.num_threads} threads, {self.interval_ms} ms"


class ServerProxies:
    """The proxies of one round, one before each server life."""

    def __init__(self, toxiproxy: Toxiproxy) -> None:
        self._toxiproxy = toxiproxy
        self._wires: dict[str, ProxiedWire] = {}

    def before(self, server: Server) -> int:
        """Put a wire before a server; its port."""
        wire = self._wires[server.name] = self._toxiproxy.proxy(server.name, server.port)
        return wire.port

    def of(self, server: Server) -> ProxiedWire:
        """The wire before a server."""
        return self._wires[server.name]


class RoundStage(RunStage):
    """The stage of a round: its clients are a load.

    doors: what stands before servers, None for nothing.
    """

    def __init__(self, spec: Round, system: ForeignSystem, fleet: Fleet) -> None:
        table = f"r{spec.number}"
        self.spec = spec
        self.main = MarkerDirectory(f"{table}/t0", "20260101000000001")
        self.other = MarkerDirectory(f"{table}/t0", "20260101000000002")
        self.third = MarkerDirectory(f"{table}/t1", "20260101000000003")
        places = (self.main, self.other, self.third)
        drawn = f"{spec.drawn} {spec.kind}"
        super().__init__(
            system,
            fleet,
            table,
            places,
            spec.num_threads,
            spec.interval_ms,
            drawn,
            spec.deadline,
            storage_wire=spec.kind == STORAGE_WIRE,
        )
        targets = (
            LoadedDirectory(place=self.main, weight=6),
            LoadedDirectory(place=self.other, beyond_latin=True, weight=3),
            LoadedDirectory(place=self.third, weight=1),
        )
        self.load = Load(self.requests, targets, spec.drawn, self.injector.on_ack)
        self.injector.load = self.load
        self.doors: ServerProxies | None = None

    def play(self, faults: Callable[[RoundStage, float], None]) -> None:
        """All phases of the round. faults: what its kind does until a time, while clients ask."""
        injector, spec = self.injector, self.spec
        injector.start()
        self.phase("faults")
        self.watch()
        self.load.start()
        injector.wait(CALM_S)
        self.recorder.calm = False
        until = min(time.monotonic() + spec.faults_s, spec.deadline)
        with contextlib.suppress(NobodyLives):
            faults(self, until)
        if self.world.interceptor is not None:
            self.world.interceptor.disarm()
        self.phase("healed")
        self.load.pause()
        self.probe()
        self.close()

    def leave(self) -> None:
        """Stop every thread and server of the round and remove its files."""
        try:
            self.load.end()
            for server in self.injector.servers:
                server.kill()
            self.stop_watching()
        finally:
            self.world.close()
