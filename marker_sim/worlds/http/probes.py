"""The kit's own requests after those of a plan's clients, and threads that read storage and measure delays."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from marker_sim.names import MarkerDirectory, MarkerType, marker_name
from marker_sim.plan import REQUEST_FORMS, Plan
from marker_sim.unusual_names import PARTITIONS
from marker_sim.worlds.http.clients import Requests
from marker_sim.worlds.http.fault_injector import ServerFaultInjector
from marker_sim.worlds.http.http_client import CHUNKED, READ_ONLY, HttpConnection
from marker_sim.worlds.http.servers import Server
from marker_sim.worlds.http.starvation import WORTH_MS, Starvation, processor_use

LOOK_EVERY_S = 0.05
ECHO_EVERY_S = 0.05
ECHO_LATE_S = 2.0
MEASURE_EVERY_S = 0.4  # Between two measurements of the servers; longer when an echo is late.
PROBE_SPACE = 2.5
ONCE_S = 10.0
HANGING_GRACE_S = 0.7
FORMS = ("", *(form for form in REQUEST_FORMS if form != CHUNKED))  # The forms of probes.
KNOWN_MAX = 3  # Names in each directory that are created again at the end.


@dataclass(eq=False)
class Probes:
    """The requests of clients that only probe.

    deadline: when the campaign has to be over (time.monotonic).
    given_up: whether to stop waiting for unanswered requests.
    """

    plan: Plan
    places: tuple[MarkerDirectory, ...]
    requests: Requests
    injector: ServerFaultInjector
    deadline: float
    given_up: Callable[[], bool]
    _asked: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._rng = random.Random(f"plan {self.plan.seed}")

    def run(self) -> None:
        """num_threads + 1 creates for each directory, one a batch, all directories at once; then wait for open ones.

        Their requests are written in every form but in chunks, which a server may refuse (411).
        A create that is not answered does not hold up the next: it is sent when a batch interval has passed. When all
        are answered, each directory is listed, and some names that exist are asked for again.
        """
        injector, recorder = self.injector, self.injector.recorder
        injector.check()
        recorder.phase("probe")
        began_ns = recorder.now_ns()
        for number in range(self.plan.num_threads + 1):
            until = time.monotonic() + self.plan.interval_ms / 1000 * PROBE_SPACE
            living = injector.servers
            if not living:
                return  # The last server ended by itself, which is recorded.
            for thread in [
                injector.thread(self._probe_one, number, place, living[0], self._rng.choice(FORMS))
                for place in self.places
            ]:
                thread.join(max(until - time.monotonic(), 0.0))
            injector.check()
        bound_s = recorder.bound_ms() / 1000 + HANGING_GRACE_S
        bound_s = min(bound_s, max(self.deadline - time.monotonic(), 1.0))
        injector.wait(bound_s, lambda: not recorder.open_since() or self.given_up())
        if injector.servers and not recorder.open_since(began_ns):
            for place in self.places:
                for operation in READ_ONLY:
                    self.ask_once(operation, place, "", self._rng.choice(FORMS))
            self._ask_again()

    def ask_once(self, operation: str, place: MarkerDirectory, name: str, form: str = "") -> None:
        """Send one request if a server is left. form: as `Op.form`."""
        for server in self.injector.servers[:1]:
            process = f"once-{next(self._asked)}"
            connection = HttpConnection(server.door, ONCE_S, server.proxy is not None)
            send = partial(self.requests.send, process, server, operation, place, name, connection, form=form)
            asking = self.injector.thread(send)
            asking.join(ONCE_S + HANGING_GRACE_S)  # A reply that arrives byte by byte need not end.
            connection.abort()

    def _ask_again(self) -> None:
        """Create names that exist once more, in all directories at once: a server that forgot one answers "created"."""
        threads = []
        for place in self.places:
            known = sorted(self.injector.recorder.answered(place))
            asked = self._rng.sample(known, min(len(known), KNOWN_MAX))
            threads.append(self.injector.thread(self._ask_known, place, asked))
        for thread in threads:
            thread.join(KNOWN_MAX * (ONCE_S + 2 * HANGING_GRACE_S))

    def _ask_known(self, place: MarkerDirectory, names: list[str]) -> None:
        for name in names:
            self.ask_once("create", place, name)

    def _probe_one(self, number: int, place: MarkerDirectory, server: Server, form: str) -> None:
        name = marker_name(PARTITIONS[number % 4], f"p{number}_0-0-{number}_001.parquet", MarkerType.MERGE)
        process = f"probe-{self.places.index(place)}-{number}"
        connection = HttpConnection(server.door, proxied=server.proxy is not None)
        self.requests.send(process, server, "create", place, name, connection, form=form)
        connection.abort()


@dataclass(eq=False)
class Watch:
    """Two threads during a run: one reads storage, the other measures the kit's own delays."""

    injector: ServerFaultInjector
    places: tuple[MarkerDirectory, ...]
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: tuple[threading.Thread, ...] = ()

    def begin(self) -> None:
        """Start both threads."""
        self._threads = self.injector.thread(self._keep_looking), self.injector.thread(self._listen_to_echo)

    def end(self) -> None:
        """End both threads. May be called again."""
        self._over.set()
        for thread in self._threads:
            thread.join(5.0)

    def _keep_looking(self) -> None:
        """Read every directory in turn, so that nearly every answer is followed by a reading."""
        while not self._over.is_set():
            for place in self.places:
                if self.injector.servers and not self._over.is_set():
                    reader = self.injector.world.reader
                    reader.look(place)
                    self._over.wait(reader.rest_s)
            self._over.wait(LOOK_EVERY_S)

    def _listen_to_echo(self) -> None:
        """Measure delays of the kit: if it, its processor or its storage is late, a slow server proves nothing."""
        injector, world = self.injector, self.injector.world
        starvation: defaultdict[str, Starvation] = defaultdict(Starvation)
        due = 0.0
        while not self._over.is_set():
            before = time.monotonic()
            self._over.wait(ECHO_EVERY_S)
            asked = time.monotonic()
            if asked - before > ECHO_LATE_S:
                injector.recorder.record("kit", "kit", "observe", "echo-late")
            world.echo()
            slow_ms = int((time.monotonic() - asked) * 1000)
            looks = asked > due or self._over.is_set()
            for server in tuple(injector.servers):
                lost_ms = slow_ms
                if looks:
                    use, held = processor_use(server.pids()), world.held(server.name)
                    late_s = max(0.0, asked - before - ECHO_EVERY_S)
                    lost_ms = max(slow_ms, starvation[server.name].look(use, held, late_s))
                    due = asked + MEASURE_EVERY_S
                if lost_ms >= WORTH_MS:
                    injector.recorder.record(server.name, "kit", "observe", "starved", value=lost_ms)
