"""Faults of connections between processes: applied, recorded, and proven to have an effect.

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

Each is a span in the history (`begin` to `end`). On a wire of clients, requests that it broke, or that it may have
swallowed, are `wire-broken` faults of a moment with the invocation they touched: their outcome is unknown.
The lossy faults end with every connection of the wire closed, so that no request waits for bytes that are gone.

An exchange asks to keep the connection (HTTP/1.1). When the reply is whole, this side closes its half, and the time
until the other side closes too is part of what is seen; not earlier, because a proxy that passes the close on would
cut the reply off. Times are monotonic and in seconds.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from marker_sim.faults import Fault, FaultKind
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
SHARE = 0.9  # The share of a wait after which another process's timer may fire, measured by this process's clock.
PADDING_BYTES = 900
NOTICED_S = 0.3
POLL_S = 0.005
End = Literal["reply", "refused", "reset", "closed", "silent"]
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_PIECE_BYTES = 65_536

# toxiproxy's kind of each fault, and its attributes by our settings: ms, kB/s and bytes; a slicer's delay is in µs.
_TOXICS: dict[FaultKind, tuple[str, dict[str, str]]] = {
    FaultKind.WIRE_LATENCY: ("latency", {"latency": "late_ms"}),
    FaultKind.WIRE_JITTER: ("latency", {"latency": "late_ms", "jitter": "jitter_ms"}),
    FaultKind.WIRE_BANDWIDTH: ("bandwidth", {"rate": "kb_per_s"}),
    FaultKind.WIRE_SLOW_CLOSE: ("slow_close", {"delay": "late_ms"}),
    FaultKind.WIRE_TIMEOUT: ("timeout", {"timeout": "late_ms"}),
    FaultKind.WIRE_RESET: ("reset_peer", {"timeout": "late_ms"}),
    FaultKind.WIRE_SLICER: ("slicer", {"average_size": "bytes", "delay": "late_ms"}),
    FaultKind.WIRE_LIMIT: ("limit_data", {"bytes": "bytes"}),
}
_SHOWN_BY_TIME = (FaultKind.WIRE_LATENCY, FaultKind.WIRE_BANDWIDTH, FaultKind.WIRE_SLICER)
_SIZE_VARIATION = 4
_US_PER_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence that a fault had an effect: whether it was observed, and a sentence with figures.

    broken: the number of clients' requests that it affected.
    """

    fault: Fault
    happened: bool
    seen: str
    broken: int = 0


def _toxic(fault: Fault) -> FaultKind:
    """The client-side kind of a wire fault, which may also be one between servers and storage."""
    return FaultKind(fault.kind.value.removeprefix("storage-"))


def _attributes(fault: Fault) -> dict[str, int]:
    names = _TOXICS[_toxic(fault)][1] if _toxic(fault) in _TOXICS else {}
    found = {name: getattr(fault.settings, setting) for name, setting in names.items()}
    if fault.kind is FaultKind.WIRE_SLICER:
        found |= {"size_variation": _SIZE_VARIATION, "delay": found["delay"] * _US_PER_MS}
    return found


def _stream(fault: Fault) -> Stream:
    return "upstream" if fault.settings.upstream else "downstream"


@contextlib.contextmanager
def afflicted(wire: ProxiedWire, fault: Fault) -> Iterator[None]:
    """A context in which the fault is on the wire; after a lossy fault every connection is new."""
    if _toxic(fault) is FaultKind.WIRE_DOWN:
        wire.cut()
        try:
            yield
        finally:
            wire.mend()
        return
    name, _ = _TOXICS[_toxic(fault)]
    try:
        with wire.toxic(name, _stream(fault), fault.settings.percent / 100, **_attributes(fault)):
            yield
    finally:
        if fault.kind.row.fails:
            wire.sever()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request with its result and times.

    end: a whole reply; refused, reset or closed before one; silent until patience ran out.
    status: of the reply, 0 for none.
    received: its bytes.
    pieces: in how many reads they came.
    took_s: until the end.
    lingered_s: from the end of a whole reply until the connection was closed by the other side, -1 when it was not or
        nobody waited.
    """

    end: End
    status: int
    received: int
    pieces: int
    took_s: float
    lingered_s: float


def exchange(port: int, request: bytes, patience_s: float, linger: bool = False) -> Exchange:
    """The result of a request to a port of 127.0.0.1; connection errors are part of it and not raised.

    linger: also wait for the end of the connection after a whole reply.
    """
    began = time.monotonic()
    data, pieces, took_s, lingered_s = b"", 0, 0.0, -1.0
    end: End = "silent"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(request)
            while not _whole(data):
                sock.settimeout(max(0.001, patience_s - (time.monotonic() - began)))
                piece = sock.recv(_PIECE_BYTES)
                if not piece:
                    end = "closed"
                    break
                data, pieces = data + piece, pieces + 1
            else:
                end = "reply"
            took_s = time.monotonic() - began
            if linger and end == "reply":
                lingered_s = _lingered_s(sock, patience_s)
    except ConnectionRefusedError:
        end = "refused"
    except (ConnectionResetError, BrokenPipeError):
        end = "reset"
    except TimeoutError:
        end = "silent"
    took_s = took_s or time.monotonic() - began
    status = int(data[9:12]) if data[:5] == b"HTTP/" and data[9:12].isdigit() else 0
    return Exchange(end=end, status=status, received=len(data), pieces=pieces, took_s=took_s, lingered_s=lingered_s)


def _lingered_s(sock: socket.socket, patience_s: float) -> float:
    """The seconds until the other side closes after we did; -1 when it does not."""
    began = time.monotonic()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(patience_s)
        while sock.recv(_PIECE_BYTES):
            pass
        return time.monotonic() - began
    return -1.0


def _whole(data: bytes) -> bool:
    """Whether an HTTP reply is complete, by its length or its last chunk."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    length = _LENGTH.search(head)
    return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")


def undisturbed(wire: ProxiedWire, fault: Fault, request: bytes) -> Exchange:
    """The fastest of some exchanges before a fault, or the first without a reply."""
    linger = fault.kind is FaultKind.WIRE_SLOW_CLOSE
    seen: list[Exchange] = []
    for _ in range(TRIES):
        seen.append(exchange(wire.port, request, CALM_S, linger))
        if seen[-1].end != "reply":
            return seen[-1]
    return min(seen, key=lambda calm: max(calm.took_s, calm.lingered_s))


def observe(port: int, fault: Fault, request: bytes, calm: Exchange) -> tuple[bool, str]:
    """Whether the active fault shows in an exchange, and a sentence. calm: the same exchange before the fault."""
    seen = "nothing was tried"
    for _ in range(TRIES if fault.settings.percent == 100 else TRIES_OF_SOME):
        happened, seen = _shown(port, fault, request, calm)
        if happened:
            return True, seen
    return False, seen


def _shown(port: int, fault: Fault, request: bytes, calm: Exchange) -> tuple[bool, str]:
    given, upstream = _attributes(fault), fault.settings.upstream
    if fault.kind is FaultKind.WIRE_JITTER:
        return _jitters(port, given, request)
    least_s = _least_s(fault, len(request), calm.received)
    patience_s = SILENCE_S if given.get("timeout") == 0 else PATIENCE_S + 2 * least_s
    met = exchange(port, request, patience_s, linger=fault.kind is FaultKind.WIRE_SLOW_CLOSE)
    took = f"{met.took_s * 1000:.0f} ms, before it {calm.took_s * 1000:.0f} ms"
    # A complete reply came no sooner than the fault allows, although it did without the fault.
    late = met.end == "reply" and met.took_s >= least_s * SHARE > calm.took_s
    match _toxic(fault):
        case FaultKind.WIRE_LATENCY:
            return late, f"a reply took {took}"
        case FaultKind.WIRE_SLICER if not upstream:
            largest = given["average_size"] + given["size_variation"]
            many = met.pieces >= max(calm.pieces + 1, met.received // largest // 2)
            return many, f"{met.received} bytes in {met.pieces} pieces, before it {calm.pieces}"
        case FaultKind.WIRE_BANDWIDTH | FaultKind.WIRE_SLICER:
            return late, f"{len(request) if upstream else met.received} bytes took {took}"
        case FaultKind.WIRE_SLOW_CLOSE:
            lingers = met.end == "reply" and met.lingered_s >= given["delay"] / 1e3 * SHARE > calm.lingered_s >= 0
            return lingers, f"closed after {met.lingered_s * 1e3:.0f} ms, before it {calm.lingered_s * 1e3:.0f} ms"
        case FaultKind.WIRE_TIMEOUT:
            gone = met.end in ("silent", "closed", "reset") and met.received == 0
            return gone and met.took_s >= least_s * SHARE, f"{met.end} without a byte after {met.took_s * 1e3:.0f} ms"
        case FaultKind.WIRE_RESET:
            return met.end == "reset", f"{met.end} after {met.took_s * 1e3:.0f} ms"
        case FaultKind.WIRE_LIMIT:
            cut = met.end in ("closed", "reset") or 400 <= met.status < 500
            fits = met.status != 200 if upstream else met.received <= given["bytes"]
            return cut and fits, f"{met.end} with {met.received} bytes of a reply (status {met.status})"
        case _:
            return met.end == "refused", met.end


def _least_s(fault: Fault, asked: int, answered: int) -> float:
    """The least seconds that an exchange of so many bytes takes under a fault, 0 where there is no such bound."""
    given = _attributes(fault)
    size = asked if fault.settings.upstream else answered
    match _toxic(fault):
        case FaultKind.WIRE_LATENCY:
            return given["latency"] / 1e3
        case FaultKind.WIRE_BANDWIDTH:
            return size / given["rate"] / 1e3
        case FaultKind.WIRE_SLICER:
            return max(size // (given["average_size"] + given["size_variation"]) - 1, 0) * given["delay"] / 1e6
        case FaultKind.WIRE_TIMEOUT:
            return given["timeout"] / 1e3 or SILENCE_S
        case _:
            return 0.0


def _jitters(port: int, given: dict[str, int], request: bytes) -> tuple[bool, str]:
    took_ms = [exchange(port, request, PATIENCE_S).took_s * 1e3 for _ in range(SAMPLES)]
    apart_ms = max(took_ms) - min(took_ms)
    least_ms = (given["latency"] - given["jitter"]) * SHARE
    words = f"{SAMPLES} replies took {', '.join(f'{ms:.0f}' for ms in took_ms)} ms"
    return apart_ms >= given["jitter"] / 5 and min(took_ms) >= least_ms, words


@dataclass(frozen=True, slots=True)
class WireFaults:
    """Applies faults to a wire one after another and records them in the history.

    process: the process to which the history attributes them.
    request: a request without side effects that gets a complete reply; it shows whether a fault works.
    wait: lets time pass.
    life: index of the start event of the server whose requests are on the wire.
    unknown: a request that any server refuses at once, for delays that a slow answer would hide.
    """

    recorder: Recorder
    process: str
    request: bytes
    wait: Callable[[float], object]
    life: int
    unknown: bytes = b""

    def strike(self, wire: ProxiedWire, fault: Fault) -> Evidence:
        """Apply a fault, check that it works, keep it for its duration, remove it; not on a wire without replies."""
        request = self.request
        calm = undisturbed(wire, fault, request)
        if calm.end != "reply":
            return Evidence(fault=fault, happened=False, seen=f"{calm.end} before the fault was put on")
        if fault.kind in _SHOWN_BY_TIME and self.unknown:
            refused = undisturbed(wire, fault, self.unknown)
            if refused.end == "reply" and refused.took_s < calm.took_s:
                request, calm = self.unknown, refused
        with self.span(wire, fault) as came:
            happened, seen = observe(wire.port, fault, request, calm)
            self.wait(fault.settings.for_ms / 1000)
        return Evidence(fault=fault, happened=happened, seen=seen, broken=came[0])

    @contextlib.contextmanager
    def span(self, wire: ProxiedWire, fault: Fault) -> Iterator[list[int]]:
        """A context in which the fault is active and recorded; afterwards its list holds how many requests it broke."""
        came: list[int] = []
        began = self.recorder.fault(self.process, fault.kind.value, "begin", error=described(fault))
        lossy, of_clients = fault.kind.row.fails, fault.kind.row.cls == "wire"
        cut: frozenset[int] = frozenset()
        try:
            with afflicted(wire, fault):
                yield came
                if lossy and of_clients:
                    cut = frozenset(filter(self._is_here, self.recorder.open_calls()))
        finally:
            lost = self._never_ended(cut)
            if lossy and of_clients:  # One that was refused just now may be on its way into the history.
                self._never_ended(frozenset(filter(self._is_here, self.recorder.open_calls())) - cut)
            with self.recorder.lock:
                came.append(self._tell_broken(began, lossy, lost) if of_clients else 0)
                self.recorder.fault(self.process, fault.kind.value, "end")

    def _never_ended(self, lost: frozenset[int]) -> frozenset[int]:
        """The invocations among `lost` that are still open although every connection was just cut."""
        deadline = time.monotonic() + NOTICED_S
        while lost and time.monotonic() < deadline:
            time.sleep(POLL_S)
            lost &= frozenset(self.recorder.open_calls())
        return lost

    def _is_here(self, invoke: int) -> bool:
        """Whether a request was sent to the server behind the wire."""
        return self.recorder.events[invoke].caused_by == self.life

    def _tell_broken(self, began: int, lossy: bool, lost: frozenset[int]) -> int:
        """Record each request that the fault disturbed; the recorder's lock is held."""
        broken = set(lost)
        for event in self.recorder.events[max(began, 0) :]:
            if event.role == "client" and event.kind in ("info", "fail") and event.caused_by is not None:
                answered = (event.error or "")[:3].isdigit()
                if (lossy or not answered) and self._is_here(event.caused_by):
                    broken.add(event.caused_by)
        for invoke in sorted(broken):
            self.recorder.record(self.process, "nemesis", "fault", BROKEN, caused_by=invoke)
        return len(broken)


def described(fault: Fault) -> str:
    """The fault in a few words: "latency=200 upstream 0.5"."""
    words = [f"{name}={value}" for name, value in _attributes(fault).items()]
    words += [_stream(fault)] if words else []
    return " ".join(words + ([f"toxicity={fault.settings.percent / 100}"] if fault.settings.percent < 100 else []))
