"""Wires: each toxic of a real toxiproxy server affects real bytes, is recorded, and ends when it is healed."""

from __future__ import annotations

import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import FAULT_CLASS, Fault, FaultKind, Step, drawable
from marker_sim.history import Header, History
from marker_sim.plan import PLACES
from marker_sim.worlds.proxies import install
from marker_sim.worlds.proxies.faults import exchange
from properties import tools
from properties.faces.history import HistoryIndex
from properties.faces.search import Draws, draw, kinds_of
from properties.faces.surroundings import CACHE_VARIABLE
from properties.faces.worlds import BROKEN, Recorder, WireFaults, afflicted, described

pytest.importorskip("urllib3", reason="needs urllib3: pip install '.[foreign]'")

from properties.faces.worlds import ProxiedWire, Toxiproxy

BODY = b"x" * 150
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
REQUEST = b"GET /echo HTTP/1.1\r\nHost: kit\r\nX-Padding: " + b"p" * 900 + b"\r\n\r\n"
UNKNOWN = REQUEST.replace(b"/echo", b"/unknown")
ENDS_S = 5.0
SLOW_S = 0.6

needs_server = tools.needs(tools.wires())


class Upstream:
    """Answers each whole request with `REPLY`; counts what it read. A context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.read_bytes = 0
        self.whole = 0
        self.ended = threading.Event()

    def __enter__(self) -> Upstream:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self.ended.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        data = b""
        with sock:
            try:
                while piece := sock.recv(65_536):
                    self.read_bytes += len(piece)
                    data += piece
                    while b"\r\n\r\n" in data:
                        asked, _, data = data.partition(b"\r\n\r\n")
                        self.whole += 1
                        if asked.startswith(b"GET /slow"):
                            time.sleep(SLOW_S)
                        sock.sendall(REPLY)
            except OSError:
                return


@pytest.fixture(scope="module")
def toxiproxy() -> Iterator[Toxiproxy]:
    with Toxiproxy() as server:
        yield server


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture
def wire(toxiproxy: Toxiproxy, upstream: Upstream) -> ProxiedWire:
    return toxiproxy.proxy(f"w{upstream.port}-{time.monotonic_ns()}", upstream.port)


def fine(port: int) -> bool:
    met = exchange(port, REQUEST, 5.0)
    return met.end == "reply" and met.received == len(REPLY)


def on_wire(kind: FaultKind, **settings: Any) -> Fault:
    return Fault.of(kind, "wire", Step(1), **settings)


SLOW = (FaultKind.WIRE_LATENCY, FaultKind.WIRE_BANDWIDTH)
CLIENTS = set(kinds_of("wire"))
FAULTS = (
    *(on_wire(FaultKind.WIRE_LATENCY, late_ms=200, upstream=way) for way in (True, False)),
    on_wire(FaultKind.WIRE_JITTER, late_ms=100, jitter_ms=80),
    on_wire(FaultKind.WIRE_BANDWIDTH, kb_per_s=3, upstream=True),
    on_wire(FaultKind.WIRE_BANDWIDTH, kb_per_s=1),
    *(on_wire(FaultKind.WIRE_SLOW_CLOSE, late_ms=200, upstream=way) for way in (True, False)),
    *(on_wire(FaultKind.WIRE_TIMEOUT, late_ms=150, upstream=way) for way in (True, False)),
    on_wire(FaultKind.WIRE_TIMEOUT, upstream=True, percent=50),
    *(on_wire(FaultKind.WIRE_RESET, upstream=way) for way in (True, False)),
    *(on_wire(FaultKind.WIRE_SLICER, bytes=20, late_ms=4, upstream=way) for way in (True, False)),
    *(on_wire(FaultKind.WIRE_LIMIT, bytes=40, upstream=way) for way in (True, False)),
    on_wire(FaultKind.WIRE_DOWN),
)


@needs_server
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind.value} {described(fault)}".strip())
def test_each_fault_is_seen_while_it_is_on_and_never_before_or_after(wire: ProxiedWire, fault: Fault) -> None:
    recorder = Recorder()
    faults = WireFaults(recorder, "wire test", REQUEST, lambda seconds: None, 0)
    assert fine(wire.port)
    evidence = faults.strike(wire, fault)
    assert evidence.happened, evidence.seen
    assert fine(wire.port)
    begin, end = (event for event in recorder.events if event.operation == fault.kind.value)
    assert (begin.value, end.value, begin.process) == ("begin", "end", "wire test")


@needs_server
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind.value} {described(fault)}".strip())
def test_a_fault_that_is_not_on_the_wire_is_not_seen(
    wire: ProxiedWire, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marker_sim.worlds.proxies.faults.TRIES_OF_SOME", 2)
    monkeypatch.setattr("marker_sim.worlds.proxies.faults.afflicted", lambda wire, fault: nullcontext())
    evidence = WireFaults(Recorder(), "wire test", REQUEST, lambda seconds: None, 0).strike(wire, fault)
    assert not evidence.happened, evidence.seen


@needs_server
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.kind in SLOW], ids=described)
def test_a_delay_is_seen_beside_a_server_that_is_slower(wire: ProxiedWire, fault: Fault) -> None:
    slow = REQUEST.replace(b"/echo", b"/slow")
    evidence = WireFaults(Recorder(), "wire test", slow, lambda seconds: None, 0, UNKNOWN).strike(wire, fault)
    assert evidence.happened, evidence.seen
    alone = WireFaults(Recorder(), "wire test", slow, lambda seconds: None, 0).strike(wire, fault)
    assert not alone.happened, alone.seen


@needs_server
def test_a_limit_upstream_lets_so_many_bytes_through_and_no_request(wire: ProxiedWire, upstream: Upstream) -> None:
    fault = on_wire(FaultKind.WIRE_LIMIT, bytes=40, upstream=True)
    with afflicted(wire, fault):
        assert exchange(wire.port, REQUEST, 2.0).end in ("closed", "reset")
    until = time.monotonic() + 5.0
    while upstream.read_bytes < 40 and time.monotonic() < until:  # It may read later than the client sees the end.
        time.sleep(0.01)
    assert (upstream.read_bytes, upstream.whole) == (40, 0)


@needs_server
def test_a_reply_lost_downstream_was_a_request_that_arrived_once(wire: ProxiedWire, upstream: Upstream) -> None:
    fault = on_wire(FaultKind.WIRE_RESET)
    with afflicted(wire, fault):
        assert exchange(wire.port, REQUEST, 2.0).end == "reset"
    assert upstream.whole == 1, "nothing sends a request again"


@needs_server
def test_a_silent_wire_lets_go_of_its_requests_when_it_heals(wire: ProxiedWire) -> None:
    fault = on_wire(FaultKind.WIRE_TIMEOUT, upstream=True)
    ends: list[str] = []
    with afflicted(wire, fault):
        thread = threading.Thread(target=lambda: ends.append(exchange(wire.port, REQUEST, 60.0).end))
        thread.start()
        assert exchange(wire.port, REQUEST, 0.2).end == "silent"
    thread.join(ENDS_S)
    assert ends and ends[0] in ("closed", "reset")


@needs_server
def test_requests_that_a_lossy_fault_may_have_swallowed_are_told(wire: ProxiedWire) -> None:
    recorder = Recorder()
    server = recorder.record("server-1", "server", "observe", "started")
    open_before = recorder.record("client-0", "client", "invoke", "create", path="a", caused_by=server)
    other = recorder.record("server-2", "server", "observe", "started")
    faults = WireFaults(recorder, "wire test", REQUEST, lambda seconds: None, server)
    with faults.span(wire, on_wire(FaultKind.WIRE_LATENCY, late_ms=10)):
        answered = recorder.record("client-1", "client", "invoke", "create", path="b", caused_by=server)
        recorder.record("client-1", "client", "ok", "create", path="b", value="created", caused_by=answered)
    assert not [event for event in recorder.events if event.operation == BROKEN]
    with faults.span(wire, on_wire(FaultKind.WIRE_DOWN)) as came:
        failed = recorder.record("client-2", "client", "invoke", "create", path="c", caused_by=server)
        recorder.record("client-2", "client", "info", "create", path="c", error="refused", caused_by=failed)
        elsewhere = recorder.record("client-3", "client", "invoke", "create", path="d", caused_by=other)
        recorder.record("client-3", "client", "info", "create", path="d", error="refused", caused_by=elsewhere)
    broken = {event.caused_by for event in recorder.events if event.operation == BROKEN}
    assert broken == {open_before, failed} and came == [2]
    view = HistoryIndex(History(Header(), recorder.close()))
    assert view.touched.keys() == broken
    assert {fault.cls for fault in view.faults} == {"wire"}


def test_a_request_that_was_refused_while_the_wire_was_down_is_broken_by_it_although_it_is_told_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()

    def told() -> None:
        recorder.record("c0", "client", "info", "exists", "t", "001", error="refused by the proxy", caused_by=asked[0])

    asked = list[int]()

    @contextmanager
    def heals_late(wire: ProxiedWire, fault: Fault) -> Iterator[None]:
        yield
        asked.append(recorder.record("c0", "client", "invoke", "exists", "t", "001", caused_by=0))
        threading.Timer(0.1, told).start()

    monkeypatch.setattr("marker_sim.worlds.proxies.faults.afflicted", heals_late)
    faults = WireFaults(recorder, "wire test", REQUEST, lambda seconds: None, 0)
    with faults.span(cast(ProxiedWire, None), on_wire(FaultKind.WIRE_DOWN)) as came:
        pass
    assert came == [1] and [e.caused_by for e in recorder.events if e.operation == BROKEN] == asked


@needs_server
def test_several_servers_in_one_process_are_kept_apart(upstream: Upstream) -> None:
    with Toxiproxy() as one, Toxiproxy() as other:
        first, second = one.proxy("same", upstream.port), other.proxy("same", upstream.port)
        first.cut()
        assert exchange(first.port, REQUEST, 2.0).end == "refused" and fine(second.port)
        pids = (one.pid, other.pid)
    assert not any(psutil.pid_exists(pid) for pid in pids)


@needs_server
def test_the_server_is_gone_when_the_block_is_left_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError), Toxiproxy() as server:
        pid = server.pid
        raise ZeroDivisionError
    assert not psutil.pid_exists(pid)


@needs_server
def test_a_call_to_a_server_that_stands_still_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marker_sim.worlds.proxies.toxiproxy.CALL_S", 0.2)
    with Toxiproxy() as server:
        process = psutil.Process(server.pid)
        process.suspend()
        deadline = time.monotonic() + ENDS_S
        while process.status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        with pytest.raises(HarnessError, match="did not answer POST /reset"):
            server.call("POST", "/reset")


@needs_server
def test_a_wire_without_replies_shows_no_fault_and_blames_nobody(wire: ProxiedWire) -> None:
    wire.cut()
    recorder = Recorder()
    fault = on_wire(FaultKind.WIRE_DOWN)
    evidence = WireFaults(recorder, "wire test", REQUEST, lambda seconds: None, 0).strike(wire, fault)
    assert not evidence.happened and "before the fault was put on" in evidence.seen and not recorder.events


def test_two_turns_of_a_seed_draw_every_kind_once_and_the_same_seed_the_same() -> None:
    def both(seed: int) -> tuple[Fault, ...]:
        return tuple(fault for turn in (0, 1) for fault in draw(Draws(seed), "wire", turn))

    drawn = [both(seed) for seed in range(200)]
    assert drawn == [both(seed) for seed in range(200)]
    assert all({fault.kind for fault in faults} == CLIENTS and len(faults) == 9 for faults in drawn)
    assert {fault.settings.upstream for faults in drawn for fault in faults} == {True, False}
    partly = {fault.kind for faults in drawn for fault in faults if fault.settings.percent < 100}
    assert partly == {kind for kind in CLIENTS if kind.row.fails} - {FaultKind.WIRE_DOWN}


def test_every_wire_fault_counts_as_one_of_the_wire() -> None:
    assert {FAULT_CLASS[word] for word in (BROKEN, *(kind.value for kind in CLIENTS))} == {"wire"}
    assert {fault.kind.value for fault in draw(Draws(1), "storage", 1)} == {
        "storage-wire-latency",
        "storage-wire-reset-peer",
        "storage-wire-down",
    }


def test_no_plan_of_the_simulated_world_has_what_a_proxy_does() -> None:
    assert not any(kind in drawable(*place) for place in PLACES for kind in FaultKind if kind.row.family == "proxy")


def fake_go(folder: Path, script: str) -> None:
    folder.mkdir()
    go = folder / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(go.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path / "cache" / "toxiproxy"


def test_a_build_appears_in_the_cache_as_a_whole_and_only_once(tmp_path: Path, cache: Path) -> None:
    fake_go(
        tmp_path / "bin",
        f'echo "$@" >> "{tmp_path}/asked"\nprintf "#!/bin/sh\\n" > "$GOBIN/server"\nchmod +x "$GOBIN/server"',
    )
    assert install.find_server() is None and "doctor --install" in install.missing()
    said: list[str] = []
    program = install.install_server(said.append)
    assert program == install.find_server() == install.install_server(said.append)
    assert sorted(path.name for path in cache.iterdir()) == ["lock", f"toxiproxy-server-{install.VERSION}"]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == len(said) == 1 and f"{install.MODULE}/cmd/server@v{install.VERSION}" in asked[0]


def test_a_build_that_fails_is_a_sentence_and_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    fake_go(tmp_path / "bin", 'echo half > $GOBIN/server\necho "go: no such host" >&2\nexit 1')
    with pytest.raises(HarnessError, match=r"cannot be built \(go ended with 1\): go: no such host; check the network"):
        install.install_server(lambda line: None)
    assert [path.name for path in cache.iterdir()] == ["lock"]
    assert install.find_server() is None


def test_without_go_the_sentence_says_how_to_get_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(HarnessError, match=r"needs Go, and there is no go on PATH; install Go 1\.23"):
        install.install_server(lambda line: None)


def test_a_server_on_the_path_is_found(tmp_path: Path, cache: Path) -> None:
    fake_go(tmp_path / "bin", "exit 0")
    (tmp_path / "bin" / "go").rename(tmp_path / "bin" / install.PROGRAM)
    assert install.find_server() == tmp_path / "bin" / install.PROGRAM


def test_a_program_that_ends_at_once_is_a_sentence(tmp_path: Path) -> None:
    fake_go(tmp_path / "bin", "echo no such flag; exit 3")
    with (
        pytest.raises(HarnessError, match="toxiproxy ended with 3 at once; it said: no such flag"),
        Toxiproxy(tmp_path / "bin" / "go"),
    ):
        raise AssertionError("it did not start")
