"""The closed list of wire faults between processes, drawn from a seed, put on a wire, recorded, and shown to have
happened.

    fault            what is on the wire                    shown by an exchange on a connection of its own
    wire-latency     every chunk is late                    a reply took at least the latency
    wire-jitter      the same by a different time each      replies took different times
    wire-bandwidth   few bytes a second                     what was sent took bytes / rate at least
    wire-slow-close  the end of a connection is late        closed late after a whole reply
    wire-timeout     bytes vanish, later the connection     no byte came; silence, or closed after the time
    wire-reset-peer  the connection is reset                reset
    wire-slicer      bytes come in small late pieces        several pieces, or late by the pieces' delays
    wire-limit-data  the connection ends after some bytes   no whole reply, and no more bytes than allowed
    wire-down        nobody listens                         refused

Each is a span in the history (`begin` to `end`) of the process "wire NAME". Requests that it broke, or that it may have
swallowed, are `wire-broken` faults of a moment with the invocation they touched: nobody knows what became of these.
The lossy faults end with every connection of the wire closed, so that no request waits for bytes that are gone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from marker_sim.errors import HarnessError
from marker_sim.worlds.proxies.evidence import Exchange, exchange
from marker_sim.worlds.recorder import Recorder

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Stream

BROKEN = "wire-broken"
PATIENCE_S = 1.2
SILENCE_S = 0.4
CALM_S = 5.0
TRIES = 3
TRIES_OF_SOME = 16
SAMPLES = 5
SHARE = 0.9  # What a timer of another process may come early by, seen from here.
PADDING_BYTES = 900
NOTICED_S = 0.3
POLL_S = 0.005


class WireFaultKind(Enum):
    """What goes wrong on a wire; the value is the word in histories."""

    LATENCY = "wire-latency"
    JITTER = "wire-jitter"
    BANDWIDTH = "wire-bandwidth"
    SLOW_CLOSE = "wire-slow-close"
    TIMEOUT = "wire-timeout"
    RESET_PEER = "wire-reset-peer"
    SLICER = "wire-slicer"
    LIMIT_DATA = "wire-limit-data"
    DOWN = "wire-down"


LOSSY = frozenset({WireFaultKind.TIMEOUT, WireFaultKind.RESET_PEER, WireFaultKind.LIMIT_DATA, WireFaultKind.DOWN})
_TOXICS = {
    WireFaultKind.LATENCY: "latency",
    WireFaultKind.JITTER: "latency",
    WireFaultKind.BANDWIDTH: "bandwidth",
    WireFaultKind.SLOW_CLOSE: "slow_close",
    WireFaultKind.TIMEOUT: "timeout",
    WireFaultKind.RESET_PEER: "reset_peer",
    WireFaultKind.SLICER: "slicer",
    WireFaultKind.LIMIT_DATA: "limit_data",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFault:
    """One fault of a wire.

    attributes: toxiproxy's, by name.
    toxicity: the share of connections.
    duration_ms: how long it stays on after it was shown to work.
    """

    kind: WireFaultKind
    stream: Stream = "downstream"
    attributes: tuple[tuple[str, int], ...] = ()
    toxicity: float = 1.0
    duration_ms: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Whether a fault was seen to happen, in words with figures.

    broken: requests of clients that it touched.
    """

    fault: WireFault
    happened: bool
    seen: str
    broken: int = 0


def draw(rng: random.Random) -> tuple[WireFault, ...]:
    """Every kind once, in a drawn order, each with drawn attributes."""
    return tuple(_draw(kind, rng) for kind in rng.sample(tuple(WireFaultKind), len(WireFaultKind)))


def _draw(kind: WireFaultKind, rng: random.Random) -> WireFault:
    streams: tuple[Stream, ...] = ("upstream", "downstream")
    stream = rng.choice(streams)
    attributes: dict[str, int] = {}
    match kind:
        case WireFaultKind.LATENCY:
            attributes = {"latency": rng.randint(120, 350)}
        case WireFaultKind.JITTER:
            attributes = {"latency": rng.randint(100, 150), "jitter": rng.randint(60, 100)}
        case WireFaultKind.BANDWIDTH:
            attributes = {"rate": 1 if stream == "downstream" else rng.randint(2, 4)}
        case WireFaultKind.SLOW_CLOSE:
            attributes = {"delay": rng.randint(100, 400)}
        case WireFaultKind.TIMEOUT:
            attributes = {"timeout": rng.choice((0, rng.randint(100, 400)))}
        case WireFaultKind.RESET_PEER:
            attributes = {"timeout": rng.choice((0, rng.randint(10, 100)))}
        case WireFaultKind.SLICER:
            attributes = {"average_size": rng.randint(12, 24), "size_variation": 4, "delay": rng.randint(2, 8) * 1000}
        case WireFaultKind.LIMIT_DATA:
            attributes = {"bytes": rng.randint(20, 60)}
        case WireFaultKind.DOWN:
            pass
    some = kind in LOSSY and kind is not WireFaultKind.DOWN and rng.random() < 0.5
    return WireFault(
        kind=kind,
        stream=stream,
        attributes=tuple(attributes.items()),
        toxicity=round(rng.uniform(0.4, 0.9), 2) if some else 1.0,
        duration_ms=rng.randint(100, 500),
    )


@contextmanager
def afflicted(wire: ProxiedWire, fault: WireFault) -> Iterator[None]:
    """The fault is on the wire in the block; after a lossy one every connection is new."""
    if fault.kind is WireFaultKind.DOWN:
        wire.cut()
        try:
            yield
        finally:
            wire.mend()
        return
    attributes = dict(fault.attributes)
    toxic = wire.toxic(_TOXICS[fault.kind], fault.stream, fault.toxicity, **attributes)
    try:
        yield
    finally:
        toxic.remove()
        if fault.kind in LOSSY:
            wire.sever()


def undisturbed(wire: ProxiedWire, fault: WireFault, request: bytes) -> Exchange:
    """The quickest of some exchanges before a fault is put on; HarnessError when one of them fails."""
    linger = fault.kind is WireFaultKind.SLOW_CLOSE
    seen = [exchange(wire.port, request, CALM_S, linger) for _ in range(TRIES)]
    for calm in seen:
        if calm.end != "reply":
            raise HarnessError(f"wire {wire.name} answers nothing without a fault ({calm.end}), so none can be shown")
    return min(seen, key=lambda calm: max(calm.took_s, calm.lingered_s))


def observe(port: int, fault: WireFault, request: bytes, calm: Exchange) -> tuple[bool, str]:
    """Whether the fault that is on the wire shows there, in words. calm: the same exchange before it was put on."""
    seen = "nothing was tried"
    for _ in range(TRIES if fault.toxicity == 1.0 else TRIES_OF_SOME):
        happened, seen = _shown(port, fault, request, calm)
        if happened:
            return True, seen
    return False, seen


def _shown(port: int, fault: WireFault, request: bytes, calm: Exchange) -> tuple[bool, str]:
    given = dict(fault.attributes)
    if fault.kind is WireFaultKind.JITTER:
        return _jitters(port, given, request)
    least_s = _least_s(fault, len(request), calm.received)
    patience_s = SILENCE_S if given.get("timeout") == 0 else PATIENCE_S + 2 * least_s
    met = exchange(port, request, patience_s, linger=fault.kind is WireFaultKind.SLOW_CLOSE)
    took = f"{met.took_s * 1000:.0f} ms, before it {calm.took_s * 1000:.0f} ms"
    match fault.kind:
        case WireFaultKind.LATENCY:
            return _late(met, calm, least_s), f"a reply took {took}"
        case WireFaultKind.BANDWIDTH:
            size = met.received if fault.stream == "downstream" else len(request)
            return _late(met, calm, least_s), f"{size} bytes took {took}"
        case WireFaultKind.SLICER:
            largest = given["average_size"] + given["size_variation"]
            if fault.stream == "downstream":
                many = met.pieces >= max(calm.pieces + 1, met.received // largest // 2)
                return many, f"{met.received} bytes in {met.pieces} pieces, before it {calm.pieces}"
            return _late(met, calm, least_s), f"{len(request)} bytes took {took}"
        case WireFaultKind.SLOW_CLOSE:
            late = met.end == "reply" and met.lingered_s >= given["delay"] / 1e3 * SHARE > calm.lingered_s >= 0
            return late, f"closed after {met.lingered_s * 1e3:.0f} ms, before it {calm.lingered_s * 1e3:.0f} ms"
        case WireFaultKind.TIMEOUT:
            gone = met.end in ("silent", "closed", "reset") and met.received == 0
            return gone and met.took_s >= least_s * SHARE, f"{met.end} without a byte after {met.took_s * 1e3:.0f} ms"
        case WireFaultKind.RESET_PEER:
            return met.end == "reset", f"{met.end} after {met.took_s * 1e3:.0f} ms"
        case WireFaultKind.LIMIT_DATA:
            cut = met.end in ("closed", "reset") or 400 <= met.status < 500
            fits = met.received <= given["bytes"] if fault.stream == "downstream" else met.status != 200
            return cut and fits, f"{met.end} with {met.received} bytes of a reply (status {met.status})"
        case WireFaultKind.DOWN:
            return met.end == "refused", met.end


def _least_s(fault: WireFault, asked: int, answered: int) -> float:
    """How long an exchange of so many bytes takes at least under a fault, 0 where nothing follows from it."""
    given = dict(fault.attributes)
    size = answered if fault.stream == "downstream" else asked
    match fault.kind:
        case WireFaultKind.LATENCY:
            return given["latency"] / 1e3
        case WireFaultKind.BANDWIDTH:
            return size / given["rate"] / 1e3
        case WireFaultKind.SLICER:
            return max(size // (given["average_size"] + given["size_variation"]) - 1, 0) * given["delay"] / 1e6
        case WireFaultKind.TIMEOUT:
            return given["timeout"] / 1e3 or SILENCE_S
        case _:
            return 0.0


def _late(met: Exchange, calm: Exchange, least_s: float) -> bool:
    """Whether a whole reply came no sooner than it should, when without the fault it did."""
    return met.end == "reply" and met.took_s >= least_s * SHARE > calm.took_s


def _jitters(port: int, given: dict[str, int], request: bytes) -> tuple[bool, str]:
    took_ms = [exchange(port, request, PATIENCE_S).took_s * 1e3 for _ in range(SAMPLES)]
    apart_ms = max(took_ms) - min(took_ms)
    least_ms = (given["latency"] - given["jitter"]) * SHARE
    words = f"{SAMPLES} replies took {', '.join(f'{ms:.0f}' for ms in took_ms)} ms"
    return apart_ms >= given["jitter"] / 5 and min(took_ms) >= least_ms, words


class WireFaults:
    """Puts faults on a wire one after another and tells the history.

    name: of the wire in it.
    request: what is sent to see whether a fault works; it must have no effect, and a whole reply.
    wait: lets time pass.
    """

    def __init__(self, recorder: Recorder, name: str, request: bytes, wait: Callable[[float], object]) -> None:
        self.process = f"wire {name}"
        self._recorder = recorder
        self._request = request
        self._wait = wait

    def strike(self, wire: ProxiedWire, fault: WireFault) -> Evidence:
        """Put a fault on, see whether it works, let it last, take it off. HarnessError when the wire is not calm."""
        calm = undisturbed(wire, fault, self._request)
        with self.span(wire, fault) as came:
            happened, seen = observe(wire.port, fault, self._request, calm)
            self._wait(fault.duration_ms / 1000)
        return Evidence(fault=fault, happened=happened, seen=seen, broken=came[0])

    @contextmanager
    def span(self, wire: ProxiedWire, fault: WireFault) -> Iterator[list[int]]:
        """The fault is on the wire and in the history while the block runs; then the list holds how much it broke."""
        came: list[int] = []
        began = self._recorder.fault(self.process, fault.kind.value, "begin", error=described(fault))
        try:
            with afflicted(wire, fault):
                yield came
        finally:
            lost = self._never_ended() if fault.kind in LOSSY else frozenset()
            with self._recorder.lock:
                came.append(self._tell_broken(began, fault.kind in LOSSY, lost))
                self._recorder.fault(self.process, fault.kind.value, "end")

    def _never_ended(self) -> frozenset[int]:
        """The invocations that are open although every connection was cut a moment ago."""
        lost = frozenset(self._recorder.open_calls("client"))
        deadline = time.monotonic() + NOTICED_S
        while lost and time.monotonic() < deadline:
            time.sleep(POLL_S)
            lost &= frozenset(self._recorder.open_calls("client"))
        return lost

    def _tell_broken(self, began: int, lossy: bool, lost: frozenset[int]) -> int:
        """Record each request that the fault touched; the recorder's lock is held."""
        broken = set(lost)
        for event in self._recorder.events[max(began, 0) :]:
            if event.role == "client" and event.kind in ("info", "fail") and event.caused_by is not None:
                answered = (event.error or "")[:3].isdigit()
                if lossy or not answered:
                    broken.add(event.caused_by)
        for invoke in sorted(broken):
            self._recorder.record(self.process, "nemesis", "fault", BROKEN, caused_by=invoke)
        return len(broken)


def described(fault: WireFault) -> str:
    """A fault in a few words: "latency=200 upstream 0.5"."""
    words = [f"{name}={value}" for name, value in fault.attributes]
    words += [fault.stream] if fault.kind is not WireFaultKind.DOWN else []
    return " ".join(words + ([f"toxicity={fault.toxicity}"] if fault.toxicity < 1.0 else []))
