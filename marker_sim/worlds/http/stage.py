"""What every run against real servers stands on: recorder, servers, storage, and the threads that look and listen.

start ─► faults, while clients ask ─► healed ─► probes ─► end ─► look, kill, look
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from marker_sim import __version__
from marker_sim.history import Header, History
from marker_sim.judges.promises.profiles import Profile
from marker_sim.names import MarkerDirectory, MarkerType, marker_name, parse_directory
from marker_sim.plan import REQUEST_FORMS, Plan
from marker_sim.unusual_names import PARTITIONS
from marker_sim.worlds.http.clients import Requests
from marker_sim.worlds.http.fault_injector import ServerFaultInjector
from marker_sim.worlds.http.http_client import READ_ONLY, HttpConnection
from marker_sim.worlds.http.request_forms import CHUNKED
from marker_sim.worlds.http.servers import Fleet, Server
from marker_sim.worlds.http.starvation import WORTH_MS, Starvation, processor_use
from marker_sim.worlds.http.world import RunGround, RunStorage
from marker_sim.worlds.interceptor import ArmedFault, StorageCall
from marker_sim.worlds.recorder import Recorder

LOOK_EVERY_S = 0.05
ECHO_EVERY_S = 0.05
ECHO_LATE_S = 2.0
ECHOES_A_LOOK = 8  # At the processor times of the servers.
PROBE_SPACE = 2.5
ONCE_S = 10.0
HANGING_GRACE_S = 0.7
FORMS = ("", *(form for form in REQUEST_FORMS if form != CHUNKED))  # Of probes.
KNOWN_MAX = 3  # Names in each directory that are asked for again in the end.


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSystem:
    """The system under test as a run needs it.

    world: the storage under a run.
    identity: whether the server honours the identity of a request, our extension `requestid`.
    batching: what its batches are held to, and why.
    """

    name: str
    version: str
    profile: Profile
    world: Callable[[RunGround], RunStorage]
    identity: bool = False
    batching: dict[str, str] = field(default_factory=dict)


class RunStage:
    """The parts of the run of a plan.

    table: what all tables of the run lie below. wire, reads, power: as of its ground.
    places: the marker directories that are looked at and probed.
    deadline: when the campaign has to be over (time.monotonic).
    """

    def __init__(
        self,
        system: ForeignSystem,
        fleet: Fleet,
        plan: Plan,
        table: str,
        deadline: float,
        *,
        wire: bool = False,
        reads: bool = False,
        power: bool = False,
    ) -> None:
        self.rng = random.Random(f"plan {plan.seed}")
        self.system = system
        self.plan = plan
        self.table = table
        self.recorder = Recorder()
        found = map(parse_directory, plan.directories)
        self.places = tuple(MarkerDirectory(f"{table}/{each.table}", each.instant) for each in found)
        self.deadline = deadline
        self.injector = ServerFaultInjector(fleet, self.recorder, plan, table)
        serves, restarts = self.injector.serves, self.injector.restarts
        ground = RunGround(self.recorder, self.inject, serves, restarts, table, table, wire, reads, power)
        self.world = self.injector.world = system.world(ground)
        self.requests = Requests(self.recorder, self.world.address, system.identity)
        self._asked = itertools.count()
        self._over = threading.Event()
        self._watchers = [
            threading.Thread(target=self._watch, args=(self._keep_looking,), daemon=True),
            threading.Thread(target=self._watch, args=(self._listen_to_echo,), daemon=True),
        ]

    def inject(self, armed: ArmedFault, call: StorageCall) -> None:
        """Do a fault of the plan that is due at a call; the recorder's lock is held, so nothing here waits."""

    def gives_up(self) -> bool:
        """Whether requests that are not answered so far are not awaited."""
        return False

    def history(self) -> History:
        """The recorded history, with its header."""
        system, plan = self.system, self.plan
        header = Header(
            world="foreign",
            mode="timeline",
            sut=system.name,
            sut_version=system.version,
            kit_version=__version__,
            profile=system.profile.name,
            identity=system.identity,
            num_threads=plan.num_threads,
            answer_bound_ms=self.recorder.bound_ms(),
            seed=plan.seed,
            plan=plan.to_dict(),
            options={"interval_ms": str(plan.interval_ms)} | system.batching,
            **self.world.describe(),
        )
        return History(header, tuple(self.recorder.events))

    def phase(self, name: str) -> None:
        """The run enters a phase."""
        self.recorder.record("kit", "kit", "observe", "phase", value=name)

    def watch(self) -> None:
        """Start the threads that read storage and measure the kit's own echo."""
        for watcher in self._watchers:
            watcher.start()

    def stop_watching(self) -> None:
        """The threads that look and listen end."""
        self._over.set()
        for watcher in self._watchers:
            if watcher.ident is not None:
                watcher.join(5.0)

    def ask_once(self, operation: str, place: MarkerDirectory, name: str, form: str = "") -> None:
        """One request of a client that is used for nothing else, if anybody is left to ask. form: as `Op.form`."""
        if not self.injector.servers:
            return  # It ended by itself; that is recorded.
        server = self.injector.servers[0]
        connection = HttpConnection(server.door, timeout_s=ONCE_S, proxied=server.proxied)
        process = f"once-{next(self._asked)}"
        send = partial(self.requests.send, process, server, operation, place, name, connection, form=form)
        asking = threading.Thread(target=self._watch, args=(send,), daemon=True)
        asking.start()
        asking.join(ONCE_S + HANGING_GRACE_S)  # A reply of which a byte comes now and then has no end.
        connection.abort()

    def probe(self) -> None:
        """num_threads + 1 creates for each directory, one a batch, all directories at once; then wait for open ones.

        Their requests are written in every form but in chunks, which a server may refuse (411).
        A create that is not answered does not hold up the next: it is sent when a batch interval has passed. When all
        are answered, each directory is listed, and some names that exist are asked for again.
        """
        injector = self.injector
        injector.check()
        self.phase("probe")
        began_ns = self.recorder.now_ns()
        if not injector.servers:
            return
        for number in range(self.plan.num_threads + 1):
            started = time.monotonic()
            batch = []
            living = injector.servers
            if not living:
                return  # The last one ended by itself; that is recorded.
            for place in self.places:
                args = (number, place, living[0], self.rng.choice(FORMS))
                batch.append(threading.Thread(target=self._probe_one, args=args, daemon=True))
                batch[-1].start()
            for thread in batch:
                left = self.plan.interval_ms / 1000 * PROBE_SPACE - (time.monotonic() - started)
                thread.join(max(left, 0.0))
            injector.check()
        bound_s = self.recorder.bound_ms() / 1000 + HANGING_GRACE_S
        bound_s = min(bound_s, max(self.deadline - time.monotonic(), 1.0))
        injector.wait(bound_s, lambda: not self.recorder.open_since(self.recorder.now_ns()) or self.gives_up())
        if injector.servers and not self.recorder.open_since(began_ns):
            for place in self.places:
                for operation in READ_ONLY:
                    self.ask_once(operation, place, "", self.rng.choice(FORMS))
            self._ask_again()

    def close(self, kill: bool = True) -> None:
        """End the run: read storage once more, with `kill` when the servers are dead."""
        self.injector.check()
        self.phase("end")
        self.recorder.clients_over = True
        self.stop_watching()
        if kill:
            self.injector.end()
        for place in self.places:
            if kill:
                self.world.reader.look_at_dead(place)
            elif self.injector.servers:
                self.world.reader.look(place)
        self.recorder.close()

    def _ask_again(self) -> None:
        """Create names that exist once more, in all directories at once: a server that forgot one answers "created"."""
        threads = []
        for place in self.places:
            known = sorted(self.recorder.answered(place))
            asked = self.rng.sample(known, min(len(known), KNOWN_MAX))
            ask = partial(self._ask_known, place, asked)
            threads.append(threading.Thread(target=self._watch, args=(ask,), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(KNOWN_MAX * (ONCE_S + 2 * HANGING_GRACE_S))

    def _ask_known(self, place: MarkerDirectory, names: list[str]) -> None:
        for name in names:
            self.ask_once("create", place, name)

    def _probe_one(self, number: int, place: MarkerDirectory, server: Server, form: str) -> None:
        partition = PARTITIONS[number % 4]
        name = marker_name(partition, f"p{number}_0-0-{number}_001.parquet", MarkerType.MERGE)
        connection = HttpConnection(server.door, proxied=server.proxied)
        process = f"probe-{self.places.index(place)}-{number}"
        self.requests.send(process, server, "create", place, name, connection, form=form)
        connection.abort()

    def _watch(self, body: Callable[[], object]) -> None:
        try:
            body()
        except BaseException as error:
            self.injector.trouble.append(error)

    def _keep_looking(self) -> None:
        """Read every directory in turn, so that nearly every answer is followed by a reading."""
        while not self._over.is_set():
            for place in self.places:
                if self.injector.servers and not self._over.is_set():
                    self.world.reader.look(place)
                    self._over.wait(self.world.reader.rest_s)
            self._over.wait(LOOK_EVERY_S)

    def _listen_to_echo(self) -> None:
        """When the kit itself is not woken in time, slowness of the server proves nothing; nor when it is starved, of a
        processor or by storage that is the kit's.
        """
        starvation: defaultdict[str, Starvation] = defaultdict(Starvation)
        for number in itertools.count():
            if self._over.is_set():
                break
            before = time.monotonic()
            self._over.wait(ECHO_EVERY_S)
            asked = time.monotonic()
            if asked - before > ECHO_LATE_S:
                self.recorder.record("kit", "kit", "observe", "echo-late")
            self.world.echo()
            slow_ms = int((time.monotonic() - asked) * 1000)
            late_s = max(0.0, asked - before - ECHO_EVERY_S)
            for server in tuple(self.injector.servers):
                self._starved(server, slow_ms)
                own = starvation[server.name]
                own.echo(self.world.held(server.name), late_s, asked - before)
                if number % ECHOES_A_LOOK == 0:
                    self._starved(server, own.look(processor_use(server.pids())))

    def _starved(self, server: Server, lost_ms: int) -> None:
        if lost_ms >= WORTH_MS:
            self.recorder.record(server.name, "kit", "observe", "starved", value=lost_ms)
