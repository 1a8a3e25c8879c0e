"""Client threads that ask a server for what executors and drivers ask it for, and a little of what they should not.

Each thread is one client process of the history at a time: after an unknown end it goes on under a new name. Names are
mostly new, sometimes the same as another client asks for at that moment, sometimes a resend of its own; partition paths
are everything Hudi lets a user have. A thread that hangs in a request is replaced, so that the load goes on.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from marker_sim.names import MarkerDirectory, MarkerType, marker_name
from marker_sim.worlds.http.http_client import READ_ONLY, HttpConnection
from marker_sim.worlds.http.requests import Requests
from marker_sim.worlds.http.servers import Server

PARTITIONS = (
    "",
    "2020/01/01",
    "dt=2020-01-01/hh=07",
    "city=S%C3%A3o%20Paulo",
    "größe=12/été",
    "a b/c  d",
    "x+y",
    "a%2Fb",
    "k=v&w=u",
    "#tag",
    "what?",
    "semi;colon,comma='\"",
)
BEYOND_LATIN = "größe=大/Ω"
CLIENTS = 16
CLIENTS_MAX = 96
STUCK_S = 1.0
IDLE_S = 0.02
STOP_S = 1.0
HOT_NAMES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDirectory:
    """A marker directory under load.

    beyond_latin: some of its partition paths are outside
    ISO-8859-1; only one directory has them, so that a server that garbles them can still be judged in the others.
    """

    place: MarkerDirectory
    beyond_latin: bool = False
    weight: int = 4


class Load:
    """The clients of one round.

    servers: those that live now.

    on_ack: called by the thread that got the answer to a create, right after it was recorded.
    """

    def __init__(
        self,
        requests: Requests,
        targets: tuple[LoadedDirectory, ...],
        seed: int,
        on_ack: Callable[[MarkerDirectory], None],
    ) -> None:
        self._requests = requests
        self.servers: tuple[Server, ...] = ()
        self.running = threading.Event()
        self._targets = targets
        self._seed = seed
        self._on_ack = on_ack
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._since: dict[str, float] = {}
        self._connections: dict[int, HttpConnection] = {}
        self._hot = 0

    def start(self) -> None:
        """Begin with `CLIENTS` threads."""
        self.running.set()
        for _ in range(CLIENTS):
            self._spawn()

    def refill(self) -> None:
        """Replace threads that hang in a request, so that the load stays what it was."""
        now = time.monotonic()
        stuck = sum(now - since > STUCK_S for since in list(self._since.values()))
        while len(self._threads) < min(CLIENTS_MAX, CLIENTS + stuck):
            self._spawn()

    def pause(self) -> None:
        """Let the clients finish what they are at, for at most `STOP_S`; hanging requests stay open."""
        self.running.clear()
        deadline = time.monotonic() + STOP_S
        while self._since and time.monotonic() < deadline:
            time.sleep(0.005)

    def end(self) -> None:
        """No thread goes on after this; connections of hanging ones are cut. Call it when the history is closed."""
        self._ended.set()
        self.running.set()
        for connection in list(self._connections.values()):
            connection.abort()
        for thread in self._threads:
            thread.join(2.0)

    def _spawn(self) -> None:
        number = len(self._threads)
        thread = threading.Thread(target=self._work, args=(number,), daemon=True, name=f"client-{number}")
        self._threads.append(thread)
        thread.start()

    def _work(self, number: int) -> None:
        rng = random.Random(f"{self._seed} {number}")
        life, made = 0, 0
        last: dict[MarkerDirectory, tuple[str, str]] = {}
        while not self._ended.is_set():
            if not self.running.wait(0.2) or not (servers := self.servers):
                self._ended.wait(IDLE_S)
                continue
            server = rng.choice(servers)
            connection = self._connections.get(number)
            if connection is None or connection.port != server.door:
                if connection is not None:
                    connection.abort()
                connection = self._connections[number] = HttpConnection(server.door, proxied=server.proxied)
            process = f"client-{number}" + (f".{life}" if life else "")
            targets = self._targets
            target = rng.choices(targets, [target.weight for target in targets])[0]
            operation = self._choose(rng, target)
            made += 1
            name = request = ""
            if operation == "create":
                before, request = last.get(target.place, ("", ""))
                name = self._name(rng, target, number, made, before)
                request = request if name == before else f"client-{number}-{made}"
                last[target.place] = (name, request)
            self._since[process] = time.monotonic()
            outcome = self._requests.send(process, server, operation, target.place, name, connection, request)
            self._since.pop(process, None)
            if outcome is None:
                return  # The round is over.
            if outcome.kind == "ok" and operation == "create":
                self._on_ack(target.place)
            life += outcome.kind == "info"
            self._ended.wait(IDLE_S if outcome.kind in ("fail", "info") else rng.choice((0.0, 0.0, 0.002, 0.01)))

    def _choose(self, rng: random.Random, target: LoadedDirectory) -> str:
        dice = rng.random()
        return "create" if dice < 0.86 else rng.choice(READ_ONLY)

    def _name(self, rng: random.Random, target: LoadedDirectory, number: int, made: int, last: str) -> str:
        dice = rng.random()
        if last and dice < 0.08:
            return last
        if dice < 0.2:
            self._hot += 1
            number, made = 900 + self._hot // 24 % HOT_NAMES, self._hot // 96
            kind, partition = MarkerType.CREATE, PARTITIONS[made % len(PARTITIONS)]
        else:
            kind, partition = rng.choice(tuple(MarkerType)), rng.choice(PARTITIONS)
            if target.beyond_latin and rng.random() < 0.1:
                partition = BEYOND_LATIN
        token = f"{number}-0-{made}"
        if kind is MarkerType.APPEND:
            return marker_name(partition, f".f{number}_001.log.{made}_{token}", kind)
        return marker_name(partition, f"f{number}_{token}_001.parquet", kind)
