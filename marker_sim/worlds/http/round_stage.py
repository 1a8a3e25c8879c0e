"""The stage of one round against real servers: its servers, its storage, its clients, and the phases it goes through.

    start ─► calm load ─► what the kind of round says ─► healed ─► probes ─► end ─► look, kill, look

What each kind of round says is in round_types.py, what is stored and how storage fails in the round's world.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from marker_sim.judges.promises.profiles import Profile
from marker_sim.names import MarkerDirectory, MarkerType, marker_name
from marker_sim.seeds import plan_seed
from marker_sim.worlds.http.fault_injector import NobodyLives, ServerFaultInjector
from marker_sim.worlds.http.http_client import HttpConnection, HttpOutcome
from marker_sim.worlds.http.load import PARTITIONS, READ_ONLY, Load, LoadedDirectory
from marker_sim.worlds.http.servers import Fleet, Server
from marker_sim.worlds.http.world import RoundStorage
from marker_sim.worlds.recorder import Recorder

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Toxiproxy

FAILING = ("storage", "directory")
CALM_S = 1.2
LOOK_EVERY_S = 0.05
ECHO_EVERY_S = 0.05
ECHO_LATE_S = 2.0
PROBE_SPACE = 2.5
HANGING_GRACE_S = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round is: everything that it chooses follows from `seed`, the campaign's, `number` and `met`.

    faults_s: how long the faults may take.
    deadline: when the campaign has to be over (time.monotonic).
    met: the places that the campaign met so far.
    """

    number: int
    kind: str
    seed: int
    num_threads: int
    interval_ms: int
    faults_s: float
    deadline: float
    met: frozenset[str] = frozenset()

    @property
    def drawn(self) -> int:
        """The seed of its own."""
        return plan_seed(self.seed, self.number)

    @property
    def line(self) -> str:
        """Which it is, for whoever watches."""
        return f"round {self.number}: {self.kind}, {self.num_threads} threads, {self.interval_ms} ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSystem:
    """The system under test as a round needs it.

    world: the storage under a round, made once the stage has a recorder and a fault injector.
    identity: whether the server honours the identity of a request, our extension `requestid`.
    batching: what its batches are held to, and why.
    """

    name: str
    version: str
    profile: Profile
    world: Callable[[RoundStage], World]
    identity: bool = False
    batching: dict[str, str] = field(default_factory=dict)


class World(RoundStorage, Protocol):
    """Storage that knows how it fails.

    fail        makes storage fail everywhere and heals it, in every way it knows, until a time (time.monotonic) at
                least once
    fail_below  the same for one marker directory that nobody has written to, while all others are well
    """

    def fail(self, stage: RoundStage, until: float) -> None: ...
    def fail_below(self, stage: RoundStage, place: MarkerDirectory, until: float) -> None: ...


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


class RoundStage:
    """The parts of one round: recorder, servers, storage, clients, and the threads that look and listen.

    failing: a directory that kinds of round which need a fresh one keep from the load until they `release` it.
    doors: what stands before servers, None for nothing.
    """

    def __init__(self, spec: Round, system: ForeignSystem, fleet: Fleet) -> None:
        self.spec = spec
        self.rng = random.Random(f"{spec.drawn} {spec.kind}")
        self.fleet = fleet
        self.recorder = Recorder()
        self.table = table = f"r{spec.number}"
        self.main = MarkerDirectory(f"{table}/t0", "20260101000000001")
        self.other = MarkerDirectory(f"{table}/t0", "20260101000000002")
        self.churned = MarkerDirectory(f"{table}/t1", "20260101000000003")
        self.failing = MarkerDirectory(f"{table}/t2", "20260101000000004")
        self.hostile = MarkerDirectory(f"{table}/t3", "20260101000000005")
        self.spelled = MarkerDirectory(f"{table}/t4", "20260101000000006")
        self.places = (self.main, self.other, self.churned, self.failing, self.hostile, self.spelled)
        self.injector = ServerFaultInjector(fleet, self.recorder, self.rng, spec.num_threads, spec.interval_ms, table)
        self.world = self.injector.world = system.world(self)
        self.targets = (
            LoadedDirectory(place=self.main, weight=6),
            LoadedDirectory(place=self.other, beyond_latin=True, weight=3),
            LoadedDirectory(place=self.churned, deletable=True, weight=6 if spec.kind == "churn" else 1),
            LoadedDirectory(place=self.failing, weight=3 if spec.kind in FAILING else 1),
        )
        self.load = Load(
            self.recorder, self.world.address, self.targets, spec.drawn, self.injector.on_ack, system.identity
        )
        self.injector.load = self.load
        self.doors: ServerProxies | None = None
        self._asked = itertools.count()
        self._over = threading.Event()
        self._watchers = [
            threading.Thread(target=self._watch, args=(self._keep_looking,), daemon=True),
            threading.Thread(target=self._watch, args=(self._listen_to_echo,), daemon=True),
        ]

    def play(self, faults: Callable[[RoundStage, float], None]) -> None:
        """All phases of the round. faults: what its kind does until a time, while clients ask."""
        injector, spec = self.injector, self.spec
        injector.start()
        self._phase("faults")
        for watcher in self._watchers:
            watcher.start()
        if spec.kind in FAILING or (spec.kind == "crash" and self.world.interceptor is not None):
            self.load.targets = tuple(target for target in self.targets if target.place != self.failing)
        self.load.start()
        injector.wait(CALM_S)
        self.recorder.calm = False
        until = min(time.monotonic() + spec.faults_s, spec.deadline)
        with contextlib.suppress(NobodyLives):
            faults(self, until)
        if self.world.interceptor is not None:
            self.world.interceptor.disarm()
        self.release()
        self._phase("healed")
        self.load.pause()
        self._probe()
        self._close()

    def leave(self) -> None:
        """Stop every thread and server of the round and remove its files."""
        self._over.set()
        try:
            self.load.end()
            for server in self.injector.servers:
                server.kill()
            for watcher in self._watchers:
                if watcher.ident is not None:
                    watcher.join(2.0)
        finally:
            self.world.close()

    def release(self) -> None:
        """The load knows `failing` from now on."""
        self.load.targets = self.targets

    def _phase(self, name: str) -> None:
        self.recorder.record("kit", "kit", "observe", "phase", value=name)

    def ask_once(
        self, operation: str, place: MarkerDirectory, name: str | bytes, address: str = "", target: str = ""
    ) -> HttpOutcome | None:
        """One request of a client that is used for nothing else; None when nobody is left to ask.

        address: how the directory is written, "" for the usual way.
        target: what a hostile one must leave as it is.
        """
        if not self.injector.servers:
            return None  # It ended by itself; that is recorded.
        server = self.injector.servers[0]
        connection = HttpConnection(server.door, timeout_s=10.0, proxied=server.proxied)
        process = f"once-{next(self._asked)}"
        outcome = self.load.once(
            process, server, operation, place, name, connection, address=address, target=target
        )  # fmt: skip
        connection.abort()
        return outcome

    def _probe(self) -> None:
        """num_threads + 1 creates for each directory, one a batch, all directories at once; then wait for open ones.

        A create that is not answered does not hold up the next: it is sent when a batch interval has passed.
        """
        injector, spec = self.injector, self.spec
        injector.check()
        self._phase("probe")
        began_ns = self.recorder.now_ns()
        if not injector.servers:
            return
        threads: list[threading.Thread] = []
        connections: list[HttpConnection] = []
        places = [place for place in self.places if place not in (self.hostile, self.spelled)]
        for number in range(spec.num_threads + 1):
            started = time.monotonic()
            batch = []
            for place in places:
                connections.append(HttpConnection(injector.servers[0].door, proxied=injector.servers[0].proxied))
                args = (number, place, connections[-1])
                batch.append(threading.Thread(target=self._probe_one, args=args, daemon=True))
                batch[-1].start()
            threads += batch
            for thread in batch:
                left = spec.interval_ms / 1000 * PROBE_SPACE - (time.monotonic() - started)
                thread.join(max(left, 0.0))
            injector.check()
        bound_s = self.recorder.bound_ms() / 1000 + HANGING_GRACE_S
        bound_s = min(bound_s, max(spec.deadline - time.monotonic(), 1.0))
        injector.wait(bound_s, lambda: not self.recorder.open_since(self.recorder.now_ns()))
        if injector.servers and not self.recorder.open_since(began_ns):
            self._list_all()

    def _probe_one(self, number: int, place: MarkerDirectory, connection: HttpConnection) -> None:
        partition = PARTITIONS[number % len(PARTITIONS)]
        name = marker_name(partition, f"p{number}_0-0-{number}_001.parquet", MarkerType.MERGE)
        server = self.injector.servers[0]
        self.load.once(f"probe-{self.places.index(place)}-{number}", server, "create", place, name, connection)
        connection.abort()

    def _list_all(self) -> None:
        for place in self.places:
            for operation in READ_ONLY:
                self.ask_once(operation, place, "")

    def _close(self) -> None:
        self.injector.check()
        self._phase("end")
        self.recorder.clients_over = True
        self._over.set()
        for watcher in self._watchers:
            watcher.join(5.0)
        for place in self.places:
            if self.injector.servers:
                self.world.reader.look(place)
        self.injector.end()
        for place in self.places:
            self.world.reader.look_at_dead(place)
        self.recorder.close()

    def _watch(self, body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:
            self.injector.trouble.append(error)

    def _keep_looking(self) -> None:
        """Look at every directory in turn, so that there is a look after nearly every answer."""
        while not self._over.is_set():
            for place in self.places:
                if self.injector.servers and not self._over.is_set():
                    self.world.reader.look(place)
            self._over.wait(LOOK_EVERY_S)

    def _listen_to_echo(self) -> None:
        """When the kit itself is not woken in time, slowness of the server proves nothing."""
        while not self._over.is_set():
            before = time.monotonic()
            self._over.wait(ECHO_EVERY_S)
            if time.monotonic() - before > ECHO_LATE_S:
                self.recorder.record("kit", "kit", "observe", "echo-late")
