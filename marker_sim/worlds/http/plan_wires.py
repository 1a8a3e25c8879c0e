"""Faults of connections in a plan: a proxy before each server life, or before the object store, and what strikes there.

A life has a wire of its own, and not one wire that follows the server from port to port, because a request that was
meant for a dead life must never reach the next one: nobody could tell which of them it met. Faults strike one
after the other, in a thread of their own: exchanges of the kit show that each works, and two would hide each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Plan
from marker_sim.worlds.http.fault_injector import PROBE_INSTANT, ServerFaultInjector
from marker_sim.worlds.http.http_client import BASE, ROUTES
from marker_sim.worlds.http.servers import Server
from marker_sim.worlds.proxies.faults import PADDING_BYTES, Evidence, WireFaults
from marker_sim.worlds.proxies.install import missing

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Toxiproxy

WIRE, STORAGE_WIRE = "wire", "storage-wire"
POLL_S = 0.02
_CLASSES = {"wire": WIRE, "storage": STORAGE_WIRE}


def wire_of(fault: Fault) -> str:
    """The wire of a fault: between clients and servers, or servers and object store; "" for none."""
    return _CLASSES[fault.kind.row.cls] if fault.kind.row.family == "proxy" else ""


def wires_of(plan: Plan) -> frozenset[str]:
    """The wires that a plan needs."""
    return frozenset(map(wire_of, plan.faults)) - {""}


def start_toxiproxy() -> Toxiproxy:
    """A running toxiproxy, which the caller closes; HarnessError when it is not available here."""
    if why := missing():
        raise HarnessError(f"a plan has faults of connections; {why}")
    from marker_sim.worlds.proxies.toxiproxy import Toxiproxy

    return Toxiproxy().__enter__()


@dataclass(eq=False)
class PlanWires:
    """The wires of one run, and the faults that strike them."""

    plan: Plan
    injector: ServerFaultInjector
    _toxiproxy: Toxiproxy | None = None
    _doors: dict[Server, ProxiedWire] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _due: list[Future[Evidence | None]] = field(default_factory=list)
    _tried: int = 0
    _then: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._wires = wires_of(self.plan)
        self._striker = ThreadPoolExecutor(1, thread_name_prefix="wire")

    def open(self) -> None:
        """Put later servers behind proxies, if the plan needs that; HarnessError without toxiproxy."""
        if WIRE in self._wires:
            self._toxiproxy = start_toxiproxy()
            self.injector.before = self._before

    def due(self, fault: Fault) -> None:
        """Queue a fault, which strikes as soon as those before it are over; this call does not wait."""
        with self._lock:
            if not self._over.is_set():
                self._due.append(self._striker.submit(self._strike, fault, len(self._due) + 1))

    def after_those_due(self, act: Callable[[], None]) -> None:
        """Call `act` when every queued fault has been tried: during the last of them, or never."""
        with self._lock:
            waits = self._tried < len(self._due)
            if waits:
                self._then.append((len(self._due), act))
        if not waits:
            act()

    @property
    def idle(self) -> bool:
        """Whether every queued fault is over."""
        return all(each.done() for each in self._due)

    def heal(self) -> list[Evidence]:
        """End all wire faults; returns the evidence of each that struck."""
        self._stop()
        struck = [each.result() for each in self._due if not each.cancelled()]
        return [each for each in struck if each is not None]

    def close(self) -> None:
        """End the proxies."""
        self._stop()
        if self._toxiproxy is not None:
            self._toxiproxy.close()

    def _stop(self) -> None:
        with self._lock:
            self._over.set()
        self._striker.shutdown(cancel_futures=True)

    def _before(self, server: Server) -> int:
        """Put a wire before a server; returns its port."""
        assert self._toxiproxy is not None
        wire = self._doors[server] = self._toxiproxy.proxy(server.name, server.port)
        return wire.port

    def _strike(self, fault: Fault, number: int) -> Evidence | None:
        try:
            return self._put_on(fault, number)
        finally:
            self._was_tried(number)

    def _was_tried(self, number: int) -> None:
        with self._lock:
            self._tried = number
            acts = [act for after, act in self._then if after <= number]
            self._then = [(after, act) for after, act in self._then if after > number]
        for act in acts:
            act()

    def _put_on(self, fault: Fault, number: int) -> Evidence | None:
        """Put a fault on the wire of the current or next server; None if there is no wire."""
        injector = self.injector

        def last(seconds: float) -> None:
            self._was_tried(number)
            self._over.wait(seconds)

        while not (living := [server for server in injector.servers if not server.ended]):
            if injector.exited or self._over.wait(POLL_S):
                return None
        server, of_clients = living[0], wire_of(fault) == WIRE
        wire = self._doors[server] if of_clients else injector.world.wire
        if wire is None or self._over.is_set():
            return None
        if of_clients:
            process, request, unknown = "wire clients", self._to_server(), self._to_server("/kit-probe")
        else:
            process, request, unknown = "storage", self._to_storage(), b""
        return WireFaults(injector.recorder, process, request, last, server.started, unknown).strike(wire, fault)

    def _to_server(self, path: str = "") -> bytes:
        """A request whether an unused marker directory exists, whose bytes exceed those of its reply.

        path: replaces the path of the request.
        """
        method, route = ROUTES["exists"]
        route = path or route
        directory = self.injector.world.address(MarkerDirectory("kit-probe", PROBE_INSTANT))
        target = f"{BASE}{route}?{urlencode({'markerdirpath': directory})}"
        padding = "p" * PADDING_BYTES
        return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Padding: {padding}\r\n\r\n".encode()

    def _to_storage(self) -> bytes:
        """The bytes of an unsigned listing request below an unused prefix."""
        bucket = self.injector.world.surroundings("kit").values["bucket"]
        return f"GET /{bucket}?list-type=2&prefix=kit-probe/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
